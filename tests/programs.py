"""Literal programs and plans from short specifications.

    p = program({"x": ("input", 64), "a": 64, "y": ("output", 64)}, ["x -> a", step("a -> y", macs=10)])
    plan(p, segments=[("x", 0, 2, 0), ("a", 1, 5, 64), ("y", 4, 6, 0)],
         transfers=[("fetch", "x", 0, 0), ("drain", "y", 2, 2)])

Buffers and reservations go by name. A transfer is ``(kind, buffer, issue_step, needed_step[, n])``; it belongs to the
n-th segment of its buffer (0 if left out).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from spillprof.engine.run import Run
from spillprof.ir.graph import Graph
from spillprof.ir.plan import Move, Plan, Scratch, Segment, Spill, StreamedOperand, Transfer, TransferKind
from spillprof.ir.program import Buffer, BufferKind, Phase, Program, Reservation, Step, Update, Workspace
from spillprof.ir.target import Target
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions


def step(operands: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    """A step of ``program``, ``"x, w -> y"``, with fields of Step by buffer name.

    ``updates={"x": "y"}``, ``streamed_reads="x w"``, ``holds="a"``,
    ``workspaces=[("im2col", 64, 0, 1)]`` (phases inclusive).
    """
    return operands, fields


def program(
    buffers: Mapping[str, int | tuple[str, int] | tuple[str, int, int]],
    steps: Sequence[str | tuple[str, dict[str, Any]]],
    *,
    dedicated: str = "",
    alignment: int = 1,
    capacity: int | None = None,
    reservations: Sequence[tuple[str, int] | tuple[str, int, str]] = (),
    weights_persist: bool = False,
) -> Program:
    """A Program. A buffer is a size in bytes (an activation), ``(kind, size)`` or ``(kind, size, bytes moved)``."""
    index = {name: i for i, name in enumerate(buffers)}

    def indices(names: str) -> tuple[int, ...]:
        return tuple(index[name] for name in names.replace(",", " ").split())

    def make_step(number: int, spec: str | tuple[str, dict[str, Any]]) -> Step:
        operands, fields = (spec, {}) if isinstance(spec, str) else (spec[0], dict(spec[1]))
        reads, _, writes = operands.partition("->")
        for key in ("streamed_reads", "streamed_writes", "holds"):
            fields[key] = indices(fields.get(key, ""))
        fields["updates"] = tuple(Update(old=index[a], new=index[b]) for a, b in fields.get("updates", {}).items())
        if len(indices(writes)) == 1:
            fields["may_overwrite"] = tuple(update.old for update in fields["updates"])
        fields["workspaces"] = tuple(
            Workspace(purpose=purpose, size_bytes=size, first=Phase(first), last=Phase(last))
            for purpose, size, first, last in fields.get("workspaces", ())
        )
        name = f"op{number}"
        return Step(name=name, op_type="Op", operators=(name,), reads=indices(reads), writes=indices(writes), **fields)

    def make_buffer(name: str, spec: int | tuple[str, int] | tuple[str, int, int]) -> Buffer:
        kind, size, *own = ("activation", spec) if isinstance(spec, int) else spec
        moved = own[0] if own else size
        return Buffer(
            index=index[name], name=name, tensors=(name,), kind=BufferKind(kind), payload_bytes=moved,
            moved_bytes=moved, size_bytes=size, dedicated=name in dedicated.split(),
        )  # fmt: skip

    return Program(
        name="literal",
        steps=tuple(make_step(i, spec) for i, spec in enumerate(steps)),
        buffers=tuple(make_buffer(name, spec) for name, spec in buffers.items()),
        alignment_bytes=alignment,
        capacity_bytes=capacity,
        reservations=tuple(
            Reservation(what=r[0], size_bytes=r[1], buffer=index[r[2]] if len(r) > 2 else None) for r in reservations
        ),
        weights_persist=weights_persist,
    )


def plan(
    p: Program,
    *,
    capacity: int | None = None,
    segments: Sequence[tuple[str, int, int, int]] = (),
    transfers: Sequence[tuple[str, str, int, int] | tuple[str, str, int, int, int]] = (),
    spills: Sequence[dict[str, Any]] = (),
    streamed: Sequence[tuple[int, str, str]] = (),
    moves: Sequence[tuple[str, int, int, int]] = (),
    scratch: Sequence[tuple[int, str, int, int, int, int]] = (),
    inputs_resident: bool = False,
) -> Plan:
    """A Plan for ``p``; what moves comes from the program's buffers.

    Segments are ``(buffer, start, end, address)``, streamed operands ``(step, buffer, "in" or "out")``, moves
    ``(buffer, step, from, to)``, scratch ``(step, purpose, size, address, start, end)``; spills are dicts of
    Spill's fields, the buffer by name, ``forced_by_step`` the evicting step and ``written`` true if left out.
    """
    index = {buffer.name: buffer.index for buffer in p.buffers}
    own = {name: [k for k, s in enumerate(segments) if s[0] == name] for name in index}

    def size(name: str) -> int:
        return p.buffers[index[name]].moved_bytes

    return Plan(
        strategy="literal",
        capacity_bytes=capacity,
        reserved_bytes=p.reserved_bytes,
        segments=tuple(
            Segment(buffer=index[name], start=start, end=end, address=address)
            for name, start, end, address in segments
        ),
        transfers=tuple(
            Transfer(
                kind=TransferKind(t[0]), buffer=index[t[1]], size_bytes=size(t[1]), issue_step=t[2], needed_step=t[3],
                segment=own[t[1]][t[4] if len(t) > 4 else 0],
            )
            for t in transfers
        ),
        spills=tuple(
            Spill(**{"forced_by_step": s["evict_step"], "written": True, **s, "buffer": index[s["buffer"]]})
            for s in spills
        ),
        streamed=tuple(
            StreamedOperand(step=i, buffer=index[name], size_bytes=size(name), write=direction == "out")
            for i, name, direction in streamed
        ),
        moves=tuple(
            Move(buffer=index[name], step=i, size_bytes=size(name), from_address=a, to_address=b)
            for name, i, a, b in moves
        ),
        scratch=tuple(
            Scratch(step=i, purpose=purpose, size_bytes=nbytes, address=address, start=start, end=end)
            for i, purpose, nbytes, address, start, end in scratch
        ),
        inputs_resident=inputs_resident,
    )  # fmt: skip


def target(**changes: Any) -> Target:
    """A machine of round numbers: a byte a second each way, no set-up, no burst, a MAC a second, free SRAM."""
    fields: dict[str, Any] = {
        "name": "round", "sram_bytes": 1 << 20, "alignment_bytes": 1, "dram_read_bytes_per_s": 1.0,
        "dram_write_bytes_per_s": 1.0, "dram_read_setup_s": 0.0, "dram_write_setup_s": 0.0, "dram_burst_bytes": 1,
        "sram_bytes_per_s": 1e9, "macs_per_s": {"default": 1.0},
    }  # fmt: skip
    return Target(**{**fields, **changes})


def run_on(machine: Target, lowering: LoweringOptions | None = None, **planning: Any) -> Run:
    """A run of no model: for what is asked about literal programs."""
    nothing = Graph(name="", operators=(), tensors={}, inputs=(), outputs=())
    return Run(
        graph=nothing, target=machine, lowering=lowering or LoweringOptions(), planning=PlanningOptions(**planning)
    )


IN_THE_MIDDLE = program({"a": 20, "b": 20, "c": 20, "n": 40}, ["-> a b c", "a c ->", "-> n", "b ->"], capacity=60)
"""b lies between a and c, which die; then n takes 40 of 60 while b is idle."""


def two_loads() -> tuple[Program, Plan]:
    """u (10 B) and v (30 B) are both fetched at step 0; step 0 needs u, step 1 both."""
    p = program(
        {"u": ("input", 10), "v": ("input", 30), "y": ("output", 1)},
        [step("u -> ", macs=100), step("u, v -> y", macs=1)],
    )
    q = plan(
        p,
        segments=[("u", 0, 5, 0), ("v", 0, 5, 10), ("y", 4, 6, 40)],
        transfers=[("fetch", "u", 0, 0), ("fetch", "v", 0, 1), ("drain", "y", 2, 2)],
    )
    return p, q
