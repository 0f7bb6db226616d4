"""The Profile JSON and its published schema."""

import json
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
from profiles import make_profile, without_spills

from spillprof.ir.profile import Profile
from spillprof.ir.profile_facts import ReservedBytes
from spillprof.ir.target import PROFILE_FIELDS, Target
from spillprof.report.json_text import profile_json, published_schema


def test_json_follows_the_published_schema_with_and_without_events():
    profile = make_profile()
    jsonschema.Draft202012Validator.check_schema(published_schema("profile"))
    for events in (False, True):
        data = json.loads(profile_json(profile, events=events))
        jsonschema.validate(data, published_schema("profile"), cls=jsonschema.Draft202012Validator)
        assert all(("events" in result) is events for result in data["results"])


def test_json_text_holds_exactly_the_profiles_values():
    profile = make_profile()
    assert json.loads(profile_json(profile, events=True)) == profile.to_json(events=True)


def test_json_keys_keep_the_order_of_the_nouns():
    data = json.loads(profile_json(make_profile(), events=False))
    assert list(data)[:4] == ["schema", "spillprof_version", "model", "target"]
    assert list(data["results"][0])[:4] == ["strategy", "feasible", "reason", "spill_bytes"]


def test_json_is_ascii_and_one_line_a_row():
    text = profile_json(make_profile(), events=False)
    assert text.isascii()
    assert text.endswith("}\n")
    assert sum(line.lstrip().startswith('"live_bytes": [') for line in text.splitlines()) == 1
    assert sum(line.lstrip().startswith('{"buffer": "skip_0"') for line in text.splitlines()) > 10


def test_json_is_the_same_text_every_time():
    assert profile_json(make_profile(), events=True) == profile_json(make_profile(), events=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model", "weight_bytes"), 1.5),
        (("model", "weight_bytes"), -1),
        (("model", "sha256"), "xyz"),
        (("target", "sram_bytes"), 0),
        (("results", 0, "operators", 0, "cause"), "bad luck"),
        (("results", 0, "arcs", 0, "written"), 1),
        (("live_bytes", 0), "12"),
        (("schema",), "spillprof-profile/2"),
    ],
)
def test_schema_catches_a_wrong_value(path, value):
    data = make_profile().to_json()
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, published_schema("profile"), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("path", [("ideal",), ("model", "min_sram_bytes"), ("results", 0, "kinds", "capacity_bytes")])
def test_schema_catches_a_missing_key(path):
    data = make_profile().to_json()
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, published_schema("profile"), cls=jsonschema.Draft202012Validator)


def test_schema_allows_more_keys():
    data = make_profile().to_json()
    data["model"]["later"] = 1
    jsonschema.validate(data, published_schema("profile"), cls=jsonschema.Draft202012Validator)


def test_schema_describes_every_field_of_every_noun():
    document = published_schema("profile")
    seen: set[str] = set()
    reserved = {f.name for f in fields(ReservedBytes)}  # in JSON, part of the target
    keys = {Profile: {f.name for f in fields(Profile)} - {"reserved"}, Target: {*PROFILE_FIELDS, *reserved}}

    def check(noun: type, described: dict[str, Any]) -> None:
        described = document["$defs"][described["$ref"].rsplit("/", 1)[1]] if "$ref" in described else described
        assert set(described["properties"]) == keys.get(noun, {f.name for f in fields(noun)}), noun.__name__
        optional = set(described["properties"]) - set(described["required"])
        assert optional <= {"events", "residencies", "times", *(PROFILE_FIELDS if noun is Target else ())}, (
            noun.__name__
        )
        seen.add(noun.__name__)
        hints = get_type_hints(noun)
        for f in (f for f in fields(noun) if f.name in described["properties"]):
            for inner in (hints[f.name], *get_args(hints[f.name])):
                if isinstance(inner, type) and is_dataclass(inner):
                    part = described["properties"][f.name]
                    part = part.get("items", part)
                    check(inner, next(p for p in (part, *part.get("anyOf", ())) if "$ref" in p))

    check(Profile, document)
    assert {"Result", "OperatorCost", "KindBytes", "SpillArc", "Suggestion", "Assumption"} <= seen


def test_a_run_without_spills_is_valid_too():
    data = json.loads(profile_json(without_spills(make_profile()), events=False))
    jsonschema.validate(data, published_schema("profile"), cls=jsonschema.Draft202012Validator)
