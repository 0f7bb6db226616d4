"""The targets that ship with the package."""

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.frontends import read_model
from spillprof.ir.target import Target, builtin_target_names, load_target

SAMPLES = Path(__file__).parents[2] / "sample_models"
FOLDER = resources.files("spillprof.ir") / "targets"


def fields_given(name: str) -> set[str]:
    """Fields that the file of a built-in target gives, and those that it inherits."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    parent = table.pop("inherit", None)
    return (set(table) | (fields_given(parent) if parent else set())) - {"name", "sources"}


@pytest.mark.parametrize("name", builtin_target_names())
def test_every_number_has_a_source_and_every_source_a_number(name: str) -> None:
    assert set(load_target(name).sources) == fields_given(name)


@pytest.mark.parametrize("name", builtin_target_names())
def test_every_file_sources_what_it_changes(name: str) -> None:
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    assert set(table["sources"]) == set(table) - {"inherit", "sources"}


@pytest.mark.parametrize("name", builtin_target_names())
def test_a_sample_model_runs_on_every_target(name: str) -> None:
    graph = read_model(SAMPLES / "transformer_blocks.onnx")
    profile = analyze(graph, load_target(name), AnalyzeOptions(strategies=("belady",)))
    (result,) = profile.results
    assert result.feasible
    assert 0 < profile.ideal.latency_s <= result.latency_s
    assert profile.ideal.energy_j > 0


def test_names_are_those_of_the_products() -> None:
    assert builtin_target_names() == (
        "article-npu", "edge-tpu", "ethos-u55", "ethos-u65", "ethos-u85", "gap9", "generic-npu", "hexagon",
        "intel-npu-3720", "intel-npu-4000", "pcie-gpu", "rk3588", "tpu-v4", "tpu-v5e", "trainium2",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "tera_ops"),
    [("ethos-u65", 1.024), ("ethos-u85", 2.048), ("edge-tpu", 4.0), ("hexagon", 45.0), ("intel-npu-3720", 10.65),
     ("intel-npu-4000", 45.5), ("rk3588", 2.048), ("gap9", 0.1508), ("tpu-v5e", 394.0)],
)  # fmt: skip
def test_peak_rates_are_those_that_vendors_state(name: str, tera_ops: float) -> None:
    assert 2 * load_target(name).peak_macs_per_s("int8") == pytest.approx(tera_ops * 1e12, rel=0.01)


def test_the_kinds_of_ethos_u_run_as_fast_as_its_blocks_say() -> None:
    """An input block has 32 channels, an output block 2 x 2 positions of 8 channels; 256 MACs a cycle.

    A 3 x 3 kernel takes its 9 positions in 3 steps of 4 cycles where it sums over few channels: 12 cycles for 4 x 8
    results of 9 x 3 MACs each (an image of 3 channels), or of 9 (depthwise). One position takes no less than 32 cycles
    for 8 results of 32 MACs.
    """
    shares = load_target("ethos-u55").utilisation
    assert shares["few_channels"] == 4 * 8 * 9 * 3 / 12 / 256
    assert shares["depthwise"] == 4 * 8 * 9 / 12 / 256
    assert shares["fully_connected"] == 8 * 32 / 32 / 256
    assert load_target("ethos-u65").utilisation == load_target("ethos-u85").utilisation == shares


@pytest.mark.parametrize(
    "name", ["generic-npu", "edge-tpu", "hexagon", "intel-npu-3720", "intel-npu-4000", "rk3588", "gap9", "tpu-v4",
             "tpu-v5e", "trainium2"],
)  # fmt: skip
def test_what_fills_some_rows_of_an_array_takes_their_share_of_its_rate(name: str) -> None:
    """All of these are taken to reach half of what the rows in use could do."""
    target = load_target(name)
    half, rows = target.utilisation["default"], target.array_rows
    assert half == 0.5
    assert target.utilisation["depthwise"] == target.utilisation["fully_connected"] == half / rows
    assert target.utilisation["few_channels"] == pytest.approx(half * 3 / rows, rel=1e-5)


def test_the_npu_of_the_article_is_the_generic_one_but_for_its_memories_and_what_runs_how_fast() -> None:
    article, generic = load_target("article-npu"), load_target("generic-npu")
    differing = {f for f in Target.__dataclass_fields__ if getattr(article, f) != getattr(generic, f)}
    assert differing == {
        "name", "dram_read_j_per_byte", "dram_write_j_per_byte", "sources",
        "utilisation", "array_rows", "array_columns", "vector_ops_per_s",
    }  # fmt: skip
