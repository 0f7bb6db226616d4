"""Odd values in hand-edited files give an error that names them, or a report; never a crash."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from gate_models import chain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spillprof.cli import run
from spillprof.cli.config import parse_config
from spillprof.cli.config_keys import GATE_SETTINGS, MODEL_KEYS, SETTINGS, TARGET_KEYS
from spillprof.ir.errors import UsageError

ODD = ("1", "-1", "0", "1.5", "nan", "inf", "true", '""', '"x"', '"1MiB"', "[]", "[1]", '["a", 1]', "{}", "{ a = 1 }",
       "{ a = [1] }", "1979-05-27", "99999999999999999999", '"\\u0000"')  # fmt: skip
PLACES = [
    *(f"{key} = %s" for key in (*SETTINGS, "targets", "gate", "models", "unknown")),
    *(f"[gate]\n{key} = %s" for key in (*GATE_SETTINGS, "unknown")),
    *(f"[targets.t]\n{key} = %s" for key in (*TARGET_KEYS, "unknown")),
    *(f'[[models]]\npath = "m.onnx"\n{key} = %s' for key in (*MODEL_KEYS, "unknown") if key != "path"),
    "[[models]]\npath = %s",
]


@pytest.mark.parametrize("name", ["spillprof.toml", "pyproject.toml"])
def test_odd_values_of_every_key_are_read_or_refused(name: str) -> None:
    refused: list[UsageError] = []
    for place in PLACES:
        for value in ODD:
            text = place % value
            if name == "pyproject.toml":
                text = text.replace("[[", "[[tool.spillprof.") if "[[" in text else (
                    text.replace("[", "[tool.spillprof.", 1) if text.startswith("[") else f"[tool.spillprof]\n{text}"
                )  # fmt: skip
            try:
                parse_config(text, Path("/p") / name)
            except UsageError as error:
                refused.append(error)
    assert all("/p/" in "".join(error.where) for error in refused)
    assert len(refused) > len(PLACES)


_odd_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in _paths(item, (*path, key)))]


@given(data=st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_a_baseline_with_odd_values_is_refused_or_compared(clean_folder: Path, data: st.DataObject) -> None:
    baseline = clean_folder / "spillprof-baseline.json"
    command = ["gate", "a.onnx", "--sram", "96KiB"]
    if not (clean_folder / "good.json").exists():
        chain(clean_folder / "a.onnx", skip=True)
        assert run([*command, "--update", "-q"]) == 0
        baseline.rename(clean_folder / "good.json")
    value = json.loads((clean_folder / "good.json").read_text("utf-8"))
    path = data.draw(st.sampled_from(_paths(value)))
    mutated = copy.deepcopy(value)
    if path:
        inner = mutated
        for key in path[:-1]:
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[path[-1]] = data.draw(_odd_json)
        else:
            del inner[path[-1]]
    else:
        mutated = data.draw(_odd_json)
    baseline.write_text(json.dumps(mutated), "utf-8")
    assert run([*command, "-q", "-o", "g.json", "-o", "g.md", "-o", "g.xml", "-o", "g.sarif"]) in (0, 1, 2)
