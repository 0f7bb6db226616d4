"""A plan played on a target: its timeline, and when each transfer is issued."""
