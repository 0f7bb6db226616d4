"""Checks that a certificate proves its lower bound, by integer arithmetic on the program alone.

Every plan leaves some gaps off-chip. In each row, the gaps outside of the set ``apart`` must cover the remaining need,
and each counts for at most that need: sum of min(size, need) y >= need (a knapsack cover). The weighted rows demand a
total. A gap's charge is paid by its own reload first, then by the one write that all gaps of its buffer share; charges
beyond both are subtracted. The remainder is a lower bound for every plan (Lagrangian duality).

An operator that is over capacity and has known loops may pass operands in tiles (``verify.open_steps``). For those that
do not fit, the certificate states the least footprint and the least further traffic of all their tilings; that is taken
as stated, since no tilings are enumerated here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from spillprof.ir.certificate import CERTIFICATE_SCHEMA, Certificate, CertificateRow
from spillprof.ir.plan_json import buffer_names
from spillprof.ir.program import PHASES_PER_STEP, BufferKind, Phase, Program, Step
from spillprof.verify.open_steps import designated_gaps, fewest_read_bytes, may_choose_tiles, open_operands
from spillprof.verify.rules import Terms

_Gap = tuple[int, int]
"""(buffer, step of its last use before the gap)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverFacts:
    """Gaps that cover a step where the pool lacks bytes, and what spilling them costs."""

    lacking_bytes: list[int]  # by step, if no gap is spent off-chip; rounded up; 0 or less where all fits
    spanning: list[list[_Gap]]  # by step
    size_bytes: dict[_Gap, int]
    own_bytes: dict[_Gap, int]  # that each gap costs
    shared_bytes: dict[int, int]  # that a buffer costs once, however many of its gaps are spent
    forced_bytes: int  # that move whatever is spilled
    unstated: frozenset[int] = frozenset()  # steps for which tilings are stated, though there are none to choose


def check_certificate(program: Program, certificate: Certificate, terms: Terms | None = None) -> tuple[str, ...]:
    """What is wrong with the certificate of a fitted program; empty if it proves what it claims.

    ``terms``: the options that it must hold for; None: those that it states itself.
    """
    c = certificate
    claims: tuple[tuple[str, object, object], ...] = (
        ("schema", c.schema, CERTIFICATE_SCHEMA),
        ("steps", c.steps, len(program.steps)),
        ("capacity_bytes", c.capacity_bytes, program.capacity_bytes),
        ("reserved_bytes", c.reserved_bytes, program.reserved_bytes),
    )
    wrong = [f"{what} is {said}, the program's is {own}" for what, said, own in claims if said != own]
    if terms is not None:
        asked = (
            ("inputs_resident", c.inputs_resident, terms.inputs_resident),
            ("steady_state", c.steady_state, not terms.cold),
            ("writes_always", c.writes_always, terms.rewrites),
        )
        wrong += [f"{what} is {_word(said)}, the options say {_word(own)}" for what, said, own in asked if said != own]
    if c.scale < 1:
        wrong.append(f"scale is {c.scale}, must be positive")
    if wrong:
        return tuple(wrong)
    stated = {tiled.step: (tiled.footprint_bytes, tiled.excess_bytes) for tiled in c.tiled}
    if len(stated) < len(c.tiled) or any(min(tiled) < 0 for tiled in stated.values()):
        return ("tiled: a step is stated twice, or has less than 0 bytes",)
    facts = cover_facts(
        program,
        inputs_resident=c.inputs_resident,
        steady_state=c.steady_state,
        writes_always=c.writes_always,
        stated=stated,
    )
    if facts.unstated:
        return (f"tiled: step {min(facts.unstated)} fits without tiles, or its loops are not known",)
    index = {name: b for b, name in enumerate(buffer_names(program))}
    rows = []
    for k, row in enumerate(c.rows):
        apart = {(index.get(name, -1), after) for name, after in zip(row.apart, row.apart_after, strict=False)}
        problem = _problem(facts, row, apart)
        if problem:
            return (f"row {k}: {problem}",)
        rows.append((row, apart))
    proven = _proven_bytes(facts, rows, c.scale)
    if proven < c.spill_bytes_lower:
        return (f"the rows prove {proven:,} bytes, not {c.spill_bytes_lower:,}",)
    return ()


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _problem(facts: CoverFacts, row: CertificateRow, apart: set[_Gap]) -> str:
    if row.weight < 0:
        return f"weight {row.weight} is negative"
    if not 0 <= row.step < len(facts.spanning):
        return f"there is no step {row.step}"
    if not len(apart) == len(row.apart) == len(row.apart_after):
        return "a gap is set apart twice, or not given as a buffer and a step"
    if not apart.issubset(facts.spanning[row.step]):
        return f"what is set apart are no gaps over step {row.step}"
    need = facts.lacking_bytes[row.step] - sum(facts.size_bytes[gap] for gap in apart)
    return "" if need >= row.need_bytes > 0 else f"need_bytes is {row.need_bytes}, the program lacks {need}"


def _proven_bytes(facts: CoverFacts, rows: list[tuple[CertificateRow, set[_Gap]]], scale: int) -> int:
    """The proof itself."""
    size, total = facts.size_bytes, 0
    charged = dict.fromkeys(size, 0)
    for row, apart in rows:
        total += row.weight * row.need_bytes
        for gap in facts.spanning[row.step]:
            if gap not in apart:
                charged[gap] += row.weight * min(size[gap], row.need_bytes)
    beyond: dict[int, int] = {}
    for gap, charge in charged.items():
        beyond[gap[0]] = beyond.get(gap[0], 0) + max(0, charge - scale * facts.own_bytes[gap])
    total -= sum(max(0, charge - scale * facts.shared_bytes[b]) for b, charge in beyond.items())
    # Buffers move whole, so the bound rounds up to the next multiple of the greatest common divisor of the costs.
    unit = gcd(*facts.own_bytes.values(), *facts.shared_bytes.values()) or 1
    return facts.forced_bytes + max(0, -(-total // (scale * unit)) * unit)


def cover_facts(
    program: Program,
    *,
    inputs_resident: bool,
    steady_state: bool,
    writes_always: bool,
    stated: Mapping[int, tuple[int, int]] | None = None,
) -> CoverFacts:
    """The covering facts of a fitted program. ``stated``: least footprint and further bytes of steps in tiles."""
    resident = {b.index for b in program.buffers if inputs_resident and b.kind is BufferKind.INPUT}
    uses = _uses(program)
    pool = (program.capacity_bytes or 0) - program.reserved_bytes
    sizes = [buffer.size_bytes for buffer in program.buffers]
    moved = [buffer.moved_bytes for buffer in program.buffers]
    spanning: list[list[_Gap]] = [[] for _ in program.steps]
    for gap, steps in _gaps(program, uses, resident, steady_state=steady_state):
        for i in steps:
            spanning[i].append(gap)
    standing = _standing_bytes(program, resident)
    least = [_least_bytes(program, step) for step in program.steps]
    lacking = [
        held + needed + sum(sizes[b] for b, _ in over) - pool
        for held, needed, over in zip(standing, least, spanning, strict=True)
    ]
    opened = {i for i, lacks in enumerate(lacking) if lacks > 0 and may_choose_tiles(program.steps[i])}
    tiles = stated or {}
    once: set[int] = set()  # buffers that tiles may have written
    for i in opened:
        free, rest = open_operands(program, i, resident)
        least[i] = rest + (tiles[i][0] if i in tiles else 0)
        once |= free
        for gap in designated_gaps(program, uses, i, free, steady_state=steady_state):
            spanning[i].append(gap)
    if opened:
        lacking = [
            held + needed + sum(sizes[b] for b, _ in over) - pool
            for held, needed, over in zip(standing, least, spanning, strict=True)
        ]
    spanning = [over if lacks > 0 else [] for lacks, over in zip(lacking, spanning, strict=True)]
    gaps = {gap for over in spanning for gap in over}
    unit = gcd(*(sizes[b] for b, _ in gaps)) or 1  # whole buffers go: what lacks is made up for in units
    streamed = {b for step in program.steps for b in (*step.streamed_reads, *step.streamed_writes)}
    wraps = [_wraps(program, b, steady_state=steady_state) for b in range(len(sizes))]
    written = [b.kind is BufferKind.ACTIVATION for b in program.buffers]  # of the rest, DRAM has or gets a copy

    def own_bytes(b: int, p: int) -> int:
        ends = p == uses[b][-1]
        if ends and not wraps[b]:
            back = 0
        else:
            back = fewest_read_bytes(program, uses[b][0] if ends else uses[b][uses[b].index(p) + 1], b)
        return back + moved[b] * (written[b] and writes_always and b not in once)

    def shared_bytes(b: int) -> int:
        alone = writes_always and b not in once
        return moved[b] if written[b] and not alone and b not in streamed else 0

    misfits = {i for i in opened if _demand_bytes(program, program.steps[i]) > pool}
    return CoverFacts(
        lacking_bytes=[-(-lacks // unit) * unit for lacks in lacking],
        spanning=spanning,
        size_bytes={gap: sizes[gap[0]] for gap in gaps},
        own_bytes={(b, p): own_bytes(b, p) for b, p in gaps},
        shared_bytes={b: shared_bytes(b) for b, _ in gaps},
        forced_bytes=sum(_forced_bytes(program, b, uses[b], resident, steady_state=steady_state) for b in streamed)
        + sum(excess for _, excess in tiles.values()),
        unstated=frozenset(tiles.keys() - misfits),
    )


def _uses(program: Program) -> list[list[int]]:
    """Steps that write or read each buffer, ascending, each once."""
    uses: list[list[int]] = [[] for _ in program.buffers]
    for i, step in enumerate(program.steps):
        for b in {*step.reads, *step.writes}:
            uses[b].append(i)
    return uses


def _gaps(
    program: Program, uses: list[list[int]], resident: set[int], *, steady_state: bool
) -> Iterator[tuple[_Gap, list[int]]]:
    """Each gap between two uses that are not streamed, with its steps; that of a persistent weight may wrap.


    A buffer that a later step holds has a last gap, from its last use to that step.
    """
    n = len(program.steps)
    streamed = {(b, i) for i, step in enumerate(program.steps) for b in (*step.streamed_reads, *step.streamed_writes)}
    stay = program.weights_persist  # then weights are in DRAM, whatever holds them
    held = {
        b: i
        for i, step in enumerate(program.steps)
        for b in step.holds
        if not (stay and program.buffers[b].kind is BufferKind.WEIGHT)
    }
    for b, own in enumerate(uses):
        buffer = program.buffers[b]
        if buffer.dedicated or b in resident or not own:
            continue
        pairs = list(pairwise(own))
        if _wraps(program, b, steady_state=steady_state):
            pairs.append((own[-1], own[0] + n))
        elif b in held and held[b] > own[-1] and (b, own[-1]) not in streamed:
            yield (b, own[-1]), list(range(own[-1] + 1, held[b] + 1))
        for p, u in pairs:
            if u > p + 1 and (b, p) not in streamed and (b, u % n) not in streamed:
                yield (b, p), [i % n for i in range(p + 1, u)]


def _wraps(program: Program, b: int, *, steady_state: bool) -> bool:
    """Whether the buffer's last gap wraps into the next inference."""
    return program.weights_persist and steady_state and program.buffers[b].kind is BufferKind.WEIGHT


def _standing_bytes(program: Program, resident: set[int]) -> list[int]:
    """Bytes of resident inputs that are on-chip at each step without being its operands; overwritten ones are gone."""
    standing, now = [], sum(program.buffers[b].size_bytes for b in resident if not program.buffers[b].dedicated)
    last = {b: i for i, step in enumerate(program.steps) for b in (*step.reads, *step.holds)}
    for i, step in enumerate(program.steps):
        read = {b for b in step.reads if b in resident and not program.buffers[b].dedicated}
        standing.append(now - sum(program.buffers[b].size_bytes for b in read))
        gone = {u.old for u in step.updates}
        if gone and may_choose_tiles(step):  # where that one passes in tiles, the result takes the place of another
            gone |= {b for b in step.may_overwrite if last[b] == i}
        now -= sum(program.buffers[b].size_bytes for b in gone & read)
    return standing


def _least_bytes(program: Program, step: Step) -> int:
    """Pool bytes that the step needs at its fullest phase, if operands leave as soon as they are read."""
    phases = [step.stream_staging_bytes] * PHASES_PER_STEP
    replaced = {u.old for u in step.updates}

    def add(size: int, first: Phase, last: Phase) -> None:
        for phase in range(first, last + 1):
            phases[phase] += size

    for b in step.reads:
        if b not in step.streamed_reads and not program.buffers[b].dedicated:
            add(program.buffers[b].size_bytes, Phase.READ, Phase.READ if b in replaced else Phase.COMPUTE)
    for b in step.writes:
        if b not in step.streamed_writes and not program.buffers[b].dedicated:
            add(program.buffers[b].size_bytes, Phase.COMPUTE, Phase.WRITE)
    for workspace in step.workspaces:
        add(workspace.size_bytes, workspace.first, workspace.last)
    return max(phases)


def _demand_bytes(program: Program, step: Step) -> int:
    """Pool bytes that the step needs if all of its operands stay to its end."""
    replaced = {u.old for u in step.updates}
    staying = sum(
        program.buffers[b].size_bytes for b in step.reads if b not in replaced and not program.buffers[b].dedicated
    )
    results = sum(program.buffers[b].size_bytes for b in step.writes if not program.buffers[b].dedicated)
    late = sum(w.size_bytes for w in step.workspaces if w.last >= Phase.WRITE)
    return max(_least_bytes(program, step), staying + results + late)


def _forced_bytes(program: Program, b: int, uses: list[int], resident: set[int], *, steady_state: bool) -> int:
    """Bytes that a buffer streamed by some step moves in every plan, beyond the compulsory ones."""
    buffer = program.buffers[b]
    moved = buffer.moved_bytes if buffer.kind is BufferKind.ACTIVATION else 0  # written once, streamed or not
    fetched = buffer.kind is not BufferKind.INPUT or b in resident
    wraps = _wraps(program, b, steady_state=steady_state)
    left = wraps and b in program.steps[uses[-1]].streamed_reads  # its last use streamed it: it is off-chip
    for i in uses:
        step = program.steps[i]
        if b in step.writes:
            left = b in step.streamed_writes
        elif b in step.streamed_reads:
            moved += buffer.moved_bytes * fetched
            fetched = left = True
        else:
            moved += fewest_read_bytes(program, i, b) if left else 0
            fetched, left = True, False
    return moved
