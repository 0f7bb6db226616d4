"""Memory that an operator needs besides its operands, and in which phases."""

from dataclasses import replace
from math import prod

from spillprof.lowering.draft import Draft, Task
from spillprof.lowering.families import CONVOLUTIONS, LEADERS, is_one_of
from spillprof.lowering.layout import align
from spillprof.lowering.options import ConvAlgorithm
from spillprof.model.dtypes import UNSIZED_DTYPES, tensor_bytes
from spillprof.model.graph import Tensor
from spillprof.model.program import Phase, Workspace
from spillprof.model.target import Target

_WINOGRAD_IN = 16  # elements of a transformed tile of F(2x2, 3x3): 4 x 4
_WINOGRAD_OUT = 2  # output rows and columns of a tile

_CHANNELS_LAST = frozenset({"NhwcConv", "NhwcFusedConv"})
_KERNEL_CHANNELS_LAST = frozenset({"NhwcConv"})


def conv_algorithm(task: Task, draft: Draft, target: Target, conv: ConvAlgorithm) -> ConvAlgorithm | None:
    """How a convolution is computed; None for a task that is none.

    - ``winograd``: F(2x2, 3x3) is for 3 x 3 at stride 1 alone, others run directly.
    - ``auto``: the fastest by the target's factors whose workspace, in one piece, stays under half of the SRAM; of
      equally fast ones winograd, then im2col, then direct.
    """
    if not is_one_of(task.lead, CONVOLUTIONS) or (operands := _operands(task, draft)) is None:
        return None
    image, kernel, result = operands
    winograd_bytes = sum(nbytes for _, nbytes, _, _ in _winograd(task, image, kernel, result))
    if conv is ConvAlgorithm.WINOGRAD:
        return ConvAlgorithm.WINOGRAD if winograd_bytes else ConvAlgorithm.DIRECT
    if conv is not ConvAlgorithm.AUTO:
        return conv
    half = target.sram_bytes // 2
    fitting = [ConvAlgorithm.WINOGRAD] if 0 < winograd_bytes <= half else []
    if _im2col_bytes(image, kernel, result, _rows(result)) <= half:
        fitting.append(ConvAlgorithm.IM2COL)
    return min([*fitting, ConvAlgorithm.DIRECT], key=lambda algorithm: conv_time_factor(target, algorithm))


def conv_time_factor(target: Target, algorithm: ConvAlgorithm | None) -> float:
    """What the multiply-accumulates of a task take, relative to the target's rate."""
    return 1.0 if algorithm is None else target.conv_time_factors.get(str(algorithm), 1.0)


def workspaces(task: Task, draft: Draft, target: Target, conv: ConvAlgorithm) -> tuple[Workspace, ...]:
    """Workspaces of a task, sizes aligned; those of size 0 left out.

    - ``direct``: none but the accumulator, if the target keeps accumulators in SRAM (matrix products too).
    - ``im2col``: the matrix of all output positions, N · C/groups · kernel · output positions; where that passes
      half of the SRAM, one block of output rows: the rows split into the fewest equal blocks that stay under half.
    - ``winograd``: transformed input and output tiles of F(2x2, 3x3).
    """
    if not is_one_of(task.lead, LEADERS):
        return ()
    found: tuple[tuple[str, int, Phase, Phase], ...] = _accumulator(task, draft, target)
    algorithm, operands = conv_algorithm(task, draft, target, conv), _operands(task, draft)
    if operands is not None and algorithm is ConvAlgorithm.IM2COL:
        found = _im2col(*operands, target.sram_bytes // 2)
    elif operands is not None and algorithm is ConvAlgorithm.WINOGRAD:
        found = _winograd(task, *operands)
    return tuple(
        Workspace(purpose=purpose, size_bytes=align(nbytes, target.alignment_bytes), first=first, last=last)
        for purpose, nbytes, first, last in found
        if nbytes > 0
    )


def _accumulator(task: Task, draft: Draft, target: Target) -> tuple[tuple[str, int, Phase, Phase], ...]:
    if not task.outputs:
        return ()
    nbytes = target.accumulator_bytes_per_output * prod(draft.graph.tensors[task.outputs[0]].shape)
    return (("accumulator", nbytes, Phase.COMPUTE, Phase.WRITE),)


def _operands(task: Task, draft: Draft) -> tuple[Tensor, Tensor, Tensor] | None:
    """Image (as it is stored), kernel and result of a convolution, channels on axis 1; None without spatial axes."""
    op = task.lead
    kernel_at = 3 if op.op_type == "QLinearConv" else 1
    if len(op.inputs) <= kernel_at or not (op.inputs[0] and op.inputs[kernel_at] and op.outputs and op.outputs[0]):
        return None
    tensors = draft.graph.tensors
    image, kernel, result = tensors[task.inputs[0]], tensors[op.inputs[kernel_at]], tensors[op.outputs[0]]
    sized = image.dtype not in UNSIZED_DTYPES and prod(result.shape) > 0
    if not sized or len(kernel.shape) < 3 or len(result.shape) < 3:
        return None
    if op.op_type in _CHANNELS_LAST or op.attributes.get("channels_last"):
        image, result = _channels_first(image), _channels_first(result)
    return image, _channels_first(kernel) if op.op_type in _KERNEL_CHANNELS_LAST else kernel, result


def _channels_first(tensor: Tensor) -> Tensor:
    batch, *space, channels = tensor.shape
    return replace(tensor, shape=(batch, channels, *space))


def _rows(result: Tensor) -> int:
    return result.shape[2]


def _im2col_bytes(image: Tensor, kernel: Tensor, result: Tensor, rows: int) -> int:
    """Bytes of the matrix for so many output rows."""
    per_position = prod(kernel.shape[1:])  # C/groups and the kernel's axes
    return tensor_bytes((result.shape[0], per_position, rows, *result.shape[3:]), image.dtype)


def _im2col(image: Tensor, kernel: Tensor, result: Tensor, limit: int) -> tuple[tuple[str, int, Phase, Phase], ...]:
    rows = _rows(result)
    if (nbytes := _im2col_bytes(image, kernel, result, rows)) > limit:
        most = max(1, limit // max(1, _im2col_bytes(image, kernel, result, 1)))
        blocks = -(-rows // most)
        nbytes = _im2col_bytes(image, kernel, result, -(-rows // blocks))
    return (("im2col", nbytes, Phase.READ, Phase.COMPUTE),)


def _winograd(task: Task, image: Tensor, kernel: Tensor, result: Tensor) -> tuple[tuple[str, int, Phase, Phase], ...]:
    """Transformed tiles of input and output, or nothing where the algorithm does not apply."""
    steps = (*_ints(task, "strides"), *_ints(task, "dilations"))
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


def _ints(task: Task, attribute: str) -> tuple[int, ...]:
    value = task.lead.attributes.get(attribute, ())
    return tuple(int(v) for v in value) if isinstance(value, tuple) else ()
