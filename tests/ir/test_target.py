from pathlib import Path

import pytest

from spillprof.ir.errors import UsageError
from spillprof.ir.target import builtin_target_names, load_target, parse_target
from spillprof.ir.target_settings import with_fields

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
    assert (target.alignment_bytes, target.channel_align, target.utilisation) == (64, 1, {"default": 1.0})


def test_mac_rate_falls_back_to_the_default_and_counts_utilisation() -> None:
    target = parse_target("utilisation = 0.5\n" + SMALL, name="small")
    assert target.macs_rate("int8") == 5e11
    assert target.macs_rate("float32") == 2.5e11


def test_a_table_of_utilisation_has_rows_by_kind_of_product_and_a_default() -> None:
    target = parse_target("utilisation = { default = 0.5, depthwise = 0.0625 }\n" + SMALL, name="small")
    assert target.macs_rate("int8", "depthwise") == 6.25e10
    assert target.macs_rate("int8", "matmul") == target.macs_rate("int8") == 5e11
    assert with_fields(target, {"utilisation": 0.25}).utilisation == {"default": 0.25}  # --set: one for all kinds


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
        ("utilisation = { depthwise = 0.1 }", "utilisation: no 'default' share is given"),
        ("utilisation = { default = 0.5, depth = 0.1 }", "utilisation: there is no kind 'depth'"),
        ("utilisation = { default = 0 }", "utilisation: 0 is not a positive number"),
        ("array_rows = -1", "array_rows: -1 is not a whole number"),
        ("vector_ops_per_s = 0", "vector_ops_per_s: 0 is not a positive number"),
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
    with pytest.raises(UsageError, match="cannot read the target file"):
        load_target(str(tmp_path / "none.toml"))


def test_rates_per_cycle_are_those_at_the_clock() -> None:
    target = parse_target(_without_rates('clock_hz = "500MHz"\n[macs_per_cycle]\ndefault = 128\n'), name="small")
    assert target.macs_rate("int8") == 64e9
    assert target.with_overrides(clock_hz=1e9).macs_rate("int8") == 128e9
    assert target.with_overrides(macs_per_s={"default": 5.0}).macs_rate("int8") == 5.0


def test_a_curve_is_read_and_gives_way_to_a_bandwidth_set_on_top() -> None:
    target = parse_target("dram_read_curve = [[0, '1us'], ['64KiB', 3e-6]]\n" + SMALL, name="small")
    assert target.dram_read_curve == ((0, 1e-6), (65_536, 3e-6))
    assert target.with_overrides(dram_read_bytes_per_s=1e9).dram_read_curve == ()
    assert target.with_overrides(sram_bytes=4096).dram_read_curve == target.dram_read_curve


def test_an_override_drops_the_source_of_what_it_changes() -> None:
    target = load_target("generic-npu")
    assert "dram_read_bytes_per_s" not in target.with_overrides(dram_read_bytes_per_s=1e9).sources
    assert target.with_overrides(dram_read_bytes_per_s=60e9).sources == target.sources


def test_energy_of_a_mac_falls_back_to_that_of_any_type() -> None:
    target = parse_target("mac_j = 4e-12\nmac_j_by_dtype = { int8 = 2e-13 }\n" + SMALL, name="small")
    assert (target.mac_energy_j("int8"), target.mac_energy_j("float16")) == (2e-13, 4e-12)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("dram_read_curve = [[1024, '1us']]", "one point makes no curve"),
        ("dram_read_curve = [[1024, '2us'], [512, '3us']]", "the points do not rise"),
        ("dram_read_curve = [[512, '3us'], [1024, '2us']]", "the points do not rise"),
        ("dram_read_curve = [[512, '1us'], [1024, '3us']]", "below no time for no bytes"),
        ("dram_read_curve = [[0, '1us'], [1024, '1us']]", "the last piece does not rise"),
        ("dram_read_curve = 3", "3 is not a list of points"),
        ("dma_read_channels = 0", "0 is too few"),
        ("dma_shared_channels = 1.5", "1.5 is not a whole number"),
        ("cores = -1", "-1 is not a whole number"),
        ("clock_hz = '5'", "'5' is not a frequency"),
        ("conv_time_factors = { fft = 1.0 }", "there is no algorithm 'fft'"),
        ("conv_time_factors = { im2col = 0 }", "0 is not a positive number"),
        ("mac_j_by_dtype = 3", "3 is not a table"),
        ("background_bytes_per_s = 1e9", "no bus to carry it"),
        ("background_bytes_per_s = 2e9\ndram_bus_bytes_per_s = '2GB/s'", "leaves nothing of a bus of 2 GB/s"),
        ("dram_bus_bytes_per_s = 0", "0 is not a positive number"),
        ("dram_outstanding = 0", "0 is too few"),
    ],
)
def test_a_wrong_field_of_the_bus_is_named(line: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(f"{line}\n{SMALL}", name="small")
    assert complaint in caught.value.message


def test_rates_per_cycle_need_a_clock() -> None:
    with pytest.raises(UsageError, match="gives macs_per_cycle but no clock_hz"):
        parse_target(_without_rates("[macs_per_cycle]\ndefault = 128\n"), name="small")


def test_a_file_inherits_from_a_file_beside_it_which_inherits_from_a_builtin_target(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(
        'inherit = "generic-npu"\nsram_bytes = "1MiB"\n[sources]\nsram_bytes = "board"\n'
    )
    (tmp_path / "fast.toml").write_text(
        'inherit = "base.toml"\ndram_read_bytes_per_s = "90GB/s"\ndram_outstanding = 4\n'
    )
    target, generic = load_target(str(tmp_path / "fast.toml")), load_target("generic-npu")
    assert (target.name, target.sram_bytes, target.dram_read_bytes_per_s) == ("fast", 1_048_576, 90e9)
    assert target.dram_write_bytes_per_s == generic.dram_write_bytes_per_s
    assert target.sources["sram_bytes"] == "board"
    assert "dram_read_bytes_per_s" not in target.sources, "what it was said of is replaced"


def test_an_inheriting_file_may_take_a_field_back(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('inherit = "generic-npu"\ndram_bus_bytes_per_s = "70GB/s"\n')
    (tmp_path / "free.toml").write_text('inherit = "base.toml"\ndram_bus_bytes_per_s = "none"\n')
    assert load_target(str(tmp_path / "base.toml")).dram_bus_bytes_per_s == 70e9
    assert load_target(str(tmp_path / "free.toml")).dram_bus_bytes_per_s is None


def test_a_circle_of_files_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('inherit = "b.toml"\n')
    (tmp_path / "b.toml").write_text('inherit = "a.toml"\n')
    with pytest.raises(UsageError, match="inherits from itself"):
        load_target(str(tmp_path / "a.toml"))


def test_a_file_that_inherits_from_nobody_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('inherit = "generic-npo"\n')
    with pytest.raises(UsageError, match="unknown target 'generic-npo'"):
        load_target(str(tmp_path / "a.toml"))


def _without_rates(instead: str) -> str:
    return SMALL.partition("[macs_per_s]")[0] + instead


def test_a_bandwidth_set_on_top_widens_the_bus_that_could_not_carry_it() -> None:
    target = load_target("ethos-u65")
    assert target.with_overrides(dram_read_bytes_per_s=8e9).dram_bus_bytes_per_s == 8e9
    assert target.with_overrides(dram_read_bytes_per_s=1e9).dram_bus_bytes_per_s == 3.75e9
    narrow = target.with_overrides(dram_read_bytes_per_s=8e9, dram_bus_bytes_per_s=4e9)
    assert narrow.dram_bus_bytes_per_s == 4e9, "what is said outright counts"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dram_read_setup_s", "1e300"), ("dram_read_bytes_per_s", "1e-300"), ("mac_j", "2e30"),
        ("macs_per_s", "{ default = 1e31 }"),
    ],
)  # fmt: skip
def test_what_no_machine_has_is_refused(field: str, value: str) -> None:
    with pytest.raises(UsageError, match="is beyond what any machine has"):
        parse_target(f'inherit = "generic-npu"\n{field} = {value}\n', name="t")
