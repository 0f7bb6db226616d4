"""Measures transfers of a machine, fits cost curves, and renders them as a target."""
