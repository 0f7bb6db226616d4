"""The buffers of a draft: what its tasks read and write, and how it lies in memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from spillprof.lowering.draft import Draft
from spillprof.lowering.layout import Extent, extent, plain_extent
from spillprof.lowering.options import LoweringOptions, WeightsPolicy
from spillprof.lowering.pinning import pinned_storages
from spillprof.lowering.weight_reads import WeightReads
from spillprof.model.graph import Tensor
from spillprof.model.program import Buffer, BufferKind
from spillprof.model.target import Target


def buffers_of(
    draft: Draft, weights: Sequence[WeightReads], target: Target, options: LoweringOptions
) -> tuple[Buffer, ...]:
    """Storages that the tasks touch, in the order in which they first do; weights too under policy ``cached``.

    ``weights``: those that each task reads. ``UsageError`` for a tensor that cannot be pinned.
    """
    graph, views = draft.graph, draft.views
    caches = options.weights is WeightsPolicy.CACHED
    constant: set[str] = set()
    sizes: dict[str, Extent] = {}  # of each storage
    sizes_of = _sizes(target)
    for task, read in zip(draft.tasks, weights, strict=True):
        if caches and read.whole:
            constant.update(read.whole)
            sizes |= {name: plain_extent(nbytes, target) for name, nbytes in read.whole.items()}
        for name in (*task.inputs, *task.outputs):
            storage = views.get(name, name)
            if storage not in sizes and storage not in draft.weights:
                sizes[storage] = sizes_of(graph.tensors[storage])
    pinned = pinned_storages(draft, options, sizes)
    sharing: dict[str, list[str]] = defaultdict(list)
    for view, storage in views.items():
        sharing[storage].append(view)
    kinds = dict.fromkeys(map(draft.storage, graph.outputs), BufferKind.OUTPUT)
    kinds |= dict.fromkeys(graph.inputs, BufferKind.INPUT)
    kinds |= dict.fromkeys(constant, BufferKind.WEIGHT)
    activation = BufferKind.ACTIVATION
    return tuple(
        [
            Buffer(
                index=index,
                name=name,
                tensors=(name, *sharing[name]) if name in sharing else (name,),
                kind=kinds.get(name, activation),
                payload_bytes=own.payload_bytes,
                moved_bytes=own.moved_bytes,
                size_bytes=own.stored_bytes,
                dedicated=name in pinned,
            )
            for index, (name, own) in enumerate(sizes.items())
        ]
    )


def _sizes(target: Target) -> Callable[[Tensor], Extent]:
    """What a tensor takes, worked out once for each shape and type."""
    known: dict[tuple[object, ...], Extent] = {}

    def sizes_of(tensor: Tensor) -> Extent:
        key = tensor.shape, tensor.dtype, tensor.elements
        found = known.get(key)
        if found is None:
            found = known[key] = extent(tensor, target)
        return found

    return sizes_of
