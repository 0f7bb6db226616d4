"""Measured times of operators on the steps that run them."""

from dataclasses import replace

import pytest
from graphs import MACHINE
from programs import program, step

from spillprof.ir.errors import UsageError
from spillprof.ir.op_times import OpTimes, TimeUnit
from spillprof.lowering.lower import with_measured_times
from spillprof.timing.compute import step_times_s

PLAIN = program(
    {"x": ("input", 100), "a": 100, "b": 100, "y": ("output", 100)}, [step("x -> a"), step("a -> b"), step("b -> y")]
)
NAMES = [("conv", ("conv", "bn", "relu")), ("pool", ("pool",)), ("add", ("add",))]
FUSED = replace(
    PLAIN,
    steps=tuple(
        replace(s, name=name, operators=operators) for s, (name, operators) in zip(PLAIN.steps, NAMES, strict=True)
    ),
)


def measured(unit=TimeUnit.SECONDS, **seconds):
    return OpTimes(source="times.csv", times=tuple(seconds.items()), unit=unit)


def test_a_fused_step_takes_the_sum_of_its_operators_that_have_a_time():
    timed = with_measured_times(FUSED, measured(conv=3.0, relu=0.5, add=1.0, gone=9.0), MACHINE)
    assert [s.measured_s for s in timed.steps] == [3.5, None, 1.0]


def test_what_was_measured_takes_the_place_of_the_estimate_and_its_launch():
    machine = MACHINE.with_overrides(launch_overhead_s=0.25)
    estimated = step_times_s(FUSED, machine)
    timed = with_measured_times(FUSED, measured(conv=3.0, pool=0.0), machine)
    assert step_times_s(timed, machine).tolist() == [3.0, 0.0, estimated[2]]


def test_cycles_are_counted_at_the_clock_of_the_target():
    timed = with_measured_times(FUSED, measured(TimeUnit.CYCLES, add=500.0), MACHINE.with_overrides(clock_hz=1000.0))
    assert timed.steps[2].measured_s == 0.5


def test_cycles_without_a_clock_are_an_error():
    with pytest.raises(UsageError, match="has no clock"):
        with_measured_times(FUSED, measured(TimeUnit.CYCLES, add=500.0), MACHINE)


def test_times_of_another_model_are_an_error_that_shows_both_kinds_of_names():
    with pytest.raises(UsageError, match="no operator of the model has a time") as caught:
        with_measured_times(FUSED, measured(Conv_0=1.0), MACHINE)
    assert "'Conv_0'" in (caught.value.hint or "")
    assert "'conv'" in (caught.value.hint or "")
