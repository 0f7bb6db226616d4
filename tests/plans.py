"""Plans of tiny programs: made and verified, and read back by buffer name."""

from programs import target

from spillprof.engine.run import terms_of
from spillprof.ir.plan import Plan, Traffic
from spillprof.ir.program import Program
from spillprof.planning.options import PlanningOptions
from spillprof.planning.planner import make_plan
from spillprof.verify import verify


def planned(p: Program, strategy: str = "lru", **options: object) -> Plan:
    """The plan, which must be legal."""
    switches = PlanningOptions(**options)  # type: ignore[arg-type]
    plan = make_plan(p, target(), strategy, switches)
    assert verify(p, plan, terms_of(switches)) == ()
    return plan


def victims(p: Program, plan: Plan, at: int) -> list[str]:
    """Names of the buffers that leave when step ``at`` is about to start, in plan order."""
    return [p.buffers[s.buffer].name for s in plan.spills if s.evict_step == at]


def where(p: Program, plan: Plan, name: str) -> list[tuple[int, int, int]]:
    """(start, end, address) of the buffer's segments."""
    return [(s.start, s.end, s.address) for s in plan.segments if p.buffers[s.buffer].name == name]


def transfers(p: Program, plan: Plan) -> list[tuple[str, str, int]]:
    """(kind, buffer, issue step) in issue order."""
    return [(str(t.kind), p.buffers[t.buffer].name, t.issue_step) for t in plan.transfers]


def traffic(**fields: int) -> Traffic:
    zero = dict.fromkeys(
        ("compulsory_read_bytes", "compulsory_write_bytes", "spill_write_bytes", "spill_read_bytes",
         "streamed_read_bytes", "streamed_write_bytes", "moved_bytes"), 0,
    )  # fmt: skip
    return Traffic(**{**zero, **fields})
