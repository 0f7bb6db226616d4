"""Graph to Program: from operators and tensors of a model to steps and buffers of a machine."""
