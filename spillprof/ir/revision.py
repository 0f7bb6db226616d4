"""Which simulator made a figure."""

SIMULATOR_REVISION = 7
"""Part of every baseline and profile. One more whenever the same model, target and options give other figures than
before: baselines made with another revision are not compared, and profiles with a warning."""
