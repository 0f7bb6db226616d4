"""Copies and caches of the machine that runs the tests, independent of its speed."""

import pytest

from spillprof.frontends.calibration.host_memory import HostCopier, cache_sweep, last_level_cache_bytes, sweep_bytes
from spillprof.frontends.calibration.measure import Direction
from spillprof.ir.errors import UsageError

LARGEST = 300_000  # more than one block, and no multiple of it


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("size", [1, 4096, 131_072, 131_073, LARGEST])
def test_so_many_bytes_arrive_and_no_more(direction: Direction, size: int) -> None:
    copier = HostCopier(LARGEST)
    copier._source[:] = 7  # what a read brings into the block, a write and a plain copy into the sink
    assert copier.seconds(direction, size) >= 0
    value = {Direction.READ: 2, Direction.WRITE: 3, Direction.BOTH: 7}[direction]
    assert (copier._sink[:size] == value).all()
    assert (copier._sink[size:] == 2).all()
    if direction is Direction.READ:
        assert copier._block[0] == 7
    copier.close()


def test_method_says_what_was_done_with_pages_and_clock() -> None:
    copier = HostCopier(LARGEST)
    assert "memory" in copier.device
    assert any("pages are" in remark for remark in copier.method)
    assert any(remark.startswith("clock:") for remark in copier.method)
    copier.close()


def test_more_than_the_machine_has_is_refused() -> None:
    with pytest.raises(UsageError, match="too much for this machine"):
        HostCopier(2**50)


def test_a_cache_has_a_size_and_a_sweep_is_larger_but_bounded() -> None:
    size, _ = last_level_cache_bytes()
    assert size > 0
    assert sweep_bytes(2**20) == 2**21
    assert sweep_bytes(2**40) == 2**30
    cache_sweep(2**16)()
    cache_sweep(1)()
