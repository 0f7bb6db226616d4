"""Algorithms of a convolution: the workspace of each, and which one is chosen."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from spillprof.ir.dtypes import UNSIZED_DTYPES, tensor_bytes
from spillprof.ir.graph import Tensor
from spillprof.ir.program import ACCUMULATOR, Convolution, Phase, Program, Workspace
from spillprof.ir.target import Target
from spillprof.ir.units import format_size
from spillprof.lowering.channels import holds_channels_last
from spillprof.lowering.draft import Draft, LoweringTask
from spillprof.lowering.layout import align
from spillprof.lowering.options import ConvAlgorithm

_WINOGRAD_IN = 16  # elements of a transformed tile of F(2x2, 3x3): 4 x 4
_WINOGRAD_OUT = 2  # output rows and columns of a tile
_NAMED = 3  # operators that a note names

_Named = tuple[str, Convolution]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The matrix of im2col: a row for each output position of the batch, C/groups · kernel elements each."""

    rows: int
    row_elements: int
    dtype: str

    def nbytes(self, blocks: int) -> int:
        """Bytes of the largest block if the rows are split into ``blocks`` as evenly as possible."""
        return tensor_bytes((-(-self.rows // blocks), self.row_elements), self.dtype)

    def fewest_blocks(self, limit_bytes: int) -> int:
        """The fewest blocks that stay under a limit; one block per row if a single row exceeds it."""
        return -(-self.rows // max(1, min(self.rows, limit_bytes // max(1, self.nbytes(self.rows)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A convolution in one algorithm: workspaces of a fixed size, or a matrix that can be split into blocks."""

    algorithm: ConvAlgorithm
    spaces: tuple[tuple[str, int, Phase, Phase], ...] = ()  # purpose, bytes, first and last phase
    matrix: Matrix | None = None

    @property
    def whole_bytes(self) -> int:
        """Bytes of all its workspaces, the matrix unsplit."""
        return sum(nbytes for _, nbytes, _, _ in self.spaces) + (0 if self.matrix is None else self.matrix.nbytes(1))

    @property
    def passing_bytes(self) -> int:
        """Bytes moved through its workspaces: each is written once and read once."""
        return 2 * self.whole_bytes


def conv_forms(task: LoweringTask, draft: Draft) -> tuple[Form, ...]:
    """The algorithms that can compute a task, direct first; empty for one that is no convolution.

    - ``direct`` needs no workspace;
    - ``im2col`` the matrix of all output positions;
    - ``winograd``, for 3 x 3 at stride 1 alone, the transformed input and output tiles of F(2x2, 3x3).
    """
    if (operands := _conv_operands(task, draft)) is None:
        return ()
    image, kernel, result = operands
    positions = result.shape[0] * prod(result.shape[2:])
    matrix = Matrix(rows=positions, row_elements=prod(kernel.shape[1:]), dtype=image.dtype)
    forms = [Form(algorithm=ConvAlgorithm.DIRECT), Form(algorithm=ConvAlgorithm.IM2COL, matrix=matrix)]
    if tiles := _winograd_tiles(task, image, kernel, result):
        forms.append(Form(algorithm=ConvAlgorithm.WINOGRAD, spaces=tiles))
    return tuple(forms)


def asked_form(forms: Iterable[Form], conv: ConvAlgorithm) -> Form:
    """The form of the given algorithm, or direct where it does not apply."""
    by_algorithm = {form.algorithm: form for form in forms}
    return by_algorithm.get(conv, by_algorithm[ConvAlgorithm.DIRECT])


def fastest_form(
    forms: Sequence[Form], target: Target, *, macs_s: float, touched_bytes: int, limit_bytes: int | None
) -> Form:
    """The fastest algorithm whose workspace stays within a limit (None: no limit); direct has no workspace.

    The matrix of im2col may come in blocks, one launch each. Of equally fast ones, the one with the smaller workspace.
    ``macs_s``: the time of its multiply-accumulates at the target's rate; ``touched_bytes``: what it touches without
    any workspace.
    """

    def rank(form: Form) -> tuple[float, int]:
        blocks = 1 if form.matrix is None or limit_bytes is None else form.matrix.fewest_blocks(limit_bytes)
        moving_s = (touched_bytes + form.passing_bytes) / target.sram_bytes_per_s
        computing_s = macs_s * conv_time_factor(target, form.algorithm)
        return max(computing_s, moving_s) + blocks * target.launch_overhead_s, form.whole_bytes

    return min((form for form in forms if limit_bytes is None or _least_bytes(form) <= limit_bytes), key=rank)


def conv_time_factor(target: Target, algorithm: ConvAlgorithm | None) -> float:
    """Time of the multiply-accumulates of a task, relative to the target's rate."""
    return 1.0 if algorithm is None else target.conv_time_factors.get(str(algorithm), 1.0)


def _least_bytes(form: Form) -> int:
    """The workspace of a form, a matrix in the smallest blocks."""
    return form.whole_bytes if form.matrix is None else form.matrix.nbytes(max(1, form.matrix.rows))


def _conv_operands(task: LoweringTask, draft: Draft) -> tuple[Tensor, Tensor, Tensor] | None:
    """Image (as it is stored), kernel and result, channels on axis 1; None if it has no choice of algorithms."""
    op, facts = task.lead, task.facts
    kernel_at = facts.kernel_input
    if kernel_at is None or len(op.inputs) <= kernel_at:
        return None
    if not (op.inputs[0] and op.inputs[kernel_at] and op.outputs and op.outputs[0]):
        return None
    tensors = draft.graph.tensors
    image, kernel, result = tensors[task.inputs[0]], tensors[op.inputs[kernel_at]], tensors[op.outputs[0]]
    sized = image.dtype not in UNSIZED_DTYPES and prod(result.shape) > 0
    if not sized or len(kernel.shape) < 3 or len(result.shape) < 3:
        return None
    if holds_channels_last(op):
        image, result = _channels_first(image), _channels_first(result)
    return image, _channels_first(kernel) if facts.kernel_channels_last else kernel, result


def _channels_first(tensor: Tensor) -> Tensor:
    batch, *space, channels = tensor.shape
    return replace(tensor, shape=(batch, channels, *space))


def _winograd_tiles(
    task: LoweringTask, image: Tensor, kernel: Tensor, result: Tensor
) -> tuple[tuple[str, int, Phase, Phase], ...]:
    """Transformed tiles of input and output, or nothing where the algorithm does not apply."""
    attributes: Mapping[str, object] = task.lead.attributes
    steps = (*_ints(attributes.get("strides")), *_ints(attributes.get("dilations")))
    if kernel.shape[2:] != (3, 3) or any(step != 1 for step in steps) or len(image.shape) != 4:
        return ()
    batch, features, height, width = result.shape
    tiles = batch * -(-height // _WINOGRAD_OUT) * -(-width // _WINOGRAD_OUT)
    before = tensor_bytes((_WINOGRAD_IN, image.shape[1], tiles), image.dtype)
    after = tensor_bytes((_WINOGRAD_IN, features, tiles), image.dtype)
    return (
        ("winograd input tiles", before, Phase.READ, Phase.COMPUTE),
        ("winograd output tiles", after, Phase.COMPUTE, Phase.WRITE),
    )


def _ints(value: object) -> tuple[int, ...]:
    return tuple(int(v) for v in value) if isinstance(value, tuple) else ()


def workspaces(task: LoweringTask, draft: Draft, target: Target, form: Form | None) -> tuple[Workspace, ...]:
    """Workspaces of fixed size of a task, sizes aligned; those of size 0 left out.

    The accumulator of a convolution or matrix product, if the target keeps accumulators in SRAM, and what the
    algorithm of a convolution needs besides. (The matrix of im2col comes later: see ``im2col``.)
    """
    if not task.facts.leads:
        return ()
    found = (*(() if form is None else form.spaces), *_accumulator(task, draft, target))
    return tuple(
        Workspace(purpose=purpose, size_bytes=align(nbytes, target.alignment_bytes), first=first, last=last)
        for purpose, nbytes, first, last in found
        if nbytes > 0
    )


def _accumulator(task: LoweringTask, draft: Draft, target: Target) -> tuple[tuple[str, int, Phase, Phase], ...]:
    if not task.outputs:
        return ()
    nbytes = target.accumulator_bytes_per_output * prod(draft.graph.tensors[task.outputs[0]].shape)
    return ((ACCUMULATOR, nbytes, Phase.COMPUTE, Phase.WRITE),)


def convolution_notes(program: Program) -> tuple[str, ...]:
    """Notes on convolutions that memory limits to a slower algorithm, and on those with their matrix in blocks."""
    found = [(step.name, step.convolution) for step in program.steps if step.convolution is not None]
    notes = [f"convolutions: {_algorithms(found)}"] if any(c.algorithm != "direct" for _, c in found) else []
    slower = [(name, c) for name, c in found if c.algorithm != c.fastest]
    if slower:
        pairs = Counter(f"{c.fastest} to {c.algorithm}" for _, c in slower)
        kinds = ", ".join(f"{count} from {pair}" for pair, count in pairs.items())
        notes.append(
            f"{_share(slower, found)} with a slower algorithm, as the workspace of the fastest passes half of the SRAM "
            f"or pushes out more than it wins: {kinds} ({_names(slower)})"
        )
    blocked = [(name, c) for name, c in found if c.blocks > 1]
    if blocked:
        blocks = sum(c.blocks for _, c in blocked)
        notes.append(
            f"{_share(blocked, found)} in blocks of the im2col matrix, {blocks:,} in all, one launch each "
            f"({_names(blocked)})"
        )
    return tuple(notes)


def _algorithms(found: Sequence[_Named]) -> str:
    parts = []
    for algorithm, count in sorted(Counter(c.algorithm for _, c in found).items()):
        largest = max(c.workspace_bytes for _, c in found if c.algorithm == algorithm)
        workspace = f" with up to {format_size(largest)} of workspace" if largest else ""
        parts.append(f"{count:,} {algorithm}{workspace}")
    return ", ".join(parts)


def _share(some: Sequence[_Named], found: Sequence[_Named]) -> str:
    return f"{len(some):,} of {len(found):,} convolutions run{'s' if len(some) == 1 else ''}"


def _names(found: Sequence[_Named]) -> str:
    return ", ".join(name for name, _ in found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
