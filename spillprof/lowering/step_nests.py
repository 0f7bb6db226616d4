"""Loop nests of steps: those of the tasks, with operands named by their place among the step's buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from spillprof.ir.loop_nest import LoopNest, NestOperand
from spillprof.ir.modes import StepNest
from spillprof.ir.program import Buffer, Step
from spillprof.ir.target import Target
from spillprof.lowering.draft import Draft
from spillprof.lowering.nests import TaskNest, task_nests
from spillprof.lowering.options import LoweringOptions, WeightsPolicy

MOST_PARTS = 64
"""Parts in which a step takes its operands and gives its results, at most: finer pipelines gain little."""

_MOST_OPERANDS = 256  # of a nest: a join of more is streamed without one


def with_nests(
    steps: Sequence[Step], buffers: Sequence[Buffer], draft: Draft, target: Target, options: LoweringOptions
) -> tuple[Step, ...]:
    """The steps with their loop nests and parts. Step ``i`` is task ``i`` of the draft."""
    by_name = {buffer.name: buffer for buffer in buffers}
    resident = options.weights is WeightsPolicy.RESIDENT
    width = 8 * target.accumulator_bytes_per_output
    return tuple(
        [
            step if found is None else _with_nest(step, found, buffers, by_name, draft, resident, width)
            for step, found in zip(steps, task_nests(draft), strict=True)
        ]
    )


def _with_nest(
    step: Step,
    found: TaskNest,
    buffers: Sequence[Buffer],
    by_name: Mapping[str, Buffer],
    draft: Draft,
    resident: bool,
    accumulator_bits: int,
) -> Step:
    nest = _step_nest(step, found, buffers, by_name, draft, resident, accumulator_bits)
    return step if nest is None else replace(step, nest=nest, parts=parts_of(nest.nest))


def _step_nest(
    step: Step,
    found: TaskNest,
    buffers: Sequence[Buffer],
    by_name: Mapping[str, Buffer],
    draft: Draft,
    resident: bool,
    accumulator_bits: int,
) -> StepNest | None:
    """None if an operand is neither a buffer of the step nor a weight, or a result is written in part."""
    if len(found.nest.operands) > _MOST_OPERANDS:
        return None
    place = {b: k for k, b in enumerate((*step.reads, *step.writes))}
    places: list[int | None] = []
    operands: list[NestOperand] = []
    always: set[int] = set()
    for position, (operand, storage) in enumerate(zip(found.nest.operands, found.storages, strict=True)):
        buffer = by_name.get(storage)
        at = None if buffer is None else place.get(buffer.index)
        if buffer is not None and at is not None:
            if operand.is_output and operand.nbytes < buffer.payload_bytes:
                return None
            places.append(at)
            operands.append(_as_moved(operand, buffer))
            continue
        if not operand.is_weight:
            return None
        if resident:
            always.add(position)
        places.append(None)
        operands.append(operand)
    two = found.in_two_passes
    return _shared(
        replace(found.nest, operands=tuple(operands)),
        tuple(places),
        frozenset(always),
        accumulator_bits if found.nest.macs else 0,
        None if two is None else _step_nest(step, two, buffers, by_name, draft, resident, accumulator_bits),
    )


@lru_cache(maxsize=4096)
def _shared(
    nest: LoopNest,
    places: tuple[int | None, ...],
    resident: frozenset[int],
    accumulator_bits: int,
    in_two_passes: StepNest | None,
) -> StepNest:
    return StepNest(
        nest=nest, places=places, resident=resident, accumulator_bits=accumulator_bits, in_two_passes=in_two_passes
    )


def _as_moved(operand: NestOperand, buffer: Buffer) -> NestOperand:
    """The operand with elements as wide as they are moved: where channels are padded, each takes its share of that."""
    if buffer.moved_bytes == buffer.payload_bytes or not buffer.payload_bytes:
        return operand
    return replace(operand, element_bits=-(-operand.element_bits * buffer.moved_bytes // buffer.payload_bytes))


def parts_of(nest: LoopNest) -> int:
    """Parts in which the step can take its operands: iterations of the loops of its results that an input follows."""
    inputs = [operand for operand in nest.operands if not operand.is_output and not operand.is_weight]
    followed = frozenset().union(*(operand.axes for operand in inputs)) - nest.reduced - nest.whole
    return max(1, min(MOST_PARTS, prod(nest.axes[axis].size for axis in followed)))
