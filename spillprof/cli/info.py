"""``spillprof info``: the names that options accept, and what they mean."""

from collections.abc import Iterable
from typing import Any

import click

from spillprof.cli.options import examples, session_options
from spillprof.cli.output import print_result
from spillprof.model.target import builtin_target_names, load_target
from spillprof.units import format_rate, format_size

STRATEGY_RULES = {
    "none": "infinite SRAM: the ideal that the others are compared with; always simulated",
    "lru": "evict the buffer whose last read or write is oldest",
    "size": "evict the largest size x distance to next use",
    "belady": "evict the buffer whose next use is furthest",
    "cost": "evict the largest min(size, bytes needed) x distance to next use / cost of the transfers",
    "interval": "plan over the whole run: while a step is over capacity, spill its greatest length x size gap",
}
PLACEMENT_RULES = {
    "first-fit": "the lowest address where it fits",
    "best-fit": "the smallest hole where it fits",
    "recent-same-size": "the hole of the same size that was freed last, else best fit",
    "size-classes": "slots of their own for the commonest sizes, else best fit",
}


@click.command(
    "info",
    short_help="Targets, strategies and placements.",
    epilog=examples("spillprof info targets", "spillprof info strategies"),
)
@click.argument("topic", type=click.Choice(["targets", "strategies", "placements"]))
@session_options
def command(topic: str, **values: Any) -> None:
    """List the names that --target, --strategy or --placement accept."""
    rows = {"targets": _targets, "strategies": STRATEGY_RULES.items, "placements": PLACEMENT_RULES.items}[topic]()
    print_result(_aligned(list(rows)))


def _targets() -> Iterable[tuple[str, str]]:
    for name in builtin_target_names():
        target = load_target(name)
        read, write = format_rate(target.dram_read_bytes_per_s), format_rate(target.dram_write_bytes_per_s)
        yield name, f"SRAM {format_size(target.sram_bytes)}, align {target.alignment_bytes} B, DRAM {read} / {write}"


def _aligned(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows) + "\n"
