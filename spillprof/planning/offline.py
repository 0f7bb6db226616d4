"""Plans whose gaps were chosen beforehand: all addresses are given offline, then the plan is assembled.

The chosen gaps say what is off-chip and when; packing gives every residency block an address, and spills as little as
it can beyond the chosen gaps. Where addresses given step by step do as well, they are taken.
"""

from collections.abc import Mapping, Set

from spillprof.ir.plan import Plan
from spillprof.ir.program import BufferKind, Program
from spillprof.ir.target import Target
from spillprof.planning.blocks import BlockBuilder
from spillprof.planning.costs import transfer_costs
from spillprof.planning.exchange.pack import Effort, Exchange
from spillprof.planning.free_list import FreeList
from spillprof.planning.gaps import Gap, GapOption, forced_gaps
from spillprof.planning.offline_packing import best_packings
from spillprof.planning.options import PERFECT, PlanningOptions
from spillprof.planning.packing import Packing
from spillprof.planning.placement import make_placement
from spillprof.planning.placement.owner import Owner
from spillprof.planning.setting import OffChip, Setting
from spillprof.planning.steady import run_to_steady_state
from spillprof.planning.strategies.online import cost
from spillprof.planning.traffic import count_traffic


def plan_offline(
    program: Program,
    target: Target,
    chosen: list[tuple[GapOption, int]],
    strategy: str,
    options: PlanningOptions,
) -> Plan:
    """The plan that keeps exactly the chosen gaps off-chip, and as few more as placement needs."""
    off: dict[Gap, int] = {(gap.buffer, gap.last_use): step for gap, step in chosen}
    unplaced = Packing(off=off, complete=False)  # no addresses given: each is chosen when it is asked for
    online = _assemble(program, target, off, unplaced, strategy, options)
    if program.capacity_bytes is None or _spills_no_more(online, off.keys() | forced_gaps(program).keys()):
        return online
    packings = best_packings(program, BlockBuilder(program, options), off)
    plans = [online, *(_assemble(program, target, off, packing, strategy, options) for packing in packings)]
    return min(plans, key=lambda plan: _preference(program, plan))


def plan_exchanged(
    program: Program,
    target: Target,
    chosen: list[tuple[GapOption, int]],
    start: list[tuple[GapOption, int]],
    strategy: str,
    options: PlanningOptions,
    effort: Effort,
) -> tuple[Plan, bool]:
    """The plan that is found by exchanging gaps and moving blocks until all has an address; was the effort enough?

    ``start``: the gaps to begin with. ``chosen``: those that would be spent if addresses were of no matter.
    """
    given = {(gap.buffer, gap.last_use): step for gap, step in start}
    builder = BlockBuilder(program, options)
    cost_of_moves = float("inf") if options.placement == PERFECT else move_cost(target)
    exchange = Exchange(program, builder, options, given, cost_of_moves)
    if not exchange.complete:  # one block has driven the other out again and again
        exchange = Exchange(program, builder, options, given)
    in_budget = exchange.improve(effort)
    off: dict[Gap, int] = {(gap.buffer, gap.last_use): step for gap, step in chosen}
    return _assemble(program, target, off, exchange.packing(), strategy, options), in_budget


def move_cost(target: Target) -> float:
    """Of a byte moved inside SRAM, where it is read and written, in bytes of DRAM traffic that take as long."""
    return 2 * target.dram_read_bytes_per_s / target.sram_bytes_per_s


def _spills_no_more(plan: Plan, chosen: Set[Gap]) -> bool:
    """Whether the plan spills no gap but the chosen ones, and moves nothing: no other that spills these is better."""
    return not plan.moves and all((spill.buffer, spill.last_use_step) in chosen for spill in plan.spills)


def _preference(program: Program, plan: Plan) -> tuple[int, int, int]:
    traffic = count_traffic(program, plan)
    return traffic.spill_bytes, traffic.moved_bytes, len(plan.spills)


def _assemble(
    program: Program,
    target: Target,
    chosen: Mapping[Gap, int],
    packing: Packing,
    strategy: str,
    options: PlanningOptions,
) -> Plan:
    """Walk the steps with the given addresses. What could not be placed is placed and, if need be, spilled online."""
    setting = Setting(
        program=program,
        strategy=strategy,
        rule=cost,
        costs=transfer_costs(program, target),
        options=options,
        off_chip={
            **{gap: OffChip(step, fragmentation=False) for gap, step in forced_gaps(program).items()},
            **{gap: OffChip(step, gap not in chosen) for gap, step in packing.off.items()},
        },
        moves=packing.moves,
    )
    weights = {
        b.index: packing.addresses[b.index, 0][0]
        for b in program.buffers
        if b.kind is BufferKind.WEIGHT and (b.index, 0) in packing.addresses
    }
    return run_to_steady_state(setting, lambda: _GivenAddresses(program, packing, options), weights)[0]


class _GivenAddresses:
    """Placement that looks addresses up; best fit where none was given or it is taken."""

    def __init__(self, program: Program, packing: Packing, options: PlanningOptions) -> None:
        self._given = {owner: list(addresses) for owner, addresses in packing.addresses.items()}
        self._fallback = make_placement(options.placement, program)

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The address given to the owner, else the fallback's choice."""
        given = self._given.get(owner)
        if given and free.is_free(given[0], size):
            return given.pop(0)
        return self._fallback.choose(free, size, owner)

    def freed(self, address: int, size: int) -> None:
        """Pass it on."""
        self._fallback.freed(address, size)
