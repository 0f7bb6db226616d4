"""From an ONNX file to a Graph: read, strip, parse, bind, size."""

import hashlib
import mmap
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import onnx

from spillprof.frontends.onnx.assumed import Assumed, check_assumed, note_unmet
from spillprof.frontends.onnx.binding import bind_inputs
from spillprof.frontends.onnx.body import model_body
from spillprof.frontends.onnx.external import Contents, Stored, put_in, read_stored, stored_outside, unread
from spillprof.frontends.onnx.inference import MISFIT_HINT
from spillprof.frontends.onnx.runs import Runs
from spillprof.frontends.onnx.scope import Scope
from spillprof.frontends.onnx.session import Session
from spillprof.frontends.onnx.signature import looks_like
from spillprof.frontends.onnx.topology import check_model_body
from spillprof.frontends.onnx.walk import size_body
from spillprof.frontends.onnx.wire import strip_payloads
from spillprof.ir.bindings import Bindings
from spillprof.ir.errors import ModelError, ShapeError, SpillprofError
from spillprof.ir.graph import Assumption, Graph, TensorKind
from spillprof.ir.lru_cache import LruCache
from spillprof.ir.units import format_size

MAX_FILE_BYTES = 1 << 32
"""Of one model file: twice where protobuf ends. Whoever has larger weights keeps them in files beside it."""

_CHUNK_BYTES = 1 << 20
_OUTSIDE_HINT = "small tensors that sizes follow from must be in the model, or in a file of its folder"
_UNSOUND_HINT = "the file is damaged, or its exporter made a mistake: onnx.checker may say more; export it again"
_NO_DIMS: Mapping[str, int] = {}
_NO_SHAPES: Mapping[str, tuple[int, ...]] = {}
_NO_BRANCHES: Mapping[str, str] = {}

_read: LruCache[Graph | tuple[Stored, ...]] = LruCache(16)
"""Graphs by the hash of their file and what bound their dimensions; where sizes follow from other files, what to read
of those, and the graphs by its contents too."""


def read_onnx(
    path: str | Path,
    *,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    batch: int | None = None,
    assume: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    branches: Mapping[str, str] = _NO_BRANCHES,
    trips: Mapping[str, int] = _NO_DIMS,
) -> Graph:
    """The graph of a model file, every tensor sized. Weights are neither loaded nor looked for.

    Small tensors in other files are read where a size stays open without them, and only from the model's folder.

    ``dims`` binds symbols by name and unnamed dimensions as ``INPUT[AXIS]``, ``shapes`` whole inputs, ``batch`` the
    open first axes; ``assume`` gives the shapes of tensors that cannot be inferred; ``branches`` says which branch of
    an If runs ("then" or "else"), ``trips`` how often a Loop does, "" standing for all of unknown length. The same
    contents with the same bindings are sized once in a process. ``ModelError`` for files that are no sound model,
    ``ShapeError`` where sizes stay unknown or contradict each other, ``UsageError`` for bindings that fit nothing.
    """
    shown = os.fspath(path)
    bindings = Bindings(dims=dims, shapes=shapes, batch=batch, assume=assume, branches=branches, trips=trips)
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe could wait for ever
            raise ModelError("not a regular file", where=(shown,), hint="pipe a model through '-' instead")
        with open(path, "rb") as file:
            stripped, sha256 = _contents(file, shown)
    except IsADirectoryError:
        hint = "give the model file that is in it"
        raise ModelError("this is a directory, not a model file", where=(shown,), hint=hint) from None
    except FileNotFoundError:
        raise ModelError("there is no such file", where=(shown,), hint="check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise _unreadable(error, shown) from error
    return _graph(stripped, shown, sha256, bindings, os.path.dirname(shown) or os.curdir)


def read_onnx_stream(stream: IO[bytes], *, name: str, bindings: Bindings) -> Graph:
    """The graph of a model that comes through a pipe; ``name`` stands for its path. Otherwise as ``read_onnx``.

    It goes through a temporary file, so that its weights are not in memory here either.
    """
    try:
        with tempfile.TemporaryFile() as file:
            while chunk := stream.read(_CHUNK_BYTES):
                file.write(chunk)
                _check_size(file.tell(), name)
            file.flush()
            stripped, sha256 = _contents(file, name)
    except (OSError, ValueError) as error:  # ValueError: a stream that was closed
        raise _unreadable(error, name) from error
    return _graph(stripped, name, sha256, bindings, None)


def read_onnx_bytes(
    data: bytes,
    *,
    name: str,
    dims: Mapping[str, int] = _NO_DIMS,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    batch: int | None = None,
    assume: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    branches: Mapping[str, str] = _NO_BRANCHES,
    trips: Mapping[str, int] = _NO_DIMS,
) -> Graph:
    """The graph of a model held in memory; ``name`` stands for its path. Otherwise as ``read_onnx``."""
    if not data:
        raise ModelError("the input is empty", where=(name,), hint="was the download or export cut off?")
    bindings = Bindings(dims=dims, shapes=shapes, batch=batch, assume=assume, branches=branches, trips=trips)
    sha256 = hashlib.sha256(data).hexdigest()
    return _graph(_stripped(data, name), name, sha256, bindings, None)


def _contents(file: IO[bytes], shown: str) -> tuple[bytes, str]:
    """(model without payloads, SHA-256 of the whole file). Nonsense is refused before all of it is read."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        raise ModelError("the file is empty", where=(shown,), hint="was the download or export cut off?")
    _check_size(size, shown)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        stripped = _stripped(data, shown)
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return stripped, digest.hexdigest()


def _check_size(size_bytes: int, shown: str) -> None:
    if size_bytes > MAX_FILE_BYTES:
        raise ModelError(
            f"the file is larger than {format_size(MAX_FILE_BYTES)}, which no ONNX file is",
            where=(shown,),
            hint="protobuf ends at 2 GiB: larger models keep their weights in files beside the model",
        )


def _unreadable(error: Exception, shown: str) -> ModelError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    hint = "is it a file that this user may read?"
    return ModelError(f"the file cannot be read: {reason.lower()}", where=(shown,), hint=hint)


def _stripped(data: bytes | mmap.mmap, shown: str) -> bytes:
    """The model without payloads; an error says what else the file looks like."""
    try:
        return strip_payloads(data)
    except ModelError as error:
        hint = looks_like(bytes(data[:512])) or error.hint or "is the file complete, and an ONNX model?"
        raise ModelError(error.message, where=(shown, *error.where), hint=hint) from None


def _graph(stripped: bytes, shown: str, sha256: str, bindings: Bindings, folder: str | None) -> Graph:
    """The graph of a stripped model; errors name the file.

    Other files are opened only where something stays open without them, and then for small tensors alone: most
    models keep nothing there but weights, and those are nobody's business here.
    """
    key = (sha256, bindings.key)
    known = _read.get(key)
    stored: tuple[Stored, ...] = ()
    if known is None:
        model = _parsed(stripped, shown)
        stored = stored_outside(model)
        try:
            graph = _sized_graph(model, shown, sha256, bindings)
        except SpillprofError as error:
            if not stored:
                raise _named(error, shown) from error.__cause__
            graph = None
        known = stored if stored and (graph is None or graph.assumptions) else graph
        assert known is not None
        _read.put(key, known)
    if isinstance(known, tuple):
        known = _graph_of_files(stripped, shown, sha256, bindings, known, read_stored(known, folder))
    return known if known.path == shown else replace(known, path=shown)


def _graph_of_files(
    stripped: bytes, shown: str, sha256: str, bindings: Bindings, stored: tuple[Stored, ...], contents: Contents
) -> Graph:
    """The graph with what was read from other files in it; says what could not be read, where that may matter."""
    key = (sha256, bindings.key, contents.digest, contents.faults)
    known = _read.get(key)
    if isinstance(known, Graph):
        return known
    model = _parsed(stripped, shown)
    put_in(model, contents)
    missing = unread(stored, contents)
    try:
        graph = _sized_graph(model, shown, sha256, bindings)
    except SpillprofError as error:
        raise _named(error, shown, missing) from error.__cause__
    if missing and graph.assumptions:
        note = f"small tensors in other files were not read, and sizes may follow from them: {'; '.join(missing)}"
        graph = replace(graph, notes=(*graph.notes, note))
    graph = replace(graph, external_sha256=contents.digest)
    _read.put(key, graph)
    return graph


def _named(error: SpillprofError, shown: str, missing: Sequence[str] = ()) -> SpillprofError:
    """An error about the model, the file and what could not be read in it; one about an option as it is."""
    if not isinstance(error, ModelError):
        return error
    where = error.where if shown in error.where else (shown, *error.where)
    hint = error.hint or _UNSOUND_HINT
    if missing and isinstance(error, ShapeError) and hint != MISFIT_HINT:
        where = (*where, *missing)
        hint = f"{_OUTSIDE_HINT}; or: {hint}"
    return type(error)(error.message, where=where, hint=hint)


def _parsed(stripped: bytes, shown: str) -> onnx.ModelProto:
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(stripped)
    except Exception as error:  # protobuf raises its own type, and others for odd text
        raise ModelError(f"not a readable ONNX model: {error}", where=(shown,), hint=_UNSOUND_HINT) from error
    if not model.HasField("graph"):
        raise ModelError("the model holds no graph", where=(shown,), hint="is it an ONNX model, and complete?")
    return model


def _sized_graph(model: onnx.ModelProto, shown: str, sha256: str, bindings: Bindings) -> Graph:
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
    return Graph(
        name=graph.name,
        operators=graph.operators,
        tensors=graph.tensors,
        inputs=graph.inputs,
        outputs=graph.outputs,
        opset=next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), None),
        path=shown,
        sha256=sha256,
        dims=bound.dims,
        assumptions=tuple(Assumption(what=what, count=count) for what, count in tally.assumptions.items()),
        notes=tally.texts(),
    )
