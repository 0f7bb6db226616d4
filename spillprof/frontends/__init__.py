"""Everything that comes from outside: models, targets, operator times, traces, measured transfers."""
