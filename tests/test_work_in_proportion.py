"""Work grows linearly with the model: function calls are counted, not time."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from spillprof.engine.engine import Engine
from spillprof.engine.run import Run
from spillprof.frontends import read_model
from spillprof.ir.program import Phase
from spillprof.ir.target import load_target
from spillprof.planning.memory import StepBlock, compact

SMALL = 300


def calls_in(run: Callable[[], object]) -> int:
    """How often functions are called meanwhile, those in C included."""
    count = 0

    def seen(_frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Callable[[], object]]:
    """Kind of model and size -> reads and simulates it."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    from wide import KINDS

    def prepared(name: str, n: int) -> Callable[[], object]:
        data, kind = KINDS[name].build(n), KINDS[name]
        target = load_target("generic-npu").with_overrides(sram_bytes=kind.sram(n))

        def simulate() -> None:
            graph = read_model(data, name=f"{name}.onnx")
            engine, run = Engine(), Run(graph=graph, target=target)
            engine.ideal_s(run)
            engine.play(engine.fitted(run), run, "lru")

        return simulate

    return prepared


@pytest.mark.parametrize(
    "kind", ["calls", "calls_out", "concat", "concat_made", "outputs", "split", "shared", "too_large"]
)
def test_four_times_the_model_makes_about_four_times_the_calls(
    kind: str, simulated: Callable[[str, int], Callable[[], object]]
) -> None:
    simulated(kind, SMALL // 2)()  # imports, and what is kept for good
    few, many = (calls_in(simulated(kind, n)) for n in (SMALL, 4 * SMALL))
    assert many < 5 * few


def test_one_move_is_sought_without_laying_out_all_blocks_again_for_each() -> None:
    """Holes of 1 between blocks of 1 and 2: 40 find none, whichever block is moved."""

    def step(n: int) -> list[StepBlock]:
        placed = [
            StepBlock(size_bytes=1 + k % 2, first=Phase.READ, last=Phase.WRITE, address=3 * k) for k in range(n)
        ]  # fmt: skip
        return [*placed, StepBlock(size_bytes=40, first=Phase.COMPUTE, last=Phase.WRITE)]

    assert compact(step(100), (0, 300))[:3] == [0, 1, 3]  # all laid out anew
    few, many = (calls_in(lambda n=n: compact(step(n), (0, 3 * n))) for n in (500, 2000))
    assert many < 4.5 * few
