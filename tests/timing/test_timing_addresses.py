from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.timing.addresses import AddressMap


def test_range_waits_for_all_owners_that_it_touches() -> None:
    owners = AddressMap()
    owners.put(0, 10, 0)
    owners.put(10, 10, 1)
    assert owners.pop(8, 4) == [0, 1]
    assert owners.pop(8, 4) == []  # claimed: whoever comes next waits for the claimer, not for the owners
    assert owners.pop(0, 20) == [0, 1]  # the rest of both is still there


def test_range_beside_an_owner_is_free() -> None:
    owners = AddressMap()
    owners.put(10, 10, 3)
    assert owners.pop(0, 10) == []
    assert owners.pop(20, 5) == []
    assert owners.pop(15, 0) == []


def test_claim_inside_a_range_splits_it() -> None:
    owners = AddressMap()
    owners.put(0, 30, 3)
    assert owners.pop(10, 10) == [3]
    assert owners.pop(10, 10) == []
    assert owners.pop(5, 6) == [3]
    assert owners.pop(19, 6) == [3]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 12)), max_size=25))
def test_same_answers_as_one_cell_for_each_byte(calls: list[tuple[bool, int, int]]) -> None:
    owners, cells = AddressMap(), [-1] * 64
    for k, (puts, address, size) in enumerate(calls):
        if puts:
            owners.put(address, size, k)
        else:
            assert sorted(owners.pop(address, size)) == sorted({*cells[address : address + size]} - {-1})
        cells[address : address + size] = [k if puts else -1] * size
