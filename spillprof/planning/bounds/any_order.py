"""A lower bound on spill bytes in every order of the steps, from the buffers that no order can have dead.

A buffer is forced live at step k if k, or a step before k in every order, writes it, and k, or a step after k in every
order, reads it. Where the forced bytes and what the step itself needs exceed the memory, some of the forced buffers
must have left: each costs a reload, and a write-back if DRAM has no copy. The cheapest set of buffers that makes room
at every step is a covering problem; integer weights on its rows prove a bound on it by weak duality, wherever the
weights come from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.program import BufferKind, Program
from spillprof.planning.highs import quiet_solver
from spillprof.planning.liveness import least_by_step, resident_inputs
from spillprof.planning.options import PlanningOptions, Start
from spillprof.planning.tiling.menus import is_open
from spillprof.planning.tiling.touched import least_read_bytes

_MOST_STEPS = 12_000
"""Above this the bit sets of buffers before and after each step take too much memory."""

_SCALE = 1 << 40
_MOST_ENTRIES = 1_500_000  # of all rows together
_LP_WORK = 15_000_000_000  # entries of the rows x iterations of the linear program


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """At some step, at least so many bytes of these buffers must have left."""

    excess_bytes: int
    buffers: Ints


def any_order_bytes(program: Program, options: PlanningOptions) -> int | None:
    """Bytes that every order of the fitted program's steps must spill, beyond what its streamed operands move.

    None if it is not known: infinite memory, or more than ``MOST_STEPS`` steps.
    """
    if program.capacity_bytes is None or len(program.steps) > _MOST_STEPS:
        return None
    sizes = np.array([b.size_bytes for b in program.buffers], dtype=np.int64)
    costs = np.array(_cost_bytes(program), dtype=np.int64)
    rows = _rows(program, options, sizes)
    if not rows:
        return 0
    proven: int = max(
        _proven(rows, weights, sizes, costs) for weights in (_best_row(rows, sizes, costs), _duals(rows, sizes, costs))
    )
    unit = gcd(*(int(costs[b]) for row in rows for b in row.buffers)) or 1
    return -(-proven // unit) * unit  # plans spill a sum of these costs


def _cost_bytes(program: Program) -> list[int]:
    """DRAM bytes of each buffer that leaves between its first and last use.

    A reload, or what its tiles bring to the step that needs least of it; and a write unless DRAM has it anyway.
    """
    back = [b.moved_bytes for b in program.buffers]
    for i, step in enumerate(program.steps):
        for b in step.reads:
            back[b] = min(back[b], least_read_bytes(program, i, b))
    return [
        nbytes + (b.moved_bytes if b.kind is BufferKind.ACTIVATION else 0)
        for nbytes, b in zip(back, program.buffers, strict=True)
    ]


def _rows(program: Program, options: PlanningOptions, sizes: Ints) -> list[_Row]:
    """Rows of the steps whose forced buffers do not fit; those of the largest excess if there are very many."""
    assert program.capacity_bytes is not None
    pool = program.capacity_bytes - program.reserved_bytes
    movable = _movable(program, options)
    always = 0  # cached weights: the next inference reads them too, so at each step they are on-chip or to be reloaded
    if program.weights_persist and options.start is Start.STEADY:
        used = {b for step in program.steps for b in step.reads}
        always = _mask(b for b in used if program.buffers[b].kind is BufferKind.WEIGHT and movable[b])
    n_bytes = -(-len(sizes) // 8)
    rows: dict[tuple[int, bytes], _Row] = {}
    for i, (known, wanted) in enumerate(zip(*_known_and_wanted(program, movable), strict=True)):
        step = program.steps[i]
        forced = (known & wanted | always) & ~_mask((*step.reads, *step.writes))
        packed = forced.to_bytes(n_bytes, "little")
        bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), bitorder="little")
        buffers = np.flatnonzero(bits).astype(np.int64)
        excess = int(sizes[buffers].sum()) + _least_demand(program, i) - pool
        if excess > 0 and len(buffers):
            rows[excess, packed] = _Row(excess_bytes=min(excess, int(sizes[buffers].sum())), buffers=buffers)
    chosen: list[_Row] = []
    entries = 0
    for row in sorted(rows.values(), key=lambda r: -r.excess_bytes):
        entries += len(row.buffers)
        if entries > _MOST_ENTRIES:
            break
        chosen.append(row)
    return chosen


def _movable(program: Program, options: PlanningOptions) -> list[bool]:
    """By buffer: whether it lies in the pool, may leave it, and is never streamed."""
    streamed = {b for s in program.steps for b in (*s.streamed_reads, *s.streamed_writes)}
    fixed = resident_inputs(program, options)
    return [
        bool(b.size_bytes) and not b.dedicated and b.index not in streamed and b.index not in fixed
        for b in program.buffers
    ]


def _known_and_wanted(program: Program, movable: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Two masks of buffers a step: touched at it or before it in every order; read at it or after it in every order."""
    steps = program.steps
    writer = {b: i for i, step in enumerate(steps) for b in step.writes}
    known, wanted = [0] * len(steps), [0] * len(steps)
    for i, step in enumerate(steps):
        known[i] = _mask(b for b in (*step.reads, *step.writes) if movable[b])
        for j in {writer[b] for b in step.reads if b in writer}:
            known[i] |= known[j]
    for i in reversed(range(len(steps))):
        wanted[i] |= _mask(b for b in steps[i].reads if movable[b])
        for j in {writer[b] for b in steps[i].reads if b in writer}:
            wanted[j] |= wanted[i]
    return known, wanted


def _least_demand(program: Program, i: int) -> int:
    """Pool bytes of step ``i`` in any order: operands may die there, and its result may overwrite one of them.

    Of a step whose loops are known, only operands that cannot pass in tiles count.
    """
    step = program.steps[i]
    if step.nest is not None and is_open(step):
        operands = (*step.reads, *step.writes)
        tiled = {operands[place] for place in step.nest.places if place is not None}
        counted = step.reads if step.may_overwrite else operands
        return sum(
            program.buffers[b].size_bytes for b in counted if b not in tiled and not program.buffers[b].dedicated
        )
    saved = 0 if step.updates else max((program.buffers[b].size_bytes for b in step.may_overwrite), default=0)
    return int(least_by_step(program)[i]) - saved


def _mask(buffers: Iterable[int]) -> int:
    bits = 0
    for b in buffers:
        bits |= 1 << b
    return bits


def _proven(rows: Sequence[_Row], weights: Sequence[int], sizes: Ints, costs: Ints) -> int:
    """The bound that integer weights (>= 0, in units of 1 / 2^40) prove: weak duality, exact arithmetic."""
    paid = [0] * len(sizes)
    total = 0
    for row, weight in zip(rows, weights, strict=True):
        if weight > 0:
            total += weight * row.excess_bytes
            for b in row.buffers.tolist():
                paid[b] += weight * min(int(sizes[b]), row.excess_bytes)
    total += sum(min(0, _SCALE * cost - used) for cost, used in zip(costs.tolist(), paid, strict=True))
    return int(max(0, -(-total // _SCALE)))


def _best_row(rows: Sequence[_Row], sizes: Ints, costs: Ints) -> list[int]:
    """Weights with all on the one row that proves most by itself: as much as its cheapest buffer can pay."""
    rates = [float((costs[r.buffers] / np.minimum(sizes[r.buffers], r.excess_bytes)).min()) for r in rows]
    best = max(range(len(rows)), key=lambda r: rates[r] * rows[r].excess_bytes)
    return [int(rates[r] * _SCALE) if r == best else 0 for r in range(len(rows))]


def _duals(rows: Sequence[_Row], sizes: Ints, costs: Ints) -> list[int]:
    """Weights from the duals of the covering LP. Sizes are scaled to about 1."""
    import highspy

    used = np.unique(np.concatenate([row.buffers for row in rows]))
    column = {b: k for k, b in enumerate(used.tolist())}
    unit = float(np.median(sizes[used]))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(used), len(rows)
    lp.col_cost_ = costs[used] / unit
    lp.col_lower_, lp.col_upper_ = np.zeros(len(used)), np.ones(len(used))
    lp.row_lower_ = np.array([row.excess_bytes for row in rows]) / unit
    lp.row_upper_ = np.full(len(rows), highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(row.buffers) for row in rows])])
    lp.a_matrix_.index_ = np.array([column[b] for row in rows for b in row.buffers.tolist()])
    lp.a_matrix_.value_ = np.concatenate([np.minimum(sizes[r.buffers], r.excess_bytes) / unit for r in rows])
    solver = quiet_solver()
    solver.setOptionValue("simplex_iteration_limit", max(1, _LP_WORK // len(lp.a_matrix_.index_)))
    solver.passModel(lp)
    solver.run()
    duals = np.asarray(solver.getSolution().row_dual)
    if len(duals) != len(rows):
        return [0] * len(rows)
    return [int(max(0.0, dual) * _SCALE) for dual in duals.tolist()]
