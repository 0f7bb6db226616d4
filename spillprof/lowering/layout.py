"""How a tensor lies in memory: channels padded, sizes rounded up to the alignment."""

from dataclasses import dataclass
from math import prod

from spillprof.model.dtypes import tensor_bytes
from spillprof.model.graph import Tensor
from spillprof.model.target import Target

_CHANNEL_AXIS = 1  # of N, C, spatial ...


def align(nbytes: int, alignment_bytes: int) -> int:
    """``nbytes`` rounded up to a multiple of the alignment."""
    return -(-nbytes // alignment_bytes) * alignment_bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """What a tensor takes, in bytes."""

    payload_bytes: int  # its elements
    moved_bytes: int  # what a transfer of it moves: with padded channels, but not what the alignment adds
    stored_bytes: int  # in memory


def extent(tensor: Tensor, target: Target) -> Extent:
    """What an activation takes.

    From rank 3 on, axis 1 holds the channels and is rounded up to ``target.channel_align``. The tensor that is
    written first decides for all views of it. Elements of a sequence are stored one by one.
    """
    pieces = tensor.elements or ((tensor.dtype, tensor.shape),)
    moved = [_moved_bytes(shape, dtype, target) for dtype, shape in pieces]
    stored = sum(align(nbytes, target.alignment_bytes) for nbytes in moved)
    return Extent(tensor.nbytes, sum(moved), stored)


def plain_extent(nbytes: int, target: Target) -> Extent:
    """What so many bytes take, stored as they are."""
    return Extent(nbytes, nbytes, align(nbytes, target.alignment_bytes))


def _moved_bytes(shape: tuple[int, ...], dtype: str, target: Target) -> int:
    if len(shape) >= 3 and prod(shape) > 0:
        channels = align(shape[_CHANNEL_AXIS], target.channel_align)
        shape = (*shape[:_CHANNEL_AXIS], channels, *shape[_CHANNEL_AXIS + 1 :])
    return tensor_bytes(shape, dtype)
