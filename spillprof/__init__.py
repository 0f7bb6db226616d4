"""spillprof: what it costs when a model's tensors do not fit into on-chip memory, and why.

For programs: ``read_model`` reads a model, ``load_program`` and ``estimate`` judge one order of its steps
(docs/library.md).
"""

TYPE_CHECKING = False  # as type checkers know it; the command line starts without the module that has it
if TYPE_CHECKING:
    from spillprof.engine.estimation import Estimate, estimate, load_program
    from spillprof.frontends import read_model
    from spillprof.ir.target import Target, load_target

__version__ = "0.1.0"

__all__ = ["Estimate", "Target", "__version__", "estimate", "load_program", "load_target", "read_model"]

_HOMES = {
    "Estimate": "spillprof.engine.estimation",
    "estimate": "spillprof.engine.estimation",
    "load_program": "spillprof.engine.estimation",
    "Target": "spillprof.ir.target",
    "load_target": "spillprof.ir.target",
    "read_model": "spillprof.frontends",
}


def __getattr__(name: str) -> object:
    """What the package offers, imported when it is first asked for: the command line starts without it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'spillprof' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
