"""Selects buffers to recompute instead of spilling: by rules, or jointly with what is spilled."""
