"""Whether a certificate proves its lower bound: integer arithmetic on the program alone, no solver, no planner.

Any plan leaves some gaps off-chip. Row by row, those outside of the set apart must cover the need that is left, each
counting for that need at most: sum of min(size, need) y >= need. Added up with weights, the rows demand a total; a
gap pays for what the rows charge it with its reload, and a buffer's gaps pay together for one write. What they are
charged beyond is taken off; the rest is a lower bound for every plan (Lagrangian duality).
"""

from math import gcd

from spillprof.ir.certificate import SCHEMA, Certificate, CertificateRow
from spillprof.ir.plan_json import buffer_names
from spillprof.ir.program import Program
from spillprof.verify.covering import Facts, Gap, gather
from spillprof.verify.terms import Terms


def check_certificate(program: Program, certificate: Certificate, terms: Terms | None = None) -> tuple[str, ...]:
    """What is wrong with the certificate of a fitted program; empty if it proves what it claims.

    ``terms``: those that it is to hold for; None: whatever it names itself.
    """
    c = certificate
    claims: tuple[tuple[str, object, object], ...] = (
        ("schema", c.schema, SCHEMA),
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
    facts = gather(
        program, inputs_resident=c.inputs_resident, steady_state=c.steady_state, writes_always=c.writes_always
    )
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


def _problem(facts: Facts, row: CertificateRow, apart: set[Gap]) -> str:
    if row.weight < 0:
        return f"weight {row.weight} is negative"
    if not 0 <= row.step < len(facts.spanning):
        return f"there is no step {row.step}"
    if not len(apart) == len(row.apart) == len(row.apart_after):
        return "a gap is set apart twice, or not given as a buffer and a step"
    if not apart.issubset(facts.spanning[row.step]):
        return f"what is set apart are no gaps over step {row.step}"
    need = facts.lacking_bytes[row.step] - sum(facts.size_bytes[gap] for gap in apart)
    return "" if need == row.need_bytes > 0 else f"need_bytes is {row.need_bytes}, the program lacks {need}"


def _proven_bytes(facts: Facts, rows: list[tuple[CertificateRow, set[Gap]]], scale: int) -> int:
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
    # Whole buffers move: of the sums of their costs, the next one is proven too.
    unit = gcd(*facts.own_bytes.values(), *facts.shared_bytes.values()) or 1
    return facts.forced_bytes + max(0, -(-total // (scale * unit)) * unit)
