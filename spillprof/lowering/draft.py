"""Draft: a Graph on its way to a Program. Every pass of lowering takes a Draft and returns one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spillprof.ir.control_flow import ControlFlow
from spillprof.ir.fast_init import fast_init
from spillprof.ir.graph import Graph, Operator
from spillprof.lowering.blocks import Block


@fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Operators that will run as one step, and the tensors that cross its border."""

    lead: Operator  # gives the step its name and type
    members: tuple[Operator, ...]  # all that run in it, in order
    inputs: tuple[str, ...]  # those present, in operand order, captures and what it only holds last; may repeat
    outputs: tuple[str, ...]  # those present

    @property
    def operands(self) -> tuple[str, ...]:
        """Those of ``inputs`` that it reads."""
        held = len(self.lead.holds)
        return self.inputs[:-held] if held else self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Scheduled tasks over the tensors of a graph."""

    graph: Graph
    tasks: tuple[Task, ...]  # topological order
    weights: Mapping[str, int]  # tensors known before the run: payload bytes as they lie in DRAM
    views: Mapping[str, str] = field(default_factory=dict)  # view: the tensor whose storage it shares, never a view
    strided: frozenset[str] = frozenset()  # views that are a part of their storage, or another order of it
    blocks: Mapping[str, Block] = field(default_factory=dict)  # control flow that stays one step, by operator name
    control_flow: tuple[ControlFlow, ...] = ()
    folded_operators: int = 0
    removed_operators: int = 0
    notes: tuple[str, ...] = ()

    def storage(self, tensor: str) -> str:
        """The tensor that was written first into the storage of ``tensor``."""
        return self.views.get(tensor, tensor)

    def has_some_of(self, family: frozenset[str]) -> bool:
        """Whether an operator of one of these types leads a task, in whatever domain."""
        return not family.isdisjoint({task.lead.op_type for task in self.tasks})

    def is_weight(self, tensor: str) -> bool:
        """Whether the tensor is known before the run."""
        return self.views.get(tensor, tensor) in self.weights


def task_of(op: Operator) -> Task:
    """A task of one operator."""
    inputs = (*op.inputs, *op.captures, *op.holds)
    return Task(lead=op, members=(op,), inputs=_present(inputs), outputs=_present(op.outputs))


def _present(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, names)) if "" in names else names
