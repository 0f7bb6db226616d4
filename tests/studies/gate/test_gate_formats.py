"""Every format of a gate against its parser or its schema."""

import json
import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from gate_models import Project, chain

from spillprof.cli import run
from spillprof.ir.metric import Metric
from spillprof.report.exports.registry import Subject, named_export
from spillprof.report.gate.text import LONGEST, MARKER, MOST_ANNOTATIONS, escape_data, escape_property
from spillprof.report.json_text import published_schema
from spillprof.studies.gate.compare import changes, judge
from spillprof.studies.gate.values import (
    Entry,
    Failure,
    Figures,
    GateCheck,
    GateReport,
    Location,
    MetricChange,
    Moved,
    Policy,
    Rules,
    Verdict,
)

HOSTILE = '</script><img src=x onerror=1>|`%0A::error::\x1b[2J\r\n\u202e"&' + "n" * 5000

SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": {"type": "object", "required": ["text"]},
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {
                                                        "level": {"enum": ["none", "note", "warning", "error"]}
                                                    },
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message", "ruleId", "locations", "partialFingerprints"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"type": "object", "required": ["text"]},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "type": "object",
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {"type": "string", "pattern": r"^[\w./%@~-]+$"}
                                                        },
                                                    },
                                                    "region": {
                                                        "type": "object",
                                                        "properties": {"startLine": {"type": "integer", "minimum": 1}},
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                                "partialFingerprints": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                    "minProperties": 1,
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What SARIF 2.1.0 requires of the parts that are written here."""


def _rendered(name: str, report: GateReport) -> str:
    content = named_export(Subject.GATE, name).render(report)
    assert isinstance(content, str)
    return content


def _totals(spill_bytes: int, latency_ns: int = 1000) -> Figures:
    return Figures(spill_bytes=spill_bytes, latency_ns=latency_ns, peak_live_bytes=10, energy_pj=5, spill_count=1,
                  reload_count=1)  # fmt: skip


def _entry(spill_bytes: int) -> Entry:
    return Entry(config={"simulator": 1}, model_sha256="0" * 64, totals=_totals(spill_bytes))


def _regressed(model: str, name: str = "/add") -> GateCheck:
    now, before = _entry(3000), _entry(1000)
    return GateCheck(
        model=model,
        target="npu",
        verdict=Verdict.REGRESSED,
        changes=(
            MetricChange(metric=Metric.SPILL_BYTES, before=1000, after=3000, allowed=10),
            MetricChange(metric=Metric.LATENCY, before=1000, after=1000, allowed=None),
        ),
        moved=(
            Moved(kind="operator", name=name, op_type="Add", metric=Metric.SPILL_BYTES, before=1000, after=3000,
                  cause="capacity", victims=(name,)),
            Moved(kind="buffer", name=name, metric=Metric.SPILL_BYTES, before=None, after=2000, needed_by=name),
        ),
        model_changed=now.model_sha256 != before.model_sha256,
        entry=now,
        location=Location(file="py project,a:b.toml", line=7),
    )  # fmt: skip


def _report(*checks: GateCheck, policy: Policy = Policy.SUGGEST) -> GateReport:
    return GateReport(
        spillprof_version="0.1.0", simulator_revision=1, baseline="baseline.json", checks=checks, policy=policy
    )


EVERY = _report(
    _regressed("models/a.onnx"),
    _regressed(HOSTILE, HOSTILE),
    GateCheck(model="broken", target="npu", verdict=Verdict.ERROR, failure=Failure(message=HOSTILE, where=(HOSTILE,),
          hint=HOSTILE)),
    GateCheck(model="other", target="npu", verdict=Verdict.INCOMPARABLE, mismatches=(HOSTILE, "a: baseline 1, now 2"),
          changes=(MetricChange(metric=Metric.SPILL_BYTES, before=None, after=1, allowed=None),), entry=_entry(1)),
    GateCheck(model="large", target="tiny", verdict=Verdict.OVER_BUDGET, entry=_entry(2),
          changes=(MetricChange(metric=Metric.SPILL_BYTES, before=0, after=2, allowed=0, budget=1),)),
    GateCheck(model="new", target="tiny", verdict=Verdict.NEW, entry=_entry(2),
          changes=(MetricChange(metric=Metric.SPILL_BYTES, before=None, after=2, allowed=None),)),
    GateCheck(model="gone", target="tiny", verdict=Verdict.REMOVED),
    GateCheck(model="better", target="tiny", verdict=Verdict.IMPROVED, entry=_entry(2),
          changes=(MetricChange(metric=Metric.SPILL_BYTES, before=4, after=2, allowed=0),)),
    GateCheck(model="close", target="tiny", verdict=Verdict.OK, entry=_entry(2),
          changes=(MetricChange(metric=Metric.SPILL_BYTES, before=1, after=2, allowed=5),)),
    GateCheck(model="same", target="tiny", verdict=Verdict.UNCHANGED, entry=_entry(2),
          changes=(MetricChange(metric=Metric.SPILL_BYTES, before=2, after=2, allowed=0),)),
)  # fmt: skip
"""One check of each verdict, and one whose names are hostile."""


def test_every_verdict_is_covered() -> None:
    assert {check.verdict for check in EVERY.checks} == set(Verdict)


def test_json_follows_its_published_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(published_schema("gate"))
    data = json.loads(_rendered("json", EVERY))
    jsonschema.validate(data, published_schema("gate"), cls=jsonschema.Draft202012Validator)
    assert data["exit_code"] == 2
    assert [check["fails"] for check in data["checks"]] == [True, True, *[False] * 2, True, *[False] * 5]
    assert data["checks"][1]["model"] == HOSTILE


def test_junit_counts_failures_and_errors_apart() -> None:
    root = ElementTree.fromstring(_rendered("junit", EVERY))
    assert root.tag == "testsuites"
    assert {suite.tag for suite in root} == {"testsuite"}
    assert [suite.get("name") for suite in root] == ["spillprof gate npu", "spillprof gate tiny"]
    for suite in [root, *root]:
        cases = suite.findall(".//testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall(".//failure")))
        assert suite.get("errors") == str(len(suite.findall(".//error")))
        assert all(case.get("name") and case.get("classname") for case in cases)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("10", "3", "2")
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("type") == "regressed"
    assert "operator /add (Add): 1000 B → 2.93 KiB" in (failure.text or "")


def test_sarif_has_what_the_standard_requires() -> None:
    data = json.loads(_rendered("sarif", EVERY))
    jsonschema.validate(data, SARIF, cls=jsonschema.Draft202012Validator)
    (found,) = data["runs"]
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in found["results"]] == [r["ruleId"] for r in found["results"]]
    assert len(found["results"]) == 8  # all but what is unchanged or within the tolerance
    assert found["results"][0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "py%20project%2Ca%3Ab.toml"}, "region": {"startLine": 7}
    }  # fmt: skip
    assert found["results"][0]["ruleId"] == "spillprof/regressed"


def test_fingerprints_of_sarif_stay_while_figures_change() -> None:
    def prints(report: GateReport) -> list[str]:
        results = json.loads(_rendered("sarif", report))["runs"][0]["results"]
        return [result["partialFingerprints"]["spillprofCheck/v1"] for result in results]

    assert prints(_report(_regressed("a"))) == prints(_report(_regressed("a")))
    assert len(set(prints(_report(_regressed("a"), _regressed("b"), _regressed("a", "/other"))))) == 3


def test_annotations_are_few_escaped_and_worst_first() -> None:
    lines = [line for line in _rendered("github", EVERY).splitlines() if line.startswith("::")]
    assert len(lines) == MOST_ANNOTATIONS == 5
    assert [line.split()[0] for line in lines] == ["::error"] * 5
    located = [line for line in lines if " file=" in line]
    assert located[0].startswith("::error file=py project%2Ca%3Ab.toml,line=7,title=spillprof%3A models/a.onnx@npu reg")
    for line in lines:
        properties = line.split("::")[1]
        assert re.fullmatch(r"error (?:\w+=[^,:\r\n]+,?)+", properties), properties


def test_names_cannot_smuggle_a_command_into_the_log() -> None:
    check = GateCheck(model="m", target="npu", verdict=Verdict.ERROR,
                  failure=Failure(message="no", where=("::stop-commands::x",), hint="::error::y"))  # fmt: skip
    lines = _rendered("github", _report(check)).splitlines()
    assert [line for line in lines if line.lstrip().startswith("::")] == lines[-1:]


@pytest.mark.parametrize(
    ("text", "data", "prop"), [("a%b", "a%25b", "a%25b"), ("\r\n", "%0D%0A", "%0D%0A"), ("a:b,c", "a:b,c", "a%3Ab%2Cc")]
)
def test_workflow_commands_are_escaped(text: str, data: str, prop: str) -> None:
    assert escape_data(text) == data
    assert escape_property(text) == prop


def test_markdown_begins_with_its_marker_and_holds_no_markup_of_names() -> None:
    text = _rendered("markdown", EVERY)
    assert text.startswith(f"{MARKER}\n### spillprof gate: 5 of 10 passed")
    outside_of_code = re.sub(r"`[^`\n]*`", "", text)
    assert set(re.findall(r"<[^>\n]*>", outside_of_code)) <= {MARKER, "<code>", "</code>", "<sub>", "</sub>"}
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(EVERY.checks)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)


def test_markdown_of_a_thousand_regressions_fits_a_comment() -> None:
    text = _rendered("markdown", _report(*(_regressed(f"models/{i}.onnx", f"{i}{HOSTILE}") for i in range(1000))))
    assert len(text) <= LONGEST
    assert "The rest is left out here" in text
    assert text.rstrip().endswith("</sub>")


def test_text_puts_the_verdict_first_and_nothing_hidden_on_the_terminal() -> None:
    text = _rendered("text", EVERY)
    assert not set("\x1b\r\u202e") & set(text)
    assert max(map(len, text.splitlines())) < 1200
    words = [line[:19].split() for line in text.splitlines() if line[:1].strip()][: len(EVERY.checks)]
    assert words == [
        ["FAIL", "regressed"], ["FAIL", "regressed"], ["ERROR", "error"], ["ERROR", "incomparable"],
        ["FAIL", "over-budget"], ["warn", "new"], ["warn", "removed"], ["ok", "improved"], ["ok", "ok"],
        ["ok", "unchanged"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "policy", "code"),
    [
        ((), Policy.SUGGEST, 0),
        ((Verdict.NEW, Verdict.REMOVED, Verdict.OK, Verdict.UNCHANGED, Verdict.IMPROVED), Policy.SUGGEST, 0),
        ((Verdict.IMPROVED,), Policy.RATCHET, 1),
        ((Verdict.REGRESSED,), Policy.SUGGEST, 1),
        ((Verdict.INCOMPARABLE,), Policy.SUGGEST, 2),
        ((Verdict.REGRESSED, Verdict.ERROR), Policy.SUGGEST, 2),
        ((Verdict.ERROR, Verdict.REGRESSED), Policy.RATCHET, 2),
    ],
)
def test_what_could_not_be_evaluated_wins_over_a_failure(
    verdicts: tuple[Verdict, ...], policy: Policy, code: int
) -> None:
    checks = (GateCheck(model=str(i), target="t", verdict=each) for i, each in enumerate(verdicts))
    assert _report(*checks, policy=policy).exit_code == code


@pytest.mark.parametrize(
    ("before", "after", "share", "floor", "expected"),
    [
        (1000, 1000, 0, 0, Verdict.UNCHANGED),
        (1000, 1001, 0, 0, Verdict.REGRESSED),
        (1000, 1010, 1, 0, Verdict.OK),
        (1000, 1011, 1, 0, Verdict.REGRESSED),
        (1000, 1011, 1, 11, Verdict.OK),
        (1000, 1012, 1, 11, Verdict.REGRESSED),
        (0, 5, 100, 5, Verdict.OK),
        (0, 6, 100, 5, Verdict.REGRESSED),
        (1000, 989, 1, 0, Verdict.IMPROVED),
        (1000, 990, 1, 0, Verdict.OK),
        (2**60, 2**60 + 1, 0, 0, Verdict.REGRESSED),  # exact, where floats are not
    ],
)
def test_a_regression_exceeds_the_share_and_the_floor(
    before: int, after: int, share: int, floor: int, expected: Verdict
) -> None:
    from spillprof.ir.metric import Budgets

    rules = Rules(metrics=(Metric.SPILL_BYTES,), max_increase=Fraction(share, 100), floors={Metric.SPILL_BYTES: floor})
    found = changes(_entry(after), _entry(before), Budgets(), rules)
    assert judge(found, _entry(before), ()) is expected


def test_files_are_written_by_suffix(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    chain(project.folder / "models" / "a.onnx", skip=True)
    outputs = [word for name in ("g.json", "g.md", "g.xml", "g.sarif", "g.txt") for word in ("-o", name)]
    assert run(["gate", *outputs]) == 1
    out = capsys.readouterr().out
    data = json.loads(Path("g.json").read_text("utf-8"))
    jsonschema.validate(data, published_schema("gate"), cls=jsonschema.Draft202012Validator)
    jsonschema.validate(json.loads(Path("g.sarif").read_text("utf-8")), SARIF)
    assert ElementTree.parse("g.xml").getroot().get("failures") == "1"
    assert Path("g.md").read_text("utf-8").startswith(MARKER)
    assert Path("g.txt").read_text("utf-8") == out
    (regressed,) = (check for check in data["checks"] if check["fails"])
    assert regressed["location"] == {"file": "pyproject.toml", "line": 10}
    assert {m["name"] for m in regressed["moved"] if m["kind"] == "buffer"} == {"c0"}


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "github", "sarif"])
def test_each_format_goes_to_stdout(project: Project, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gate", "--format", form]) == 0
    assert capsys.readouterr().out.startswith(
        {"text": "ok ", "json": "{", "markdown": MARKER, "junit": "<?xml", "github": "ok ", "sarif": "{"}[form]
    )


def test_github_writes_the_job_summary(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", "utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--format", "github"]) == 1
    out = capsys.readouterr().out
    assert "::error file=pyproject.toml,line=10,title=spillprof%3A models/a.onnx@npu-96k regressed::spill" in out
    assert summary.read_text("utf-8").startswith(f"before\n{MARKER}\n### spillprof gate: 1 of 2 passed")


def test_places_are_told_from_the_root_of_the_checkout(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.folder.parent))
    chain(project.folder / "models" / "a.onnx", skip=True)
    assert run(["gate", "--format", "github"]) == 1
    assert "::error file=project/pyproject.toml,line=10," in capsys.readouterr().out


def test_an_unknown_suffix_is_refused_before_the_work(project: Project) -> None:
    assert run(["gate", "-o", "g.pdf"]) == 2
