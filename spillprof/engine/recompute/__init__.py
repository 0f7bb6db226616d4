"""Which spilled buffers to compute again: by rules, and jointly with what is spilled."""
