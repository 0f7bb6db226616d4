"""Lower bounds on what plans spill: the covering problem, methods that weigh its rows, and proofs in integers."""
