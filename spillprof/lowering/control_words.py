"""What is said of control flow: facts for the reports, and what was assumed."""

from spillprof.ir.control_flow import BodyFact, ControlFlow
from spillprof.ir.graph import Assumption, Operator, TripBasis
from spillprof.ir.units import format_size
from spillprof.lowering.bodies import Choice, Cost


def role_of(op: Operator, index: int) -> str:
    """What a subgraph is to its operator: "then", "else" or "body"."""
    name = op.subgraph_names[index] if index < len(op.subgraph_names) else ""
    return name.removesuffix("_branch") or f"body {index}"


def fact_of(op: Operator, choice: Choice, prefix: str, *, is_unfolded: bool) -> ControlFlow:
    """The operator for the reports; ``prefix`` is the path of those around it."""
    return ControlFlow(
        name=op.name,
        inside=prefix.removesuffix("/"),
        op_type=op.op_type,
        trips=None if op.op_type == "If" else str(choice.trips.basis),
        is_unfolded=is_unfolded,
        bodies=tuple(
            BodyFact(
                name=role_of(op, index),
                runs=_runs(choice, index),
                operators=cost.operators,
                macs=cost.macs,
                peak_live_bytes=cost.peak_live_bytes,
            )
            for index, cost in enumerate(choice.costs)
        ),
    )


def assumption_of(op: Operator, choice: Choice, *, is_unfolded: bool) -> Assumption | None:
    """What is taken as true so that the operator can be simulated; None if nothing is."""
    if op.op_type == "If":
        words = _branch(op, choice) if len(op.subgraphs) > 1 else ""
    else:
        words = _trips(op, choice)
        if not is_unfolded and choice.trips.count > 1:
            words += f"{'; ' if words else ''}its {choice.trips.count:,} trips are one step, weights fetched once"
    return Assumption(what=f"{op.op_type} '{op.name}': {words}", count=1) if words else None


def _branch(op: Operator, choice: Choice) -> str:
    sizes = [f"{role_of(op, i)} ({_size(cost)})" for i, cost in enumerate(choice.costs)]
    taken = sizes.pop(choice.taken[0])
    return f"{taken} is taken, not {', '.join(sizes)}, which needs no more memory (--branch {op.name}=then or else)"


def _trips(op: Operator, choice: Choice) -> str:
    match choice.trips.basis:
        case TripBasis.ASSUMED:
            count = choice.trips.count
            return f"taken to run {count:,} times, for the model does not say how often (--trips {op.name}=N)"
        case TripBasis.AT_MOST:
            count = choice.trips.count
            return f"taken to run all of its {count:,} trips, and may stop earlier (--trips {op.name}=N)"
        case _:
            return ""


def _size(cost: Cost) -> str:
    plural = "" if cost.operators == 1 else "s"
    return f"{cost.operators:,} operator{plural}, {cost.macs:,} MACs, {format_size(cost.peak_live_bytes)} live"


def _runs(choice: Choice, index: int) -> int:
    if index not in choice.taken:
        return 0
    if index < choice.taken[-1] or len(choice.taken) > choice.trips.count:
        return int(index < choice.trips.count)
    return choice.trips.count - len(choice.taken) + 1
