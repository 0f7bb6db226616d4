"""Reads a model of any supported format into a Graph. One row of ``FRONT_ENDS`` registers a format."""

import hashlib
import mmap
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import IO, Any

from spillprof.frontends.foreign import looks_like
from spillprof.ir.errors import ModelError
from spillprof.ir.graph import Bindings, Graph
from spillprof.ir.lru_cache import LruCache
from spillprof.ir.units import format_size

_CHUNK_BYTES = 1 << 20
_HEAD_BYTES = 512

GraphCache = LruCache[Any]
"""Cache of one command: graphs and state of front ends, by digest of the file and bindings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """The bytes of a model, and their origin."""

    data: bytes | mmap.mmap
    name: str  # as errors and the graph show it: the path, "-" for stdin
    folder: str | None  # of files beside the model; None: there are none
    sha256: Callable[[], str]  # of all bytes

    def foreign_hint(self) -> str | None:
        """A hint at another file format, from the first bytes; None if they match none."""
        return looks_like(bytes(self.data[:_HEAD_BYTES]))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontEnd:
    """A model format: how its files are recognized, and which module reads them."""

    name: str
    suffixes: tuple[str, ...]
    magic: tuple[tuple[int, bytes], ...] = ()  # (offset, bytes): each one identifies the format
    module: str  # its ``read(source, bindings, cache)`` returns the graph, and raises as ``read_model``
    max_bytes: int
    size_hint: str  # advice for larger files
    light_import: str = ""  # module whose ``import_light`` loads in part the library that ``module`` imports

    def read(self, source: ModelSource, bindings: Bindings, cache: GraphCache | None, *, is_alone: bool) -> Graph:
        """The graph of a file of this format. The module is imported for the first one."""
        if is_alone and self.light_import:
            import_module(self.light_import).import_light()
        graph: Graph = import_module(self.module).read(source, bindings, cache)
        return graph


FRONT_ENDS = (
    FrontEnd(
        name="ONNX",
        suffixes=(".onnx",),
        module="spillprof.frontends.onnx.reader",
        light_import="spillprof.frontends.onnx.light_import",
        max_bytes=1 << 32,  # twice the limit of protobuf
        size_hint="protobuf ends at 2 GiB: larger models keep their weights in files beside the model",
    ),
)
"""The supported formats. A file that matches none goes to the first, whose error hints at the file's format."""


def read_model(
    source: str | os.PathLike[str] | bytes | IO[bytes],
    bindings: Bindings | None = None,
    *,
    name: str = "-",
    cache: GraphCache | None = None,
    is_alone: bool = False,
    **given: Any,
) -> Graph:
    """The graph of a model, every tensor sized. Weights are not read.

    ``source`` is a path, the bytes of a model, or a stream of them; the latter two are shown as ``name``. ``given``
    are the fields of ``Bindings``, in place of ``bindings``: ``dims`` binds symbols by name and unnamed dimensions as
    ``INPUT[AXIS]``, ``shapes`` whole inputs, ``batch`` the open first axes; ``assume`` gives the shapes of tensors
    that cannot be inferred; ``branches`` says which branch of an If runs ("then" or "else"), ``trips`` how often a
    Loop does, "" standing for all of unknown length. With a ``cache``, the same contents with the same bindings are
    sized once. ``is_alone`` says that nothing but spillprof runs in this process: libraries may be imported in part.

    ``ModelError`` for what is no sound model, ``ShapeError`` where sizes stay unknown or contradict each other,
    ``UsageError`` for bindings that fit nothing.
    """
    bound = Bindings(**given) if bindings is None else bindings

    def read(front_end: FrontEnd, found: ModelSource) -> Graph:
        return front_end.read(found, bound, cache, is_alone=is_alone)

    if isinstance(source, bytes):
        if not source:
            raise ModelError("the input is empty", where=(name,), hint="was the download or export cut off?")
        digest = hashlib.sha256(source).hexdigest
        return read(front_end_of(source, name), ModelSource(data=source, name=name, folder=None, sha256=digest))
    if isinstance(source, str | os.PathLike):
        return _of_path(source, read)
    return _of_stream(source, name, read)


_Read = Callable[[FrontEnd, ModelSource], Graph]


def _of_path(path: str | os.PathLike[str], read: _Read) -> Graph:
    shown = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a pipe could wait for ever
            raise ModelError("not a regular file", where=(shown,), hint="pipe a model through '-' instead")
        file = open(path, "rb")  # noqa: SIM115 - closed below: what the reader raises is not about opening
    except IsADirectoryError:
        hint = "give the model file that is in it"
        raise ModelError("this is a directory, not a model file", where=(shown,), hint=hint) from None
    except FileNotFoundError:
        raise ModelError("there is no such file", where=(shown,), hint="check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise _unreadable(error, shown) from error
    with file:
        return _of_file(file, shown, os.path.dirname(shown) or os.curdir, read)


def _of_stream(stream: IO[bytes], name: str, read: _Read) -> Graph:
    """Reads through a temporary file: weights stay out of memory."""
    import tempfile

    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            front_end: FrontEnd | None = None
            while chunk := stream.read(_CHUNK_BYTES):
                front_end = front_end or front_end_of(chunk, name)
                file.write(chunk)
                _check_size(file.tell(), front_end, name)
            file.flush()
            file.seek(0)
        except (OSError, ValueError) as error:  # ValueError: a stream that was closed
            raise _unreadable(error, name) from error
        return _of_file(file, name, None, read)


def _of_file(file: IO[bytes], shown: str, folder: str | None, read: _Read) -> Graph:
    """The graph of an open file, mapped into memory."""
    try:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise ModelError("the file is empty", where=(shown,), hint="was the download or export cut off?")
        front_end = front_end_of(file.read(_HEAD_BYTES), shown)
        _check_size(size, front_end, shown)
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise _unreadable(error, shown) from error
    with data:
        source = ModelSource(data=data, name=shown, folder=folder, sha256=lambda: _sha256(file, shown))
        return read(front_end, source)


def front_end_of(head: bytes, name: str) -> FrontEnd:
    """The front end for a file: by its first bytes, then by its suffix, else the first of ``FRONT_ENDS``."""
    suffix = os.path.splitext(name)[1].lower()
    by_magic = (each for each in FRONT_ENDS if any(head.startswith(magic, at) for at, magic in each.magic))
    by_suffix = (each for each in FRONT_ENDS if suffix in each.suffixes)
    return next(chain(by_magic, by_suffix), FRONT_ENDS[0])


def _sha256(file: IO[bytes], shown: str) -> str:
    """Digest of the whole file, read in chunks: mapped pages would count as memory of this process."""
    digest = hashlib.sha256()
    try:
        file.seek(0)
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    except OSError as error:
        raise _unreadable(error, shown) from error
    return digest.hexdigest()


def _check_size(size_bytes: int, front_end: FrontEnd, shown: str) -> None:
    if size_bytes > front_end.max_bytes:
        what = f"the file is larger than {format_size(front_end.max_bytes)}, which no {front_end.name} file is"
        raise ModelError(what, where=(shown,), hint=front_end.size_hint)


def _unreadable(error: Exception, shown: str) -> ModelError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    hint = "is it a file that this user may read?"
    return ModelError(f"the file cannot be read: {reason.lower()}", where=(shown,), hint=hint)
