"""A sweep against single analyses, run by run, process by process."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.errors import UsageError
from spillprof.ir.graph import Bindings, Graph
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.target import Target, load_target
from spillprof.lowering.options import LoweringOptions, Oversized
from spillprof.planning.options import PlanningOptions, Release
from spillprof.report.sweep.data import render_csv, render_json
from spillprof.studies.fingerprint import source_digest
from spillprof.studies.sweep.cases import SweepModel, case_digest, make_study
from spillprof.studies.sweep.grid import Grid
from spillprof.studies.sweep.local import InProcess, Processes
from spillprof.studies.sweep.result import Sweep, conclude
from spillprof.studies.sweep.rows import Row, SweepCase, read_rows
from spillprof.studies.sweep.work import Study

SAMPLES = Path(__file__).parents[3] / "sample_models"
TARGET = load_target("generic-npu")
MIB = 1 << 20
PAIRS = list(product(("first-fit", "best-fit"), ("lru", "interval")))
SIZES = [MIB // 2, 3 * MIB // 2, 2 * MIB]


@cache
def _read(name: str) -> Graph:
    return read_model(str(SAMPLES / f"{name}.onnx"))


@pytest.fixture(scope="module")
def study() -> tuple[Study, list[SweepCase]]:
    sources = [SweepModel(model=name, graph=_read(name), dims={}) for name in ("unet", "transformer_blocks")]
    settings = [{"dram_read_bytes_per_s": 30e9}, {"dram_read_bytes_per_s": 60e9}]
    return make_study(sources, TARGET, settings, LoweringOptions(), PlanningOptions())


@pytest.fixture(scope="module")
def rows(study: tuple[Study, list[SweepCase]]) -> tuple[Row, ...]:
    run = Grid(study[1], PAIRS, {})
    run.at(SIZES, InProcess(study[0]), lambda done, total: None)
    return run.rows()


def _sweep(study: tuple[Study, list[SweepCase]], rows: Sequence[Row]) -> Sweep:
    return conclude(*study, rows, within=0.05, complete=True, target={"name": "t"}, config={}, command="")


def test_rows_stand_in_the_order_of_the_grid(rows: tuple[Row, ...]) -> None:
    rates = (30e9, 60e9)
    assert [(r.model, r.settings["dram_read_bytes_per_s"], r.sram_bytes, r.placement, r.strategy) for r in rows] == [
        (model, rate, size, *pair)
        for model, rate, size, pair in product(("unet", "transformer_blocks"), rates, SIZES, PAIRS)
    ]


@pytest.mark.parametrize("placement", ["first-fit", "best-fit"])
def test_each_row_is_what_an_analysis_finds(rows: tuple[Row, ...], placement: str) -> None:
    for model, rate, size in product(("unet", "transformer_blocks"), (30e9, 60e9), SIZES):
        target = TARGET.with_overrides(sram_bytes=size, dram_read_bytes_per_s=rate)
        options = AnalyzeOptions(strategies=("lru", "interval"), planning=PlanningOptions(placement=placement))
        profile = analyze(_read(model), target, options)
        results = profile.results
        own = [r for r in rows if (r.model, r.settings["dram_read_bytes_per_s"], r.sram_bytes, r.placement)
               == (model, rate, size, placement)]  # fmt: skip
        assert {row.spill_bytes_lower for row in own} == {profile.bounds.spill_bytes_lower if profile.bounds else None}
        for row, result in zip(own, results, strict=True):
            for name in (
                "strategy",
                "spill_bytes",
                "latency_s",
                "spill_time_s",
                "energy_j",
                "peak_bytes",
                "spill_count",
            ):
                assert getattr(row, name) == getattr(result, name), (name, row)


def test_processes_find_the_same_bytes(study: tuple[Study, list[SweepCase]], rows: tuple[Row, ...]) -> None:
    run = Grid(study[1], PAIRS, {})
    told: list[tuple[int, int]] = []
    runner = Processes(study[0], 2)
    try:
        run.at(SIZES[:1], runner, lambda done, total: told.append((done, total)))
        run.at(SIZES, runner, lambda done, total: told.append((done, total)))
    finally:
        runner.close()
    assert render_json(_sweep(study, run.rows())) == render_json(_sweep(study, rows))
    assert told[-1] == (len(rows), len(rows))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@dataclass(frozen=True, kw_only=True)
class _LaterTarget(Target):
    """The target of a later version, with a field more."""

    banks: int = 1


@dataclass(frozen=True, kw_only=True)
class _LaterPlanning(PlanningOptions):
    """The options of a later version, with a switch more."""

    patience: int = 3


def test_a_field_at_its_default_is_no_part_of_a_key() -> None:
    def key(target: Target = TARGET, planning: PlanningOptions | None = None, code: str = "", **bound: object) -> str:
        bindings = Bindings(**bound)  # type: ignore[arg-type]
        return case_digest("model", bindings, target, LoweringOptions(), planning or PlanningOptions(), code)

    own = {column.name: getattr(TARGET, column.name) for column in fields(TARGET)}
    assert key(_LaterTarget(**own)) == key(planning=_LaterPlanning()) == key(trips={}, batch=None) == key()
    others = [
        key(_LaterTarget(**own, banks=2)),
        key(planning=_LaterPlanning(patience=4)),
        key(batch=2),
        key(TARGET.with_overrides(cores=2)),
        key(planning=PlanningOptions(release=Release.END)),
        key(planning=PlanningOptions(optimize_work=1)),
        key(planning=PlanningOptions(optimize_seconds=1.0)),
        key(code="another strategy"),
    ]
    assert len({key(), *others}) == 9
    assert key(TARGET.with_overrides(name="other", sram_bytes=1), PlanningOptions(placement="first-fit")) == key()


def test_rows_of_another_simulator_revision_are_not_reused(
    study: tuple[Study, list[SweepCase]], rows: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reused() -> int:
        sources = [SweepModel(model="unet", graph=study[0].runs[0].graph, dims={})]
        setting = {"dram_read_bytes_per_s": 30e9}
        again, cases = make_study(sources, TARGET, [setting], LoweringOptions(), PlanningOptions())
        run = Grid(cases, PAIRS[:1], {row.key: row for row in rows})
        run.at(SIZES[:1], InProcess(again), lambda done, total: None)
        return run.reused

    assert reused() == 1
    with monkeypatch.context() as later:
        later.setattr("spillprof.studies.fingerprint.SIMULATOR_REVISION", SIMULATOR_REVISION + 1)
        assert reused() == 0
    assert reused() == 1
    monkeypatch.setattr("spillprof.studies.sweep.cases.source_digest", lambda: "of a changed strategy")
    assert reused() == 0


def test_the_digest_of_the_code_follows_every_room_that_makes_figures(tmp_path: Path) -> None:
    """In a copy of the package, a change of a strategy changes it; a change of a report does not."""
    root = Path(__file__).parents[3] / "spillprof"
    shutil.copytree(root, tmp_path / "spillprof", ignore=shutil.ignore_patterns("__pycache__"))

    def digest() -> str:
        script = "from spillprof.studies.fingerprint import source_digest; print(source_digest())"
        command = [sys.executable, "-c", script]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    before = digest()
    assert before == source_digest()
    report = next((tmp_path / "spillprof" / "report").rglob("terminal.py"))
    report.write_text(report.read_text("utf-8") + "# changed\n", "utf-8")
    assert digest() == before
    strategy = tmp_path / "spillprof" / "planning" / "strategies.py"
    strategy.write_text(strategy.read_text("utf-8") + "# changed\n", "utf-8")
    assert digest() != before


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_finished_rows_of_an_earlier_run_are_reused(
    study: tuple[Study, list[SweepCase]], rows: tuple[Row, ...], tmp_path: Path, suffix: str
) -> None:
    earlier = Grid(study[1], PAIRS[:1], {})
    earlier.at(SIZES[1:], InProcess(study[0]), lambda done, total: None)
    file = tmp_path / f"earlier{suffix}"
    render = render_json if suffix == ".json" else render_csv
    file.write_text(render(_sweep(study, earlier.rows())), "utf-8")
    again = Grid(study[1], PAIRS, read_rows(str(file)))
    again.at(SIZES, InProcess(study[0]), lambda done, total: None)
    assert again.reused == len(earlier.rows()) == 8
    assert render_json(_sweep(study, again.rows())) == render_json(_sweep(study, rows))


def test_rows_of_another_machine_are_not_reused(study: tuple[Study, list[SweepCase]], rows: tuple[Row, ...]) -> None:
    sources = [SweepModel(model="unet", graph=study[0].runs[0].graph, dims={})]
    _, cases = make_study(sources, TARGET, [{"dram_read_bytes_per_s": 31e9}], LoweringOptions(), PlanningOptions())
    run = Grid(cases, PAIRS, {row.key: row for row in rows})
    run.at(SIZES, InProcess(study[0]), lambda done, total: None)
    assert run.reused == 0


@pytest.mark.parametrize(
    "text", ["", "{}", '{"rows": [{}]}', '{"rows": 3}', "a,b\n1,2\n", '{"rows": [null]}', "[" * 100_000]
)
@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_file_that_is_no_sweep_cannot_be_resumed(tmp_path: Path, text: str, suffix: str) -> None:
    file = tmp_path / f"wrong{suffix}"
    file.write_text(text, "utf-8")
    with pytest.raises(UsageError, match="result of a sweep"):
        read_rows(str(file))


def test_a_point_that_fails_is_a_row_with_its_error(study: tuple[Study, list[SweepCase]]) -> None:
    sources = [
        SweepModel(model="unet", graph=study[0].runs[0].graph, dims={}),
        SweepModel(model="broken", graph=None, dims={}, error="cannot be read"),
    ]
    lowering = LoweringOptions(oversized=Oversized.ERROR)
    strict, cases = make_study(sources, TARGET, [{}], lowering, PlanningOptions())
    run = Grid(cases, [("best-fit", "lru")], {})
    run.at([MIB, 32 * MIB], InProcess(strict), lambda done, total: None)
    small, large, *broken = run.rows()
    assert "needs" in small.status
    assert small.spill_bytes is small.latency_s is small.spill_time_s is None
    assert large.ok
    assert [row.status for row in broken] == ["cannot be read"] * 2
    sweep = conclude(strict, cases, run.rows(), within=0.05, complete=True, target={}, config={}, command="")
    assert [case.min_sram_bytes for case in sweep.cases] == [cases[0].min_sram_bytes, None]


def test_two_names_of_one_model_have_rows_each() -> None:
    sources = [SweepModel(model=name, graph=_read("unet"), dims={}) for name in ("a.onnx", "b.onnx")]
    made, cases = make_study(sources, TARGET, [{}], LoweringOptions(), PlanningOptions())
    run = Grid(cases, [("best-fit", "lru")], {})
    run.at([8 * MIB], InProcess(made), lambda done, total: None)
    first, second = run.rows()
    assert (first.model, second.model) == ("a.onnx", "b.onnx")
    assert (first.spill_bytes, first.latency_s) == (second.spill_bytes, second.latency_s)
