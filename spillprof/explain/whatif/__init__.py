"""What would change if something were different: every answer is a run of its own, never a phrase."""
