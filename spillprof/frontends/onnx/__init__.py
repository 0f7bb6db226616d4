"""Reads ONNX models into Graphs, without loading their weights."""

from spillprof.frontends.onnx.reader import read_onnx, read_onnx_bytes, read_onnx_stream

__all__ = ["read_onnx", "read_onnx_bytes", "read_onnx_stream"]
