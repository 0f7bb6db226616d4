"""Further simulations: causes, oscillation, bounds, what-ifs; analyze() collects them in a Profile."""
