"""Control flow as it was simulated: which branches were taken, how often bodies ran, and what each costs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFact:
    """A branch or a loop's body, by itself: one run of it, all inside of it included."""

    name: str  # "then", "else" or "body"
    runs: int  # each time that the operator is reached; 0 for a branch that is not taken
    operators: int
    macs: int
    peak_live_bytes: int  # largest sum of the activations that live for it, payload


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFlow:
    """One If, Loop or Scan."""

    name: str  # of the operator in its own graph
    inside: str  # path of the operators around it; "" at the top
    op_type: str
    trips: str | None  # basis of a loop's trips: "known", "at most", "given" or "assumed"
    is_unfolded: bool  # False: one step, its bodies a workspace of it
    bodies: tuple[BodyFact, ...]
