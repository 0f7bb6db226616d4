from pathlib import Path

import pytest

from spillprof.errors import UsageError
from spillprof.model.target import builtin_target_names, load_target, parse_target

SMALL = """
sram_bytes = "2MiB"
dram_read_bytes_per_s = "4GB/s"
dram_write_bytes_per_s = 3e9
dram_read_setup_s = "1.3us"
dram_write_setup_s = 0.0
sram_bytes_per_s = "64GB/s"
[macs_per_s]
default = 5e11
int8 = 1e12
"""


def test_a_file_may_write_units_or_plain_numbers() -> None:
    target = parse_target(SMALL, name="small")
    assert target.sram_bytes == 2_097_152
    assert target.dram_read_bytes_per_s == 4e9
    assert target.dram_write_bytes_per_s == 3e9
    assert target.dram_read_setup_s == pytest.approx(1.3e-6)
    assert (target.alignment_bytes, target.channel_align, target.utilisation) == (64, 1, 1.0)


def test_mac_rate_falls_back_to_the_default_and_counts_utilisation() -> None:
    target = parse_target("utilisation = 0.5\n" + SMALL, name="small")
    assert target.macs_rate("int8") == 5e11
    assert target.macs_rate("float32") == 2.5e11


@pytest.mark.parametrize("name", builtin_target_names())
def test_every_builtin_target_loads_and_says_where_its_numbers_come_from(name: str) -> None:
    target = load_target(name)
    assert target.name == name
    assert target.sources


def test_a_target_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "my npu.toml"
    path.write_text(SMALL)
    assert load_target(str(path)).name == "my npu"


def test_an_override_leaves_the_rest() -> None:
    target = parse_target(SMALL, name="small").with_overrides(sram_bytes=4096)
    assert (target.sram_bytes, target.dram_read_bytes_per_s) == (4096, 4e9)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('sram_bytes = "1,5MiB"', "sram_bytes: '1,5MiB' is not a size"),
        ("sram_bytes = 0", "sram_bytes: 0 is not a whole number from 1 up"),
        ("sram_bytes = 1.5", "sram_bytes: 1.5 is not a whole number from 1 up"),
        ("alignment_bytes = true", "alignment_bytes: True is not"),
        ('dram_burst_bytes = "64GB/s"', "dram_burst_bytes: '64GB/s' is not a size"),
        ('launch_overhead_s = "1"', "launch_overhead_s: '1' is not a time"),
        ("launch_overhead_s = -1.0", "launch_overhead_s: -1.0 is not a number from 0 up"),
        ("mac_j = nan", "mac_j: nan is not a number"),
        ("utilisation = 0", "utilisation: 0 is not a positive number"),
        ("shared_workspace = 1", "shared_workspace: 1 is not a switch"),
        ('sources = "me"', "sources: 'me' is not a table"),
        ("macs_per_s = { int8 = 1e12 }", "macs_per_s: no 'default' rate"),
        ("srams_bytes = 1", "unknown key 'srams_bytes'"),
        ("sram_bytes = ", "not valid TOML"),
    ],
)
def test_a_wrong_line_is_named(line: str, complaint: str) -> None:
    key = line.split(" ")[0]
    rest, _, table = SMALL.partition("[macs_per_s]")
    kept = "\n".join(each for each in rest.splitlines() if not each.startswith(key))
    text = f"{line}\n{kept}\n" + ("" if key == "macs_per_s" else f"[macs_per_s]{table}")
    with pytest.raises(UsageError) as caught:
        parse_target(text, name="small")
    assert complaint in caught.value.message


def test_missing_keys_are_listed() -> None:
    with pytest.raises(UsageError, match="does not give dram_read_bytes_per_s") as caught:
        parse_target('sram_bytes = "1MB"', name="small")
    assert "macs_per_s" in caught.value.message


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        load_target("generic-npo")
    assert "did you mean 'generic-npu'" in (caught.value.hint or "")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read target file"):
        load_target(str(tmp_path / "none.toml"))
