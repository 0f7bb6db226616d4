"""How a tensor lies in memory: channels padded, sizes rounded up to the alignment."""

from math import prod

from spillprof.model.dtypes import tensor_bytes
from spillprof.model.graph import Tensor
from spillprof.model.target import Target

_CHANNEL_AXIS = 1  # of N, C, spatial ...


def align(nbytes: int, alignment_bytes: int) -> int:
    """``nbytes`` rounded up to a multiple of the alignment."""
    return -(-nbytes // alignment_bytes) * alignment_bytes


def stored_bytes(tensor: Tensor, target: Target) -> int:
    """Bytes that an activation takes in SRAM and in a transfer.

    From rank 3 on, axis 1 holds the channels and is rounded up to ``target.channel_align``. The tensor that is
    written first decides for all views of it. Elements of a sequence are stored one by one.
    """
    if tensor.elements:
        return sum(_stored_bytes(shape, dtype, target) for dtype, shape in tensor.elements)
    return _stored_bytes(tensor.shape, tensor.dtype, target)


def _stored_bytes(shape: tuple[int, ...], dtype: str, target: Target) -> int:
    if len(shape) >= 3 and prod(shape) > 0:
        channels = align(shape[_CHANNEL_AXIS], target.channel_align)
        shape = (*shape[:_CHANNEL_AXIS], channels, *shape[_CHANNEL_AXIS + 1 :])
    return align(tensor_bytes(shape, dtype), target.alignment_bytes)
