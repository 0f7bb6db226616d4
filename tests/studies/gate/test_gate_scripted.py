"""The gate through its command line, in a real repository that commits a baseline."""

import json
import os
import re
from pathlib import Path

import pytest
from gate_models import CONFIG, SIZE, Project, chain

from spillprof.cli import run

SAMPLES = Path(__file__).parents[3] / "sample_models"
Capture = pytest.CaptureFixture[str]


def test_a_committed_baseline_passes(project: Project, capsys: Capture) -> None:
    assert run(["gate"]) == 0
    out, err = capsys.readouterr()
    assert out.count("unchanged ") == 2
    assert "2 of 2 passed" in out
    assert not err


def test_a_harmless_change_passes(project: Project, capsys: Capture) -> None:
    before = (project.folder / "models" / "a.onnx").read_bytes()
    chain(project.folder / "models" / "a.onnx", producer="another exporter")
    assert (project.folder / "models" / "a.onnx").read_bytes() != before
    assert run(["gate"]) == 0
    assert "2 of 2 passed" in capsys.readouterr().out


def test_a_skip_connection_fails_and_its_operators_are_named(project: Project, capsys: Capture) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"^FAIL  regressed +models/a.onnx@npu-96k", out, re.MULTILINE)
    assert re.search(r"^ok    unchanged +models/b.onnx@npu-96k", out, re.MULTILINE)
    # c0 waits for the addition; the two buffers of a convolution beside it do not fit: written once, read once
    assert "spill bytes 0 → 64 KiB, +64 KiB, new spill" in out
    assert "%" not in out.partition("; latency")[0]
    assert re.search(r"operator /body\.[12]/Conv \(Conv\): 0 → 64 KiB.*capacity.*forces out c0", out)
    assert "c0 (needed until /skip/Add)" in out
    assert "buffer c0: 0 → 64 KiB, +64 KiB, new spill; needed until /skip/Add" in out
    assert "if this is meant: spillprof gate --update" in out


def test_the_cause_is_named_without_the_old_model(project: Project, capsys: Capture) -> None:
    (project.folder / "models" / "b.onnx").unlink()
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "models/a.onnx"]) == 1
    assert "/skip/Add" in capsys.readouterr().out


def test_exit_zero_hides_a_failure_and_nothing_else(project: Project) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--exit-zero"]) == 0
    (project.folder / "models" / "b.onnx").write_bytes(b"broken")
    assert run(["gate", "--exit-zero"]) == 2


def test_a_broken_model_gives_2_and_the_others_are_still_judged(project: Project, capsys: Capture) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    (project.folder / "models" / "b.onnx").write_bytes(b"\x08\x07broken")
    assert run(["gate"]) == 2
    out = capsys.readouterr().out
    assert re.search(r"^FAIL +regressed +", out, re.MULTILINE)
    assert "ERROR  error" in out
    assert "--> models/b.onnx" in out
    assert "0 of 2 passed: 1 regressed, 1 error" in out


def test_a_broken_model_leaves_the_baseline_alone(project: Project) -> None:
    before = project.baseline.read_bytes()
    chain(project.folder / "models" / "a.onnx", skip=True)
    (project.folder / "models" / "b.onnx").write_bytes(b"broken")
    assert run(["gate", "--update"]) == 2
    assert project.baseline.read_bytes() == before


def test_a_missing_model_gives_2(project: Project) -> None:
    (project.folder / "models" / "b.onnx").unlink()
    assert run(["gate"]) == 2


def test_a_memory_that_holds_no_operator_gives_2(project: Project) -> None:
    assert run(["gate", "--sram", "1KiB", "--oversized", "error"]) == 2


def test_reformatting_the_baseline_changes_nothing(project: Project, capsys: Capture) -> None:
    assert run(["gate"]) == 0
    before = capsys.readouterr().out
    canonical = project.baseline.read_bytes()
    data = json.loads(canonical)
    shuffled = {"entries": dict(reversed(list(data["entries"].items()))), "schema": data["schema"]}
    project.baseline.write_text(json.dumps(shuffled, separators=(",", ":")), "utf-8")
    assert run(["gate"]) == 0
    assert capsys.readouterr().out == before
    assert run(["gate", "--update"]) == 0
    assert project.baseline.read_bytes() == canonical


def test_the_baseline_is_sorted_whole_and_free_of_place_and_time(project: Project) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--update"]) == 0
    text = project.baseline.read_text("utf-8")
    data = json.loads(text, parse_float=lambda number: pytest.fail(f"{number} is not whole"))
    assert text == json.dumps(data, indent=2, sort_keys=True) + "\n"
    assert str(project.folder) not in text
    assert not re.search(r"20\d\d-\d\d-\d\d", text)
    entry = data["entries"]["models/a.onnx@npu-96k"]
    assert entry["totals"]["spill_bytes"] == 2 * SIZE
    assert entry["config"]["simulator"] >= 1
    assert entry["config"]["target.sram_bytes"] == 96 * 1024
    assert len(entry["model_sha256"]) == 64


def test_updating_twice_gives_the_same_bytes_from_anywhere(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = project.baseline.read_bytes()
    monkeypatch.chdir(project.folder / "models")
    assert run(["gate", "--update"]) == 0
    assert project.baseline.read_bytes() == before
    assert not (project.folder / "models" / "spillprof-baseline.json").exists()
    assert run(["gate", "a.onnx"]) == 0


def test_an_update_accepts_what_regressed(project: Project, capsys: Capture) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--update"]) == 0
    out = capsys.readouterr().out
    assert "taken  regressed" in out
    assert "baseline spillprof-baseline.json, written" in out
    assert run(["gate"]) == 0


def test_an_update_does_not_lift_a_budget(project: Project) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--max-spill", "63KiB", "--update"]) == 1
    assert run(["gate"]) == 0
    assert run(["gate", "--max-spill", "64KiB"]) == 0
    assert run(["gate", "--max-spill", "0"]) == 1


def test_a_budget_of_the_configuration_fails_without_a_baseline(clean_folder: Path, capsys: Capture) -> None:
    chain(clean_folder / "models" / "a.onnx", skip=True)
    (clean_folder / "spillprof.toml").write_text(
        'sram = "96KiB"\n[[models]]\npath = "models/a.onnx"\nmax-spill = 0\nmax-peak = "1MiB"\n', "utf-8"
    )
    assert run(["gate"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  over-budget" in out
    assert "over the budget of 0" in out


def test_a_gain_passes_and_suggests_an_update(project: Project, capsys: Capture) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    run(["gate", "--update"])
    chain(project.folder / "models" / "a.onnx")
    capsys.readouterr()
    assert run(["gate"]) == 0
    out = capsys.readouterr().out
    assert "ok    improved" in out
    assert "64 KiB → 0, −64 KiB (−100.0 %)" in out
    assert "spillprof gate --update" in out


def test_a_ratchet_fails_on_a_gain_until_it_is_taken_over(project: Project) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    run(["gate", "--update"])
    chain(project.folder / "models" / "a.onnx")
    assert run(["gate", "--ratchet"]) == 1
    assert run(["gate", "--ratchet", "--update"]) == 0
    assert run(["gate", "--ratchet"]) == 0


def test_a_ratchet_takes_over_gains_alone(project: Project) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    run(["gate", "--update"])
    chain(project.folder / "models" / "a.onnx")
    chain(project.folder / "models" / "b.onnx", skip=True)
    before = json.loads(project.baseline.read_text("utf-8"))["entries"]
    assert run(["gate", "--ratchet", "--update"]) == 1
    after = json.loads(project.baseline.read_text("utf-8"))["entries"]
    assert after["models/a.onnx@npu-96k"]["totals"]["spill_bytes"] == 0
    assert after["models/b.onnx@npu-96k"] == before["models/b.onnx@npu-96k"]
    assert run(["gate"]) == 1


def test_another_configuration_is_incomparable(project: Project, capsys: Capture) -> None:
    assert run(["gate", "--sram", "128KiB"]) == 2
    assert "target.sram_bytes: baseline 98304, now 131072" in capsys.readouterr().out
    assert run(["gate", "--strategy", "lru"]) == 2
    assert "strategy: baseline 'interval', now 'lru'" in capsys.readouterr().out


def test_another_simulator_revision_is_incomparable(project: Project, capsys: Capture) -> None:
    text = project.baseline.read_text("utf-8")
    project.baseline.write_text(re.sub(r'"simulator": \d+', '"simulator": 0', text, count=1), "utf-8")
    assert run(["gate"]) == 2
    assert "simulator: baseline 0" in capsys.readouterr().out


def test_figures_that_a_time_limit_shaped_are_refused(clean_folder: Path, capsys: Capture) -> None:
    judged = ["gate", str(SAMPLES / "unet.onnx"), "--weights", "cached", "--sram", "1MB", "--strategy", "optimal"]
    assert run([*judged, "--update"]) == 0
    before = Path("spillprof-baseline.json").read_text("utf-8")
    capsys.readouterr()
    assert run([*judged, "--optimize-seconds", "0", "--update"]) == 2
    out = capsys.readouterr().out
    assert "the figures depend on the machine: a time limit cut a search off" in out
    assert "cut off by the time limit, 0 s" in out
    assert "leave --optimize-seconds out" in out
    assert Path("spillprof-baseline.json").read_text("utf-8") == before
    assert run(judged) == 0
    assert run([*judged, "--exit-zero", "--optimize-seconds", "0"]) == 2


def test_a_new_model_warns_and_passes(project: Project, capsys: Capture) -> None:
    project.add_models(["c"])
    assert run(["gate"]) == 0
    assert re.search(r"^warn  new +models/c.onnx@npu-96k", capsys.readouterr().out, re.MULTILINE)


def test_a_removed_model_warns_until_an_update_drops_it(project: Project, capsys: Capture) -> None:
    text = (project.folder / "pyproject.toml").read_text("utf-8")
    (project.folder / "pyproject.toml").write_text(text[: text.rindex("[[")], "utf-8")
    assert run(["gate"]) == 0
    assert "warn  removed" in capsys.readouterr().out
    assert run(["gate", "--update"]) == 0
    assert list(json.loads(project.baseline.read_text("utf-8"))["entries"]) == ["models/a.onnx@npu-96k"]


def test_judging_one_model_says_nothing_of_the_others(project: Project, capsys: Capture) -> None:
    assert run(["gate", "models/a.onnx"]) == 0
    out = capsys.readouterr().out
    assert "b.onnx" not in out
    assert "1 of 1 passed" in out
    run(["gate", "models/a.onnx", "--update"])
    assert len(json.loads(project.baseline.read_text("utf-8"))["entries"]) == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--min-increase", "63KiB"], 1),
        (["--min-increase", "64KiB"], 0),  # the floor is the growth itself: not exceeded
        (["--max-increase", "1000%"], 1),  # from nothing there is no percentage: the floor alone counts
    ],
)
def test_growth_from_nothing_is_judged_by_the_floor(project: Project, options: list[str], code: int) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--metrics", "spill-bytes", *options]) == code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),
        (["--max-increase", "99%"], 1),
        (["--max-increase", "100%"], 0),
        (["--max-increase", "1%", "--min-increase", "32KiB"], 0),  # one of the two is not exceeded
        (["--max-increase", "1%", "--min-increase", "31KiB"], 1),  # both are
    ],
)
def test_growth_must_exceed_both_tolerances(project: Project, options: list[str], code: int) -> None:
    """From 32 KiB to 64 KiB."""
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--update"]) == 0
    data = json.loads(project.baseline.read_text("utf-8"))
    totals = data["entries"]["models/a.onnx@npu-96k"]["totals"]
    assert totals["spill_bytes"] == 2 * SIZE
    totals["spill_bytes"] = SIZE
    project.baseline.write_text(json.dumps(data), "utf-8")
    assert run(["gate", "models/a.onnx", "--metrics", "spill-bytes", *options]) == code


def test_the_baseline_of_another_commit_is_compared(project: Project, capsys: Capture) -> None:
    project.git("checkout", "-q", "-b", "topic")
    chain(project.folder / "models" / "a.onnx", skip=True)
    run(["gate", "--update"])
    project.commit("accept")
    capsys.readouterr()
    assert run(["gate"]) == 0
    assert run(["gate", "--against", "main"]) == 1
    assert "baseline main:spillprof-baseline.json" in capsys.readouterr().out
    assert run(["gate", "--against", "HEAD"]) == 0


def test_a_commit_without_a_baseline_makes_all_new(project: Project, capsys: Capture) -> None:
    project.baseline.unlink()
    project.commit("drop")
    assert run(["gate", "--against", "HEAD"]) == 0
    out, err = capsys.readouterr()
    assert out.count("warn  new") == 2
    assert "there is no baseline in HEAD:spillprof-baseline.json" in err


@pytest.mark.parametrize("ref", ["absent", "--output=x", "HEAD:models", ""])
def test_a_commit_that_is_not_there_gives_2(project: Project, ref: str, capsys: Capture) -> None:
    assert run(["gate", f"--against={ref}"]) == 2
    assert "error: " in capsys.readouterr().err


def test_against_and_update_exclude_each_other(project: Project) -> None:
    assert run(["gate", "--against", "main", "--update"]) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no json", "the baseline is no JSON"),
        ("[]", "this is no baseline of schema"),
        ('{"schema": "spillprof-baseline/9", "entries": {}}', "this is no baseline of schema"),
        ('{"schema": "spillprof-baseline/1", "entries": {"a@b": {}}}', "the baseline cannot be understood"),
        ('{"schema": "spillprof-baseline/1"}', "the baseline cannot be understood"),
        ("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> topic\n", "the baseline has a merge conflict"),
    ],
)
def test_a_baseline_that_is_none_gives_2(project: Project, text: str, complaint: str, capsys: Capture) -> None:
    project.baseline.write_text(text, "utf-8")
    assert run(["gate"]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("config",), [["strategy", "lru"], [1, 2]]),
        (("config", "strategy"), ["lru"]),
        (("config",), "strategy"),
        (("totals", "latency_ns"), float("inf")),
        (("totals", "latency_ns"), -1),
        (("totals", "spill_bytes"), 10**40),
        (("operators",), [{"name": "a", "op_type": "b", "spill_bytes": 1, "stall_ns": 1, "cause": [], "victims": []}]),
        (("buffers",), [{"name": "a", "size_bytes": 1, "spill_bytes": float("nan"), "needed_by": None}]),
    ],
)
def test_a_baseline_with_a_value_of_the_wrong_kind_gives_2(
    project: Project, path: tuple[str, ...], value: object, capsys: Capture
) -> None:
    data = json.loads(project.baseline.read_text("utf-8"))
    inner = data["entries"]["models/a.onnx@npu-96k"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    project.baseline.write_text(json.dumps(data), "utf-8")
    assert run(["gate"]) == 2
    assert "error: the baseline " in capsys.readouterr().err


def test_a_baseline_that_is_a_link_to_nowhere_gives_2(project: Project, capsys: Capture) -> None:
    project.baseline.unlink()
    os.symlink("absent.json", project.baseline)
    assert run(["gate"]) == 2
    assert "cannot read the baseline" in capsys.readouterr().err


def test_nothing_to_judge_is_a_usage_error(clean_folder: Path, capsys: Capture) -> None:
    assert run(["gate"]) == 2
    assert "there is no model to judge" in capsys.readouterr().err


def test_several_strategies_are_too_many(project: Project, capsys: Capture) -> None:
    text = CONFIG.replace('"interval"', '["lru", "interval"]')
    (project.folder / "pyproject.toml").write_text(text, "utf-8")
    assert run(["gate"]) == 2
    assert "a gate judges one strategy" in capsys.readouterr().err
    (project.folder / "pyproject.toml").write_text(text + '\n[tool.spillprof.gate]\nstrategy = "interval"\n', "utf-8")
    assert run(["gate"]) == 0
