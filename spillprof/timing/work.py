"""What a plan makes the machine do, and what waits for what: steps, DMA jobs and compaction moves.

Each is a node: step ``i`` is node ``i``, job ``j`` is node ``n_steps + j``. Jobs are what DMA does, the moves of a
step, and joints: points where several things must be over. The graph says nothing about time; ``event_loop`` plays it.

Two kinds of waiting:
  - a node starts when all nodes that it follows have ended (``waits``, ``followers``);
  - the *agenda* is issued in its order: the write transfers of step ``i``, its moves, its read transfers, and the part
    of the next step's weights that the staging area holds. An entry says how many of the steps from the front must
    have ended, but for as many as there are further cores, and how many must have started. A channel serves what was
    issued in that order.

What a step streams while it runs is issued when it starts, and follows nothing else. With several cores, such a step
starts after all steps before it have started, and the agenda goes on after it has.

No deadlock. Number what is on the agenda and the steps in plan order. Everything follows nodes of smaller numbers
only. Take the first one that is not over; all before it are.
  - A job was issued, since all steps before it have ended. Of what is ahead of it in its queue, entries of the agenda
    have smaller numbers and are over, and streams wait for a channel alone. So it gets a channel.
  - A step that runs has its streams in a queue behind entries with smaller numbers alone: they get a channel.
  - A step that does not run waits for a unit at most. A step that streams cannot be ahead of it; others end by
    themselves. So a unit becomes free.
"""

from dataclasses import dataclass, field

from spillprof.ir.timeline import JobKind


@dataclass(slots=True, kw_only=True)
class Work:
    """The nodes of a plan and what they wait for. Filled by ``work_of``, then read only."""

    n_steps: int
    cores: int
    jobs: list[tuple[JobKind, int, int, int]] = field(default_factory=list)  # kind, bytes, step, transfer or -1
    waits: list[int] = field(default_factory=list)  # by node: how many nodes it follows, + 1 if it waits for its turn
    followers: dict[int, list[int]] = field(default_factory=dict)  # node -> nodes that follow its end
    agenda: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # steps that have ended, started; node to issue, or -1
    in_turn: list[int] = field(default_factory=list)  # steps that start after all before them have started
    streams: dict[int, list[int]] = field(default_factory=dict)  # step -> jobs issued when it starts

    def uses_dma(self, node: int) -> bool:
        """Whether the node takes a DMA channel. A transfer of no bytes does not."""
        if node < self.n_steps:
            return False
        kind, nbytes, _, _ = self.jobs[node - self.n_steps]
        return kind not in (JobKind.MOVE, JobKind.JOINT) and nbytes > 0
