"""Storage of a tensor: channels padded, sizes rounded up to the alignment."""

from dataclasses import dataclass

from spillprof.ir.dtypes import tensor_bytes
from spillprof.ir.graph import Tensor
from spillprof.ir.target import Target


def align(nbytes: int, alignment_bytes: int) -> int:
    """``nbytes`` rounded up to a multiple of the alignment."""
    return -(-nbytes // alignment_bytes) * alignment_bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of a tensor in memory and in transfers."""

    payload_bytes: int  # its elements
    moved_bytes: int  # what a transfer of it moves: with padded channels, but not what the alignment adds
    stored_bytes: int  # in memory


def extent(tensor: Tensor, channels: int | None, target: Target) -> Extent:
    """The extent of an activation with channels on the given axis (None: it is stored unpadded).

    Channels are rounded up to ``target.channel_align``. Elements of a sequence are stored one by one.
    """
    if tensor.elements:
        moved = [tensor_bytes(shape, dtype) for dtype, shape in tensor.elements]
    else:
        moved = [_moved_bytes(tensor, channels, target)]
    stored = sum(align(nbytes, target.alignment_bytes) for nbytes in moved)
    return Extent(tensor.nbytes, sum(moved), stored)


def plain_extent(nbytes: int, target: Target) -> Extent:
    """The extent of unpadded bytes."""
    return Extent(nbytes, nbytes, align(nbytes, target.alignment_bytes))


def _moved_bytes(tensor: Tensor, channels: int | None, target: Target) -> int:
    shape = tensor.shape
    if channels is not None:
        shape = (*shape[:channels], align(shape[channels], target.channel_align), *shape[channels + 1 :])
    return tensor_bytes(shape, tensor.dtype)
