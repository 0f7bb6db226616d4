"""Sweeps: the same models on many memories, bandwidths, dimensions, strategies and placements."""
