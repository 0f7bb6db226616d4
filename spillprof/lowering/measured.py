"""Measured times of operators into the steps that run them."""

from dataclasses import replace

from spillprof.ir.errors import UsageError
from spillprof.ir.op_times import OpTimes, TimeUnit
from spillprof.ir.program import Program
from spillprof.ir.target import Target


def with_measured_times(program: Program, times: OpTimes, target: Target) -> Program:
    """The program with ``measured_s`` of each step one of whose operators has a time: the sum of those that have one.

    A runtime reports a fused operator under one of its names, so the operators of a step without a time add nothing.
    ``UsageError`` if no name matches, or if times in cycles meet a target without a clock.
    """
    if times.unit is TimeUnit.CYCLES and target.clock_hz is None:
        raise UsageError(
            f"the times are in cycles, and target '{target.name}' has no clock",
            where=(times.source,),
            hint="add clock_hz = '1GHz' to a target of your own",
        )
    seconds = times.seconds(target.clock_hz)
    steps = []
    for step in program.steps:
        measured = [seconds[name] for name in step.operators if name in seconds]
        steps.append(replace(step, measured_s=sum(measured)) if measured else step)
    if program.steps and all(step.measured_s is None for step in steps):
        in_file = ", ".join(f"'{name}'" for name, _ in times.times[:3])
        in_model = ", ".join(f"'{step.name}'" for step in program.steps[:3])
        raise UsageError(
            "no operator of the model has a time in the file",
            where=(times.source,),
            hint=f"operators go by their names in the model: the file has {in_file}, the model {in_model}",
        )
    return replace(program, steps=tuple(steps))
