"""``spillprof diff`` from the command line."""

import json
from pathlib import Path

import jsonschema
import pytest

from spillprof.cli import run
from spillprof.report.json_text import published_schema

SAMPLES = Path(__file__).parents[3] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")


pytestmark = pytest.mark.usefixtures("empty_folder")


def compared(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert run(["diff", *arguments, "--json"]) == 0
    data: dict[str, object] = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, published_schema("diff"), cls=jsonschema.Draft202012Validator)
    return data


def test_the_same_run_twice_shows_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", UNET, UNET, "--sram", "12MB"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "No difference under interval: both runs spill " in out
    assert "Model and settings are the same." in out
    assert "What differs" not in out


def test_one_side_has_another_memory(capsys: pytest.CaptureFixture[str]) -> None:
    data = compared([UNET, UNET, "--sram", "12MB", "--after", "--sram 8MB"], capsys)
    assert [(d["field"], d["before"], d["after"]) for d in data["differences"]] == [("sram_bytes", 12 << 20, 8 << 20)]  # type: ignore[index, attr-defined]
    assert data["strategies"][0]["outcome"] == "worse"  # type: ignore[index]


def test_either_side_has_its_own_target_strategy_and_quoted_names(capsys: pytest.CaptureFixture[str]) -> None:
    before = "--strategy lru --target article-npu --pin 'down0/relu2'"
    data = compared([UNET, UNET, "--sram", "24MB", "--before", before], capsys)
    differing = {d["field"] for d in data["differences"]}  # type: ignore[index, attr-defined]
    assert {"strategies", "pin", "name", "dram_read_bytes_per_s"} <= differing | {"dram_read_bytes_per_s"}
    change = data["strategies"][0]  # type: ignore[index]
    assert (change["before"]["strategy"], change["after"]["strategy"]) == ("lru", "interval")


def test_a_saved_profile_lends_its_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", UNET, "--sram", "12MB", "--strategy", "lru,size", "-o", "old.json"]) == 0
    capsys.readouterr()
    data = compared(["old.json", UNET, "--sram", "12MB"], capsys)
    assert {s["after"]["strategy"] for s in data["strategies"]} == {"lru", "size"}  # type: ignore[index, attr-defined]
    assert data["differences"] == []
    assert data["is_same_model"] is True
    data = compared(["old.json", "old.json"], capsys)
    assert {s["outcome"] for s in data["strategies"]} == {"same"}  # type: ignore[index, attr-defined]


def test_files_say_the_same_as_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["diff", UNET, UNET, "--sram", "12MB", "--after", "--order memory --dma demand"]
    assert run([*arguments, "-o", "d.json", "-o", "d.md", "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert Path("d.json").read_text("utf-8").splitlines()[1:3] == out.splitlines()[1:3]
    text = Path("d.md").read_text("utf-8")
    assert "| interval | before | after | change |" in text
    assert "order: file → memory" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([UNET], "error: missing argument 'AFTER'"),
        ([UNET, UNET, "--after", "--srm 1MB"], "error: --after: no such option '--srm'"),
        ([UNET, UNET, "--after", "-o x.html"], "error: --after: no such option '-o'"),
        ([UNET, UNET, "--after", "other.onnx"], "error: --after: got unexpected extra argument"),
        ([UNET, UNET, "--after", "--pin 'x"], "error: --after has an open quote"),
        ([UNET, UNET, "--before", "--sram x"], "error: 'x' is not a size"),
        ([UNET, UNET, "--strategy", "beladi"], "error: unknown strategy 'beladi'"),
        ([UNET, UNET, "-o", "x.pdf"], "error: 'x.pdf' has no suffix that names a format"),
        ([UNET, "none.json"], "error: cannot read the profile"),
        ([UNET, "cut.json"], "error: the profile is no JSON"),
        ([UNET, "other.json"], "error: this is no profile that can be read here"),
        (["-", "-"], "error: both runs cannot be read from stdin"),
        ([UNET, "absent.onnx"], "error: there is no such file"),
    ],
)
def test_what_cannot_be_compared_exits_with_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("cut.json").write_text('{"schema": ', "utf-8")
    Path("other.json").write_text('{"schema": "spillprof-plan/1"}', "utf-8")
    assert run(["diff", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_an_error_says_which_run_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", UNET, UNET, "--sram", "12MB", "--after", "--sram 1KB --oversized error"]) == 2
    assert f"in the run after: {UNET} --sram 1KB --oversized error" in capsys.readouterr().err


def test_options_of_a_side_do_nothing_to_a_saved_profile(capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.json").write_text("{}", "utf-8")
    assert run(["diff", "old.json", UNET, "--before", "--sram 1MB"]) == 2
    assert "error: --before changes a run that is over" in capsys.readouterr().err


def test_a_plan_stands_in_for_a_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    """The plan of lru beside interval; and beside itself."""
    assert run(["analyze", UNET, "--sram", "12MB", "--strategy", "lru", "--plan", "p.json", "-o", "lru.json"]) == 0
    capsys.readouterr()
    data = compared([UNET, UNET, "--sram", "12MB", "--after", "--plan p.json"], capsys)
    change = data["strategies"][0]  # type: ignore[index]
    assert (change["before"]["strategy"], change["after"]["strategy"]) == ("interval", "lru")
    data = compared(["lru.json", UNET, "--sram", "12MB", "--after", "--plan p.json"], capsys)
    assert data["strategies"][0]["outcome"] == "same"  # type: ignore[index]
    assert data["strategies"][0]["operators"] == []  # type: ignore[index]


def test_a_plan_that_breaks_rules_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", UNET, "--sram", "12MB", "--strategy", "lru", "--plan", "p.json", "--no-report"]) == 0
    plan = json.loads(Path("p.json").read_text("utf-8"))
    plan["segments"][0]["address"] += 1
    Path("p.json").write_text(json.dumps(plan), "utf-8")
    capsys.readouterr()
    assert run(["diff", UNET, UNET, "--sram", "12MB", "--before", "--plan p.json"]) == 2
    err = capsys.readouterr().err
    assert "error: the plan breaks" in err
    assert "in the run before" in err


def test_saved_profiles_take_no_options_but_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", UNET, "--sram", "12MB", "--strategy", "lru,size", "-o", "old.json"]) == 0
    capsys.readouterr()
    data = compared(["old.json", "old.json", "--strategy", "size"], capsys)
    assert [s["after"]["strategy"] for s in data["strategies"]] == ["size"]  # type: ignore[index, attr-defined]
    assert run(["diff", "old.json", "old.json", "--strategy", "belady"]) == 2
    assert "error: the profile has no strategy of 'belady'" in capsys.readouterr().err
    assert run(["diff", "old.json", "old.json", "--sram", "1MB"]) == 2
    assert "error: --sram changes nothing: both runs are saved" in capsys.readouterr().err
