"""spillprof: what it costs when a model's tensors do not fit into on-chip memory, and why."""

__version__ = "0.1.0"
