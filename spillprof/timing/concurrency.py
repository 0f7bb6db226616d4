"""Dependences that several compute units add to the work of a plan. With one unit the step order implies them all.

- *Data*: a step, a write to DRAM or a move that uses a buffer in a segment follows what provided it there: the step
  that wrote it, the read that filled the segment, or a move.
- *Addresses*: what fills a range follows all users of its previous contents: the steps that wrote or read them, their
  writes to DRAM, their moves. So every legal plan stays legal, whichever steps run at the same time.
- *Shared areas*: one step at a time uses the weight staging area, and one the shared workspace block, in plan order.
  The staging area is refilled for the next such step from the start of the one before on.
- *Turn*: a step that streams while it runs starts after all steps before it have started (see ``work``).
"""

from bisect import bisect_right
from heapq import merge
from itertools import pairwise

from spillprof.ir.plan import Segment
from spillprof.ir.program import PHASES_PER_STEP, Phase
from spillprof.ir.timeline import JobKind
from spillprof.timing.addresses import AddressMap
from spillprof.timing.work import WorkBuilder

_NOBODY = -1


def add_concurrency(builder: WorkBuilder) -> None:
    """Adds to the builder's finished work the dependences between steps that may run at the same time."""
    users = _Users(builder)
    for provider, own in zip(users.provider, users.of_segment, strict=True):
        for node in own:
            if provider not in (_NOBODY, node):
                builder.follow(node, provider)
    _reuse_addresses(builder, users)
    _share_areas(builder)


class _Users:
    """The node that provides the buffer of each segment, and all nodes that use it there, the provider included."""

    def __init__(self, builder: WorkBuilder) -> None:
        program, plan = builder.program, builder.plan
        segments = plan.segments
        written_at = {b: i for i, step in enumerate(program.steps) for b in step.writes}
        moved_to = {(m.buffer, PHASES_PER_STEP * m.step, m.to_address): builder.move_node[m.step] for m in plan.moves}
        filled = {t.segment: builder.transfer_node[k] for k, t in enumerate(plan.transfers) if t.kind.is_read}
        self.provider = [_NOBODY] * len(segments)
        self.of_segment: list[dict[int, None]] = [{} for _ in segments]
        own: dict[int, list[int]] = {}
        for k in sorted(range(len(segments)), key=lambda k: segments[k].start):
            s = segments[k]
            own.setdefault(s.buffer, []).append(k)
            if k in filled:
                self.provider[k] = filled[k]
            elif (s.buffer, s.start, s.address) in moved_to:
                self.provider[k] = moved_to[s.buffer, s.start, s.address]
            elif s.start == PHASES_PER_STEP * written_at.get(s.buffer, _NOBODY) + Phase.COMPUTE:
                self.provider[k] = written_at[s.buffer]
            if self.provider[k] != _NOBODY:
                self.of_segment[k][self.provider[k]] = None

        def covering(buffer: int, tick: int) -> int | None:
            mine = own.get(buffer, ())
            at = bisect_right(mine, tick, key=lambda k: segments[k].start) if mine else 0
            return mine[at - 1] if at and segments[mine[at - 1]].end > tick else None

        for i, step in enumerate(program.steps):
            for b in step.reads:
                place = covering(b, PHASES_PER_STEP * i)
                if place is not None:
                    self.of_segment[place][i] = None
        for t, transfer in enumerate(plan.transfers):
            if not transfer.kind.is_read:
                self.of_segment[transfer.segment][builder.transfer_node[t]] = None
        for m in plan.moves:
            place = covering(m.buffer, PHASES_PER_STEP * m.step - 1)
            if place is not None:
                self.of_segment[place][builder.move_node[m.step]] = None


def _reuse_addresses(builder: WorkBuilder, users: _Users) -> None:
    """A new owner of a range follows the users of its previous contents; several users are joined in one node."""
    plan, sizes = builder.plan, [b.size_bytes for b in builder.program.buffers]
    n = len(plan.segments)
    scratch_start = sorted(range(len(plan.scratch)), key=lambda k: plan.scratch[k].start)
    comers = merge(
        ((s.start, k, s.address, sizes[s.buffer]) for s, k in _by_start(plan.segments)),
        ((plan.scratch[k].start, n + k, plan.scratch[k].address, plan.scratch[k].size_bytes) for k in scratch_start),
    )
    owners = AddressMap()
    joints: dict[int, int] = {}
    for _, k, address, size in comers:
        comer = users.provider[k] if k < n else plan.scratch[k - n].step
        for owner in owners.pop(address, size):
            own = users.of_segment[owner] if owner < n else {plan.scratch[owner - n].step: None}
            if comer == _NOBODY:
                continue  # it is there from the start
            if comer in own or len(own) == 1:
                builder.follow(comer, *(node for node in own if node != comer))
            elif own:
                if owner not in joints:
                    joints[owner] = builder.job(JobKind.JOINT, 0, -1)
                    builder.follow(joints[owner], *own)
                builder.follow(comer, joints[owner])
        owners.put(address, size, k)


def _by_start(segments: tuple[Segment, ...]) -> list[tuple[Segment, int]]:
    order = sorted(range(len(segments)), key=lambda k: (segments[k].start, k))
    return [(segments[k], k) for k in order]


def _share_areas(builder: WorkBuilder) -> None:
    steps = builder.program.steps
    for before, after in pairwise(i for i, step in enumerate(steps) if step.weight_stream_bytes):
        builder.follow(after, before)
    for before, after in pairwise(i for i, step in enumerate(steps) if step.shared_workspace_bytes):
        builder.follow(after, before)
