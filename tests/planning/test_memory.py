"""Addresses for a step whose operands block each other."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.ir.program import Phase
from spillprof.planning.memory import StepBlock, compact

R, C, W = Phase


def block(size: int, first: Phase, last: Phase, address: int | None = None) -> StepBlock:
    return StepBlock(size_bytes=size, first=first, last=last, address=address)


def test_one_operand_in_the_middle_moves_into_the_hole_beside() -> None:
    # [ .... | operand 20 | ... ]: 30 free below and above, 50 wanted. The operand moves to the end of the new block.
    blocks = [block(20, R, W, 30), block(50, C, W)]
    assert compact(blocks, (0, 80)) == [50, 0]


def test_the_smallest_operand_that_is_enough_moves() -> None:
    # Free: [10, 20) and [40, 50), 20 wanted. Moving the 10 bytes at 0 to the hole at 40 leaves [0, 20).
    blocks = [block(20, R, W, 20), block(10, R, W, 0), block(50, R, W, 50), block(20, C, W)]
    assert compact(blocks, (0, 100)) == [20, 40, 50, 0]


def test_of_equal_operands_the_first_moves() -> None:
    # Free: [10, 20), [30, 40) and [50, 60). Without either operand a hole of 30 appears; the new block takes its
    # start, and the moved one the lowest hole of 10.
    blocks = [block(10, R, W, 20), block(10, R, W, 40), block(10, R, W, 0), block(30, C, W)]
    assert compact(blocks, (0, 60)) == [50, 40, 0, 10]


def test_what_is_new_is_placed_largest_first() -> None:
    # After the operand at 40 is lifted: one hole [0, 100). 50 goes to 0, 30 to 50, the operand to 80.
    blocks = [block(20, R, W, 40), block(30, C, W), block(50, C, W)]
    assert compact(blocks, (0, 100)) == [80, 50, 0]


def test_all_are_laid_out_anew_where_one_move_is_not_enough() -> None:
    # Three operands of 10 between four holes of 10; 40 are wanted, and no single move makes more than 30.
    blocks = [block(10, R, W, 10), block(10, R, W, 30), block(10, R, W, 50), block(40, C, W)]
    assert compact(blocks, (0, 70)) == [0, 10, 20, 30]


def test_read_alone_and_write_alone_share_the_space_between() -> None:
    # Pool [100, 200). All through: 20 -> 100. COMPUTE..WRITE: 30 -> 120. READ..COMPUTE: 40 at the top -> 160.
    # READ alone: 40, just above what stays all through -> 120. WRITE alone: 50, above what stays to the end -> 150.
    blocks = [
        block(40, R, C, 130), block(20, R, W, 170), block(30, C, W), block(40, R, R), block(10, C, C), block(50, W, W),
    ]  # fmt: skip
    assert compact(blocks, (100, 200)) == [160, 100, 120, 120, 150, 150]


def crowded_step(seed: int) -> tuple[list[StepBlock], tuple[int, int]]:
    """Blocks of a step that fit phase by phase, some placed without overlap, and the pool."""
    rng = Random(seed)
    low = rng.choice([0, 7, 64])
    address, blocks = low, []
    for _ in range(rng.randint(1, 5)):
        address += rng.randint(0, 15)
        blocks.append(block(rng.randint(1, 20), R, rng.choice(list(Phase)), address))
        address += blocks[-1].size_bytes
    for _ in range(rng.randint(0, 5)):
        first = rng.choice(list(Phase))
        last = rng.choice([p for p in Phase if p >= first])
        blocks.append(block(rng.randint(1, 40), first, last))
    by_phase = [sum(b.size_bytes for b in blocks if b.first <= p <= b.last) for p in Phase]
    high = max(low + max(by_phase) + rng.choice([0, 0, 1, 10]), address)
    rng.shuffle(blocks)
    return blocks, (low, high)


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_blocks_that_share_a_phase_share_no_byte_and_all_lie_in_the_pool(seed: int) -> None:
    blocks, (low, high) = crowded_step(seed)
    addresses = compact(blocks, (low, high))
    placed = list(zip(blocks, addresses, strict=True))
    for k, (a, at) in enumerate(placed):
        assert low <= at
        assert at + a.size_bytes <= high
        for b, bt in placed[:k]:
            if a.first <= b.last and b.first <= a.last:
                assert at + a.size_bytes <= bt or bt + b.size_bytes <= at, (a, at, b, bt)
