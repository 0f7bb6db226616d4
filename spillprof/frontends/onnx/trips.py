"""Trip counts of loops, from the model or the user."""

from spillprof.frontends.onnx.inference import place
from spillprof.frontends.onnx.node import Body, Node
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import Session
from spillprof.frontends.onnx.settings import HINT
from spillprof.ir.errors import ShapeError, UsageError
from spillprof.ir.graph import ASSUMED_TRIPS, TripBasis, Trips


def trips_of(node: Node, body: Body, scope: Scope, session: Session) -> Trips:
    """The trip count of a Loop: from the model, else from the user, else assumed."""
    count, is_exact = _trip_count(node, body, scope)
    told = session.runs.trip_count(node.name)
    if told is not None and count is not None and (told > count or (is_exact and told != count)):
        if session.runs.is_meant(node.name):
            raise UsageError(
                f"the Loop runs {'exactly' if is_exact else 'at most'} {count:,} times",
                where=(place(node),),
                hint=f"drop --trips {node.name}={told}",
            )
        told = None  # given for all loops
    if told is not None and not is_exact:
        session.tally.note(f"Loop '{node.name}': {told:,} trips, as told")
        return Trips(count=told, basis=TripBasis.GIVEN)
    if count is None:
        return Trips(count=ASSUMED_TRIPS, basis=TripBasis.ASSUMED)
    return Trips(count=count, basis=TripBasis.KNOWN if is_exact else TripBasis.AT_MOST)


def _trip_count(node: Node, body: Body, scope: Scope) -> tuple[int | None, bool]:
    """The largest trip count (None: unknown), and whether it is exact."""
    limit = scope.value_of(node.inputs[0]) if node.inputs and node.inputs[0] else None
    start = scope.value_of(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
    if start is not None and start.size == 1 and not bool(start.reshape(-1)[0]):
        return 0, True
    if limit is None or limit.size != 1:
        return None, False
    if limit.dtype.kind not in "iu":
        what = f"the number of trips is of type {limit.dtype}, but must be an integer"
        raise ShapeError(what, where=(place(node),), hint=HINT)
    has_condition = len(node.inputs) > 1 and bool(node.inputs[1])
    stops = body.outputs[0]
    always = body.constants.get(stops)
    passes_on = any(
        n.op_type == "Identity" and stops in n.outputs and n.inputs == (body.inputs[1][0],) for n in body.nodes
    )
    goes_on = stops == body.inputs[1][0] or passes_on
    if always is not None and always.value is not None and always.value.size == 1:
        goes_on = bool(always.value.reshape(-1)[0])
    is_exact = (not has_condition or start is not None) and (goes_on or not has_condition)
    return max(int(limit.reshape(-1)[0]), 0), is_exact and not scope.is_bounded(node.inputs[0])
