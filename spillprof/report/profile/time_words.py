"""Parts of a run's time and energy in the order of reports, and what each means."""

from spillprof.ir.result import Breakdown, Energy

TIME_WORDS = {
    "compute": "a compute unit is at work, whatever else goes on",
    "compulsory": "waits for transfers that infinite SRAM would make too",
    "spill": "waits for write-backs, reloads and streamed operands",
    "sync": "waits for the set-up of transfers",
    "contention": "waits because transfers share the bus",
    "fragmentation": "waits for compaction moves",
    "tail": "last bytes on their way after the last step",
}

ENERGY_WORDS = {
    "dram_read": "DRAM reads",
    "dram_write": "DRAM writes",
    "sram": "SRAM",
    "mac": "multiply-accumulates",
}


def time_parts(breakdown: Breakdown) -> tuple[tuple[str, float], ...]:
    """(part, seconds); they add up to the latency."""
    return tuple((part, float(getattr(breakdown, f"{part}_s"))) for part in TIME_WORDS)


def energy_parts(energy: Energy) -> tuple[tuple[str, float], ...]:
    """(level in words, joules); they add up to the energy of the run."""
    return tuple((words, float(getattr(energy, f"{part}_j"))) for part, words in ENERGY_WORDS.items())
