"""How a search ended, in the words that profiles carry."""

COMPLETE = "complete"
BY_CLOCK = "cut off by the time limit"
"""Begins what is said of a search that a clock ended: its figures depend on the machine, and are not compared."""
BY_WORK = "ended at its limit of work"
"""Begins what is said of a search that counted its work: the same input always ends there."""
