from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.timing.pending import PendingWrites


def test_range_waits_for_the_last_write_that_it_touches() -> None:
    pending = PendingWrites()
    pending.add(0, 10, 5.0, 0)
    pending.add(10, 10, 7.0, 1)
    assert pending.claim(8, 4) == (7.0, 1)
    assert pending.claim(8, 4) == (0.0, -1)  # claimed: whoever comes next waits for the claimer, not for the writes
    assert pending.claim(0, 20) == (7.0, 1)  # the rest of both is still there


def test_range_beside_a_write_is_free() -> None:
    pending = PendingWrites()
    pending.add(10, 10, 5.0, 3)
    assert pending.claim(0, 10) == (0.0, -1)
    assert pending.claim(20, 5) == (0.0, -1)
    assert pending.claim(15, 0) == (0.0, -1)


def test_claim_inside_a_write_splits_it() -> None:
    pending = PendingWrites()
    pending.add(0, 30, 5.0, 3)
    assert pending.claim(10, 10) == (5.0, 3)
    assert pending.claim(10, 10) == (0.0, -1)
    assert pending.claim(5, 6) == (5.0, 3)
    assert pending.claim(19, 6) == (5.0, 3)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 12)), max_size=25))
def test_same_answers_as_one_cell_for_each_byte(calls: list[tuple[bool, int, int]]) -> None:
    pending, cells = PendingWrites(), [(0.0, -1)] * 64
    for k, (adds, address, size) in enumerate(calls):
        if adds:
            pending.add(address, size, float(k + 1), k)
            cells[address : address + size] = [(float(k + 1), k)] * size
        else:
            assert pending.claim(address, size) == max(cells[address : address + size], default=(0.0, -1))
            cells[address : address + size] = [(0.0, -1)] * size
