"""Measured transfers of a machine, the curves fitted to them, and the target that they make."""
