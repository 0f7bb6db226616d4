"""Settings that are not the same in both runs, field by field, and what to be warned of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spillprof.ir.profile import Profile
from spillprof.studies.diff.values import Difference

_MODEL_FIELDS = ("path", "sha256", "external_sha256", "opset", "operators", "weight_bytes", "macs", "dims")
_NOT_SETTINGS = ("sources", "reserved_bytes", "weight_staging_bytes", "stream_staging_bytes", "runtime_bytes")
"""Fields of the machine that say where others come from, or that follow from the model."""


def differences(before: Profile, after: Profile) -> Iterator[Difference]:
    """Every field of model, machine and configuration that differs, and the version."""
    yield from _between("model", _model(before), _model(after))
    yield from _between("target", _target(before), _target(after))
    yield from _between("config", before.config, after.config)
    if before.op_times != after.op_times:
        times = [None if p.op_times is None else p.op_times.source for p in (before, after)]
        if times[0] != times[1]:
            yield Difference(where="config", field="op_times", before=times[0], after=times[1])
    yield from _between("spillprof", _simulator(before), _simulator(after))


def warnings(found: Sequence[Difference], before: Profile, after: Profile) -> Iterator[str]:
    """What makes figures differ besides the model."""
    is_other_model = any(d.where == "model" and d.field in ("sha256", "external_sha256") for d in found)
    fields = [d.field for d in found if d.where == "target" and d.field != "name"]
    settings = [d.field for d in found if d.where == "config" and d.field != "strategies"]
    if is_other_model and fields:
        yield f"the machines differ as well as the models, in {_listed(fields)}"
    if is_other_model and settings:
        yield f"settings differ as well as the models: {_listed(settings)}"
    if any(d.field == "simulator_revision" for d in found):
        yield "the runs were made by different revisions of the simulator: the same model may give other figures"
    elif any(d.where == "spillprof" for d in found):
        yield f"the runs were made by spillprof {before.spillprof_version} and {after.spillprof_version}"
    for which, profile in (("before", before), ("after", after)):
        if profile.steps and not profile.buffers:
            yield f"the profile {which} does not say who reads what: its operators are matched by name alone"


def _listed(fields: Sequence[str]) -> str:
    more = f" and {len(fields) - 6} more" if len(fields) > 6 else ""
    return ", ".join(fields[:6]) + more


def _model(profile: Profile) -> dict[str, Any]:
    facts = {name: getattr(profile.model, name) for name in _MODEL_FIELDS}
    return {**facts, "dims": dict(profile.model.dims)}


def _simulator(profile: Profile) -> dict[str, Any]:
    return {"version": profile.spillprof_version, "simulator_revision": profile.simulator_revision}


def _target(profile: Profile) -> dict[str, Any]:
    return {name: value for name, value in profile.machine.items() if name not in _NOT_SETTINGS}


def _between(where: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        old, new = _plain(before.get(name)), _plain(after.get(name))
        if old != new:
            yield Difference(where=where, field=name, before=old, after=new)


def _plain(value: Any) -> Any:
    """Lists and tuples alike, so that a profile that was read from a file equals one that was not."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
