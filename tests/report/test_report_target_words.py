"""Target fields in readable words."""

import pytest

from spillprof.ir.target import Target, load_target
from spillprof.report.scales import field_text


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("dram_read_bytes_per_s", 6e10, "60 GB/s"),
        ("dram_bus_bytes_per_s", None, "none"),
        ("dram_read_curve", ((0, 1e-6), (1024, 2e-6)), "0 1 µs, 1 KiB 2 µs"),
        ("dram_write_curve", (), "none"),
        ("clock_hz", 1.3e9, "1.3 GHz"),
        ("macs_per_s", {"default": 8e12, "int8": 1.6e13}, "default 8·10¹², int8 16·10¹²"),
        ("macs_per_s", 2e12, "2·10¹²"),
        ("mac_j_by_dtype", {"int8": 2e-13}, "int8 0.2 pJ"),
        ("sram_j_per_byte", 1.6e-12, "1.6 pJ"),
        ("conv_time_factors", {"im2col": 1.5}, "im2col 1.5"),
        ("launch_overhead_s", 1e-6, "1 µs"),
        ("sram_bytes", 1024, "1 KiB (1,024 B)"),
        ("strided_views", False, "False"),
        ("cores", 2, "2"),
    ],
)
def test_a_field_is_written_with_its_unit(field: str, value: object, text: str) -> None:
    assert field_text(field, value) == text


def test_every_field_of_a_target_has_a_text() -> None:
    target = load_target("generic-npu")
    assert all(field_text(name, getattr(target, name)) for name in Target.__dataclass_fields__)
