"""Recognizes formats that are no supported models, by their first bytes."""


def looks_like(head: bytes) -> str | None:
    """A hint for the user; None for unknown bytes."""
    for start, what in _STARTS:
        if head.startswith(start):
            return what
    if head[4:8] == b"TFL3":
        return "this looks like a TensorFlow Lite model"
    if head[4:8] == b"ORTM":
        return "this looks like a model in onnxruntime's own format: use the ONNX file that it was made from"
    if head[8:10] == b'{"' and head[4:8] == bytes(4):
        return "this looks like safetensors weights, without a graph"
    if head.lstrip().startswith(b"{"):
        return "this looks like JSON"
    if head.lstrip().startswith((b"ir_version:", b"producer_name:")):
        return "this looks like ONNX in text form: convert it to binary with onnx.parser or onnx.load and onnx.save"
    if head and all(byte >= 0x20 or byte in b"\t\r\n" for byte in head):
        return "this looks like a text file"
    return None


_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "this is a git LFS pointer, not the model: run 'git lfs pull'"),
    (b"\x1f\x8b", "this looks like gzip: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "this looks like zstandard: decompress it first"),
    (b"PK\x03\x04", "this looks like a zip archive, or a PyTorch checkpoint: export to ONNX, or unpack it first"),
    (b"\x80\x02", "this looks like a Python pickle: export the model to ONNX"),
    (b"\x89PNG", "this looks like a PNG image"),
    (b"\xff\xd8\xff", "this looks like a JPEG image"),
    (b"%PDF", "this looks like a PDF"),
    (b"\x89HDF", "this looks like HDF5 (Keras): export the model to ONNX"),
    (b"GGUF", "this looks like a GGUF model"),
    (b"\x7fELF", "this looks like a program"),
    (b"<", "this looks like HTML or XML: a web page saved instead of the model?"),
)
