"""Targets from vela.ini."""

from pathlib import Path

import pytest

from spillprof.cli import run
from spillprof.frontends.targets import open_target
from spillprof.ir.errors import UsageError

INI = """
; a comment
[System_Config.Small_U55]
core_clock=400e6
axi0_port=Sram
axi1_port=OffChipFlash
Sram_clock_scale=1.0
Sram_burst_length=32
# reads are slow
OffChipFlash_clock_scale=0.125
OffChipFlash_burst_length=128
OffChipFlash_read_latency=64
OffChipFlash_write_latency=0
OffChipFlash_max_reads=2
OffChipFlash_max_writes=0

[System_Config.Big_U85]
core_clock=1e9
axi0_port=Sram
axi1_port=Dram
Sram_ports_used=4
Dram_clock_scale=0.75
Dram_ports_used=2
Dram_burst_length=128
Dram_read_latency=500
Dram_write_latency=250
Dram_max_reads=16
Dram_max_writes=64

[System_Config.Faster_U85]
inherit=System_Config.Big_U85
core_clock=2e9

[Memory_Mode.Shared_Sram]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0

[Memory_Mode.Sram_Only]
const_mem_area=Axi0
arena_mem_area=Axi0
cache_mem_area=Axi0

[Memory_Mode.Dedicated_Sram]
const_mem_area=Axi1
arena_mem_area=Axi1
cache_mem_area=Axi0

[Memory_Mode.Dedicated_Sram_512KB]
inherit=Memory_Mode.Dedicated_Sram
arena_cache_size=524288
"""


@pytest.fixture
def ini(tmp_path: Path) -> str:
    path = tmp_path / "vela.ini"
    path.write_text(INI)
    return str(path)


def test_a_dedicated_mode_spills_to_dram_at_its_ports_and_scale(ini: str) -> None:
    target = open_target(f"{ini}:Big_U85:Dedicated_Sram_512KB:ethos-u85-2048")
    assert target.name == "Big_U85/Dedicated_Sram_512KB"
    assert target.sram_bytes == 524_288
    assert target.sram_bytes_per_s == 4 * 16 * 1e9
    assert target.dram_bus_bytes_per_s == 2 * 0.75 * 16 * 1e9
    assert target.dram_write_bytes_per_s == 24e9
    assert (target.dram_read_setup_s, target.dram_write_setup_s) == (500e-9, 250e-9)
    assert target.peak_macs_per_s("int8") == 2048e9


def test_few_bursts_in_flight_limit_the_bandwidth(ini: str) -> None:
    """2 ports x 16 reads x 128 B every 500 cycles."""
    target = open_target(f"{ini}:Big_U85:Dedicated_Sram_512KB")
    assert target.dram_read_bytes_per_s == pytest.approx(2 * 16 * 128 / 500 * 1e9)


def test_a_system_inherits_all_but_its_clock(ini: str) -> None:
    target = open_target(f"{ini}:System_Config.Faster_U85:Memory_Mode.Dedicated_Sram_512KB")
    assert target.clock_hz == 2e9
    assert target.dram_bus_bytes_per_s == 48e9
    assert target.dram_read_setup_s == 250e-9


def test_flash_is_read_only_so_its_write_figures_are_assumed(ini: str) -> None:
    target = open_target(f"{ini}:Small_U55:Shared_Sram")
    assert target.dram_read_bytes_per_s == target.dram_write_bytes_per_s == 0.125 * 8 * 400e6
    assert target.dram_write_setup_s == target.dram_read_setup_s == 64 / 400e6
    assert target.sources["dram_write_bytes_per_s"].startswith("assumed: OffChipFlash is read-only")
    assert target.sram_bytes == 2**32, "no arena_cache_size: all that Vela can address"
    assert target.peak_macs_per_s("int8") == 256 * 400e6


@pytest.mark.parametrize(
    ("selection", "complaint", "more"),
    [
        ("", "has 3 sections [System_Config.NAME]", "Small_U55, Big_U85, Faster_U85"),
        (":Big_U85", "has 4 sections [Memory_Mode.NAME]", "Dedicated_Sram_512KB"),
        (":Big_U58:Dedicated_Sram", "has no section [System_Config.Big_U58]", "did you mean 'Big_U85'"),
        (":Big_U85:Sram_Only", "all lies in SRAM in this mode", "choose Shared_Sram"),
        (":Big_U85:Dedicated_Sram:u85", "there is no accelerator 'u85'", "ethos-u85-2048"),
        (":a:b:c:d", "selects too much", "FILE:SYSTEM:MODE"),
    ],
)
def test_a_selection_that_makes_no_machine_says_what_there_is(
    ini: str, selection: str, complaint: str, more: str
) -> None:
    with pytest.raises(UsageError) as caught:
        open_target(ini + selection)
    assert complaint in caught.value.message
    assert more in f"{caught.value.hint} {caught.value.where}"


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("core_clock=1e9", "core_clock=fast", "core_clock = 'fast' is not a positive number"),
        ("core_clock=1e9", "core_clock=nan", "core_clock = 'nan' is not a positive number"),
        ("core_clock=1e9", "", "core_clock is not given"),
        ("Dram_ports_used=2", "Dram_ports_used=1.5", "is not a whole number"),
        ("axi1_port=Dram", "", "axi1_port is not given"),
        ("arena_mem_area=Axi1", "arena_mem_area=Axi2", "arena_mem_area = 'Axi2' is no port"),
        ("cache_mem_area=Axi0\n\n[Memory_Mode.Dedicated_Sram_", "cache_mem_area=Axi1\n\n[Memory_Mode.Dedicated_Sram_",
         "cache_mem_area is Dram, not Sram"),
        ("inherit=Memory_Mode.Dedicated_Sram", "inherit=Memory_Mode.Dedicated_Sram_512KB", "inherits from itself"),
        ("inherit=Memory_Mode.Dedicated_Sram", "inherit=Memory_Mode.None", "which is not there"),
        ("[System_Config.Big_U85]", "[System_Config.Big_U85", "is not a configuration of Vela"),
        ("[System_Config.Big_U85]", "[System_Config.Big_U85]\n[System_Config.Big_U85]",
         "is not a configuration of Vela"),
    ],
)  # fmt: skip
def test_a_malformed_file_is_an_error(tmp_path: Path, before: str, after: str, complaint: str) -> None:
    assert before in INI
    path = tmp_path / "vela.ini"
    path.write_text(INI.replace(before, after, 1))
    with pytest.raises(UsageError) as caught:
        open_target(f"{path}:Big_U85:Dedicated_Sram_512KB")
    assert complaint in caught.value.message


def test_a_core_that_the_name_does_not_tell_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "vela.ini"
    path.write_text(INI.replace("Big_U85", "Mine"))
    with pytest.raises(UsageError, match="cannot be told from the name"):
        open_target(f"{path}:Mine:Dedicated_Sram_512KB")
    target = open_target(f"{path}:Mine:Dedicated_Sram_512KB:ethos-u65-256")
    assert target.peak_macs_per_s("int8") == 256e9
    assert target.vector_ops_per_s == 8e9  # a result of the fastest operation every eighth of a cycle


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the configuration of Vela"):
        open_target(str(tmp_path / "none.ini"))


def test_the_command_line_takes_one(ini: str, capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path) -> None:
    model = Path(__file__).parents[2] / "sample_models" / "unet.onnx"
    monkeypatch.chdir(tmp_path)
    target = "vela.ini:Big_U85:Dedicated_Sram_512KB"
    assert run(["analyze", str(model), "--target", target, "--strategy", "lru", "--no-report"]) == 0
    assert "SRAM 512 KiB" in capsys.readouterr().out


def test_a_configuration_names_one_beside_it(
    ini: str, capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spillprof.toml").write_text(
        '[targets.board]\ninherit = "vela.ini:Big_U85:Dedicated_Sram"\nsram = "1MB"\n'
    )
    assert run(["info", "targets"]) == 0
    assert "board           SRAM 1 MiB, align 16 B, DRAM 8.19 GB/s / 24 GB/s" in capsys.readouterr().out


def test_a_file_of_endless_lines_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "v.ini").write_text("x\n" * 5_001, "utf-8")
    with pytest.raises(UsageError, match="the configuration of Vela has more than 5,000 lines"):
        open_target(str(tmp_path / "v.ini"))


def test_sections_inherit_through_a_bounded_number_of_others(tmp_path: Path) -> None:
    links = "".join(f"[System_Config.Small_U55{i}]\ninherit=System_Config.Small_U55{i + 1}\n" for i in range(1000))
    (tmp_path / "v.ini").write_text(links + "[System_Config.Small_U551000]\n[Memory_Mode.M]\n", "utf-8")
    with pytest.raises(UsageError, match="inherits through more than 16 sections"):
        open_target(f"{tmp_path / 'v.ini'}:Small_U550:M")
