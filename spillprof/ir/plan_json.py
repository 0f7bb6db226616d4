"""Plan files: a Plan as JSON values and back. ``docs/file-formats.md`` describes the format."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from importlib import resources
from typing import Any, TypeVar

from spillprof.ir.errors import PlanError
from spillprof.ir.mode_json import mode_from_json, mode_to_json
from spillprof.ir.modes import StepMode
from spillprof.ir.nearest import nearest
from spillprof.ir.plan import Move, Plan, Scratch, Segment, Spill, StreamedOperand, Transfer, TransferKind
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Program

_Value = TypeVar("_Value")

PLAN_SCHEMA = "spillprof-plan/1"

_LISTS: dict[str, type] = {
    "segments": Segment, "transfers": Transfer, "spills": Spill, "streamed": StreamedOperand,
    "moves": Move, "scratch": Scratch,
}  # fmt: skip
_HEADER = ("schema", "strategy", "steps", "alignment_bytes", "capacity_bytes", "reserved_bytes", "inputs_resident")
_REQUIRED = ("schema", "capacity_bytes", "segments", "transfers")
_LARGEST = 2**53 - 1  # the largest integer that every JSON reader keeps exact


def plan_schema() -> dict[str, Any]:
    """The published JSON Schema (draft 2020-12) of a plan file."""
    loaded: dict[str, Any] = json.loads((resources.files("spillprof.ir") / "plan.schema.json").read_text("utf-8"))
    return loaded


def plan_to_json(program: Program, plan: Plan) -> dict[str, Any]:
    """The plan as JSON values (schema ``spillprof-plan/1``), buffers by name."""
    names = buffer_names(program)
    data: dict[str, Any] = {
        "schema": PLAN_SCHEMA,
        "strategy": plan.strategy,
        "steps": len(program.steps),
        "alignment_bytes": program.alignment_bytes,
        "capacity_bytes": plan.capacity_bytes,
        "reserved_bytes": plan.reserved_bytes,
        "inputs_resident": plan.inputs_resident,
    }
    for key, record in _LISTS.items():
        columns = [f.name for f in fields(record)]
        data[key] = [{c: _to_json(c, getattr(entry, c), names) for c in columns} for entry in getattr(plan, key)]
    data["modes"] = [mode_to_json(program, mode, names) for mode in plan.modes]
    return data


def plan_from_json(
    program: Program,
    data: object,
    *,
    inputs_resident: bool = False,
    steady_state: bool = True,
    count: Callable[[Program, StepMode], StepMode] | None = None,
) -> Plan:
    """The plan that JSON values describe. ``PlanError`` if they are malformed or name what the program lacks.

    ``inputs_resident`` is the default for a plan without that key. Missing spill records are derived;
    ``steady_state``: of one inference out of many, so the next one reads cached weights again. ``count`` fills in the
    figures of modes that state only their loops. ``spillprof.verify`` checks whether the plan is legal.
    """
    table = _object(data, "plan")
    _check_keys(table, (*_HEADER, *_LISTS, "modes"), _REQUIRED, "plan")
    if table["schema"] != PLAN_SCHEMA:
        raise PlanError(f"not a plan file: schema is {_show(table['schema'])}", hint=f"write 'schema': '{PLAN_SCHEMA}'")
    for key, own in (("steps", len(program.steps)), ("alignment_bytes", program.alignment_bytes)):
        if _integer(table.get(key, own), key, _LARGEST) != own:
            raise PlanError(
                f"the plan is for another program: {key} is {_show(table[key])}, here it is {own}",
                hint="use the model, target and options that the plan was made with",
            )
    capacity = table["capacity_bytes"]
    reader = _Reader(program, n_segments=len(_list(table, "segments")))
    lists = {key: reader.records(record, _list(table, key), key) for key, record in _LISTS.items()}
    modes = tuple(reader.mode(_object(entry, f"modes[{k}]"), k, count) for k, entry in enumerate(_list(table, "modes")))
    if "spills" not in table:
        needs = ("segments", "transfers", "streamed", "moves")
        lists["spills"] = spill_records(program, **{key: lists[key] for key in needs}, steady_state=steady_state)
    return Plan(
        strategy=_text(table.get("strategy", "external"), "strategy"),
        capacity_bytes=None if capacity is None else _integer(capacity, "capacity_bytes", _LARGEST),
        reserved_bytes=_integer(table.get("reserved_bytes", program.reserved_bytes), "reserved_bytes", _LARGEST),
        inputs_resident=_boolean(table.get("inputs_resident", inputs_resident), "inputs_resident"),
        modes=modes,
        **lists,
    )


def buffer_names(program: Program) -> list[str]:
    """Name of each buffer in a plan file: its own, with ``#index`` where several share it."""
    count = Counter(buffer.name for buffer in program.buffers)
    names = [b.name if count[b.name] == 1 else f"{b.name}#{b.index}" for b in program.buffers]
    taken = Counter(names)
    return [name if taken[name] == 1 else f"{name}#{i}" for i, name in enumerate(names)]


class _Reader:
    """Reads records, and checks that their steps and buffers exist in a program."""

    def __init__(self, program: Program, *, n_segments: int) -> None:
        self._program = program
        self._buffers = {name: i for i, name in enumerate(buffer_names(program))}
        for buffer in program.buffers:  # the name of a view means the buffer that it shares
            for tensor in buffer.tensors:
                self._buffers.setdefault(tensor, buffer.index)
        n_steps, n_ticks = len(program.steps), PHASES_PER_STEP * len(program.steps)
        self._largest = {
            "step": n_steps - 1, "issue_step": n_steps, "evict_step": n_steps, "last_use_step": n_steps,
            "forced_by_step": n_steps - 1, "needed_step": 2 * n_steps, "start": n_ticks, "end": n_ticks,
            "segment": n_segments - 1,
        }  # fmt: skip

    def records(self, record: type, entries: list[object], what: str) -> tuple[Any, ...]:
        columns = fields(record)
        known = [f.name for f in columns]
        sized = "buffer" in known  # the size is optional: it defaults to the buffer's
        required = [f.name for f in columns if f.default is MISSING and not (sized and f.name == "size_bytes")]
        result = []
        for k, entry in enumerate(entries):
            where = f"{what}[{k}]"
            table = _object(entry, where)
            _check_keys(table, known, required, where)
            values = {f.name: self._value(f, table[f.name], f"{where}.{f.name}") for f in columns if f.name in table}
            if sized and "size_bytes" in known and "size_bytes" not in values:
                values["size_bytes"] = self._program.buffers[values["buffer"]].moved_bytes
            result.append(record(**values))
        return tuple(result)

    def mode(self, table: Mapping[str, Any], k: int, count: Callable[[Program, StepMode], StepMode] | None) -> StepMode:
        def integer(raw: object, where: str) -> int:
            return _integer(raw, where, _LARGEST)

        mode, is_stated = mode_from_json(self._program, table, f"modes[{k}]", self._buffer, integer)
        return mode if is_stated or count is None else count(self._program, mode)

    def _value(self, field: Field[Any], raw: object, where: str) -> Any:
        if field.name == "buffer":
            return self._buffer(raw, where)
        if field.type is bool:
            return _boolean(raw, where)
        if field.type is str:
            return _text(raw, where)
        if field.type is TransferKind:
            return _kind(raw, where)
        if raw is None and field.type is not int:
            return None
        smallest = -self._largest["issue_step"] if field.name == "last_use_step" else 0  # in the inference before
        return _integer(raw, where, self._largest.get(field.name, _LARGEST), smallest=smallest)

    def _buffer(self, raw: object, where: str) -> int:
        name = _text(raw, where)
        if name not in self._buffers:
            near = nearest(name, self._buffers) if len(self._buffers) <= 5000 else []
            raise PlanError(
                f"the program has no buffer {_show(name)}",
                where=[where],
                hint=f"did you mean {_show(near[0])}?" if near else "'spillprof inspect' lists the buffers",
            )
        return self._buffers[name]


def _to_json(column: str, value: Any, names: list[str]) -> Any:
    if column == "buffer":
        return names[value]
    return str(value) if isinstance(value, TransferKind) else value


def _kind(raw: object, where: str) -> TransferKind:
    try:
        return TransferKind(_text(raw, where))
    except ValueError:
        kinds = ", ".join(TransferKind)
        raise PlanError(f"{_show(raw)} is no kind of transfer", where=[where], hint=f"one of: {kinds}") from None


def _checked(raw: object, kind: type[_Value], what: str, where: str) -> _Value:
    if not isinstance(raw, kind):
        raise PlanError(f"{where} must be {what}, not {_show(raw)}", where=[where])
    return raw


def _object(raw: object, where: str) -> Mapping[str, Any]:
    return _checked(raw, Mapping, "an object", where)  # type: ignore[type-abstract]


def _list(table: Mapping[str, Any], key: str) -> list[object]:
    return _checked(table.get(key, []), list, "a list", key)


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...] | list[str], required: Any, where: str) -> None:
    for key in required:
        if key not in table:
            raise PlanError(f"{where} lacks '{key}'", where=[where], hint=f"required: {', '.join(required)}")
    for key in table:
        if key not in known:
            near = nearest(str(key), known)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
            raise PlanError(f"{where} has an unknown key {_show(key)}", where=[where], hint=hint)


def _integer(raw: object, where: str, largest: int, *, smallest: int = 0) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise PlanError(f"{where} must be an integer, not {_show(raw)}", where=[where])
    if not smallest <= raw <= largest:
        raise PlanError(f"{where} is {_show(raw)}, must be {smallest} to {largest}", where=[where])
    return raw


def _boolean(raw: object, where: str) -> bool:
    return _checked(raw, bool, "true or false", where)


def _text(raw: object, where: str) -> str:
    return _checked(raw, str, "a string", where)


def _show(raw: object) -> str:
    """The value, short enough for one line."""
    if isinstance(raw, int) and abs(raw) > 2**64:  # printing a longer one raises ValueError
        return "an integer of more than 64 bits"
    text = repr(raw) if isinstance(raw, str | int | float | bool | None) else type(raw).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def spill_records(
    program: Program,
    *,
    segments: Sequence[Segment],
    transfers: Sequence[Transfer],
    streamed: Sequence[StreamedOperand],
    moves: Sequence[Move],
    steady_state: bool = True,
) -> tuple[Spill, ...]:
    """One record per gap that a buffer spends off-chip before its next read, by evict_step.

    A gap begins where a segment ends or with a streamed use; in steady state the gap of a cached weight may reach into
    the next inference. A buffer that is written back and never read again has a record too. A plan does not say which
    step forced an eviction: the step at which the buffer leaves is taken.
    """
    n = len(program.steps)
    reads: list[list[int]] = [[] for _ in program.buffers]
    written: list[int] = [-1] * len(program.buffers)
    for i, step in enumerate(program.steps):
        for b in step.reads:
            reads[b].append(i)
        for b in step.writes:
            written[b] = i
    written_back = {t.segment for t in transfers if t.kind is TransferKind.WRITE_BACK}
    filled = {t.segment for t in transfers if t.kind.is_read}
    stays = {
        s.buffer for k, s in enumerate(segments) if s.start == 0 and k not in filled
    }  # on-chip since the previous inference
    from_dram = {(s.step, s.buffer) for s in streamed if not s.write}
    moved = {(move.buffer, PHASES_PER_STEP * move.step) for move in moves}
    goes_round = program.weights_persist and steady_state

    def gap(b: int, last_use_step: int | None, evict_step: int, *, is_written: bool) -> Spill | None:
        after = bisect_left(reads[b], evict_step)
        needed_step = reads[b][after] if after < len(reads[b]) else None
        if needed_step is None and goes_round and program.buffers[b].kind is BufferKind.WEIGHT and b not in stays:
            needed_step = reads[b][0] + n if reads[b] else None
        if needed_step is None and not is_written:
            return None
        if last_use_step is None:
            last_use_step = reads[b][after - 1] if after else written[b]
            if last_use_step < 0:  # a weight last used in the previous inference
                last_use_step = max(reads[b], default=n) - n
        return Spill(
            buffer=b,
            last_use_step=last_use_step,
            evict_step=evict_step,
            needed_step=needed_step,
            forced_by_step=min(evict_step, n - 1),
            written=is_written,
            reloaded=needed_step is not None and (needed_step % n, b) not in from_dram,
        )

    records = [
        gap(s.buffer, None, -(-s.end // PHASES_PER_STEP), is_written=k in written_back)
        for k, s in enumerate(segments)
        if (s.buffer, s.end) not in moved
    ]
    records += [gap(s.buffer, s.step, s.step + 1, is_written=False) for s in streamed]
    found = [record for record in records if record is not None]
    return tuple(sorted(found, key=lambda s: (s.evict_step, s.last_use_step, s.buffer)))
