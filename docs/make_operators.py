"""Writes docs/operators.md from the program's own tables. ``python docs/make_operators.py``; a test checks it."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

import onnx.defs

from spillprof.frontends.onnx.bounds import BOUNDED
from spillprof.frontends.onnx.contrib import CONTRIB_SIZES
from spillprof.lowering.operators.facts import CONTRIB_DOMAINS, Follower, LoopKind, ViewKind
from spillprof.lowering.operators.table import CostClass, cost_class, known_rows

BODIES_REFUSED = ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")
CONTRIB_UNKNOWN = (
    "BifurcationDetector", "DecoderAttention", "DequantizeBFP", "Irfft", "LongformerAttention", "QOrderedAttention",
    "QOrderedLongformerAttention", "QuantizeBFP", "Rfft", "Snpe", "SparseToDenseMatMul", "Tokenizer",
    "WordConvEmbedding",
)  # fmt: skip
COSTS = {
    CostClass.COUNTED: "multiply-accumulates are counted",
    CostClass.BYTES: "by bytes: elementwise, reduction, movement, look-up",
    CostClass.BODIES: "those of the operators that it runs",
    CostClass.UNKNOWN: "by bytes, and counted as *operators of unknown cost*",
}
INTRODUCTION = """# Operators: supported, assumed, refused

This page is made from the program's tables by `docs/make_operators.py`, for the operator sets of onnx {version}.

Two things must be known of an operator: the **sizes** of its outputs, and its **cost**. Nothing is zero in silence:
what is not known is an error, or an assumption that every report counts and names.

| size | meaning |
| --- | --- |
| inferred | from the shapes of the inputs and, where they decide, their contents; what a file claims is overruled |
| bounded | depends on the data of the run: the largest possible size is taken, and that is counted |
| file | no rule: from the file's `value_info`, else from `--assume`, and that is counted; without either, an error |
| refused | an error |

Compute time is the larger of multiply-accumulates ÷ rate and bytes touched ÷ SRAM bandwidth. Where
multiply-accumulates are not counted, bytes alone decide.

Operators of other domains are *file* and *unknown*, unless the model defines them as functions: those are inlined.
"""
ASSUMPTIONS = """## Assumed

Each of these is counted and shown with every result that rests on it.

| where | taken as true |
| --- | --- |
| any operator without a cost rule | operators of unknown cost are timed by bytes alone |
| any operator without a size rule | a size that cannot be inferred is taken from the file's value_info |
| outputs that depend on the data | the largest size is taken |
| sequences, optionals | counted as all that they hold, copied where they change |
| strings, maps, sequences of unknown length | counted as 0 bytes |
| an element of a sequence, at a position that depends on the data | the largest size is taken |
| bodies of FlexAttention | not counted: they change scores one by one |
| sparse weights | counted as dense |
| If of unknown condition | the branch that needs more memory is taken, outputs at their larger size (`--branch`) |
| Loop of unknown trips | taken to run so often as its limit says, or as is stated with it (`--trips`) |
| GroupQueryAttention of unknown total length | its cache grows by the input, unless the file or `--assume` says less |
| attention with a past ({past}) | the keys and values of the past are copied, none are appended in place |
| parameters in attributes (`ai.onnx.ml`) | weights of 8 bytes a whole number, 4 any other |
{rows}
Not counted, because it is how the figures are defined: products under a causal mask are counted like all others; a
grouped or local attention multiplies what its shapes say, over a cache all places that it has; a recurrent layer runs
all steps that its input holds.
"""
CONTESTED = (
    (
        "MaxPool 10 to 12, AveragePool 10 to 19, LpPool 18",
        "`ceil_mode`: the last window would begin in padding alone",
        "there is no such window, as in today's standard; onnx counts it",
    ),
    ("all pools", "`ceil_mode`, a window larger than the image", "rounded up, to 0 too; onnx gives 1"),
    (
        "ConvTranspose",
        "SAME padding and `output_padding`",
        "input × stride, or less where the kernel covers less; onnx adds the output padding to it",
    ),
    ("ConvTranspose", "an `output_shape` smaller than the input", "as stated; onnx drops the axis"),
    (
        "all pools",
        "SAME padding and dilations",
        "the standard's, input ÷ stride; onnxruntime pads as if there were no dilation",
    ),
    (
        "Squeeze, Unsqueeze before 11",
        "`axes` counted from behind, or in another order",
        "with all of them; onnx passes over some",
    ),
    (
        "Squeeze 13 and later",
        "an empty list of axes",
        "the standard's, nothing is squeezed; onnxruntime takes it for none given",
    ),
    (
        "Resize",
        "`keep_aspect_ratio_policy` with `axes` counted from behind",
        "the standard's; onnxruntime leaves those axes as they are",
    ),
    ("Resize", "`keep_aspect_ratio_policy`, an axis gets no element", "stays unknown, and is refused"),
)
DIFFERENCES = """## Where onnx and onnxruntime differ

Sizes are those that onnxruntime gives, but for the rows that say otherwise. `python benchmarks/runtime_shapes.py` draws
1,000 nodes of each of 226 operators (attributes, operator sets, broadcasting, axes, empty dimensions) and compares
types and sizes with onnxruntime 1.32. Of the 196,292 that it runs, 185,880 are sized alike; where values that sizes
follow from are fed, 3,880 get an upper bound and 6,244 are refused as unknown; 288 differ as the rows say, and no
other does.

| operators | case | size |
| --- | --- | --- |
{rows}"""
REFUSED = """## Refused

Exit code 2, one `error:` line, one `hint:` line.

- Decoding loops around whole models: {bodies}. Their decoders can be analysed as models of their own.
- A tensor whose size stays unknown: the operator that writes it is named, and the `--assume` that would size it.
- Shapes that contradict each other; an operator that its operator set does not have.
- Settings that make no sense: groups or heads that do not divide, an axis that there is not, strides of 0, an
  equation of Einsum that is none; a size that follows from a division by zero or an overflow in the model's arithmetic.
- Functions that call themselves; control flow nested more than 64 deep.
- Values of kinds other than tensor, sequence, optional and map; tensors of unknown element type.
"""
FAMILIES = """## What lowering does with them

| treatment | operators |
| --- | --- |
| lead a fused step | {leaders} |
| join it: activation | {activations} |
| join it: bias, scale | {scalings}, BatchNormalization |
| may overwrite an input | {elementwise} |
| take no memory (see *Views*) | {views} |
| move only what they look up | {partial} |
"""

LOOPS = """## Loop nests

The loops that compute an operator, and so what a tiling of it can cut. Operators that are not listed have loops of
another kind.

| loops | operators |
| --- | --- |
"""


def render() -> str:
    """The page as Markdown."""
    schemas = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        known = schemas[schema.domain].get(schema.name)
        if known is None or known.since_version < schema.since_version:
            schemas[schema.domain][schema.name] = schema
    parts = [INTRODUCTION.format(version=_version())]
    for domain in sorted(schemas):
        sizes = {name: _size(domain, schema) for name, schema in schemas[domain].items()}
        parts.append(_table(domain, sizes))
    for domain in ("com.microsoft", "com.microsoft.nchwc"):
        parts.append(_table(domain, _contrib_sizes(domain)))
    facts = known_rows()
    stated = defaultdict(list)
    for op_type, row in facts.items():
        if row.assumption:
            stated[row.assumption].append(op_type)
    rows = "".join(f"| {', '.join(sorted(types))} | {text} |\n" for text, types in stated.items())
    past = _names(t for t, row in facts.items() if row.past_input is not None)
    parts.append(ASSUMPTIONS.format(rows=rows, past=past))
    parts.append(DIFFERENCES.format(rows="".join(f"| {' | '.join(row)} |\n" for row in CONTESTED)))
    parts.append(REFUSED.format(bodies=_names(BODIES_REFUSED)))
    parts.append(
        FAMILIES.format(
            leaders=_names(t for t, row in facts.items() if row.leads),
            activations=_names(t for t, row in facts.items() if row.joins is Follower.ACTIVATION),
            scalings=_names(t for t, row in facts.items() if row.joins is Follower.SCALING),
            elementwise=_names(t for t, row in facts.items() if row.in_place and row.joins is None)
            + ", and those of the two rows above",
            views=_names(t for t, row in facts.items() if row.view is ViewKind.WHOLE),
            partial=_names(t for t, row in facts.items() if row.reads is not None and not t.startswith("Scan")),
        )
    )
    loops = ((kind, _names(t for t, row in facts.items() if row.loop is kind)) for kind in LoopKind)
    parts.append(LOOPS + "".join(f"| {kind} | {names} |\n" for kind, names in loops if kind is not LoopKind.OTHER))
    return "\n".join(parts)


def _version() -> str:
    return ".".join(onnx.__version__.split(".")[:2])


def _size(domain: str, schema: onnx.defs.OpSchema) -> str:
    if (domain, schema.name) in BOUNDED:
        return "bounded"
    ruled = schema.name in CONTRIB_SIZES.get(domain, {})
    return "inferred" if ruled or schema.has_type_and_shape_inference_function or schema.has_function else "file"


def _contrib_sizes(domain: str) -> dict[str, str]:
    sizes = dict.fromkeys(CONTRIB_SIZES[domain], "inferred")
    sizes |= {op_type: "bounded" for where, op_type in BOUNDED if where == domain}
    if domain == "com.microsoft":
        by_bytes = [t for t, row in known_rows().items() if not {*CONTRIB_DOMAINS}.isdisjoint(row.domains)]
        sizes = dict.fromkeys((*CONTRIB_UNKNOWN, *by_bytes), "file") | sizes
        sizes |= dict.fromkeys(BODIES_REFUSED, "refused")
        for op_type in (*CONTRIB_SIZES["com.microsoft.nchwc"], "RelativePositionBias"):
            if op_type not in CONTRIB_SIZES[domain]:
                sizes.pop(op_type, None)
    return sizes


def _table(domain: str, sizes: dict[str, str]) -> str:
    groups = defaultdict(list)
    for op_type, size in sizes.items():
        groups[size, cost_class(domain, op_type)].append(op_type)
    order = ("inferred", "bounded", "file", "refused")
    lines = [f"## Domain `{domain or 'ai.onnx'}`", "", "| size | cost | operators |", "| --- | --- | --- |"]
    for size, cost in sorted(groups, key=lambda key: (order.index(key[0]), list(CostClass).index(key[1]))):
        said = "-" if size == "refused" else COSTS[cost]
        lines.append(f"| {size} | {said} | {_names(groups[size, cost])} |")
    return "\n".join(lines) + "\n"


def _names(names: Iterable[str] | Collection[str]) -> str:
    return ", ".join(sorted(set(names)))


if __name__ == "__main__":
    (Path(__file__).parent / "operators.md").write_text(render(), encoding="utf-8", newline="\n")
