"""Floor of a network: DRAM bytes that no execution of it moves less than, in any order, however tiled and spilled.

Each input is read and each output written at least once, and weights once for each operator that streams them. Beyond
that, products need traffic, by the argument of ``floors`` over the whole run:

Take any set Q of products. Of the bytes that the run reads, look at those of operands of Q, and let each operand of Q
that some operator computes, and each partial sum of Q, be read once more before its first use, for free. Cut the run
into stretches that read X = 2S such bytes each. What a stretch uses of Q's operands and sums was on-chip at its start,
or is read in it: at most 3S bytes. For each product i, its multiplications in the stretch are at most
sqrt(A_i B_i C_i R_i), and by the means its w_i F_i with w_i = sqrt(a b c / R) are at most (s_i / 3)^(3/2), where s_i of
the 3S bytes are its own; a sum of such powers is at most S^(3/2). So all stretches together read at least

    sum over Q of 2 w_i F_i / sqrt(S) - 2 S  bytes,

less the free reads. An operand that two products of Q share counts for both. The set Q takes the products that gain
more than their free reads cost. Inputs and weights that no product of Q touches are read besides. The floor falls as S
grows, since each product's term does, and with it the set.
"""

from spillprof.ir.program import BufferKind, Program
from spillprof.planning.tiling.floors import product_term, touched_bytes


def dram_bytes_floor(program: Program, sram_bytes: int, *, inputs_resident: bool = False) -> int:
    """The floor of a lowered program in a memory of ``sram_bytes`` (positive), where nothing is computed twice.

    ``inputs_resident``: they are on-chip before the run.
    """
    buffers, steps = program.buffers, [step for step in program.steps if not step.recomputes]
    compulsory = {} if inputs_resident else _input_bytes(program)
    weights = sum(step.weight_stream_bytes for step in steps)
    written = {b for step in steps for b in step.writes}
    out = sum(b.payload_bytes for b in buffers if b.kind is BufferKind.OUTPUT and b.index in written)
    gained, mine, own_weights = 0, set[int](), 0
    for step in steps:
        if step.nest is None:
            continue
        found = product_term(step.nest.nest, sram_bytes, accumulator_bits=step.nest.accumulator_bits)
        if found is None:
            continue
        operands = (*step.reads, *step.writes)
        leading, results = found.leading_bytes, found.result_bytes
        places = [step.nest.places[p] for p in found.inputs]
        used = {operands[place] for place in places if place is not None}
        if len(used) < sum(place is not None for place in places):  # an operand by itself serves for two
            continue
        free = results + sum(buffers[b].payload_bytes for b in used if b in written)
        streams = sum(step.nest.nest.operands[p].nbytes for p in found.inputs if step.nest.places[p] is None)
        more = leading - free - sum(compulsory.get(b, 0) for b in used) - min(streams, step.weight_stream_bytes)
        if more > 0:
            gained += leading - free
            mine |= used
            own_weights += min(streams, step.weight_stream_bytes)
    once = sum(compulsory.values()) + weights
    rest = sum(n for b, n in compulsory.items() if b not in mine) + weights - own_weights
    return out + max(once, gained - 2 * sram_bytes + rest)


def _input_bytes(program: Program) -> dict[int, int]:
    """Bytes of each input that its reader needs, the one that needs most where there are several."""
    found: dict[int, int] = {}
    for step in program.steps:
        operands = (*step.reads, *step.writes)
        touched: dict[int, int] = {}
        if step.nest is not None:
            for place, operand in zip(step.nest.places, step.nest.nest.operands, strict=True):
                if place is not None:
                    b = operands[place]
                    touched[b] = max(touched.get(b, 0), touched_bytes(step.nest.nest, operand))
        for b in step.reads:
            buffer = program.buffers[b]
            if buffer.kind is BufferKind.INPUT:
                needed = min(buffer.payload_bytes, touched.get(b, buffer.payload_bytes))
                found[b] = max(found.get(b, 0), needed)
    return found
