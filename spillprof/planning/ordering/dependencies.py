"""What each step waits for: the steps that write what it reads. An order is legal if it respects only this."""

from dataclasses import dataclass

from spillprof.ir.program import BufferKind, Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Edges between steps, and what each step does to the bytes in use. Steps and buffers by index."""

    waits_for: tuple[tuple[int, ...], ...]  # by step: those that must come before, each once
    awaited_by: tuple[tuple[int, ...], ...]  # by step: those that must come after
    readers: tuple[tuple[int, ...], ...]  # by buffer: steps that read or hold it
    size_bytes: tuple[int, ...]  # by buffer: of the pool; 0 for what has its own slot, and for weights
    loaded: tuple[tuple[int, ...], ...]  # by step: graph inputs among its reads
    written: tuple[tuple[int, ...], ...]  # by step: results that somebody reads
    read: tuple[tuple[int, ...], ...]  # by step: operands, and what it holds, that die somewhere


def dependencies(program: Program) -> Dependencies:
    """The dependences of a program's steps. Weights are left out: no order changes how long they are wanted."""
    buffers = program.buffers
    readers: list[list[int]] = [[] for _ in buffers]
    writer = {b: i for i, step in enumerate(program.steps) for b in step.writes}
    waits_for = [
        tuple(dict.fromkeys(writer[b] for b in (*step.reads, *step.holds) if b in writer)) for step in program.steps
    ]
    awaited_by: list[list[int]] = [[] for _ in program.steps]
    for i, step in enumerate(program.steps):
        for j in waits_for[i]:
            awaited_by[j].append(i)
        for b in step.reads:
            readers[b].append(i)
    holds = [tuple(b for b in step.holds if b in writer or readers[b]) for step in program.steps]
    for i, held in enumerate(holds):  # it stays for the step as for one that reads it
        for b in held:
            readers[b].append(i)
    counted = [not b.dedicated and b.kind is not BufferKind.WEIGHT for b in buffers]
    return Dependencies(
        waits_for=tuple(waits_for),
        awaited_by=tuple(map(tuple, awaited_by)),
        readers=tuple(map(tuple, readers)),
        size_bytes=tuple(b.size_bytes if counted[b.index] else 0 for b in buffers),
        loaded=tuple(tuple(b for b in s.reads if b not in writer and counted[b]) for s in program.steps),
        written=tuple(tuple(b for b in s.writes if readers[b] and counted[b]) for s in program.steps),
        read=tuple(
            tuple(b for b in (*s.reads, *held) if counted[b]) for s, held in zip(program.steps, holds, strict=True)
        ),
    )
