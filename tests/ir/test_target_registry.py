"""The registry of target fields: each row is whole, and one more row is all that a new field needs."""

import json
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import spillprof
from spillprof.ir.errors import UsageError
from spillprof.ir.fingerprint import default_of, has_default
from spillprof.ir.target import PROFILE_FIELDS, ROWS, Target, short_name
from spillprof.ir.target_settings import target_field

UNITS = {
    "_bytes_per_s": "bytes/s", "_j_per_byte": "J/byte", "_bytes": "bytes", "_s": "s", "_hz": "Hz",
    "_curve": "[bytes, s]",
}  # fmt: skip


def test_every_field_of_a_target_is_registered_whole() -> None:
    assert list(ROWS) == [column.name for column in fields(Target)]
    for name, row in ROWS.items():
        assert row.doc, name
        assert not set(row.doc) & set("|\n"), name
        assert row.replaces in ("", *ROWS), name
        if name not in ("macs_per_s", "vector_ops_per_s", "accumulator_bytes_per_output"):
            assert row.unit == next((unit for end, unit in UNITS.items() if name.endswith(end)), row.unit), name
        if not row.not_set:
            assert target_field(short_name(name)) == name
    assert ROWS["sram_bytes"].not_set == "use --sram"
    shorts = [row.short or short_name(name) for name, row in ROWS.items()]
    assert len(set(shorts)) == len(shorts)


@pytest.mark.parametrize("column", [c for c in fields(Target) if has_default(c)], ids=lambda c: c.name)
def test_a_reader_takes_the_default_as_files_write_it(column: object) -> None:
    default, read = default_of(column), ROWS[column.name].read
    if default in ({}, ()) and ROWS[column.name].has_default_row:
        return  # a target without rates is none, so no file writes that
    written = "none" if default is None else list(default) if isinstance(default, tuple) else default
    assert read(written) == default


@pytest.mark.parametrize("name", list(ROWS))
def test_a_reader_refuses_what_is_no_value(name: str) -> None:
    for wrong in ("", float("nan"), [[]], -1):
        with pytest.raises(UsageError):
            ROWS[name].read(wrong)


def test_a_profile_holds_every_field_but_those_that_it_resolves() -> None:
    assert set(ROWS) - set(PROFILE_FIELDS) == {
        "reserved_bytes", "macs_per_cycle", "weight_staging_bytes", "stream_staging_bytes", "shared_workspace",
        "accumulator_bytes_per_output", "strided_views",
    }  # fmt: skip


ROW = '    banks: int = field(default=1, metadata=row(read_count_from_1, "banks", "of the SRAM, side by side"))\n'
SCRIPT = """
import json
from spillprof.explain.options import AnalyzeOptions, configuration
from spillprof.ir.graph import Bindings
from spillprof.ir.target import load_target, parse_target
from spillprof.ir.target_settings import parse_target_setting, with_fields
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.report.json_text import published_schema
from spillprof.studies.fingerprint import fingerprint
from spillprof.studies.sweep.cases import case_digest

def keys(target):
    gate = fingerprint(target, configuration(AnalyzeOptions()), Bindings())
    return [gate, case_digest("", Bindings(), target, LoweringOptions(), PlanningOptions(), code="")]

target = load_target("generic-npu")
found = {"keys": keys(target)}
if hasattr(target, "banks"):
    found["set"] = keys(with_fields(target, dict([parse_target_setting("banks=4")])))
    found["file"] = parse_target("inherit = 'generic-npu'\\nbanks = 2", name="t").banks
    found["schema"] = published_schema("profile")["$defs"]["TargetFacts"]["properties"]["banks"]
print(json.dumps(found))
"""


def test_a_new_field_is_one_row_and_changes_no_key_at_its_default(tmp_path: Path) -> None:
    here = Path(spillprof.__file__).parent
    shutil.copytree(here, tmp_path / "spillprof", ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / "spillprof" / "ir" / "target.py"
    text = module.read_text("utf-8")
    module.write_text(text.replace("    clock_hz:", f"{ROW}    clock_hz:", 1), "utf-8")
    runs = [
        subprocess.run([sys.executable, "-c", SCRIPT], cwd=place, capture_output=True, text=True, check=True)
        for place in (here.parent, tmp_path)
    ]
    today, later = (json.loads(run.stdout) for run in runs)
    assert later["keys"] == today["keys"]
    assert later["set"][0] == {**today["keys"][0], "target.banks": 4}
    assert later["set"][1] != today["keys"][1]
    assert later["file"] == 2
    assert later["schema"] == {"description": "of the SRAM, side by side"}
