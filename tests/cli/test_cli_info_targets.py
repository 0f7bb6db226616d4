"""``spillprof info targets NAME``."""

from pathlib import Path

import pytest

from spillprof.cli import run
from spillprof.report.text import display_width


def test_every_field_of_a_target_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "targets", "ethos-u65"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (setup,) = [line for line in lines if line.startswith("dram_read_setup_s ")]
    assert setup.split()[1:3] == ["500", "ns"]
    assert setup.endswith("Dram_read_latency = 500 cycles at 1 GHz")


def test_a_field_that_the_configuration_sets_is_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spillprof.toml").write_text(
        '[targets.mine]\ninherit = "rk3588"\nmacs-per-s = { default = 1e12 }\ndram-read = "40GB/s"\n', "utf-8"
    )
    assert run(["info", "targets", "mine"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert rows["macs_per_s"].endswith("spillprof.toml")
    assert rows["macs_per_cycle"].split()[1:] == ["none", "-"]
    assert rows["dram_read_bytes_per_s"].endswith("spillprof.toml")
    assert "40 GB/s" in rows["dram_bus_bytes_per_s"]


def test_only_a_target_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "strategies", "lru"]) == 2
    assert "'strategies' takes no name" in capsys.readouterr().err
    assert run(["info", "targets", "ethos-u66"]) == 2
    assert "did you mean 'ethos-u6" in capsys.readouterr().err


def test_names_of_wide_and_combining_characters_align(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spillprof.toml").write_text(
        '[targets."端末機一二三"]\ninherit = "rk3588"\n[targets."e\u0301tage"]\ninherit = "rk3588"\n', "utf-8"
    )
    for topic, column in (("targets", "SRAM 1"), ("config", "SRAM 1")):
        assert run(["info", topic]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if "端末機一二三" in line or "\u0301" in line]
        starts = {display_width(line.partition(column)[0]) for line in lines}
        assert (len(lines), len(starts)) == (2, 1)
