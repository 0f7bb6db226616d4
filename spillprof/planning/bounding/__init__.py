"""Lower bounds of the covering problem: ways to find weights, and the arithmetic that turns weights into a proof."""
