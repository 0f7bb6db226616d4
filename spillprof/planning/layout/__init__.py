"""Static placement: offsets for buffers whose lifetimes are given. ``lay_out`` is the way in."""
