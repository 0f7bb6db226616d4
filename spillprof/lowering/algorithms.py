"""How each convolution of a program runs, and the workspaces of its steps.

``auto`` takes the fastest algorithm whose workspace stays under a limit. A large workspace pushes tensors out, in every
step where one block is shared, so that the fastest convolutions need not make the fastest run. A few limits are
tried: half of the SRAM and half of that again and again, what is free of it, and nothing, which is direct convolution
everywhere. The caller times each candidate program; the fastest is taken, of equally fast ones that with fewer
launches, then with smaller workspaces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from spillprof.ir.program import Convolution, Phase, Program, Step, Workspace, largest_phase_bytes
from spillprof.ir.target import Target
from spillprof.lowering.convolution import (
    Form,
    Matrix,
    asked_form,
    conv_forms,
    conv_time_factor,
    fastest_form,
    workspaces,
)
from spillprof.lowering.draft import Draft
from spillprof.lowering.im2col import free_bytes, with_matrices
from spillprof.lowering.layout import align
from spillprof.lowering.options import ConvAlgorithm, LoweringOptions

_SHARES = (2, 4, 8, 16)
"""Of the SRAM, the parts that a workspace may take; the first is the most for any algorithm that is chosen."""

Limits = Mapping[int, int]
"""Bytes that a workspace may take, by step."""

RunTime = Callable[[Program], float]
"""Seconds that an unfitted program takes on the target; infinite where it cannot run."""


def with_algorithms(
    program: Program, draft: Draft, target: Target, options: LoweringOptions, run_s: RunTime | None
) -> Program:
    """The program of a draft, whose steps have no workspaces yet, with those of its operators and algorithms.

    ``run_s`` tells the candidates of ``auto`` apart; ``ValueError`` if it is missing there.
    """
    forms = {i: found for i, task in enumerate(draft.tasks) if (found := conv_forms(task, draft))}
    bare = _Bare(program=program, draft=draft, target=target, options=options, forms=forms)
    if options.conv is not ConvAlgorithm.AUTO or not forms:
        chosen = {i: asked_form(found, options.conv) for i, found in forms.items()}
        is_cut = options.conv is ConvAlgorithm.IM2COL
        return bare.formed(chosen, chosen, bare.equal_limits(_SHARES[0]) if is_cut else {})
    fastest = bare.fastest(None)
    tried: dict[tuple[Step, ...], Program] = {}
    for limits in bare.limits():
        made = bare.formed(bare.fastest(limits), fastest, limits)
        tried.setdefault(tuple(made.steps[i] for i in forms), made)
    if len(tried) == 1:
        return next(iter(tried.values()))
    if run_s is None:
        raise ValueError("algorithms chosen by run time need a run time")
    return min(tried.values(), key=lambda made: (run_s(made), *_effort(made)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bare:
    """A program whose steps have no workspaces yet; by step, the forms of each convolution."""

    program: Program
    draft: Draft
    target: Target
    options: LoweringOptions
    forms: Mapping[int, Sequence[Form]]

    def limits(self) -> Iterator[Limits]:
        """What workspaces may take: most first, nothing last."""
        for share in _SHARES:
            yield self.equal_limits(share)
        direct = {i: asked_form(found, ConvAlgorithm.DIRECT) for i, found in self.forms.items()}
        nothing = dict.fromkeys(self.forms, 0)
        free = free_bytes(self.formed(direct, direct, nothing), self.target, self.options)
        yield {i: max(0, min(free[i], self.target.sram_bytes // _SHARES[0])) for i in self.forms}
        yield nothing

    def equal_limits(self, share: int) -> Limits:
        """One part in so many of the SRAM for each convolution."""
        return dict.fromkeys(self.forms, self.target.sram_bytes // share)

    def fastest(self, limits: Limits | None) -> dict[int, Form]:
        """The fastest form of each convolution under the limits; None: whatever it needs."""
        steps, rate = self.program.steps, self.target.macs_rate
        return {
            i: fastest_form(
                found,
                self.target,
                macs_s=steps[i].macs / rate(steps[i].mac_dtype, steps[i].product_kind),
                touched_bytes=steps[i].touched_bytes,
                limit_bytes=None if limits is None else limits[i],
            )
            for i, found in self.forms.items()
        }

    def formed(self, chosen: Mapping[int, Form], fastest: Mapping[int, Form], limits: Limits) -> Program:
        """The program in which each convolution has its chosen form."""
        steps = list(self.program.steps)
        matrices: dict[int, Matrix] = {}
        for i, task in enumerate(self.draft.tasks):
            form = chosen.get(i)
            spaces = (*workspaces(task, self.draft, self.target, form), *self._body(i))
            if spaces:
                steps[i] = replace(steps[i], workspaces=spaces)
            if form is not None:
                steps[i] = self._as_convolution(steps[i], form, fastest[i])
                if form.matrix is not None:
                    matrices[i] = form.matrix
        program = replace(self.program, steps=tuple(steps))
        return with_matrices(program, matrices, self.target, self.options, limits)

    def _as_convolution(self, step: Step, form: Form, fastest: Form) -> Step:
        return replace(
            step,
            macs_time_factor=conv_time_factor(self.target, form.algorithm),
            convolution=Convolution(
                algorithm=str(form.algorithm),
                fastest=str(fastest.algorithm),
                workspace_bytes=largest_phase_bytes(step.workspaces),
            ),
            touched_bytes=step.touched_bytes + form.passing_bytes,
        )

    def _body(self, i: int) -> tuple[Workspace, ...]:
        """What lives inside of control flow that stays one step."""
        block = self.draft.control_steps.get(self.draft.tasks[i].lead.name)
        nbytes = 0 if block is None else align(block.workspace_bytes, self.target.alignment_bytes)
        return (Workspace(purpose="body", size_bytes=nbytes, first=Phase.READ, last=Phase.WRITE),) if nbytes else ()


def _effort(program: Program) -> tuple[int, int]:
    """Launches, and bytes of workspaces."""
    steps = program.steps
    return sum(step.launches for step in steps), sum(largest_phase_bytes(step.workspaces) for step in steps)
