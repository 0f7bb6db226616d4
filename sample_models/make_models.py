"""Deterministic builders of the sample models."""
