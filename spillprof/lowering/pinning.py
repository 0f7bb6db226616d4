"""Which storages get a dedicated slot."""

from collections.abc import Collection
from dataclasses import replace

from spillprof.ir.errors import UsageError
from spillprof.ir.program import Program
from spillprof.lowering.draft import Draft
from spillprof.lowering.naming import unknown_tensor
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.lowering.reordering import with_updates


def pinned_storages(draft: Draft, options: LoweringOptions, stored: Collection[str]) -> frozenset[str]:
    """Storages of the tensors in ``options.pin``. A view pins what it is stored in.

    ``stored`` are the storages that will have a buffer. ``UsageError`` for a tensor that has none.
    """
    pinned: set[str] = set()
    for name in options.pin:
        storage = draft.storage(name)
        if storage in stored:
            pinned.add(storage)
        elif storage in draft.weights:
            raise UsageError(f"cannot pin weight '{name}'", hint=_WEIGHT_HINTS[options.weights])
        elif name in draft.graph.tensors:
            raise UsageError(
                f"cannot pin tensor '{name}': it is never stored",
                hint="it exists only inside of a fused or removed operator; --fuse none or --fold off keeps it",
            )
        else:
            raise unknown_tensor(f"cannot pin '{name}': the model has no such tensor", name, (*stored, *draft.views))
    return frozenset(pinned)


_WEIGHT_HINTS = {
    WeightsPolicy.STREAM: "weights are streamed and never stay in SRAM; use --weights cached to pin one",
    WeightsPolicy.RESIDENT: "with --weights resident every weight stays in SRAM already",
    WeightsPolicy.CACHED: "no operator reads it as a whole",
}


def with_slots(program: Program, buffers: Collection[int]) -> Program:
    """The (not yet fitted) program with dedicated slots for these buffers: no in-place update touches them."""
    wanted = frozenset(buffers)
    slotted = tuple(replace(b, dedicated=True) if b.index in wanted else b for b in program.buffers)
    return replace(program, buffers=slotted, steps=with_updates(program.steps, slotted))
