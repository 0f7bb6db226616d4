"""An independent check that a timeline is possible: a replay of the plan, second by second."""

import itertools
from collections.abc import Iterator

from spillprof.ir.plan import Plan
from spillprof.ir.program import PHASES_PER_STEP, Phase, Program
from spillprof.ir.target import Target
from spillprof.ir.timeline import JobKind, Timeline

SLACK_S = 1e-9


def check(program: Program, plan: Plan, machine: Target, t: Timeline) -> None:
    """Fail if data is read before it is there, places overlap, units or channels are overbooked, ..."""
    slack = SLACK_S * (1 + t.makespan_s)
    for what, earlier_s, later_s in _orders(program, plan, t):
        assert earlier_s <= later_s + slack, what
    _check_places(program, plan, t, slack)
    _check_units(machine, t, slack)
    _check_channels(machine, t, slack)


def _orders(program: Program, plan: Plan, t: Timeline) -> Iterator[tuple[str, float, float]]:
    """``(what, earlier, later)``: moments that must come in this order."""
    moved_s = {
        step: (start, end)
        for kind, step, start, end in zip(t.jobs.kind, t.jobs.step, t.jobs.start_s, t.jobs.end_s, strict=True)
        if kind == JobKind.MOVE
    }
    there_s = [_there_s(k, program, plan, t, moved_s) for k in range(len(plan.segments))]
    copied_s = _copied_s(program, plan, t)
    for i, step in enumerate(program.steps):
        yield f"step {i} lasts", t.step_start_s[i] + t.step_compute_s[i], t.step_end_s[i]
        for b in step.reads:
            if any(s.step == i and s.buffer == b for s in plan.streamed):
                yield f"step {i} streams {b}", copied_s(b, i), t.step_start_s[i]
                continue
            k = _place(plan, b, PHASES_PER_STEP * i)
            yield f"step {i} reads {b}", there_s[k], t.step_start_s[i]
        if i in moved_s:
            yield f"step {i} after its moves", moved_s[i][1], t.step_start_s[i]
    for j, transfer in enumerate(plan.transfers):
        if transfer.kind.is_read:
            yield f"copy of {transfer.buffer}", copied_s(transfer.buffer, transfer.issue_step), t.transfer_start_s[j]
        else:
            yield f"write of {transfer.buffer}", there_s[transfer.segment], t.transfer_start_s[j]
    for j, (kind, i) in enumerate(zip(t.jobs.kind, t.jobs.step, strict=True)):
        if kind in (JobKind.STREAM_IN, JobKind.STREAM_OUT):
            yield f"stream of step {i}", t.step_start_s[i], t.jobs.start_s[j]
        if kind in (JobKind.STREAM_IN, JobKind.STREAM_OUT, JobKind.WEIGHTS):
            yield f"stream of step {i} passes", t.jobs.end_s[j], t.step_end_s[i]
    weights = [i for i, step in enumerate(program.steps) if step.weight_stream_bytes]
    shared = [i for i, step in enumerate(program.steps) if step.shared_workspace_bytes]
    for before, after in [*itertools.pairwise(weights), *itertools.pairwise(shared)]:
        yield f"area of {before} and {after}", t.step_end_s[before], t.step_start_s[after]


def _place(plan: Plan, buffer: int, tick: int) -> int:
    return next(k for k, s in enumerate(plan.segments) if s.buffer == buffer and s.start <= tick < s.end)


def _there_s(k: int, program: Program, plan: Plan, t: Timeline, moved_s: dict[int, tuple[float, float]]) -> float:
    """When the data of a segment is complete."""
    s = plan.segments[k]
    for j, transfer in enumerate(plan.transfers):
        if transfer.segment == k and transfer.kind.is_read:
            return t.transfer_end_s[j]
    for m in plan.moves:
        if (m.buffer, PHASES_PER_STEP * m.step, m.to_address) == (s.buffer, s.start, s.address):
            return moved_s[m.step][1]
    step, phase = divmod(s.start, PHASES_PER_STEP)
    writes = phase == Phase.COMPUTE and s.buffer in program.steps[step].writes
    return t.step_end_s[step] if writes else 0.0


def _copied_s(program: Program, plan: Plan, t: Timeline):
    def copied_s(buffer: int, step: int) -> float:
        if program.buffers[buffer].in_dram_at_start:
            return 0.0
        ends = [
            t.transfer_end_s[j]
            for j, x in enumerate(plan.transfers)
            if x.buffer == buffer and not x.kind.is_read and x.issue_step <= step
        ]
        ends += [t.step_end_s[s.step] for s in plan.streamed if s.write and s.buffer == buffer and s.step < step]
        return min(ends)

    return copied_s


def _check_places(program: Program, plan: Plan, t: Timeline, slack: float) -> None:
    """No two things lie at one address at one time. Within one step, the phases of the plan decide."""
    moves = {
        int(i): (a, b)
        for kind, i, a, b in zip(t.jobs.kind, t.jobs.step, t.jobs.start_s, t.jobs.end_s, strict=True)
        if kind == JobKind.MOVE
    }
    held = []  # (ticks, address, top, start_s, [(end_s, step or move that ends it)], what starts it)
    for k, s in enumerate(plan.segments):
        top = s.address + program.buffers[s.buffer].size_bytes
        start_s, starter, ends = 0.0, None, []
        step, phase = divmod(s.start, PHASES_PER_STEP)
        if phase == Phase.COMPUTE:
            start_s, starter = t.step_start_s[step], step
            ends.append((t.step_end_s[step], step))
        for j, x in enumerate(plan.transfers):
            if x.segment == k:
                ends.append((t.transfer_end_s[j], None))
                if x.kind.is_read:
                    start_s = t.transfer_start_s[j]
        for m in plan.moves:
            if m.buffer == s.buffer and PHASES_PER_STEP * m.step == s.start and m.to_address == s.address:
                start_s, starter = moves[m.step][0], ("move", m.step)
            if m.buffer == s.buffer and PHASES_PER_STEP * m.step == s.end and m.from_address == s.address:
                ends.append((moves[m.step][1], ("move", m.step)))
        for i, step_of in enumerate(program.steps):
            if s.buffer in step_of.reads and s.start <= PHASES_PER_STEP * i < s.end:
                ends.append((t.step_end_s[i], i))
        held.append(((s.start, s.end), s.address, top, start_s, ends, starter))
    for x in plan.scratch:
        held.append(
            ((x.start, x.end), x.address, x.address + x.size_bytes, t.step_start_s[x.step],
             [(t.step_end_s[x.step], x.step)], x.step)
        )  # fmt: skip
    held.sort(key=lambda h: h[0])
    for a, (_, address, top, _, ends, _) in enumerate(held):
        for _, other_address, other_top, start_s, _, starter in held[a + 1 :]:
            if max(address, other_address) < min(top, other_top):
                left_s = max((end_s for end_s, by in ends if by is None or by != starter), default=0.0)
                assert left_s <= start_s + slack


def _check_units(machine: Target, t: Timeline, slack: float) -> None:
    for core in range(machine.cores):
        own = sorted((t.step_start_s[i], t.step_end_s[i]) for i in range(len(t.step_core)) if t.step_core[i] == core)
        assert all(b[0] >= a[1] - slack for a, b in itertools.pairwise(own))
    assert all(0 <= core < machine.cores for core in t.step_core)


def _check_channels(machine: Target, t: Timeline, slack: float) -> None:
    dma = [j for j, k in enumerate(t.jobs.kind) if k < JobKind.MOVE and t.jobs.size_bytes[j]]
    reads = [j for j in dma if JobKind(t.jobs.kind[j]).is_read]
    writes = [j for j in dma if not JobKind(t.jobs.kind[j]).is_read]
    classes = [(reads, machine.dma_read_channels), (writes, machine.dma_write_channels)]
    if machine.dma_shared_channels:
        classes = [(dma, machine.dma_shared_channels)]
    if machine.dram_outstanding is not None:
        classes.append((dma, machine.dram_outstanding))
    for jobs, most in classes:
        changes = [(t.jobs.start_s[j] + slack, 1) for j in jobs] + [(t.jobs.end_s[j] - slack, -1) for j in jobs]
        changes = [c for j in jobs if t.jobs.end_s[j] - t.jobs.start_s[j] > 2 * slack
                   for c in ((t.jobs.start_s[j] + slack, 1), (t.jobs.end_s[j] - slack, -1))]  # fmt: skip
        in_flight = 0
        for _, change in sorted(changes):
            in_flight += change
            assert in_flight <= most
