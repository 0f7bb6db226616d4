"""Fitting a Program to a memory: reservations, and tiling of operators that do not fit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_

import numpy as np

from spillprof.ir.arrays import Ints
from spillprof.ir.errors import CapacityError
from spillprof.ir.program import Program, Reservation, Step, largest_phase_bytes
from spillprof.ir.target import Target
from spillprof.ir.units import format_size, format_size_exact, format_size_pair
from spillprof.lowering.layout import align
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions, Oversized, TilingModel, WeightsPolicy
from spillprof.lowering.streaming import stream_oversized
from spillprof.planning.liveness import (
    demand_by_step,
    most_weight_stream_bytes,
    most_workspace_bytes,
    shared_workspaces,
    step_demand_bytes,
)
from spillprof.planning.tiling.menus import menu, smallest_demand

_WEIGHT_STAGING_SHARE = 8  # of the capacity, one part in so many
_STREAM_STAGING_SHARE = 16


def fit(program: Program, target: Target, options: LoweringOptions) -> Program:
    """The program for ``target.sram_bytes``: reservations subtracted, operands of oversized steps streamed.

    ``CapacityError`` if the reservations do not fit, if a step does not fit with everything streamed, or if a step
    is oversized and the options say that this is an error.
    """
    reservations = reservations_of(program, target, options, target.sram_bytes)
    reserved = sum(r.size_bytes for r in reservations)
    if reserved > target.sram_bytes:
        raise _over_reserved(program, target, options, reservations)
    fitted = replace(
        _without_shared_workspaces(program, target), capacity_bytes=target.sram_bytes, reservations=reservations
    )
    if options.tiling is TilingModel.ONCE:  # planners choose no modes
        fitted = replace(fitted, steps=tuple(replace(step, nest=None) for step in fitted.steps))
    pool_bytes = target.sram_bytes - reserved
    oversized = [i for i, nbytes in enumerate(demand_by_step(fitted).tolist()) if nbytes > pool_bytes]
    if not oversized:
        return fitted
    if options.oversized is Oversized.ERROR:
        raise _oversized(program, fitted, target, options)
    steps = list(fitted.steps)
    for i in oversized:
        if options.tiling is TilingModel.AUTO and steps[i].nest is not None:
            if not menu(fitted, i):
                raise _no_tile_fits(i, program, fitted, target, options)
            continue
        streamed = stream_oversized(fitted, steps[i], pool_bytes, stream_staging_bytes(target))
        if streamed is None:
            raise _not_even_streamed(i, program, fitted, target, options)
        steps[i] = streamed
    return fitted if all(map(is_, steps, fitted.steps)) else replace(fitted, steps=tuple(steps))


def unlimited(program: Program, target: Target, options: LoweringOptions) -> Program:
    """The program for infinite SRAM (the ideal): reservations as in ``fit``, nothing streamed."""
    reservations = reservations_of(program, target, options, target.sram_bytes)
    return replace(_without_shared_workspaces(program, target), capacity_bytes=None, reservations=reservations)


def min_sram(
    program: Program,
    target: Target,
    options: LoweringOptions,
    needed: Callable[[Program], Sequence[int] | Ints] = demand_by_step,
) -> tuple[int, int]:
    """Smallest capacity in bytes at which ``fit`` streams nothing, a multiple of the alignment; and its step.

    The step is the first of those with the largest demand; 0 for a program without steps. ``needed``: pool bytes
    that each step needs, where that is more than its demand. What ``fit`` leaves for the pool grows with the
    capacity, so bisection is exact. Workspaces are those of the program: im2col blocks do not shrink with the
    capacity tried.
    """
    demands = np.asarray(needed(_without_shared_workspaces(program, target)), dtype=np.int64)
    demand = int(demands.max(initial=0))

    def fits(units: int) -> bool:
        capacity = units * target.alignment_bytes
        return demand <= capacity - sum(r.size_bytes for r in reservations_of(program, target, options, capacity))

    low, high = 1, 1
    while not fits(high):
        low, high = high + 1, high * 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low * target.alignment_bytes, int(demands.argmax()) if len(demands) else 0


def stream_staging_bytes(target: Target) -> int:
    """Staging buffer of a step with streamed operands: the target's, else a sixteenth of the capacity; aligned."""
    chosen = target.stream_staging_bytes
    return align(target.sram_bytes // _STREAM_STAGING_SHARE if chosen is None else chosen, target.alignment_bytes)


def reservations_of(
    program: Program, target: Target, options: LoweringOptions, capacity_bytes: int
) -> tuple[Reservation, ...]:
    """Reservations in a memory of the given capacity, in address order, without those of size 0."""
    weights = program.weight_bytes if options.weights is WeightsPolicy.RESIDENT else 0
    found = [
        Reservation(what="runtime", size_bytes=align(target.reserved_bytes, target.alignment_bytes)),
        Reservation(what="weight staging", size_bytes=_weight_staging_bytes(program, target, capacity_bytes)),
        Reservation(what="shared workspace", size_bytes=workspace_block_bytes(program, target)),
        Reservation(what="resident weights", size_bytes=align(weights, target.alignment_bytes)),
    ]
    slots = [
        Reservation(what="dedicated slot", size_bytes=b.size_bytes, buffer=b.index)
        for b in program.buffers
        if b.dedicated
    ]
    return (*(r for r in found if r.size_bytes > 0), *slots)


def _weight_staging_bytes(program: Program, target: Target, capacity_bytes: int) -> int:
    """Staging area for streamed weights: the target's, else an eighth of the capacity; at most the largest need."""
    largest = most_weight_stream_bytes(program)
    chosen = target.weight_staging_bytes
    if chosen is None:
        # In whole alignment units, so that a slightly larger capacity never leaves a smaller pool.
        chosen = (capacity_bytes - capacity_bytes % target.alignment_bytes) // _WEIGHT_STAGING_SHARE
    return min(align(chosen, target.alignment_bytes), align(largest, target.alignment_bytes))


def workspace_block_bytes(program: Program, target: Target) -> int:
    """The shared block: the largest sum of workspaces that any step holds in one phase."""
    return most_workspace_bytes(program) if target.shared_workspace else 0


def _without_shared_workspaces(program: Program, target: Target) -> Program:
    if not target.shared_workspace or not any(step.workspaces for step in program.steps):
        return program
    return replace(program, steps=tuple(_without_shared(step) if step.workspaces else step for step in program.steps))


def _without_shared(step: Step) -> Step:
    shared = shared_workspaces(step)
    own = tuple(w for w in step.workspaces if w not in shared)
    return replace(step, workspaces=own, shared_workspace_bytes=largest_phase_bytes(shared))


def _over_reserved(
    program: Program, target: Target, options: LoweringOptions, reservations: Sequence[Reservation]
) -> CapacityError:
    need, have = format_size_pair(sum(r.size_bytes for r in reservations), target.sram_bytes)
    smallest, _ = min_sram(program, target, options)
    hint = f"the smallest SRAM that works is {format_size_exact(smallest)}"
    if any(r.what == "resident weights" for r in reservations):
        hint += "; or use --weights stream"
    if options.conv is ConvAlgorithm.WINOGRAD and any(r.what == "shared workspace" for r in reservations):
        hint += "; or use --conv auto, which gives up an algorithm whose workspace passes half of the SRAM"
    return CapacityError(
        f"what stays on-chip for the whole run needs {need}, SRAM is {have}",
        where=[_reserved(program, reservations)],
        hint=hint,
    )


def _oversized(program: Program, fitted: Program, target: Target, options: LoweringOptions) -> CapacityError:
    """The error about the step with the largest demand: the SRAM that it needs is enough for all."""
    smallest, worst = min_sram(program, target, options)
    message, where = _demand(worst, program, fitted, target)
    hint = (
        f"the smallest SRAM that holds it is {format_size_exact(smallest)}; "
        "or drop --oversized error to tile it through DRAM"
    )
    return CapacityError(message, where=where, hint=hint)


def _not_even_streamed(
    i: int, program: Program, fitted: Program, target: Target, options: LoweringOptions
) -> CapacityError:
    smallest, _ = min_sram(program, target, options)
    message, where = _demand(i, program, fitted, target)
    hint = (
        f"its workspace and a staging buffer of {format_size(stream_staging_bytes(target))} do not fit even with every "
        f"operand tiled through DRAM; the smallest SRAM that holds the model untiled is {format_size_exact(smallest)}"
    )
    return CapacityError(message, where=where, hint=hint)


def _no_tile_fits(i: int, program: Program, fitted: Program, target: Target, options: LoweringOptions) -> CapacityError:
    """The error about a step of which no tile fits; its hint is the smallest SRAM that all steps run in."""
    pool = target.sram_bytes - fitted.reserved_bytes
    needed, smallest = smallest_demand(fitted, i)
    nest = fitted.steps[i].nest
    tile = ""
    if smallest is not None and nest is not None:
        axes = nest.nest.axes if len(nest.nest.axes) == len(smallest.tiling.tile) else ()
        tile = ", ".join(f"{a.name} {n}" for a, n in zip(axes, smallest.tiling.tile, strict=False) if a.size > 1)
    least, _ = min_sram(program, target, options, lambda p: [smallest_demand(p, k)[0] for k in range(len(p.steps))])
    return CapacityError(
        f"operator '{fitted.steps[i].name}' does not fit into the SRAM, however it is tiled",
        where=[
            f"its smallest tile ({tile or 'one element'}) needs {format_size_exact(needed)}, "
            f"{format_size_exact(pool)} are left of {format_size_exact(target.sram_bytes)}"
        ],
        hint=f"the smallest SRAM that the model runs in is {format_size_exact(least)}",
    )


def _demand(i: int, program: Program, fitted: Program, target: Target) -> tuple[str, list[str]]:
    step = fitted.steps[i]
    need, have = format_size_pair(step_demand_bytes(fitted, step), target.sram_bytes)
    sizes = [sum(fitted.buffers[b].size_bytes for b in side) for side in (step.reads, step.writes)]
    sizes.append(largest_phase_bytes(program.steps[i].workspaces))
    parts = ", ".join(
        f"{what} {format_size(n)}" for what, n in zip(("inputs", "output", "workspace"), sizes, strict=True)
    )
    where = [f"{step.name}: {parts}"]
    message = f"operator {i} needs {need} on-chip at once, SRAM is {have}"
    if fitted.reservations:
        message += f" of which {format_size(fitted.reserved_bytes)} is reserved"
        where.append(_reserved(fitted, fitted.reservations))
    return message, where


def _reserved(program: Program, reservations: Sequence[Reservation]) -> str:
    named = (
        f"{r.what} {format_size(r.size_bytes)}" + ("" if r.buffer is None else f" ({program.buffers[r.buffer].name})")
        for r in reservations
    )
    return f"reserved: {', '.join(named)}"
