"""Single pairs of operators that could run as one."""

from collections.abc import Iterator

from spillprof.explain.whatif.change import Change, Situation
from spillprof.explain.whatif.words import option_words
from spillprof.lowering.fusion import legal_pairs
from spillprof.lowering.lower import make_draft

_MOST_PAIRS = 3


def fused_pairs(now: Situation) -> Iterator[Change]:
    """One pair at a time, those first whose tensor moves most, then the larger: beside those that are fused already."""
    run = now.trial.run
    draft = make_draft(run.graph, run.target, run.lowering)
    moved = {buffer.name: buffer.spill_bytes for buffer in now.buffers}
    pairs = sorted(
        legal_pairs(draft), key=lambda pair: (-moved.get(pair.tensor, 0), -draft.graph.tensors[pair.tensor].nbytes)
    )
    for pair in pairs[:_MOST_PAIRS]:
        tensors = (*run.lowering.fuse_tensor, pair.tensor)
        argument = option_words("--fuse-tensor", tensors)
        if argument is not None:
            yield Change(
                kind="fuse-tensor",
                argument=argument,
                costs=f"a kernel that runs {pair.producer.op_type} and {pair.consumer.op_type} as one",
                trial=now.trial.lowered(fuse_tensor=tensors),
            )
