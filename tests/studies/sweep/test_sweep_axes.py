import pytest

from spillprof.ir.errors import UsageError
from spillprof.ir.target import load_target
from spillprof.ir.target_settings import target_field
from spillprof.ir.units import parse_size
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions
from spillprof.studies.sweep.axes import (
    lowering_with,
    parse_axis,
    parse_dtypes,
    parse_variation,
    settings_of,
    with_settings,
)

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [
        ("2MB", [2]),
        ("4MB,1MB,4MiB", [1, 4]),
        ("1MB..8MB", [1, 2, 4, 8]),
        ("1MB..6MB", [1, 2, 4, 6]),
        ("3MB..3MB", [3]),
        ("1MB..6MB/2MB", [1, 3, 5]),
        ("1MB..4MB/1MB, 16MB", [1, 2, 3, 4, 16]),
    ],
)
def test_an_axis_lists_doubles_or_counts(text: str, mebibytes: list[int]) -> None:
    assert parse_axis(text, parse_size) == tuple(n * MIB for n in mebibytes)


@pytest.mark.parametrize(
    "text", ["", "1MB,", "8MB..1MB", "1MB..", "..1MB", "1MB..2MB/0", "1..9MB/1", "1MB..2MB/x", "a..b"]
)
def test_a_malformed_axis_is_an_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_axis(text, parse_size)


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("dram-read=30GB/s,60GB/s", "dram_read_bytes_per_s", (30e9, 60e9)),
        ("dram_write_bytes_per_s=1e9", "dram_write_bytes_per_s", (1e9,)),
        ("alignment=64,4KB", "alignment_bytes", (64, 4096)),
        ("dram-read-setup=1us,1us", "dram_read_setup_s", (1e-6,)),
        ("shared-workspace=true,false", "shared_workspace", (True, False)),
        ("macs-per-s=1e12,2e12", "macs_per_s", (1e12, 2e12)),
        ("channel_align=16", "channel_align", (16,)),
    ],
)
def test_a_variation_names_a_target_field(text: str, field: str, values: tuple[object, ...]) -> None:
    found = parse_variation(text)
    assert found == (field, values)
    assert [type(value) for value in found[1]] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text", ["dram-read", "dram-read=", "dram-reed=1GB/s", "dram-read=fast", "sram=1MB", "name=x", "channel_align=0"]
)
def test_a_malformed_variation_is_an_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_variation(text)


def test_the_size_of_the_sram_is_varied_by_its_own_option() -> None:
    with pytest.raises(UsageError) as caught:
        target_field("sram")
    assert caught.value.hint == "use --sram"


def test_settings_are_all_combinations_last_field_fastest() -> None:
    assert settings_of([("a", (1, 2)), ("b", (3, 4))]) == [
        {"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}
    ]  # fmt: skip
    assert settings_of([]) == [{}]
    with pytest.raises(UsageError):
        settings_of([("a", (1,)), ("a", (2,))])


def test_element_types_are_no_fields_of_the_target() -> None:
    setting = {"act_dtype": "int8", "weight_dtype": "file", "dram_read_bytes_per_s": 1e9}
    assert with_settings(load_target("generic-npu"), setting).dram_read_bytes_per_s == 1e9
    options = lowering_with(LoweringOptions(weight_dtype="int4", conv=ConvAlgorithm.IM2COL), setting)
    assert options == LoweringOptions(act_dtype="int8", weight_dtype=None, conv=ConvAlgorithm.IM2COL)
    assert lowering_with(options, {}) == options


def test_element_types_by_short_names_each_once() -> None:
    assert parse_dtypes("file, fp16,float16,int8") == ("file", "float16", "int8")
    with pytest.raises(UsageError, match="unknown element type ''"):
        parse_dtypes("int8,")


def test_settings_replace_fields_of_the_target() -> None:
    target = with_settings(load_target("generic-npu"), {"dram_read_bytes_per_s": 1e9, "macs_per_s": 2e12})
    assert target.dram_read_bytes_per_s == 1e9
    assert target.macs_per_s == {"default": 2e12}
