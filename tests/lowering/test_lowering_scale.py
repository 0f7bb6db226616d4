"""Thirty thousand operators."""

import random

import pytest
from graphs import MACHINE, chain, graph, op

from spillprof.lowering.fitting import fit, min_sram
from spillprof.lowering.lower import lower
from spillprof.lowering.options import LoweringOptions
from spillprof.planning.options import PlanningOptions
from spillprof.planning.tiling.choice import choose_modes

N = 30_000
OPTIONS = LoweringOptions()


def skips(length):
    """Adds and activations over the last tensors, now and then one from far back."""
    rng = random.Random(1)
    ops, names = [], ["x"]
    for i in range(length):
        back = names[rng.randrange(len(names))]
        ops.append(op(f"Relu {names[-1]} -> t{i}") if i % 2 else op(f"Add {names[-1]} {back} -> t{i}"))
        names.append(f"t{i}")
    return graph({"x": (8, 8)}, ops, names[-1], tensors=dict.fromkeys(names[1:], (8, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("build", [skips, lambda n: _reversed(chain(n))], ids=["skips", "reversed"])
def test_thirty_thousand_operators_are_lowered_and_fitted(build):
    """Minutes instead of seconds here mean that something grows with the square of the operators."""
    g = build(N)
    program = lower(g, MACHINE, OPTIONS)
    fit(program, MACHINE, OPTIONS)
    min_sram(program, MACHINE, OPTIONS)
    tight = fit(program, MACHINE.with_overrides(sram_bytes=100), OPTIONS)
    assert len(program.steps) > N // 2
    assert any(mode.traffic for mode in choose_modes(tight, PlanningOptions()))


def _reversed(g):
    return graph(
        {n: g.tensors[n].shape for n in g.inputs}, g.operators[::-1], " ".join(g.outputs),
        tensors={n: t.shape for n, t in g.tensors.items() if n not in g.inputs},
    )  # fmt: skip
