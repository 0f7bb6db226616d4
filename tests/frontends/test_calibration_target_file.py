"""Calibrations as target files, read back."""

import json
from pathlib import Path

import pytest
from calibrated import KnownCopier

from spillprof.frontends.calibration.calibration import Calibration, calibrate, check_parent, render_target
from spillprof.frontends.calibration.measure import Direction, copy_sizes
from spillprof.ir.errors import UsageError
from spillprof.ir.target import Target, load_target
from spillprof.timing.dma import read_link, write_link


def calibration(**machine: float) -> Calibration:
    return calibrate(
        KnownCopier(**machine),  # type: ignore[arg-type]
        copy_sizes(2**12, 2**20),
        prepare=lambda *copy: None,
        budget_s=0.0,
        most_repetitions=3,
    )


def written(found: Calibration, path: Path, *, parent: str = "generic-npu", device: str = "a board") -> Target:
    text = render_target(found, device=device, conditions="warm", date="2001-02-03", parent=parent, path=path)
    path.write_text(text, "utf-8")
    return load_target(str(path))


def test_transfer_of_each_size_takes_exactly_what_the_curve_says(tmp_path: Path) -> None:
    found = calibration(setup_s=3e-6)
    target = written(found, tmp_path / "board.toml")
    for direction, link in ((Direction.READ, read_link(target)), (Direction.WRITE, write_link(target))):
        assert link.setup_s == found.fits[direction].setup_s
        for series in found.of(direction):
            assert link.alone_s(series.size_bytes) == pytest.approx(found.fitted_s(series), rel=1e-12)
    assert (target.dram_read_curve, target.dram_write_curve) == tuple(
        found.fits[way].curve for way in (Direction.READ, Direction.WRITE)
    )


def test_rest_is_that_of_the_parent_and_sources_say_what_was_measured(tmp_path: Path) -> None:
    target = written(calibration(), tmp_path / "board.toml", parent="ethos-u85")
    parent = load_target("ethos-u85")
    assert target.name == "board"
    assert (target.sram_bytes, target.macs_per_cycle) == (parent.sram_bytes, parent.macs_per_cycle)
    assert target.dram_bus_bytes_per_s == pytest.approx(12e9)
    for part in ("2001-02-03", "a board", "warm", "4 KiB to 1 MiB", "least of 3"):
        assert part in target.sources["dram_read_curve"]


def test_directions_that_do_not_limit_each_other_take_the_bus_of_the_parent_away(tmp_path: Path) -> None:
    target = written(calibration(both_bytes_per_s=2e10), tmp_path / "board.toml", parent="ethos-u85")
    assert target.dram_bus_bytes_per_s is None


def test_background_of_the_parent_is_not_counted_twice(tmp_path: Path) -> None:
    (tmp_path / "busy.toml").write_text(
        'inherit = "rk3588"\ndram_bus_bytes_per_s = "60GB/s"\nbackground_bytes_per_s = "50GB/s"\n'
    )
    target = written(calibration(both_bytes_per_s=2e10), tmp_path / "a.toml", parent=str(tmp_path / "busy.toml"))
    assert target.background_bytes_per_s == 0


def test_parent_that_is_a_file_is_named_as_seen_from_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boards").mkdir()
    (tmp_path / "mine.toml").write_text('inherit = "generic-npu"\nsram_bytes = "3MiB"\n')
    monkeypatch.chdir(tmp_path)
    target = written(calibration(), Path("boards") / "board.toml", parent="mine.toml")
    assert target.sram_bytes == 3 * 2**20
    assert 'inherit = "../mine.toml"' in (tmp_path / "boards" / "board.toml").read_text()


def test_name_of_a_device_cannot_break_the_file(tmp_path: Path) -> None:
    name = 'CPU "X"\n[sources]\x07\x7f\u202e\\'
    target = written(calibration(), tmp_path / "board.toml", device=name)
    assert json.dumps(name)[1:-1].split("\\n")[0] in json.dumps(target.sources["dram_read_curve"])
    assert "\x7f" in target.sources["dram_read_curve"]


@pytest.mark.parametrize("parent", ["generic", "vela.ini:System:Mode", "absent.toml", ""])
def test_parents_that_a_file_cannot_have(parent: str) -> None:
    with pytest.raises(UsageError):
        check_parent(parent)
