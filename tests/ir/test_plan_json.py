import copy
import json
import re
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import plan, program, step

from spillprof.ir.errors import PlanError
from spillprof.ir.plan import Move, Scratch, Segment, Spill, StreamedOperand, Transfer
from spillprof.ir.plan_json import plan_from_json, plan_schema, plan_to_json
from spillprof.verify import verify

PROGRAM = program(
    {"x": ("input", 512), "a": 64, "b": 512, "c": 64, "y": ("output", 64)},
    [
        "-> a",
        step("x, a -> b", streamed_reads="x", streamed_writes="b", stream_staging_bytes=64),
        step("b -> c", streamed_reads="b", stream_staging_bytes=64),
        "a, c -> y",
    ],
    alignment=64,
    capacity=256,
)
PLAN = plan(
    PROGRAM,
    capacity=256,
    segments=[("a", 1, 5, 0), ("c", 7, 9, 0), ("c", 9, 11, 64), ("a", 9, 11, 128), ("y", 10, 12, 0)],
    transfers=[("write-back", "a", 2, 2), ("reload", "a", 3, 3, 1), ("drain", "y", 4, 4)],
    spills=[
        {"buffer": "a", "last_use_step": 1, "evict_step": 2, "needed_step": 3, "fragmentation": True},
        {"buffer": "b", "last_use_step": 1, "evict_step": 2, "needed_step": 2, "written": False, "reloaded": False},
    ],
    streamed=[(1, "x", "in"), (1, "b", "out"), (2, "b", "in")],
    moves=[("c", 3, 0, 64)],
    scratch=[(1, "stream staging", 64, 64, 3, 6), (2, "stream staging", 64, 64, 6, 9)],
)
DATA = json.loads(json.dumps(plan_to_json(PROGRAM, PLAN)))


def test_the_plan_is_legal() -> None:
    assert verify(PROGRAM, PLAN) == ()


def test_a_plan_survives_json() -> None:
    assert plan_from_json(PROGRAM, DATA) == PLAN


def test_rare_values_survive_json() -> None:
    dead = Spill(buffer=1, last_use_step=-1, evict_step=2, needed_step=None, forced_by_step=2, written=True)
    rare = replace(PLAN, capacity_bytes=None, inputs_resident=True, spills=(dead,))
    assert plan_from_json(PROGRAM, json.loads(json.dumps(plan_to_json(PROGRAM, rare)))) == rare


def test_names_that_repeat_or_are_empty_stay_apart() -> None:
    buffers = tuple(
        replace(b, name=name) for b, name in zip(PROGRAM.buffers, ["", "t", "t", "t#1", "\u202e"], strict=True)
    )
    p = replace(PROGRAM, buffers=buffers)
    assert plan_from_json(p, plan_to_json(p, PLAN)) == PLAN


def test_a_view_stands_for_its_buffer() -> None:
    a = replace(PROGRAM.buffers[1], tensors=("a", "a_flat"))
    p = replace(PROGRAM, buffers=(PROGRAM.buffers[0], a, *PROGRAM.buffers[2:]))
    data = copy.deepcopy(DATA)
    data["segments"][0]["buffer"] = "a_flat"
    assert plan_from_json(p, data) == PLAN


def test_sizes_and_optional_lists_may_be_left_out() -> None:
    p = program({"x": ("input", 8), "y": ("output", 4)}, ["x -> y"])
    data = {
        "schema": "spillprof-plan/1",
        "capacity_bytes": 64,
        "segments": [
            {"buffer": "x", "start": 0, "end": 2, "address": 0},
            {"buffer": "y", "start": 1, "end": 3, "address": 8},
        ],
        "transfers": [
            {"kind": "fetch", "buffer": "x", "issue_step": 0, "needed_step": 0, "segment": 0},
            {"kind": "drain", "buffer": "y", "issue_step": 1, "needed_step": 1, "segment": 1},
        ],
    }
    read = plan_from_json(p, data)
    assert [t.size_bytes for t in read.transfers] == [8, 4]
    assert (read.strategy, read.reserved_bytes) == ("external", 0)
    assert verify(p, read) == ()


def test_spill_records_that_are_left_out_are_derived() -> None:
    data = copy.deepcopy(DATA)
    del data["spills"]
    read = plan_from_json(PROGRAM, data)
    assert read.spills == tuple(replace(spill, fragmentation=False) for spill in PLAN.spills)
    assert verify(PROGRAM, read) == ()


def broken(*path: Any, to: Any) -> Any:
    data = copy.deepcopy(DATA)
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return data


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ([], "plan must be an object", None),
        ({}, "plan lacks 'schema'", "required"),
        (broken("schema", to="spillprof-profile/1"), "not a plan file", "spillprof-plan/1"),
        (broken("steps", to=5), "another program: steps is 5, here it is 4", "use the model"),
        (broken("alignment_bytes", to=32), "another program: alignment_bytes", "use the model"),
        (broken("segments", to={}), "segments must be a list", None),
        (broken("segment", to=[]), "unknown key 'segment'", "did you mean 'segments'?"),
        (broken("segments", 0, to=7), r"segments\[0\] must be an object, not 7", None),
        (broken("segments", 0, "buffer", to="aa"), "no buffer 'aa'", "did you mean 'a'?"),
        (broken("segments", 0, "buffer", to=1), r"segments\[0\].buffer must be a string, not 1", None),
        (broken("segments", 0, "start", to=1.0), r"segments\[0\].start must be an integer, not 1.0", None),
        (broken("segments", 0, "start", to=True), r"segments\[0\].start must be an integer, not True", None),
        (broken("segments", 0, "end", to=13), r"segments\[0\].end is 13, must be 0 to 12", None),
        (broken("segments", 0, "address", to=-1), r"segments\[0\].address is -1", None),
        (broken("segments", 0, "address", to=10**5000), "an integer of more than 64 bits", None),
        (broken("segments", 0, "size", to=1), "unknown key 'size'", "known"),
        (broken("transfers", 0, "segment", to=5), r"transfers\[0\].segment is 5, must be 0 to 4", None),
        (broken("transfers", 0, "kind", to="spill"), "'spill' is no kind of transfer", "write-back"),
        (broken("transfers", 0, "kind", to=None), "kind must be a string, not None", None),
        (broken("transfers", 0, "needed_step", to=None), "needed_step must be an integer", None),
        (broken("spills", 0, "written", to=1), "written must be true or false", None),
        (broken("scratch", 0, "purpose", to=[]), "purpose must be a string, not list", None),
        (broken("capacity_bytes", to="32MB"), "capacity_bytes must be an integer, not '32MB'", None),
    ],
)
def test_malformed_file_says_what_and_where(data: Any, message: str, hint: str | None) -> None:
    with pytest.raises(PlanError, match=message) as error:
        plan_from_json(PROGRAM, data)
    assert hint is None or (error.value.hint is not None and hint in error.value.hint)
    assert not error.value.message.endswith(".")


def test_a_long_name_is_cut_in_the_message() -> None:
    with pytest.raises(PlanError) as error:
        plan_from_json(PROGRAM, broken("segments", 0, "buffer", to="n" * 10_000))
    assert len(error.value.message) < 200


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside JSON data."""
    keys = data.keys() if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [place for key in keys for place in ((*path, key), *places(data[key], (*path, key)))]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(places(DATA)), st.booleans(), ANYTHING), min_size=1, max_size=3))
def test_any_file_is_read_or_refused_and_what_is_read_can_be_verified(changes: list[tuple[Any, bool, Any]]) -> None:
    data = copy.deepcopy(DATA)
    for path, drop, value in changes:
        at = data
        try:
            for key in path[:-1]:
                at = at[key]
            if drop:
                del at[path[-1]]
            else:
                at[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    try:
        read = plan_from_json(PROGRAM, data)
    except PlanError:
        return
    verify(PROGRAM, read)
    assert plan_from_json(PROGRAM, plan_to_json(PROGRAM, read)) == read


@settings(max_examples=100, deadline=None)
@given(ANYTHING)
def test_anything_else_is_refused(data: Any) -> None:
    with pytest.raises(PlanError):
        plan_from_json(PROGRAM, data)


def test_the_documented_example_is_a_legal_plan() -> None:
    text = (Path(__file__).parents[2] / "docs" / "file-formats.md").read_text("utf-8")
    example = re.search(r"```json\n(\{\n  \"schema\": \"spillprof-plan/1\".*?)```", text, re.DOTALL)
    assert example is not None
    p = program(
        {"image": ("input", 65536), "skip": 65536, "mid": 65536, "deep": 65536, "out": ("output", 1024)},
        ["image -> skip", "skip -> mid", "mid -> deep", "skip, deep -> out"],
        alignment=64,
        capacity=132096,
    )
    read = plan_from_json(p, json.loads(example[1]))
    assert verify(p, read) == ()
    assert [(s.buffer, s.evict_step, s.needed_step) for s in read.spills] == [(1, 2, 3)]


def test_the_published_schema_describes_every_field_and_knows_what_may_be_left_out() -> None:
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for key, record in {
        "segments": Segment, "transfers": Transfer, "spills": Spill, "streamed": StreamedOperand, "moves": Move,
        "scratch": Scratch,
    }.items():  # fmt: skip
        described = schema["$defs"][schema["properties"][key]["items"]["$ref"].rsplit("/", 1)[1]]
        columns = {f.name: f for f in fields(record)}
        assert list(described["properties"]) == list(columns)
        sized = {"size_bytes"} if "buffer" in columns else set()
        required = {name for name, f in columns.items() if f.default is MISSING} - sized
        assert set(described["required"]) == required, key
    assert set(schema["properties"]) == set(DATA)


def test_plans_follow_the_published_schema() -> None:
    jsonschema.validate(DATA, plan_schema(), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "data",
    [
        {},
        broken("schema", to="spillprof-profile/1"),
        broken("segment", to=[]),
        broken("segments", to={}),
        broken("segments", 0, "buffer", to=1),
        broken("segments", 0, "start", to=1.5),
        broken("segments", 0, "address", to=-1),
        broken("segments", 0, "size", to=1),
        broken("transfers", 0, "kind", to="load"),
        broken("spills", 0, "written", to=1),
    ],
)
def test_what_the_schema_refuses_is_no_plan_here_either(data: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, plan_schema(), cls=jsonschema.Draft202012Validator)
    with pytest.raises(PlanError):
        plan_from_json(PROGRAM, data)
