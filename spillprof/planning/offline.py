"""Plans whose gaps were chosen beforehand: every residency block gets its address offline, then the plan is assembled.

First the blocks are laid out like any static placement (``planning.layout``): greedy orders, interval colouring, a few
runs of beam search. Where no layout fits, blocks are packed one by one in several orders, and a block that finds no
hole makes something else spill. Then the order learns: chains that needed repair come first in the next round, as in
"squeaky wheel" optimization (Joslin and Clements, JAIR 10, 1999), and the round that spills least wins. Where addresses
chosen online do as well, they are taken.
"""

from collections.abc import Mapping, Sequence, Set

from spillprof.ir.layout_problem import LayoutBuffer, LayoutProblem
from spillprof.ir.plan import Plan
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Program
from spillprof.ir.target import Target
from spillprof.planning.blocks import BlockBuilder, ResidencyBlock
from spillprof.planning.ejection.packer import EjectionEffort, EjectionPacker
from spillprof.planning.free_list import Fit, FreeList
from spillprof.planning.gaps import GapKey, GapOption, forced_gaps
from spillprof.planning.layout.search import LayoutEffort, lay_out, most_live_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.packing import IN_TIME_ORDER, PACKING_ORDERS, Packing, pack
from spillprof.planning.placements import PERFECT, Owner, PlacementPolicy, make_placement
from spillprof.planning.run_facts import OffChip, SimulationSpec
from spillprof.planning.steady import run_to_steady_state
from spillprof.planning.strategies import cost
from spillprof.planning.traffic import count_traffic, transfer_costs

MANY_BLOCKS = 6_000
"""More blocks are packed in order of time only: the other orders compare all pairs of blocks."""

_LAID_OUT = 2_000  # blocks: more are not laid out as a whole
_EFFORT = LayoutEffort(runs=6, work=400_000)  # tenths of a second: longer beam search seldom finds more
_ROUND_BUDGET = 2_000  # blocks x rounds in which the order learns
_MOST_ROUNDS = 8


def plan_offline(
    program: Program,
    target: Target,
    chosen: list[tuple[GapOption, int]],
    strategy: str,
    options: PlanningOptions,
) -> Plan:
    """The plan that spends the chosen gaps off-chip, and as few more as placement needs."""
    off = {gap.key: step for gap, step in chosen}
    unplaced = Packing(off=off, complete=False)  # no addresses: placement chooses each online
    online = _assemble(program, target, off, unplaced, strategy, options)
    if program.capacity_bytes is None or _spills_no_more(online, off.keys() | forced_gaps(program).keys()):
        return online
    packings = best_packings(program, BlockBuilder(program, options), off)
    plans = [online, *(_assemble(program, target, off, packing, strategy, options) for packing in packings)]
    return min(plans, key=lambda plan: _plan_preference(program, plan))


def plan_by_ejection(
    program: Program,
    target: Target,
    chosen: list[tuple[GapOption, int]],
    start: list[tuple[GapOption, int]],
    strategy: str,
    options: PlanningOptions,
    effort: EjectionEffort,
) -> tuple[Plan, bool]:
    """The plan that ejection search packs, and whether it ended within its budget.

    ``start``: the gaps that are off-chip at first. ``chosen``: those that would suffice if only bytes counted; all
    others count as fragmentation spills.
    """
    given = {gap.key: step for gap, step in start}
    builder = BlockBuilder(program, options)
    cost_of_moves = float("inf") if options.placement == PERFECT else move_cost(target)
    packer = EjectionPacker(program, builder, options, given, cost_of_moves)
    if not packer.complete:  # blocks kept ejecting each other
        packer = EjectionPacker(program, builder, options, given)
    in_budget = packer.improve(effort)
    off = {gap.key: step for gap, step in chosen}
    return _assemble(program, target, off, packer.packing(), strategy, options), in_budget


def move_cost(target: Target) -> float:
    """DRAM bytes that take as long as one byte moved inside SRAM, which is read and written there."""
    return 2 * target.dram_read_bytes_per_s / target.sram_bytes_per_s


def _spills_no_more(plan: Plan, chosen: Set[GapKey]) -> bool:
    """Whether the plan spills only chosen gaps and moves nothing: then no plan that spills these is better."""
    return not plan.moves and all((spill.buffer, spill.last_use_step) in chosen for spill in plan.spills)


def _plan_preference(program: Program, plan: Plan) -> tuple[int, int, int]:
    traffic = count_traffic(program, plan)
    return traffic.spill_bytes, traffic.moved_bytes, len(plan.spills)


def _assemble(
    program: Program,
    target: Target,
    chosen: Mapping[GapKey, int],
    packing: Packing,
    strategy: str,
    options: PlanningOptions,
) -> Plan:
    """Simulate the steps with the given addresses. Blocks without one are placed and, if need be, spilled online."""
    spec = SimulationSpec(
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
    return run_to_steady_state(spec, lambda: _GivenAddresses(program, packing, options), weights)[0]


class _GivenAddresses(PlacementPolicy):
    """Placement by lookup of the packed addresses; falls back to online placement where one is missing or taken."""

    def __init__(self, program: Program, packing: Packing, options: PlanningOptions) -> None:
        self._given = {owner: list(addresses) for owner, addresses in packing.addresses.items()}
        self._fallback = make_placement(options.placement, program)

    def choose(self, free: FreeList, size: int, owner: Owner) -> int | None:
        """The address packed for the owner, else the fallback's choice."""
        given = self._given.get(owner)
        if given and free.is_free(given[0], size):
            return given.pop(0)
        return self._fallback.choose(free, size, owner)

    def freed(self, address: int, size: int) -> None:
        """Forwarded to the fallback."""
        self._fallback.freed(address, size)


def best_packings(program: Program, builder: BlockBuilder, off: dict[GapKey, int]) -> list[Packing]:
    """One or two packings that spill the gaps in ``off`` and as few more as they could.

    Which is better shows only when the plans are assembled: some block may have found no place whatever leaves.
    """
    blocks = builder.all_blocks(set(off))
    if len(blocks) <= _LAID_OUT:
        addresses = _laid_out(program, blocks)
        if addresses is not None:
            return [Packing(addresses=addresses, off=dict(off))]
    tries = [(IN_TIME_ORDER, Fit.BEST)]
    if len(blocks) <= MANY_BLOCKS:
        tries += [(order, Fit.FIRST) for order in PACKING_ORDERS]
    packings = [(pack(program, builder, off, order, fit), order, fit) for order, fit in tries]
    first, order, fit = min(packings, key=lambda found: _preference(found[0]))
    squeaks: dict[int, int] = {}
    best = last = first
    for _ in range(min(_MOST_ROUNDS, _ROUND_BUDGET // max(len(blocks), 1))):
        for chain in last.repaired:
            squeaks[chain] = squeaks.get(chain, 0) + 1
        last = pack(program, builder, off, order, fit, squeaks)
        best = min(best, last, key=_preference)
        if not best.extra_bytes and best.complete:
            break
    return [first] if best is first else [first, best]


def _preference(packing: Packing) -> tuple[bool, int]:
    return not packing.complete, packing.extra_bytes


def _laid_out(program: Program, blocks: Sequence[ResidencyBlock]) -> dict[Owner, list[int]] | None:
    """Addresses at which all blocks fit; None if none were found.

    A block that stays for the next inference counts as live throughout: a little more than it needs.
    """
    if program.capacity_bytes is None:
        raise ValueError("infinite memory needs no packing")
    end = PHASES_PER_STEP * len(program.steps)
    problem = LayoutProblem(
        buffers=tuple(
            LayoutBuffer(
                name=str(k),
                lower=block.start if len(block.ticks) == 1 else 0,
                upper=block.ticks[-1][1] if len(block.ticks) == 1 else end,
                size_bytes=block.size_bytes,
            )
            for k, block in enumerate(blocks)
        ),
    )
    pool_bytes = program.capacity_bytes - program.reserved_bytes
    if most_live_bytes(problem) > pool_bytes:
        return None
    layout = lay_out(problem, pool_bytes, _EFFORT)
    if layout.peak_bytes > pool_bytes:
        return None
    addresses: dict[Owner, list[int]] = {}
    for block, offset in zip(blocks, layout.offsets, strict=True):
        for owner in block.owners:
            addresses.setdefault(owner, []).append(program.reserved_bytes + offset)
    return addresses
