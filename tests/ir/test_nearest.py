import pytest

from spillprof.ir.nearest import nearest
from spillprof.ir.target import ROWS, short_name
from spillprof.ir.target_settings import target_field


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("--srm", ["--assume", "--set", "--sram"], "--sram"),
        ("--dram-raed", ["--dma", "--dram-write", "--dram-read"], "--dram-read"),
        ("dram-raed", ["dram-read-setup", "dram-read-curve", "dram-read"], "dram-read"),
        ("ab", ["abcd", "ba", "abc"], "abc"),
    ],
)
def test_the_nearest_name_comes_first(typed: str, known: list[str], meant: str) -> None:
    assert nearest(typed, known) == [meant]
    assert nearest(typed, known, most=3)[0] == meant


def test_names_that_are_far_or_endless_are_none() -> None:
    assert nearest("xyz", ["lru", "belady"]) == []
    assert nearest("a" * 300, ["a" * 300, "a" * 190]) == ["a" * 190]
    assert nearest("lru", []) == []


def test_short_names_of_fields_are_read_back() -> None:
    shorts = [short_name(field) for field in ROWS]
    assert len(set(shorts)) == len(shorts)
    for field in ("dram_read_bytes_per_s", "sram_bytes_per_s", "launch_overhead_s", "mac_j", "cores"):
        assert target_field(short_name(field)) == field
    assert short_name("dram_read_bytes_per_s") == "dram-read"
