"""Modes of a step: which of its operands are held on-chip, and how the others pass through tiles.

Lowering gives a step its loop nest. A planner chooses a mode for it, which the plan states; the verifier counts anew
what the mode needs and moves.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from spillprof.ir.fast_init import fast_init
from spillprof.ir.loop_nest import LoopNest, Tiling


@dataclass(frozen=True, eq=False, kw_only=True)
class StepNest:
    """The loop nest of a step, and where each of its operands stands among the step's reads and writes.

    Equal steps have equal nests. Of a normalisation, ``in_two_passes`` is the nest that reads its input twice.
    """

    nest: LoopNest
    places: tuple[int | None, ...]  # by operand: index into ``(*reads, *writes)``; None: weights that are no buffer
    resident: frozenset[int] = frozenset()  # operands that are reserved for the whole run: held in every mode
    accumulator_bits: int = 0  # of output tiles and partial sums in SRAM; 0: as wide as the output
    in_two_passes: "StepNest | None" = None
    _key: tuple[object, ...] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = (self.nest, self.places, self.resident, self.accumulator_bits, self.in_two_passes)
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StepNest) and self._hash == other._hash and self._key == other._key)

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.nest, self.places, self.resident, self.accumulator_bits, self.in_two_passes)
        return _step_nest, fields

    def operands_at(self, places: Iterable[int]) -> frozenset[int]:
        """Operands of the nest at these places, and the resident ones."""
        wanted = frozenset(places)
        return self.resident | {p for p, place in enumerate(self.places) if place in wanted}


def _step_nest(
    nest: LoopNest,
    places: tuple[int | None, ...],
    resident: frozenset[int],
    accumulator_bits: int,
    in_two_passes: StepNest | None,
) -> StepNest:
    return StepNest(
        nest=nest, places=places, resident=resident, accumulator_bits=accumulator_bits, in_two_passes=in_two_passes
    )


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class OperandTraffic:
    """DRAM bytes of a buffer that passes through the tiles of a step."""

    buffer: int
    read_bytes: int  # of all passes; of a result: partial sums that come back
    written_bytes: int  # of a result: partial sums that leave, and the result itself
    passes: int  # how often its bytes are read, or a result's written
    transfers: int  # tiles that come and go, each with a set-up


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class StepMode:
    """How a step runs in tiles. A step without one holds all of its operands."""

    step: int
    tiling: Tiling
    footprint_bytes: int  # of all tiles, throughout the step
    tiles: int  # iterations of all loops over tiles
    traffic: tuple[OperandTraffic, ...]  # of buffers that are not held, reads before writes
    weight_passes: int = 1  # of streamed weights: the most of any
    weight_repeat_bytes: int = 0  # of streamed weights, beyond the first pass
    in_two_passes: bool = False  # the tiling is one of ``StepNest.in_two_passes``

    @property
    def moved_bytes(self) -> int:
        """DRAM bytes of all operands that are buffers, and of further passes of weights."""
        return self.weight_repeat_bytes + sum(each.read_bytes + each.written_bytes for each in self.traffic)
