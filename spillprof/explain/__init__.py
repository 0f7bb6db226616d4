"""What simulating again says: causes, oscillation, bounds, what-ifs; analyze() puts it into a Profile."""
