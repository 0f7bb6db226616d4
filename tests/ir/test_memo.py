"""Values memoized on a program."""

import gc
import pickle
from dataclasses import replace

from spillprof.ir.memo import once_per_program, once_per_steps
from spillprof.ir.program import Program, Step

STEPS = (Step(name="s", op_type="Relu", operators=("s",), reads=(), writes=()),)
EMPTY = Program(name="p", steps=(), buffers=(), alignment_bytes=64)


def test_a_value_is_made_once_for_a_program_and_its_switches() -> None:
    asked: list[tuple[int | None, int]] = []

    @once_per_program
    def capacity_times(program: Program, factor: int) -> int:
        asked.append((program.capacity_bytes, factor))
        return (program.capacity_bytes or 0) * factor

    small, large = replace(EMPTY, capacity_bytes=100), replace(EMPTY, capacity_bytes=200)
    assert [capacity_times(p, k) for p in (small, large, small) for k in (1, 3)] == [100, 300, 200, 600, 100, 300]
    assert asked == [(100, 1), (100, 3), (200, 1), (200, 3)]


def test_equal_programs_that_follow_each_other_in_memory_are_not_mistaken() -> None:
    @once_per_program
    def capacity(program: Program) -> int | None:
        return program.capacity_bytes

    for nbytes in range(1, 200):  # each is freed before the next is made, and may get its place
        program = replace(EMPTY, capacity_bytes=nbytes)
        assert capacity(program) == nbytes
        del program
        gc.collect(0)


def test_programs_of_the_same_steps_and_buffers_share_a_value() -> None:
    made: list[int | None] = []

    @once_per_steps
    def n_steps(program: Program) -> int:
        made.append(program.capacity_bytes)
        return len(program.steps)

    base = replace(EMPTY, steps=STEPS)
    small, large = replace(base, capacity_bytes=100), replace(base, capacity_bytes=200)
    other = replace(base, steps=STEPS * 2)
    assert [n_steps(p) for p in (small, large, other)] == [1, 1, 2]
    assert made == [100, None]


def test_steps_that_follow_each_other_in_memory_are_not_mistaken() -> None:
    @once_per_steps
    def n_steps(program: Program) -> int:
        return len(program.steps)

    for count in range(1, 200):
        program = replace(EMPTY, steps=STEPS * count)
        assert n_steps(program) == count
        del program
        gc.collect(0)


def test_a_memo_is_not_pickled() -> None:
    @once_per_steps
    def n_steps(program: Program) -> int:
        return len(program.steps)

    program = replace(EMPTY, steps=STEPS)
    assert n_steps(program) == 1
    copy = pickle.loads(pickle.dumps(program))
    assert copy == program
    assert not copy.memo_of_steps.values
