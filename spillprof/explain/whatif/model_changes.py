"""Changes of lowering and of the model: fusion, convolution algorithms, weights, element types, the batch."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spillprof.explain.whatif.change import Change, Situation, option_words
from spillprof.ir.dtypes import DTYPE_BITS, is_float
from spillprof.ir.graph import Graph, TensorKind
from spillprof.ir.units import format_size
from spillprof.lowering.fusion import legal_pairs
from spillprof.lowering.lower import make_draft
from spillprof.lowering.options import ConvAlgorithm, Fuse, Views, WeightsPolicy

_NARROWER = (("fp16", "float16"), ("int8", "int8"))
"""(name in options, name in models)."""


def leaner_lowering(now: Situation) -> Iterator[Change]:
    """Memory-saving options of lowering that are switched off."""
    lowering = now.trial.run.lowering
    if lowering.fuse is Fuse.NONE:
        costs = "kernels for operators with their bias, norm and activation"
        yield _lowered(now, "fuse", "--fuse standard", costs, fuse=Fuse.STANDARD)
    if not lowering.inplace:
        yield _lowered(now, "inplace", "--inplace on", "kernels that overwrite their input", inplace=True)
    if lowering.views is Views.COPY:
        yield _lowered(now, "views", "--views share", "a runtime that knows views", views=Views.SHARE)
    if not lowering.fold:
        yield _lowered(now, "fold", "--fold on", "constants computed beforehand", fold=True)


def other_convolutions(now: Situation) -> Iterator[Change]:
    """Direct convolution, which needs no workspace; ``auto`` if the target times a faster algorithm."""
    factors, conv = now.trial.run.target.conv_time_factors, now.trial.run.lowering.conv
    if not any("Conv" in step.op_type for step in now.program.steps):
        return
    if conv is not ConvAlgorithm.DIRECT:
        yield _lowered(now, "conv", "--conv direct", "kernels without a workspace", conv=ConvAlgorithm.DIRECT)
    if conv is not ConvAlgorithm.AUTO and min(factors.values(), default=1.0) < factors.get("direct", 1.0):
        costs = "kernels of other algorithms, and their workspace"
        yield _lowered(now, "conv", "--conv auto", costs, conv=ConvAlgorithm.AUTO)


def other_weights(now: Situation) -> Iterator[Change]:
    """The other weights policies, as far as the weights fit."""
    lowering, weight_bytes = now.trial.run.lowering, now.program.weight_bytes
    if not weight_bytes:
        return
    size = format_size(weight_bytes)
    if lowering.weights is not WeightsPolicy.STREAM:
        costs = f"{size} of weights pass in every run"
        yield _lowered(now, "weights", "--weights stream", costs, weights=WeightsPolicy.STREAM)
    if lowering.weights is WeightsPolicy.STREAM:
        costs = f"SRAM shared with {size} of weights, kept from run to run"
        yield _lowered(now, "weights", "--weights cached", costs, weights=WeightsPolicy.CACHED)
    if lowering.weights is not WeightsPolicy.RESIDENT and weight_bytes < now.trial.run.target.sram_bytes:
        costs = f"{size} of SRAM reserved for weights"
        yield _lowered(now, "weights", "--weights resident", costs, weights=WeightsPolicy.RESIDENT)


def narrower_types(now: Situation) -> Iterator[Change]:
    """Narrower element types of float activations."""
    for word, dtype in _NARROWER:
        if DTYPE_BITS[dtype] < _activation_bits(now.trial.run.graph, now.trial.run.lowering.act_dtype):
            yield _lowered(now, "dtype", f"--act-dtype {word}", f"accuracy: activations in {word}", act_dtype=dtype)


def smaller_batch(now: Situation) -> Iterator[Change]:
    """A smaller batch; figures are those of all runs together."""
    batch = now.smaller_batch
    if batch is not None:
        yield Change(
            kind="batch",
            argument=batch.argument,
            costs=f"{batch.runs} runs for the same work",
            trial=replace(now.trial, run=replace(now.trial.run, graph=batch.read())),
            runs=batch.runs,
        )


def _activation_bits(graph: Graph, act_dtype: str | None) -> int:
    """Bits of the widest float activation; 0 if there is none."""
    bits = [
        DTYPE_BITS[t.dtype] for t in graph.tensors.values() if t.kind is not TensorKind.WEIGHT and is_float(t.dtype)
    ]
    if not bits:
        return 0
    return max(bits) if act_dtype is None else DTYPE_BITS[act_dtype]


def _lowered(now: Situation, kind: str, argument: str, costs: str, **changes: Any) -> Change:
    return Change(kind=kind, argument=argument, costs=costs, trial=now.trial.lowered(**changes))


_MOST_PAIRS = 3


def fused_pairs(now: Situation) -> Iterator[Change]:
    """One more fused pair each: most spill bytes of the tensor between them first, then the largest."""
    run = now.trial.run
    draft = make_draft(run.graph, run.target, run.lowering)
    moved = {buffer.name: buffer.spill_bytes for buffer in now.buffers}
    pairs = sorted(
        legal_pairs(draft), key=lambda pair: (-moved.get(pair.tensor, 0), -draft.graph.tensors[pair.tensor].nbytes)
    )
    for pair in pairs[:_MOST_PAIRS]:
        tensors = (*run.lowering.fuse_tensor, pair.tensor)
        argument = option_words("--fuse-tensor", tensors)
        if argument is not None:
            yield Change(
                kind="fuse-tensor",
                argument=argument,
                costs=f"a kernel that runs {pair.producer.op_type} and {pair.consumer.op_type} as one",
                trial=now.trial.lowered(fuse_tensor=tensors),
            )
