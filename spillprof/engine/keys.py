"""Cache keys: the key of a stage holds every target field and option except those that the stage never reads.

A new field is in every key until it is listed here, so no stage returns a stale result.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import fields

from spillprof.ir.target import Target
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions
from spillprof.planning.options import PlanningOptions

NAMES_FIELDS = frozenset({"name", "sources"})
MEMORY_FIELDS = frozenset(
    {"sram_bytes", "reserved_bytes", "weight_staging_bytes", "stream_staging_bytes", "shared_workspace"}
)
LAYOUT_FIELDS = frozenset({"alignment_bytes", "channel_align", "accumulator_bytes_per_output", "strided_views"})
BANDWIDTH_FIELDS = frozenset(
    {
        "dram_read_bytes_per_s", "dram_write_bytes_per_s", "dram_read_setup_s", "dram_write_setup_s",
        "dram_burst_bytes", "dram_read_curve", "dram_write_curve", "dram_bus_bytes_per_s", "background_bytes_per_s",
        "dram_outstanding", "dma_read_channels", "dma_write_channels", "dma_shared_channels",
    }
)  # fmt: skip
COMPUTE_FIELDS = frozenset(
    {
        "sram_bytes_per_s", "cores", "clock_hz", "macs_per_s", "macs_per_cycle", "utilisation", "conv_time_factors",
        "launch_overhead_s", "array_rows", "array_columns", "vector_ops_per_s",
    }
)  # fmt: skip
ENERGY_FIELDS = frozenset(
    {"sram_j_per_byte", "dram_read_j_per_byte", "dram_write_j_per_byte", "mac_j", "mac_j_by_dtype"}
)

UNREAD_BY_FIT = NAMES_FIELDS | BANDWIDTH_FIELDS | COMPUTE_FIELDS | ENERGY_FIELDS | LAYOUT_FIELDS - {"alignment_bytes"}
"""Fields that fitting a program to a memory never reads."""
UNREAD_BY_PLANNING = NAMES_FIELDS | MEMORY_FIELDS | LAYOUT_FIELDS | COMPUTE_FIELDS | ENERGY_FIELDS
"""Fields that planning never reads: a fitted program holds its capacity, sizes and reservations."""
UNREAD_BY_PLAYING = NAMES_FIELDS | MEMORY_FIELDS | LAYOUT_FIELDS
"""Fields that issuing transfers and playing a plan never read."""

OF_THE_PROGRAM = frozenset({"order", "recompute", "recompute_tensor"})
"""Planning options that select the program; planning itself never reads them."""
OF_THE_SEARCH = frozenset({"optimize_work", "optimize_seconds"})
"""Options that only ``optimal`` reads."""
OF_THE_BOUND = frozenset({"inputs", "writeback", "start"})
"""The only planning options that lower bounds read."""

_CUT_BY_IM2COL = frozenset(
    {
        "sram_bytes", "reserved_bytes", "weight_staging_bytes", "shared_workspace",
        "dram_read_bytes_per_s", "dram_write_bytes_per_s", "launch_overhead_s",
    }
)  # fmt: skip


def unread_by_lowering(options: LoweringOptions) -> frozenset[str]:
    """Fields of the target that lowering never reads.

    Memory and speed matter only to convolutions: ``im2col`` cuts its matrix by some of them, ``auto`` plays the run.
    """
    if options.conv is ConvAlgorithm.AUTO:
        return NAMES_FIELDS
    read = {"conv_time_factors"} | (set() if options.op_times is None else {"clock_hz"})
    if options.conv is ConvAlgorithm.IM2COL:
        read |= _CUT_BY_IM2COL
    return (NAMES_FIELDS | MEMORY_FIELDS | BANDWIDTH_FIELDS | COMPUTE_FIELDS | ENERGY_FIELDS) - read


def target_key(target: Target, unread: Collection[str]) -> tuple[Hashable, ...]:
    """Values of the fields that a stage may read."""
    return tuple(_hashable(getattr(target, f.name)) for f in fields(Target) if f.name not in unread)


def planning_key(options: PlanningOptions, unread: Collection[str]) -> tuple[Hashable, ...]:
    """Values of the options that a stage may read."""
    return tuple(getattr(options, f.name) for f in fields(PlanningOptions) if f.name not in unread)


def _hashable(value: object) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted(value.items()))
    assert isinstance(value, Hashable)
    return value
