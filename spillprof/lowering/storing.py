"""The buffers of a draft: storages that its tasks touch, their sizes, and which are pinned."""

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Mapping, Sequence

from spillprof.ir.errors import UsageError
from spillprof.ir.program import Buffer, BufferKind
from spillprof.ir.target import Target
from spillprof.lowering.channels import channel_axes
from spillprof.lowering.draft import Draft
from spillprof.lowering.layout import Extent, extent, plain_extent
from spillprof.lowering.naming import unknown_tensor
from spillprof.lowering.operand_reads import WeightReads
from spillprof.lowering.options import LoweringOptions, WeightsPolicy

_WEIGHT_HINTS = {
    WeightsPolicy.STREAM: "weights are streamed and never stay in SRAM; use --weights cached to pin one",
    WeightsPolicy.RESIDENT: "with --weights resident every weight stays in SRAM already",
    WeightsPolicy.CACHED: "no operator reads it as a whole",
}


def buffers_of(
    draft: Draft, weights: Sequence[WeightReads], target: Target, options: LoweringOptions
) -> tuple[Buffer, ...]:
    """Buffers of the storages that tasks touch, in order of first touch; of weights too under policy ``cached``.

    ``weights``: those that each task reads. ``UsageError`` for a tensor that cannot be pinned.
    """
    graph, views = draft.graph, draft.views
    caches = options.weights is WeightsPolicy.CACHED
    constant: set[str] = set()
    sizes: dict[str, Extent] = {}  # of each storage
    sharing: dict[str, list[str]] = defaultdict(list)
    for view, storage in views.items():
        sharing[storage].append(view)
    kinds = dict.fromkeys(map(draft.storage, graph.outputs), BufferKind.OUTPUT)
    kinds |= dict.fromkeys(graph.inputs, BufferKind.INPUT)
    size_of = _sizes(draft, target, sharing, kinds)
    for task, read in zip(draft.tasks, weights, strict=True):
        if caches and read.whole:
            constant.update(read.whole)
            sizes |= {name: plain_extent(nbytes, target) for name, nbytes in read.whole.items()}
        for name in (*task.inputs, *task.outputs):
            storage = views.get(name, name)
            if storage not in sizes and storage not in draft.weights:
                sizes[storage] = size_of(storage)
    pinned = _pinned_storages(draft, options, sizes)
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


def _sizes(
    draft: Draft, target: Target, sharing: Mapping[str, Sequence[str]], plain: Container[str]
) -> Callable[[str], Extent]:
    """A function from storage to extent, memoized by shape and type.

    Channels are padded if the tensor that is written first, or a view of all of it, has a channel axis. Storages in
    ``plain``, the network's inputs and outputs, keep their outside layout.
    """
    known: dict[tuple[object, ...], Extent] = {}
    tensors = draft.graph.tensors
    axes = channel_axes(draft) if target.channel_align > 1 else {}

    def held_as(storage: str) -> str:
        if axes and storage not in axes and storage in sharing:
            whole = (v for v in sharing[storage] if v in axes and v not in draft.strided)
            return next((v for v in whole if tensors[v].nbytes == tensors[storage].nbytes), storage)
        return storage

    def size_of(storage: str) -> Extent:
        name = storage if storage in plain else held_as(storage)
        tensor, channels = tensors[name], None if storage in plain else axes.get(name)
        key = tensor.shape, tensor.dtype, tensor.elements, channels
        found = known.get(key)
        if found is None:
            found = known[key] = extent(tensor, channels, target)
        return found

    return size_of


def _pinned_storages(draft: Draft, options: LoweringOptions, stored: Collection[str]) -> frozenset[str]:
    """Storages of the tensors in ``options.pin``. A view pins its storage.

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
