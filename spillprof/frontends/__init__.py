"""Readers of input from outside: models, targets, operator times, traces, measured transfers."""

from spillprof.frontends.models import read_model

__all__ = ["read_model"]
