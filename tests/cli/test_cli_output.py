"""Where results go: stdout, stderr, files."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import spillprof.report.profile.html
from spillprof.cli import run
from spillprof.cli.output import default_report

SAMPLES = Path(__file__).parents[2] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")
ONE = ["analyze", UNET, "--sram", "12MB", "--strategy", "interval"]


pytestmark = pytest.mark.usefixtures("empty_folder")


def test_without_o_the_report_is_named_after_the_model(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ONE) == 0
    out, err = capsys.readouterr()
    assert [p.name for p in empty_folder.iterdir()] == ["unet.spill.html"]
    assert re.fullmatch(r"Wrote unet\.spill\.html \([\d.]+ MiB\)\n", err)
    assert "interval" in out
    assert "Wrote" not in out


@pytest.mark.parametrize("option", [["--no-report"], ["--json"], ["-o", "-"]])
def test_no_file_is_written_unasked(option: list[str], empty_folder: Path) -> None:
    assert run([*ONE, *option]) == 0
    assert list(empty_folder.iterdir()) == []


@pytest.mark.parametrize("option", [["--json"], ["-o", "-"]])
def test_json_on_stdout_is_nothing_but_json(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ONE, *option]) == 0
    out, err = capsys.readouterr()
    profile = json.loads(out)
    assert profile["schema"] == "spillprof-profile/1"
    assert profile["target"]["sram_bytes"] == 12 * 1024 * 1024
    assert [r["strategy"] for r in profile["results"]] == ["interval"]
    assert err == ""


def test_events_are_in_the_json_only_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    run([*ONE, "--json"])
    without = json.loads(capsys.readouterr().out)
    run([*ONE, "--json", "--events"])
    with_events = json.loads(capsys.readouterr().out)
    assert "events" not in without["results"][0]
    assert with_events["results"][0]["events"]


def test_each_suffix_gives_its_format(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ONE, "-o", "a.html", "-o", "b.JSON", "-o", "c.md", "-o", "d.csv"]) == 0
    assert sorted(p.name for p in empty_folder.iterdir()) == ["a.html", "b.JSON", "c.md", "d.csv"]
    assert (empty_folder / "a.html").read_text("utf-8").lower().startswith("<!doctype html>")
    assert json.loads((empty_folder / "b.JSON").read_text("utf-8"))["results"]
    assert "interval" in (empty_folder / "c.md").read_text("utf-8")
    assert "," in (empty_folder / "d.csv").read_text("utf-8").splitlines()[0]
    assert capsys.readouterr().err.count("Wrote ") == 4


def test_quiet_says_nothing_beside_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ONE, "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_a_failure_while_rendering_leaves_the_old_files_alone(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(profile: object) -> str:
        raise MemoryError

    monkeypatch.setattr(spillprof.report.profile.html, "render", fail)
    (empty_folder / "a.json").write_text("old")
    assert run([*ONE, "-o", "a.json", "-o", "b.html"]) == 2
    assert [p.name for p in empty_folder.iterdir()] == ["a.json"]
    assert (empty_folder / "a.json").read_text() == "old"


def test_a_failure_while_writing_leaves_the_old_file_alone(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: object, target: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", fail)
    (empty_folder / "a.json").write_text("old")
    assert run([*ONE, "-o", "a.json"]) == 2
    assert [p.name for p in empty_folder.iterdir()] == ["a.json"]
    assert (empty_folder / "a.json").read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_linked_output_stays_a_link(empty_folder: Path) -> None:
    (empty_folder / "real").mkdir()
    (empty_folder / "a.json").symlink_to(empty_folder / "real" / "b.json")
    assert run([*ONE, "-o", "a.json"]) == 0
    assert (empty_folder / "a.json").is_symlink()
    assert json.loads((empty_folder / "real" / "b.json").read_text())["results"]


def test_two_runs_write_the_same_bytes(empty_folder: Path) -> None:
    for name in ("a", "b"):
        (empty_folder / name).mkdir()
    arguments = [*ONE, "-o", "x.html", "-o", "x.json", "-o", "x.md", "-o", "x.csv"]
    for name in ("a", "b"):
        os.chdir(empty_folder / name)
        assert run(arguments) == 0
    for suffix in ("html", "json", "md", "csv"):
        assert (empty_folder / "a" / f"x.{suffix}").read_bytes() == (empty_folder / "b" / f"x.{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("model", "graph", "name"),
    [
        ("models/residual_cnn.onnx", "g", "residual_cnn.spill.html"),
        ("noext", "g", "noext.spill.html"),
        ("-", "main graph", "main graph.spill.html"),
        ("-", "../../etc/pass\x1bwd", "_.._etc_pass_wd.spill.html"),
        ("-", "", "model.spill.html"),
        ("-", "...", "model.spill.html"),
        ("-", "con", "model_con.spill.html"),
        ("-", "a\u202eb<c>:d", "a_b_c__d.spill.html"),
        ("-", "x" * 10_000, "x" * 100 + ".spill.html"),
    ],
)
def test_file_names_made_of_model_names_are_harmless(model: str, graph: str, name: str) -> None:
    assert default_report(model, graph) == name


def test_a_plan_that_analyze_writes_is_legal_for_verify(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ONE, "--no-report", "--json", "--plan", "p.json"]) == 0
    analysed = json.loads(capsys.readouterr().out)["results"][0]
    assert run(["verify", UNET, "p.json", "--sram", "12MB", "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)
    assert verified["legal"]
    for key, value in verified["result"].items():
        assert analysed[key] == value, key


def test_a_plan_that_breaks_a_rule_is_listed_and_exits_with_2(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*ONE, "--no-report", "--plan", "p.json"])
    plan = json.loads((empty_folder / "p.json").read_text())
    for segment in plan["segments"]:
        segment["address"] += 1
    (empty_folder / "p.json").write_text(json.dumps(plan))
    capsys.readouterr()
    assert run(["verify", UNET, "p.json", "--sram", "12MB"]) == 2
    out, err = capsys.readouterr()
    assert "misaligned" in out
    assert "not legal" in out
    assert err == ""


def _false_plans(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By the rule that it breaks: the plan with one thing in it that is not so."""
    transfers = plan["transfers"]
    last = max(k for k, t in enumerate(transfers) if t["kind"] == "drain")
    loads = [t for t in transfers if t["kind"] != "fetch"]
    first, *others = plan["spills"]
    return {
        "needless-write": {**plan, "transfers": [*transfers, transfers[last]]},
        "bad-spill": {**plan, "spills": [{**first, "written": not first["written"]}, *others]},
        "other-terms": {**plan, "transfers": loads, "inputs_resident": True},
    }


@pytest.mark.parametrize("rule", ["needless-write", "bad-spill", "other-terms"])
def test_a_plan_cannot_overrule_the_command_nor_say_what_is_not_so(
    rule: str, empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*ONE, "--no-report", "--plan", "p.json"])
    plan = json.loads((empty_folder / "p.json").read_text())
    (empty_folder / "p.json").write_text(json.dumps(_false_plans(plan)[rule]))
    capsys.readouterr()
    assert run(["verify", UNET, "p.json", "--sram", "12MB", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert not found["legal"]
    assert {violation["rule"] for violation in found["violations"]} == {rule}


def test_a_certificate_for_other_options_proves_nothing_of_these(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([*ONE, "--no-report", "-o", "p.json"])
    check = ["verify", UNET, "--certificate", "p.json", "--sram", "12MB"]
    assert run(check) == 0
    capsys.readouterr()
    assert run([*check, "--writeback", "always"]) == 2
    assert "writes_always is false, the options say true" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[", "[]", "null", '{"schema": 1}', "[" * 100_000])
def test_what_is_no_plan_is_refused(text: str, empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (empty_folder / "p.json").write_text(text)
    assert run(["verify", UNET, "p.json", "--sram", "12MB"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_inspect_lists_all_in_json_and_the_largest_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", UNET, "--top", "2"]) == 0
    page = capsys.readouterr().out
    assert run(["inspect", UNET, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["operators"]) == 24
    assert f"{found['peak_live_bytes']:,} B" in page
    assert "up0/join" in page
    assert "Largest operators (2 of 24)" in page
    assert len(page.splitlines()) < 20


def test_a_model_is_read_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with open(UNET, "rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": file}))
        assert run(["inspect", "-", "--json"]) == 0
    from_stdin = json.loads(capsys.readouterr().out)
    run(["inspect", UNET, "--json"])
    from_file = json.loads(capsys.readouterr().out)
    assert from_stdin["tensors"] == from_file["tensors"]


def test_an_environment_variable_sets_an_option_and_the_command_line_wins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPILLPROF_SRAM", "14MB")
    monkeypatch.setenv("SPILLPROF_STRATEGY", "lru")
    assert run(["analyze", UNET, "--json", "--strategy", "interval"]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert profile["target"]["sram_bytes"] == 14 * 1024 * 1024
    assert [r["strategy"] for r in profile["results"]] == ["interval"]
    assert profile["command"].startswith("SPILLPROF_SRAM=14MB SPILLPROF_STRATEGY=lru spillprof analyze ")


@pytest.mark.parametrize(
    ("options", "environment", "colored"),
    [
        ([], {}, False),  # stdout is no terminal here
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "0"}, False),
        ([], {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ([], {"SPILLPROF_COLOR": "always"}, True),
    ],
)
def test_colour_follows_the_option_then_the_environment_then_the_terminal(
    options: list[str],
    environment: dict[str, str],
    colored: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(["inspect", UNET, *options]) == 0
    assert ("\x1b[" in capsys.readouterr().out) is colored


def test_pinning_and_memory_size_reach_the_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    residual = str(SAMPLES / "residual_cnn.onnx")
    spilled = {}
    for name, options in {"plain": [], "pinned": ["--pin", "f0"], "large": ["--sram", "48MB"]}.items():
        assert run(["analyze", residual, "--strategy", "lru", "--what-if", "off", "--json", *options]) == 0
        spilled[name] = json.loads(capsys.readouterr().out)["results"][0]["spill_bytes"]
    assert spilled["large"] == 0 < spilled["pinned"] < spilled["plain"]
