"""An option is registered by one row: everything that users see of it derives from there."""

import dataclasses
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from spillprof.cli.config_keys import FILE_SETTINGS, SETTINGS
from spillprof.cli.declaring import options_of, read_options
from spillprof.cli.group import COMMANDS, spillprof
from spillprof.explain.options import AnalyzeOptions, configuration
from spillprof.ir.option_rows import OptionRow, config_json, internal_field, option_field, option_rows
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions, Recomputing

KINDS: tuple[Any, ...] = (AnalyzeOptions, PlanningOptions, LoweringOptions)
ROWS = [row for kind in KINDS for row in option_rows(kind)]
CLI_PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")


def _commands() -> dict[str, click.Command]:
    context = click.Context(spillprof)
    commands = {name: spillprof.get_command(context, name) for name in COMMANDS}
    return {name: command for name, command in commands.items() if command is not None}


def _parameter(row: OptionRow) -> click.Option:
    found = [p for p in _commands()["analyze"].params if row.flag in p.opts]
    assert len(found) == 1, row.flag
    assert isinstance(found[0], click.Option)
    return found[0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_has_a_row_or_a_reason(kind: Any) -> None:
    rows = {row.field for row in option_rows(kind)}
    for field in dataclasses.fields(kind):
        is_nested = field.name in ("lowering", "planning")
        assert is_nested or field.name in rows or len(field.metadata["no option because"]) > 20, field.name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.field)
def test_every_row_is_an_option_a_key_a_name_in_results_and_a_line_of_the_page(row: OptionRow) -> None:
    parameter = _parameter(row)
    assert parameter.name == row.parameter
    assert parameter.envvar == f"SPILLPROF_{row.parameter.upper()}"
    assert row.help
    assert row.by_command or parameter.help == row.help
    assert row.key in SETTINGS
    assert bool(row.json_name) != bool(row.not_in_json)
    section = CLI_PAGE.partition("## spillprof analyze\n")[2].partition("\n## ")[0]
    assert re.search(rf"^  (-\w, )?{row.flag}\b", section, re.MULTILINE)


def test_no_two_rows_share_a_flag_or_a_name() -> None:
    for names in ([row.flag for row in ROWS], [row.json_name for row in ROWS if row.json_name]):
        assert len(set(names)) == len(names)


def test_results_name_every_option_in_the_order_that_baselines_have() -> None:
    planning = PlanningOptions(recompute=Recomputing.JOINT, recompute_tensor=("t",), optimize_seconds=1.0)
    options = AnalyzeOptions(lowering=LoweringOptions(fuse_tensor=("t",)), planning=planning)
    names = iter(configuration(options))
    baseline = [
        "strategies", "placement", "weights", "inputs", "order", "recompute", "recompute_tensor", "oversized", "fuse",
        "fuse_tensor", "conv", "inplace", "views", "fold", "control_flow", "pin", "act_dtype", "weight_dtype",
        "prefetch", "writeback", "release", "start", "optimize_seconds",
    ]  # fmt: skip
    assert all(name in names for name in baseline)  # in this order; options that came later stand between them
    unset = {row.json_name for row in ROWS if row.json_if_changed}
    assert {row.json_name for row in ROWS} - unset - {""} <= {*configuration(options), "op_times"}


def test_a_time_limit_is_named_only_where_something_is_searched() -> None:
    timed = PlanningOptions(optimize_seconds=1.0)
    assert "optimize_seconds" not in configuration(AnalyzeOptions(strategies=("lru",), planning=timed))
    assert configuration(AnalyzeOptions(strategies=("optimal",), planning=timed))["optimize_seconds"] == 1.0


def test_options_that_name_files_are_relative_to_the_configuration() -> None:
    assert FILE_SETTINGS == ("op-times",)


class _Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Toy:
    colour: _Colour = option_field(_Colour.RED, "--colour", "Which colour.")
    thin: bool = option_field(True, "--thin", "Thin lines.")
    name: tuple[str, ...] = option_field((), "--name", "Names.", metavar="NAME", json_if_changed=True)
    paper: str = option_field("plain", "--paper", "Paper.", names=lambda: ("plain", "lined"))
    late: _Colour = option_field(_Colour.RED, "--blue-late", "Blue.", switched_on=_Colour.BLUE, json_name="late")
    limit: float | None = option_field(None, "--limit", "Limit.", most=10, not_in_json="it shapes nothing")
    seed: int = internal_field(3, because="results can be repeated")


@pytest.mark.parametrize(
    ("arguments", "toy"),
    [
        ([], _Toy()),
        (
            ["--colour", "blue", "--thin", "off", "--name", "a", "--name", "b", "--paper", "lined", "--blue-late",
             "--limit", "2"],
            _Toy(colour=_Colour.BLUE, thin=False, name=("a", "b"), paper="lined", late=_Colour.BLUE, limit=2.0),
        ),
    ],
)  # fmt: skip
def test_a_row_is_all_that_a_new_option_needs(arguments: list[str], toy: _Toy) -> None:
    read = []

    @click.command()
    @options_of(_Toy)
    def command(**values: Any) -> None:
        read.append(read_options(_Toy, values))

    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert (done.exit_code, read) == (0, [toy])


def test_the_json_of_a_row_has_its_name_and_leaves_out_what_it_says() -> None:
    assert config_json([_Toy()]) == {"colour": "red", "thin": True, "paper": "plain", "late": "red"}
    changed = config_json([_Toy(name=("a",), late=_Colour.BLUE)])
    assert (changed["name"], changed["late"]) == (["a"], "blue")
