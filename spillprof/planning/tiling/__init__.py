"""Tilings of a loop nest: what each moves and needs on-chip, and those worth choosing from in a given memory."""
