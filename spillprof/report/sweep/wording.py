"""Sentences about a sweep, for the terminal and the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from spillprof.ir.units import format_size, format_size_exact, format_size_pair, format_time
from spillprof.report.scales import field_text
from spillprof.report.text import count_of, label
from spillprof.studies.sweep.answers import Answer
from spillprof.studies.sweep.curves import Cliff, Knee
from spillprof.studies.sweep.result import Sweep
from spillprof.studies.sweep.work import LOST

METRIC_WORDS = {"spill_bytes": "spill bytes", "latency_s": "latency"}


def size_labels(sizes: Sequence[int]) -> list[str]:
    """Formats sizes, in bytes where different ones would print alike."""
    texts = [format_size(size) for size in sizes]
    return [f"{size:,} B" if texts.count(text) > 1 else text for size, text in zip(sizes, texts, strict=True)]


def title_of(model: str, dims: Mapping[str, int], settings: Mapping[str, Any]) -> str:
    """``unet.onnx, batch=2, dram_read_bytes_per_s=30 GB/s``."""
    parts = [label(model, 60)] if model else []
    parts += [f"{label(name, 30)}={size}" for name, size in dims.items()]
    varied = {name: field_text(name, value, size=format_size) for name, value in settings.items()}
    parts += [f"{label(name, 40)}={label(text, 40)}" for name, text in varied.items()]
    return ", ".join(parts)


def answer_sentence(answer: Answer) -> str:
    """``smallest SRAM with no spill: 4.81 MiB (5,043,200 B), belady``."""
    goal = f"smallest SRAM {'with ' if answer.goal == 'no spill' else ''}{answer.goal}"
    if answer.sram_bytes is None:
        return f"{goal}: none of the sizes swept{_failed(answer.failed_models)}"
    strategy = "" if answer.strategy is None else f", {answer.strategy} {answer.placement}"
    return f"{goal}: {format_size_exact(answer.sram_bytes)}{strategy}"


def unfinished(sweep: Sweep) -> str:
    """States why a sweep is incomplete."""
    lost = sum(row.status == LOST for row in sweep.rows)
    if lost:
        return f"Not complete: {lost:,} of {count_of(len(sweep.rows), 'point')} are missing"
    return "Interrupted: these are the points that were finished"


def _failed(models: Sequence[str]) -> str:
    if not models:
        return ""
    more = f" and {len(models) - 1} more" if len(models) > 1 else ""
    return f" ({label(models[0], 40)}{more} failed at all of them)"


def knee_words(knees: Sequence[Knee]) -> str:
    """Lists knees by size and metric, with the strategies that share them."""
    shared: dict[tuple[str, int], list[str]] = {}
    for knee in knees:
        shared.setdefault((knee.metric, knee.sram_bytes), []).append(knee.strategy)
    return "; ".join(
        f"{METRIC_WORDS[metric]} at {format_size(size)} ({', '.join(dict.fromkeys(names))})"
        for (metric, size), names in shared.items()
    )


def value_text(metric: str, value: float) -> str:
    """Formats a figure with its unit."""
    return format_size(int(value)) if metric == "spill_bytes" else format_time(value)


def by_place(cliffs: Sequence[Cliff]) -> list[tuple[Cliff, list[str]]]:
    """Returns the worst cliff of each place, and the other strategies and placements with a cliff there."""
    places: dict[tuple[Any, ...], list[Cliff]] = {}
    for cliff in cliffs:
        places.setdefault(cliff.place, []).append(cliff)
    return [(own[0], [f"{c.strategy} {c.placement}" for c in own[1:]]) for own in places.values()]


def cliff_sentence(cliff: Cliff, others: Sequence[str]) -> str:
    """States what gets worse between which sizes, and which buffer and operator cause it."""
    where = title_of(cliff.model, cliff.dims, cliff.settings)
    low, high = format_size_pair(cliff.sram_bytes, cliff.larger_sram_bytes)
    before, after = value_text(cliff.metric, cliff.value), value_text(cliff.metric, cliff.larger_value)
    if before == after and cliff.metric == "spill_bytes":
        before, after = f"{cliff.value:,} B", f"{cliff.larger_value:,} B"
    rise = f"+{100 * cliff.rise:.3g} %" if cliff.value else "from nothing"
    also = f" (also {', '.join(others)})" if others else ""
    text = (
        f"{where}, {cliff.strategy} {cliff.placement}{also}: {low} to {high}, {METRIC_WORDS[cliff.metric]} "
        f"{before} to {after} ({rise})"
    )
    return f"{text}; {_blame(cliff)}" if cliff.operator is not None else text


def _blame(cliff: Cliff) -> str:
    operator = f"#{cliff.step} {label(cliff.operator or '', 44)}"
    if cliff.cause == "waits":
        waits = "its weights" if cliff.buffer is None else label(cliff.buffer, 32)
        return f"{operator} waits longer, for {waits}"
    before, after = format_size_pair(cliff.buffer_spill_bytes or 0, cliff.larger_buffer_spill_bytes or 0)
    buffer = f"{label(cliff.buffer or '', 32)} ({format_size(cliff.buffer_bytes or 0)})"
    return f"{buffer} spills {before} to {after}, forced by {operator}, {cliff.cause}"
