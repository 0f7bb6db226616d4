"""Plan to Timeline: issue times of transfers, and the simulation of a plan on a target."""
