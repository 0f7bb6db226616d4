from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.ir.errors import UsageError
from spillprof.ir.units import (
    format_energy,
    format_rate,
    format_size,
    format_size_exact,
    format_size_pair,
    format_time,
    parse_energy,
    parse_rate,
    parse_share,
    parse_size,
    parse_time,
)

MIB = 1024 * 1024


@pytest.mark.parametrize("text", ["32MB", "32M", "32MiB", "32 MB", " 32mb ", "32.0MiB", "33554432", "33554432B"])
def test_sizes_are_binary_however_they_are_written(text: str) -> None:
    assert parse_size(text) == 33_554_432


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1", 1),
        ("1.5MiB", 1_572_864),
        ("0.8GB", 858_993_459),  # 858,993,459.2
        ("1.2GB", 1_288_490_189),  # 1,288,490,188.8
        ("0.1KB", 102),  # 102.4
        ("512k", 524_288),
        ("2TB", 2 * 1024**4),
    ],
)
def test_fractions_round_to_the_nearest_byte(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize(
    "text", ["1,5MiB", "-1MB", "32mbps", "", "MB", "0", "0MB", "0.4", "1e6", "1 000", "32 M B", "٣MB", "inf", "nan",
             "1MB\n2", "9" * 5000, "1" + "0" * 19, "2048TB0"]
)  # fmt: skip
def test_what_is_no_size_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert "32MB" in (caught.value.hint or "")


@pytest.mark.parametrize("text", ["1.5", "0.4", "1.5B", "4096.25"])
def test_a_fraction_of_bytes_lacks_its_unit(text: str) -> None:
    with pytest.raises(UsageError, match="is no whole number of bytes") as caught:
        parse_size(text)
    assert (caught.value.hint or "").startswith(f"did you mean {text.removesuffix('B')}MB?")
    assert parse_size("4096.0") == 4096


@given(st.integers(min_value=1, max_value=2**60))
@settings(max_examples=200)
def test_every_whole_number_of_bytes_is_read_back(nbytes: int) -> None:
    assert parse_size(str(nbytes)) == nbytes


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [("60GB/s", 60e9), ("60 gb/s", 60e9), ("4GiB/s", 4 * 1024**3), ("800MB/s", 8e8), ("1.5kB/s", 1500), ("5B/s", 5)],
)
def test_rates_are_decimal_unless_written_binary(text: str, bytes_per_s: float) -> None:
    assert parse_rate(text) == bytes_per_s


@pytest.mark.parametrize(
    "text", ["32mbps", "60GB", "60", "-1GB/s", "0GB/s", "60GB/h", "", "1,5GB/s", "9" * 400 + "B/s"]
)
def test_what_is_no_rate_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rate(text)
    assert "60GB/s" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.3us", 1.3e-6), ("500ns", 5e-7), ("2ms", 2e-3), ("1 s", 1.0), ("3µs", 3e-6), ("3μs", 3e-6)]
)
def test_times_have_a_unit(text: str, seconds: float) -> None:
    assert parse_time(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize("text", ["1", "1 MS", "-1us", "1m", ""])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (int(22.44 * MIB), "22.4 MiB"),
        (1023 * 1024 + 600, "1 MiB"),  # 1023.6 KiB would print as 1024 KiB
        (100 * MIB, "100 MiB"),
        (-1536, "-1.5 KiB"),
    ],
)
def test_sizes_print_with_three_digits(nbytes: int, text: str) -> None:
    assert format_size(nbytes) == text


@given(st.integers(min_value=1, max_value=2**49))
@settings(max_examples=200)
def test_a_printed_size_is_within_half_a_percent(nbytes: int) -> None:
    assert parse_size(format_size(nbytes)) == pytest.approx(nbytes, rel=0.0051)


def test_exact_sizes_add_the_bytes() -> None:
    assert format_size_exact(33_554_432) == "32 MiB (33,554,432 B)"
    assert format_size_exact(96) == "96 B"


def test_two_sizes_that_would_print_alike_are_printed_in_bytes() -> None:
    assert format_size_pair(33_554_432, 33_554_433) == ("33,554,432 B", "33,554,433 B")
    assert format_size_pair(33_554_432, 33_554_432) == ("32 MiB", "32 MiB")
    assert format_size_pair(32 * MIB, 48 * MIB) == ("32 MiB", "48 MiB")


@pytest.mark.parametrize(
    ("rate", "text"), [(60e9, "60 GB/s"), (1.5e12, "1.5 TB/s"), (999.6e6, "1 GB/s"), (5, "5 B/s"), (2e15, "2000 TB/s")]
)
def test_rates_print_in_decimal_units(rate: float, text: str) -> None:
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0"), (10.2e-3, "10.2 ms"), (2e-9, "2 ns"), (0.99996e-3, "1 ms"), (1.5e-6, "1.5 µs"), (12.34, "12.3 s")],
)
def test_times_print_with_three_digits(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


@pytest.mark.parametrize(
    ("text", "joules"),
    [("1.5mJ", 1.5e-3), ("20 uJ", 20e-6), ("20µJ", 20e-6), ("300nJ", 300e-9), ("7pJ", 7e-12), ("2J", 2)],
)
def test_energies_are_read_and_printed_alike(text: str, joules: float) -> None:
    assert parse_energy(text) == pytest.approx(joules)
    assert parse_energy(format_energy(joules)) == pytest.approx(joules)


@pytest.mark.parametrize(
    ("joules", "text"), [(0, "0"), (1.526e-3, "1.53 mJ"), (0.99996e-3, "1 mJ"), (5e-12, "5 pJ"), (12.34, "12.3 J")]
)
def test_energies_print_with_three_digits(joules: float, text: str) -> None:
    assert format_energy(joules) == text


@pytest.mark.parametrize("text", ["", "1", "1kJ", "1 mj", "-1mJ", "1,5mJ"])
def test_what_is_no_energy_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_energy(text)


def test_percentages_are_exact() -> None:
    assert parse_share("0.1%") == Fraction(1, 1000)
    assert parse_share("100 %") == 1
    for text in ("1", "-1%", "0.01", "%", "1,5%"):
        with pytest.raises(UsageError):
            parse_share(text)
