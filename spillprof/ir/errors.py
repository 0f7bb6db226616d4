"""Errors that a user can cause. Each says what is wrong, where, and one concrete next step."""

from collections.abc import Sequence


class SpillprofError(Exception):
    """Could not evaluate: bad usage, bad input or an impossible request. Exit code 2.

    ``message`` is one lower-case line without a trailing period; ``where`` holds location lines (shown as
    ``  --> ...``); ``hint`` is the next step. Names that come from a model may be put in raw: the command line
    escapes control characters when it prints.
    """

    exit_code = 2

    def __init__(self, message: str, *, where: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = tuple(where)
        self.hint = hint


class UsageError(SpillprofError):
    """An option or argument has a value that cannot be used."""


class ModelError(SpillprofError):
    """The model file cannot be read, is malformed, or uses an unsupported feature."""


class ShapeError(ModelError):
    """The size of a tensor cannot be inferred, or the model's shapes contradict each other."""


class CapacityError(SpillprofError):
    """The program cannot run in the given SRAM, whatever is spilled."""


class PlanError(SpillprofError):
    """A plan file cannot be read, or does not belong to the model."""


class ProfileError(SpillprofError):
    """A saved profile cannot be read, or lacks a part that an export needs."""
