"""Invariants of every Program, on random graphs."""

from dataclasses import replace

from graphs import MACHINE, graph, op
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.ir.errors import CapacityError
from spillprof.ir.graph import Graph
from spillprof.ir.program import BufferKind
from spillprof.ir.tiled import with_modes
from spillprof.lowering.fitting import fit, min_sram, unlimited
from spillprof.lowering.fusion import legal_pairs
from spillprof.lowering.lower import lower, make_draft
from spillprof.lowering.options import ConvAlgorithm, Fuse, LoweringOptions, Oversized, Views, WeightsPolicy
from spillprof.planning.liveness import demand_by_step, live_bytes_by_step, step_demand_bytes
from spillprof.planning.options import PlanningOptions
from spillprof.planning.tiling.choice import choose_modes

SHAPES = [(1, 4, 4, 4), (1, 64), (2, 3), (0, 2)]
UNARY = ["Relu", "Softmax", "Identity", "Sigmoid", "Reshape", "Transpose", "Cast", "Dropout", "BatchNormalization"]


@st.composite
def graphs(draw) -> Graph:
    """A DAG of up to 14 operators over a few shapes and two types; any tensor may be an output."""
    inputs = {f"x{i}": draw(st.sampled_from(SHAPES)) for i in range(draw(st.integers(1, 3)))}
    weights = {f"w{i}": draw(st.sampled_from(SHAPES)) for i in range(draw(st.integers(0, 3)))}
    tensors = {}
    ops = []
    for i in range(draw(st.integers(0, 14))):
        known = {**inputs, **weights, **tensors}
        names = list(known)
        first = draw(st.sampled_from(names))
        name = f"t{i}"
        kind = draw(st.sampled_from(["unary", "binary", "conv", "quantise", "split", "concat"]))
        if kind == "unary":
            operator = draw(st.sampled_from(UNARY))
            tensors[name] = known[first]
            ops.append(f"{operator} {first} -> {name}")
        elif kind == "binary":
            second = draw(st.sampled_from(names))
            tensors[name] = known[first]
            ops.append(f"{draw(st.sampled_from(['Add', 'Mul', 'Pow']))} {first} {second} -> {name}")
        elif kind == "conv":
            tensors[name] = (1, 4, 4, 4)
            ops.append(f"Conv {first} {draw(st.sampled_from(names))} -> {name}")
        elif kind == "quantise":
            tensors[name] = known[first]
            ops.append(f"{draw(st.sampled_from(['QuantizeLinear', 'DequantizeLinear']))} {first} -> {name}")
        elif kind == "split":
            tensors[name], tensors[f"{name}b"] = known[first], known[first]
            ops.append(f"Split {first} -> {name} {name}b")
        else:
            tensors[name] = (1, 64)
            ops.append(f"Concat {first} {draw(st.sampled_from(names))} {draw(st.sampled_from(names))} -> {name}")
    outputs = draw(st.lists(st.sampled_from([*tensors, *inputs, *weights]), max_size=4))
    order = draw(st.permutations(ops)) if draw(st.booleans()) else ops
    return graph(inputs, [op(o) for o in order], " ".join(outputs), weights=weights, tensors=tensors)


options = st.builds(
    LoweringOptions,
    fuse=st.sampled_from(Fuse),
    inplace=st.booleans(),
    views=st.sampled_from(Views),
    fold=st.booleans(),
    conv=st.sampled_from(ConvAlgorithm),
    weights=st.sampled_from(WeightsPolicy),
)
targets = st.builds(
    MACHINE.with_overrides,
    alignment_bytes=st.sampled_from([1, 16, 64]),
    channel_align=st.sampled_from([1, 8]),
    sram_bytes=st.integers(1, 3000),
    strided_views=st.booleans(),
    shared_workspace=st.booleans(),
    accumulator_bytes_per_output=st.sampled_from([0, 4]),
)


@settings(max_examples=200, deadline=None)
@given(g=graphs(), target=targets, chosen=options)
def test_program_is_well_formed(g, target, chosen):
    program = lower(g, target, chosen)
    assert program == lower(g, target, chosen)
    assert [b.index for b in program.buffers] == list(range(len(program.buffers)))
    stored = [name for b in program.buffers for name in b.tensors]
    assert len(stored) == len(set(stored))
    touched = {b for s in program.steps for b in (*s.reads, *s.writes)}
    assert touched == set(range(len(program.buffers)))
    last_read = {b: i for i, s in enumerate(program.steps) for b in s.reads}
    present = {b.index for b in program.buffers if b.in_dram_at_start}
    for i, s in enumerate(program.steps):
        assert len(set(s.reads)) == len(s.reads)
        assert set(s.reads) <= present
        assert present.isdisjoint(s.writes)
        present.update(s.writes)
        for u in s.updates:
            old, new = program.buffers[u.old], program.buffers[u.new]
            assert (old.size_bytes, old.payload_bytes) == (new.size_bytes, new.payload_bytes)
            assert u.old in s.reads
            assert u.new in s.writes
            assert last_read[u.old] == i
            assert old.kind in (BufferKind.ACTIVATION, BufferKind.INPUT)
            assert old.name not in g.outputs or old.kind is BufferKind.INPUT
    for b in program.buffers:
        assert b.size_bytes >= b.payload_bytes
        assert b.size_bytes % target.alignment_bytes == 0


@settings(max_examples=200, deadline=None)
@given(g=graphs(), target=targets, chosen=options)
def test_every_graph_output_ends_in_dram(g, target, chosen):
    """It is stored in an output buffer, or was there at the start: an input, a weight, or folded."""
    program = lower(g, target, chosen)
    holder = {name: b for b in program.buffers for name in b.tensors}
    draft = make_draft(g, target, chosen)
    for name in g.outputs:
        if name in holder:
            assert holder[name].kind in (BufferKind.OUTPUT, BufferKind.INPUT, BufferKind.WEIGHT)
        else:
            assert draft.is_weight(name) or draft.storage(name) in g.inputs


@settings(max_examples=150, deadline=None)
@given(g=graphs(), target=targets)
def test_with_everything_off_each_operator_is_a_step(g, target):
    plain = LoweringOptions(fuse=Fuse.NONE, inplace=False, views=Views.COPY, fold=False)
    program = lower(g, target, plain)
    assert sorted(s.name for s in program.steps) == sorted(o.name for o in g.operators)
    assert all(b.tensors == (b.name,) for b in program.buffers)
    assert all(not s.updates for s in program.steps)


@settings(max_examples=150, deadline=None)
@given(g=graphs(), target=targets, chosen=options)
def test_sharing_never_raises_the_peak(g, target, chosen):
    def peak(**changes):
        return max(live_bytes_by_step(lower(g, target, replace(chosen, **changes)), stored=False), default=0)

    assert peak(inplace=True) <= peak(inplace=False)


@settings(max_examples=200, deadline=None)
@given(g=graphs(), target=targets, chosen=options)
def test_fitted_program_fits(g, target, chosen):
    program = lower(g, target, chosen)
    try:
        fitted = fit(program, target, chosen)
    except CapacityError:
        return
    pool = target.sram_bytes - fitted.reserved_bytes
    assert pool >= 0
    tiled = with_modes(fitted, choose_modes(fitted, PlanningOptions()))
    assert all(nbytes <= pool for nbytes in demand_by_step(tiled).tolist())
    for s, before in zip(fitted.steps, program.steps, strict=True):
        if s.nest is not None:  # planners choose its mode
            continue
        assert step_demand_bytes(fitted, s) <= pool
        assert set(s.streamed_reads) <= set(s.reads)
        assert set(s.streamed_writes) <= set(s.writes)
        gone = {*s.streamed_reads, *s.streamed_writes}
        assert s.updates == tuple(u for u in before.updates if not gone & {u.old, u.new})
    ideal = unlimited(program, target, chosen)
    assert ideal.capacity_bytes is None
    assert ideal.reservations == fitted.reservations
    assert not any(s.streamed_reads or s.streamed_writes for s in ideal.steps)


@settings(max_examples=200, deadline=None)
@given(g=graphs(), target=targets, chosen=options)
def test_smallest_memory_is_exact(g, target, chosen):
    program = lower(g, target, chosen)
    strict = replace(chosen, oversized=Oversized.ERROR)
    smallest, worst = min_sram(program, target, chosen)
    assert smallest % target.alignment_bytes == 0
    for more in (0, 1, target.alignment_bytes, 1000):
        fitted = fit(program, target.with_overrides(sram_bytes=smallest + more), strict)
        assert not any(s.streamed_reads or s.streamed_writes for s in fitted.steps)
    demands = [step_demand_bytes(fitted, s) for s in fitted.steps]
    assert not demands or demands[worst] == max(demands)
    if smallest > target.alignment_bytes:
        try:
            fit(program, target.with_overrides(sram_bytes=smallest - target.alignment_bytes), strict)
        except CapacityError:
            return
        raise AssertionError("a smaller memory holds every operator too")


@settings(max_examples=120, deadline=None)
@given(g=graphs(), target=targets, chosen=options)
def test_a_fused_pair_is_one_step_fewer_and_the_same_work(g, target, chosen):
    apart = lower(g, target, chosen)
    for pair in legal_pairs(make_draft(g, target, chosen))[:4]:
        joint = lower(g, target, replace(chosen, fuse_tensor=(pair.tensor,)))
        assert len(joint.steps) == len(apart.steps) - 1
        assert all(pair.tensor not in buffer.tensors for buffer in joint.buffers)
        assert sum(s.macs for s in joint.steps) == sum(s.macs for s in apart.steps)
        before, after = (sum(s.weight_stream_bytes for s in p.steps) for p in (apart, joint))
        assert after <= before  # less where both read the same weight
        before, after = (sorted(o for s in p.steps for o in s.operators) for p in (apart, joint))
        assert after == before
        names = [[p.buffers[b].name for s in p.steps for b in s.writes] for p in (apart, joint)]
        assert [name for name in names[0] if name != pair.tensor] == names[1]  # all others are made in the same order
        made = {b.index for b in joint.buffers if b.kind in (BufferKind.INPUT, BufferKind.WEIGHT)}
        for step in joint.steps:
            assert made.issuperset(step.reads)  # and nothing is read before it is made
            made.update(step.writes)
