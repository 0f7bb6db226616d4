"""Each operator alone in a memory: best tiling, floor, and what the section of ``inspect`` says of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from corpus_models import MODELS, graph_of, needs_models
from graphs import MACHINE, graph

from spillprof.analysis.tilings import tile_operators
from spillprof.cli import run
from spillprof.ir.errors import SpillprofError
from spillprof.lowering.options import LoweringOptions
from spillprof.report.tilings import tiling_section
from spillprof.verify.nest import recount_nest

UNET = str(Path(__file__).parents[2] / "sample_models" / "unet.onnx")
PRODUCT = graph({"x": (512, 512)}, ["MatMul x w -> y"], "y", weights={"w": (512, 512)}, tensors={"y": (512, 512)})


def tilings(g, sram_bytes):
    return tile_operators(g, replace(MACHINE, sram_bytes=sram_bytes), LoweringOptions())


def section(found, top=10):
    return "\n".join(tiling_section(found, top=top))


def test_a_product_is_tiled_close_to_its_floor():
    """float32, 65536 B: 8 * 512^3 / 128 - 131072 = 8,257,536 B at least; output tiles of 128 x 103: 4 passes, and 5."""
    (only,) = tilings(PRODUCT, 65536).operators
    assert only.floor.nbytes == 8 * 512**3 // 128 - 2 * 65536
    assert only.mode is not None
    assert only.mode.cost.moved_bytes == (4 + 5 + 1) * 4 * 512**2
    assert only.ratio == pytest.approx(10_485_760 / 8_257_536)
    count = recount_nest(only.nest, only.mode.tiling)
    assert (count.moved_bytes, count.footprint_bytes) == (10_485_760, only.mode.cost.footprint_bytes)


def test_the_section_says_how_it_is_tiled():
    text = section(tilings(PRODUCT, 65536))
    assert "moved           10 MiB by 1 operator, each from DRAM and back" in text
    assert "floor           7.88 MiB: no execution of these operators, one by one, moves less" in text
    assert "operands once   3 MiB" in text
    row = text.splitlines()[-1]
    assert row.split()[:2] == ["10", "MiB"]
    assert "1.27" in row
    assert "5x" in row
    assert "4x" in row
    assert row.endswith("output stays")


def test_what_fits_is_whole_and_moves_once():
    text = section(tilings(PRODUCT, 3 * 2**20))
    assert text.splitlines()[-1].split()[-3:] == ["once", "each", "whole"]


def test_an_operator_that_does_not_fit_says_its_smallest_tile_and_the_least_sram():
    """One element of the output, and of the inputs that change with the innermost loop two."""
    (only,) = (found := tilings(PRODUCT, 8)).operators
    assert only.mode is None
    least = only.smallest.cost.footprint_bytes
    text = section(found)
    assert f"1 operator, however tiled; {least:,} B of SRAM is the least for all" in text
    assert f"needs {least} B" in text.splitlines()[-1]
    assert tilings(PRODUCT, least).operators[0].mode is not None
    assert tilings(PRODUCT, least - 1).operators[0].mode is None
    assert json.loads(json.dumps(found.to_json()))["operators"][0]["moved_bytes"] is None


def test_operators_of_no_known_loops_are_counted():
    g = graph({"x": (8, 8)}, ["Mystery x -> a", "Relu a -> y"], "y", tensors={"a": (8, 8), "y": (8, 8)})
    found = tilings(g, 4096)
    assert found.unknown == (("Mystery", 1),)
    assert "not tiled       loops unknown: Mystery (1)" in section(found)


def test_the_command_adds_a_section_and_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", UNET, "--sram", "64KB", "--top", "3"]) == 0
    plain = capsys.readouterr().out
    assert run(["inspect", UNET, "--sram", "64KB", "--top", "3", "--tilings"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(plain)
    assert "Each operator alone in 64 KiB of SRAM" in page
    assert run(["inspect", UNET, "--json"]) == 0
    without = json.loads(capsys.readouterr().out)
    assert run(["inspect", UNET, "--sram", "64KB", "--json", "--tilings"]) == 0
    found = json.loads(capsys.readouterr().out)
    tiling = found.pop("tiling")
    assert found == without
    assert [row["step"] for row in tiling["operators"]] == list(range(24))
    for row in tiling["operators"]:
        assert row["moved_bytes"] == sum(o["read_bytes"] + o["written_bytes"] for o in row["operands"])
        assert row["floor_bytes"] <= row["moved_bytes"]
        assert row["min_sram_bytes"] <= row["footprint_bytes"] <= 65536


@needs_models
@pytest.mark.slow
def test_no_operator_of_a_real_model_moves_less_than_its_floor():
    """And walking the tiles gives the bytes and the footprint that the search counted."""
    tiled, walked = 0, set()
    for file in MODELS:
        try:
            g = graph_of(file)
        except SpillprofError:
            continue
        for sram_bytes in (64 * 1024, 1024 * 1024):
            for operator in tilings(g, sram_bytes).operators:
                if operator.mode is not None:
                    tiled += 1
                    cost = operator.mode.cost
                    assert operator.floor.nbytes <= cost.moved_bytes, (file, operator.name)
                    assert cost.footprint_bytes <= sram_bytes
                    case = (operator.nest, operator.mode.tiling)
                    if cost.tiles <= 1000 and case not in walked:
                        walked.add(case)
                        count = recount_nest(*case, alignment_bytes=MACHINE.alignment_bytes)
                        assert (count.read_bytes, count.written_bytes) == (cost.read_bytes, cost.written_bytes)
                        assert count.footprint_bytes == cost.footprint_bytes
    assert tiled > 10_000
    assert len(walked) > 1_000
