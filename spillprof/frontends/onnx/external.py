"""Reads small external tensors that sizes may depend on, only from the model's folder.

Models are untrusted: a location must be below the model's folder, without absolute paths, ``..`` or symbolic links out
of it. Only regular files are opened, and only the bytes of the tensor are read.
"""

import hashlib
import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import PurePosixPath, PureWindowsPath
from typing import NamedTuple

from spillprof.frontends.onnx.elements import DTYPE_OF_ELEMENT
from spillprof.frontends.onnx.proto import ModelProto, TensorProto
from spillprof.frontends.onnx.stored_tensors import KEPT_BYTES, KEPT_ELEMENTS
from spillprof.ir.dtypes import DTYPE_BITS

MAX_READ_BYTES = 1 << 24
"""Limit of bytes of all tensors of one model."""

MAX_FILES = 64
"""Limit of files opened for one model."""

_WHOLE = ("int64", "int32", "uint64", "uint32", "int16", "uint16", "int8", "uint8", "bool")
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_LISTED = 4
_SHOWN = 80


class Stored(NamedTuple):
    """Location of a small external tensor as the model states it; unchecked."""

    name: str
    is_whole: bool  # of integers or booleans, which sizes most often follow from
    nbytes: int
    location: str
    offset: str
    length: str | None


class Contents(NamedTuple):
    """The bytes of each tensor, or why they could not be read; one entry a tensor."""

    found: tuple[bytes | None, ...]
    faults: tuple[str, ...]  # "" where there are bytes

    @property
    def digest(self) -> str | None:
        """SHA-256 of all bytes read; None if nothing was read."""
        if not any(piece is not None for piece in self.found):
            return None
        digest = hashlib.sha256()
        for piece in self.found:
            digest.update(b"-" if piece is None else b"%d:%b" % (len(piece), piece))
        return digest.hexdigest()


def stored_outside(model: ModelProto) -> tuple[Stored, ...]:
    """The model's small external tensors, in order."""
    return tuple(_stored(tensor) for tensor in _small_tensors(model))


def put_in(model: ModelProto, contents: Contents) -> None:
    """Stores the bytes that were read in the model."""
    for tensor, piece in zip(_small_tensors(model), contents.found, strict=True):
        if piece is not None:
            tensor.raw_data = piece
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]


def read_stored(tensors: Sequence[Stored], folder: str | None) -> Contents:
    """Contents of tensors in files of ``folder``; None: the model has no folder, and nothing is opened."""
    found: list[bytes | None] = []
    faults: list[str] = []
    left = MAX_READ_BYTES
    with ExitStack() as stack:
        opened: dict[str, tuple[int, int] | str] = {}
        for tensor in tensors:
            piece: bytes | str
            left -= tensor.nbytes
            if folder is None:
                piece = "the model came without a folder"
            elif left < 0:
                piece = f"small tensors of more than {MAX_READ_BYTES:,} bytes are not read"
            else:
                piece = _piece(tensor, folder, opened, stack)
            found.append(piece if isinstance(piece, bytes) else None)
            faults.append("" if isinstance(piece, bytes) else piece)
    return Contents(found=tuple(found), faults=tuple(faults))


def unread(tensors: Sequence[Stored], contents: Contents) -> list[str]:
    """One line for each of the first tensors that could not be read, integers first; empty if all could."""
    missing = [(t, fault) for t, fault in zip(tensors, contents.faults, strict=True) if fault]
    missing.sort(key=lambda entry: not entry[0].is_whole)
    lines = [f"'{t.name[:_SHOWN]}', stored in '{t.location[:_SHOWN]}': {fault}" for t, fault in missing[:_LISTED]]
    return [*lines, f"and {len(missing) - _LISTED:,} more"] if len(missing) > _LISTED else lines


def _small_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """External tensors within the limits up to which contents of stored tensors are kept."""
    for tensor in _tensors(model):
        dtype = DTYPE_OF_ELEMENT.get(tensor.data_type)
        if tensor.data_location != TensorProto.EXTERNAL or dtype is None or dtype not in DTYPE_BITS:
            continue
        count = math.prod(tensor.dims)
        if min(tensor.dims, default=0) >= 0 and (
            (dtype in _WHOLE and count <= KEPT_ELEMENTS) or count * DTYPE_BITS[dtype] <= 8 * KEPT_BYTES
        ):
            yield tensor


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Initializers and Constant nodes, also of bodies and functions."""
    graphs = [model.graph]
    nodes = [function.node for function in model.functions]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            nodes.append(graph.node)
        for node in nodes.pop():
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                graphs.extend(attribute.graphs)
                if attribute.HasField("t") and node.op_type == "Constant":
                    yield attribute.t


def _stored(tensor: TensorProto) -> Stored:
    said = {entry.key: entry.value for entry in tensor.external_data}
    dtype = DTYPE_OF_ELEMENT[tensor.data_type]
    return Stored(
        name=tensor.name,
        is_whole=dtype in _WHOLE,
        nbytes=(math.prod(tensor.dims) * DTYPE_BITS[dtype] + 7) // 8,
        location=said.get("location", ""),
        offset=said.get("offset", "0"),
        length=said.get("length"),
    )


def _piece(tensor: Stored, folder: str, opened: dict[str, tuple[int, int] | str], stack: ExitStack) -> bytes | str:
    """The bytes of a tensor, or why they cannot be read."""
    if not _NUMBER.fullmatch(tensor.offset) or not (tensor.length is None or _NUMBER.fullmatch(tensor.length)):
        return "its offset and length are no numbers"
    offset = int(tensor.offset)
    if tensor.length is not None and int(tensor.length) != tensor.nbytes:
        return f"its length is {tensor.length} bytes, and its shape takes {tensor.nbytes}"
    if tensor.location not in opened:
        known = f"more than {MAX_FILES} files are not opened"
        opened[tensor.location] = known if len(opened) >= MAX_FILES else _opened(tensor.location, folder, stack)
    file = opened[tensor.location]
    if isinstance(file, str):
        return file
    handle, size = file
    end = size if tensor.length is None else offset + tensor.nbytes
    if end > size or end - offset != tensor.nbytes:
        return f"the file has {size:,} bytes, and the tensor takes {tensor.nbytes} from {offset:,} on"
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        piece = os.read(handle, tensor.nbytes)
    except OSError as error:
        return _reason(error)
    return piece if len(piece) == tensor.nbytes else "the file was cut off while it was read"


def _opened(location: str, folder: str, stack: ExitStack) -> tuple[int, int] | str:
    """(handle, size) of a file in the folder, or why it is not opened."""
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    if not location or "\0" in location:
        return "it has no location"
    if posix.is_absolute() or windows.drive or windows.root:
        return "its location is absolute, and only files in the model's folder are opened"
    if ".." in (*posix.parts, *windows.parts) or (os.name == "nt" and ":" in location):
        return "its location leads out of the model's folder, in which alone files are opened"
    try:
        home = os.path.realpath(folder)
        path = os.path.realpath(os.path.join(home, location), strict=True)
        if os.path.commonpath((home, path)) != home:
            return "a link leads out of the model's folder, in which alone files are opened"
        if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe could wait for ever
            return "it is not a regular file"
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(path, flags)
        stack.callback(os.close, handle)
        state = os.fstat(handle)
    except FileNotFoundError:
        return "there is no such file"
    except (OSError, ValueError) as error:
        return _reason(error)
    return (handle, state.st_size) if stat.S_ISREG(state.st_mode) else "it is not a regular file"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).lower()
