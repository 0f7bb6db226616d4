"""Changes of the machine other than the size of its SRAM: bandwidth, channels, where workspaces lie."""

from collections.abc import Iterator
from typing import Any

from spillprof.explain.whatif.change import Change, Situation
from spillprof.explain.whatif.words import rate_word


def twice_the_bandwidth(now: Situation) -> Iterator[Change]:
    """Both directions, and the bus that carries them. Not where times are measured points: nobody measured these."""
    target = now.trial.run.target
    if target.dram_read_curve or target.dram_write_curve:
        return
    rates = {"dram_read": target.dram_read_bytes_per_s, "dram_write": target.dram_write_bytes_per_s}
    if target.dram_bus_bytes_per_s is not None:
        rates["dram_bus"] = target.dram_bus_bytes_per_s
    words = {name: rate_word(2 * rate) for name, rate in rates.items()}
    if all(words.values()):
        yield _on(
            now,
            "bandwidth",
            " ".join(f"--set {name.replace('_', '-')}={word}" for name, word in words.items()),
            "hardware: twice the DRAM bandwidth",
            **{f"{name}_bytes_per_s": 2 * rate for name, rate in rates.items()},
        )


def more_channels(now: Situation) -> Iterator[Change]:
    """One more DMA channel in each direction, or one more of those that serve both."""
    target = now.trial.run.target
    if target.dma_shared_channels:
        more = target.dma_shared_channels + 1
        argument = f"--set dma-shared-channels={more}"
        yield _on(now, "channels", argument, "hardware: one more DMA channel", dma_shared_channels=more)
        return
    read, write = target.dma_read_channels + 1, target.dma_write_channels + 1
    argument = f"--set dma-read-channels={read} --set dma-write-channels={write}"
    costs = "hardware: one more DMA channel in each direction"
    yield _on(now, "channels", argument, costs, dma_read_channels=read, dma_write_channels=write)


def own_workspaces(now: Situation) -> Iterator[Change]:
    """Workspaces that are there only while their operator runs, in place of a block for the largest one."""
    if now.trial.run.target.shared_workspace and any(step.workspaces for step in now.program.steps):
        argument = "--set shared-workspace=false"
        costs = "a runtime that allocates workspaces one by one"
        yield _on(now, "workspace", argument, costs, shared_workspace=False)


def _on(now: Situation, kind: str, argument: str, costs: str, **fields: Any) -> Change:
    return Change(kind=kind, argument=argument, costs=costs, trial=now.trial.on(**fields))
