"""Static memory layout: offsets for buffers with known live ranges. ``lay_out`` is the entry point."""
