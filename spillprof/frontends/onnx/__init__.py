"""Reads ONNX models into Graphs, without loading their weights."""
