"""Literal legal plans, one for each feature of plans, and the fields that tests change in them."""

from dataclasses import replace
from typing import Any

from programs import plan, program, step

from spillprof.ir.plan import Plan

# x is loaded; a waits from step 1 to step 3 in DRAM, because b and c need the room; y is the output.
SPILL = program(
    {"x": ("input", 64), "a": 64, "b": 64, "c": 64, "y": ("output", 64)},
    ["x -> a", "a -> b", "b -> c", "a, c -> y"],
    alignment=64,
    capacity=192,
)
SPILL_PLAN = plan(
    SPILL,
    capacity=192,
    segments=[("x", 0, 2, 0), ("a", 1, 5, 64), ("b", 4, 8, 0), ("c", 7, 11, 64), ("a", 9, 11, 0), ("y", 10, 12, 128)],
    transfers=[("fetch", "x", 0, 0), ("write-back", "a", 2, 2), ("reload", "a", 3, 3, 1), ("drain", "y", 4, 4)],
    spills=[{"buffer": "a", "last_use_step": 1, "evict_step": 2, "needed_step": 3}],
)
# a is updated in place by b; a workspace lies over the place of x once it is read; c is moved at step 3.
INPLACE = program(
    {"x": ("input", 32), "a": 64, "b": 64, "c": 32, "y": ("output", 32)},
    [
        "x -> a",
        step("a -> b", updates={"a": "b"}),
        step("b -> c", workspaces=[("im2col", 32, 0, 1), ("accumulator", 32, 1, 2)]),
        "c -> y",
    ],
    reservations=[("weight staging", 64)],
)
INPLACE_PLAN = plan(
    INPLACE,
    capacity=256,
    segments=[("x", 0, 2, 64), ("a", 1, 4, 96), ("b", 4, 8, 96), ("c", 7, 9, 64), ("c", 9, 11, 96), ("y", 10, 12, 64)],
    transfers=[("fetch", "x", 0, 0), ("drain", "y", 4, 4)],
    moves=[("c", 3, 64, 96)],
    scratch=[(2, "im2col", 32, 160, 6, 8), (2, "accumulator", 32, 192, 7, 9)],
)
# Oversized step 1 reads x and writes b through DRAM; b is read back by step 2. p is pinned.
STREAM = program(
    {"x": ("input", 512), "p": 64, "b": 512, "y": ("output", 64)},
    [
        "-> p",
        step("x, p -> b", streamed_reads="x", streamed_writes="b", stream_staging_bytes=64),
        step("b, p -> y", streamed_reads="b", stream_staging_bytes=64),
    ],
    dedicated="p",
    reservations=[("shared workspace", 16), ("dedicated slot", 64, "p")],
)
STREAM_PLAN = plan(
    STREAM,
    capacity=208,
    segments=[("p", 1, 8, 16), ("y", 7, 9, 80)],
    transfers=[("drain", "y", 3, 3)],
    spills=[
        {"buffer": "b", "last_use_step": 1, "evict_step": 2, "needed_step": 2, "written": False, "reloaded": False}
    ],
    streamed=[(1, "x", "in"), (1, "b", "out"), (2, "b", "in")],
    scratch=[(1, "stream staging", 64, 80, 3, 6), (2, "stream staging", 64, 144, 6, 9)],
)
# w stays from one inference to the next; v is dropped after step 0 and comes back for the next one.
CACHED = program(
    {"w": ("weight", 64), "v": ("weight", 64), "a": 64, "y": ("output", 64)},
    ["w, v -> a", "a -> y", "w -> "],
    weights_persist=True,
)
CACHED_PLAN = plan(
    CACHED,
    capacity=256,
    segments=[("w", 0, 9, 0), ("v", 0, 2, 64), ("a", 1, 5, 128), ("y", 4, 6, 64)],
    transfers=[("reload", "v", 0, 0), ("drain", "y", 2, 2)],
    spills=[{"buffer": "v", "last_use_step": 0, "evict_step": 1, "needed_step": 3, "written": False}],
)
# Step 2 holds a, which step 1 read last: it is written back, and never comes on-chip again.
HELD = program(
    {"x": ("input", 64), "a": 64, "b": 64, "c": 64, "y": ("output", 64)},
    ["x -> a", "a -> b", step("b -> c", holds="a"), "c -> y"],
    alignment=64,
    capacity=128,
)
HELD_PLAN = plan(
    HELD,
    capacity=128,
    segments=[("x", 0, 2, 0), ("a", 1, 6, 64), ("b", 4, 8, 0), ("c", 7, 11, 64), ("y", 10, 12, 0)],
    transfers=[("fetch", "x", 0, 0), ("write-back", "a", 2, 2), ("drain", "y", 4, 4)],
    spills=[{"buffer": "a", "last_use_step": 1, "evict_step": 2, "needed_step": None, "reloaded": False}],
)
LEGAL = {
    "spill": (SPILL, SPILL_PLAN),
    "in place": (INPLACE, INPLACE_PLAN),
    "stream": (STREAM, STREAM_PLAN),
    "cached": (CACHED, CACHED_PLAN),
}

NUDGES = {
    "segments": ("start", "end", "address", "buffer"),
    "transfers": ("buffer", "size_bytes", "issue_step", "needed_step", "segment"),
    "spills": ("buffer", "last_use_step", "evict_step", "needed_step"),
    "streamed": ("step", "buffer", "size_bytes"),
    "moves": ("step", "buffer", "size_bytes", "from_address", "to_address"),
    "scratch": ("step", "size_bytes", "address", "start", "end"),
}
"""Numbers of each part of a plan, to be changed by tests."""


def changed(q: Plan, part: str, index: int, **fields: Any) -> Plan:
    """The plan with one entry of one of its lists changed; with no fields given, the entry is dropped."""
    entries = list(getattr(q, part))
    entries[index : index + 1] = [replace(entries[index], **fields)] if fields else []
    return replace(q, **{part: tuple(entries)})
