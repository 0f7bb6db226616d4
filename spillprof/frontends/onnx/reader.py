"""Reads an ONNX file into a Graph: strips payloads, parses, binds open dimensions, sizes every tensor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spillprof.frontends.models import GraphCache, ModelSource
from spillprof.frontends.onnx.assumed import Assumed, check_assumed, note_unmet
from spillprof.frontends.onnx.binding import bind_inputs
from spillprof.frontends.onnx.body import model_body
from spillprof.frontends.onnx.external import Contents, Stored, put_in, read_stored, stored_outside, unread
from spillprof.frontends.onnx.inference import MISFIT_HINT
from spillprof.frontends.onnx.proto import ModelProto
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import Runs, Session
from spillprof.frontends.onnx.topology import check_model_body
from spillprof.frontends.onnx.walk import size_body
from spillprof.frontends.onnx.wire import strip_payloads
from spillprof.ir.errors import ModelError, ShapeError, SpillprofError
from spillprof.ir.graph import Assumption, Bindings, Graph, TensorKind

_OUTSIDE_HINT = "small tensors that sizes follow from must be in the model, or in a file of its folder"
_UNSOUND_HINT = "the file is damaged, or its exporter made a mistake: onnx.checker may say more; export it again"


def read(source: ModelSource, bindings: Bindings, cache: GraphCache | None = None) -> Graph:
    """The graph of an ONNX model, every tensor sized; raises as ``read_model``.

    Small tensors in other files are read where a size stays open without them, and only from the model's folder.
    """
    stripped = _stripped(source)  # before the digest, so that a file of another format is refused early
    read = _Reading(stripped=stripped, shown=source.name, sha256=source.sha256(), bindings=bindings)
    return read.graph(source.folder, GraphCache(1) if cache is None else cache)


def _stripped(source: ModelSource) -> bytes:
    """The model without payloads; an error hints at another file format."""
    try:
        return strip_payloads(source.data)
    except ModelError as error:
        hint = source.foreign_hint() or error.hint or "is the file complete, and an ONNX model?"
        raise ModelError(error.message, where=(source.name, *error.where), hint=hint) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One stripped model and what binds its sizes; errors name the file."""

    stripped: bytes
    shown: str
    sha256: str
    bindings: Bindings

    def graph(self, folder: str | None, cache: GraphCache) -> Graph:
        """The graph, from the cache if present.

        Other files are opened only if a size stays unknown without them, and only for small tensors: most
        models keep only weights there. The cache then holds the list of tensors to read.
        """
        key = (self.sha256, self.bindings.key)
        known: Graph | tuple[Stored, ...] | None = cache.get(key)
        if known is None:
            known = self._first_graph()
            cache.put(key, known)
        if isinstance(known, tuple):
            known = self._graph_of_files(known, read_stored(known, folder), cache)
        return known if known.path == self.shown else replace(known, path=self.shown)

    def _first_graph(self) -> Graph | tuple[Stored, ...]:
        """The graph without external data; where sizes may depend on that, the tensors to read from it."""
        model = _parsed(self.stripped, self.shown)
        stored = stored_outside(model)
        try:
            graph = _sized_graph(model, self.shown, self.sha256, self.bindings)
        except SpillprofError as error:
            if not stored:
                raise _named(error, self.shown) from error.__cause__
            return stored
        return stored if stored and graph.assumptions else graph

    def _graph_of_files(self, stored: tuple[Stored, ...], contents: Contents, cache: GraphCache) -> Graph:
        """The graph with external data filled in; notes unread tensors where sizes may depend on them."""
        key = (self.sha256, self.bindings.key, contents.digest, contents.faults)
        known: Graph | None = cache.get(key)
        if known is not None:
            return known
        model = _parsed(self.stripped, self.shown)
        put_in(model, contents)
        missing = unread(stored, contents)
        try:
            graph = _sized_graph(model, self.shown, self.sha256, self.bindings)
        except SpillprofError as error:
            raise _named(error, self.shown, missing) from error.__cause__
        if missing and graph.assumptions:
            note = f"small tensors in other files were not read, and sizes may follow from them: {'; '.join(missing)}"
            graph = replace(graph, notes=(*graph.notes, note))
        graph = replace(graph, external_sha256=contents.digest)
        cache.put(key, graph)
        return graph


def _named(error: SpillprofError, shown: str, missing: Sequence[str] = ()) -> SpillprofError:
    """Adds the file, and tensors that could not be read, to an error about the model; other errors do not change."""
    if not isinstance(error, ModelError):
        return error
    where = error.where if shown in error.where else (shown, *error.where)
    hint = error.hint or _UNSOUND_HINT
    if missing and isinstance(error, ShapeError) and hint != MISFIT_HINT:
        where = (*where, *missing)
        hint = f"{_OUTSIDE_HINT}; or: {hint}"
    return type(error)(error.message, where=where, hint=hint)


def _parsed(stripped: bytes, shown: str) -> ModelProto:
    try:
        model: ModelProto = ModelProto.FromString(stripped)
    except Exception as error:  # protobuf raises its own type, and others for odd text
        raise ModelError(f"not a readable ONNX model: {error}", where=(shown,), hint=_UNSOUND_HINT) from error
    if not model.HasField("graph"):
        raise ModelError("the model holds no graph", where=(shown,), hint="is it an ONNX model, and complete?")
    return model


def _sized_graph(model: ModelProto, shown: str, sha256: str, bindings: Bindings) -> Graph:
    body = model_body(model)
    check_model_body(body)
    fed = [(name, proto) for name, proto in body.inputs if name not in body.constants]
    bound = bind_inputs(fed, bindings)
    scope = Scope(types=dict(bound.types), kinds=dict.fromkeys(bound.types, TensorKind.INPUT))
    runs = Runs(branches=bindings.branches, trips=bindings.trips)
    session = Session(symbols=bound.dims, assumed=Assumed(shapes=bindings.assume), runs=runs)
    check_assumed(session.assumed, body)
    graph = size_body(body, scope, session).graph
    runs.check()
    tally = session.tally
    note_unmet(session.assumed, tally)
    if repeated := len(body.inputs) - len(fed):
        tally.notes["a weight is listed as an input too, and counts as a weight"] = repeated
    return replace(
        graph,
        opset=next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None),
        path=shown,
        sha256=sha256,
        dims=bound.dims,
        assumptions=tuple(Assumption(what=what, count=count) for what, count in tally.assumptions.items()),
        notes=tally.texts(),
    )
