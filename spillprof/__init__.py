"""spillprof: what it costs when a model's tensors do not fit into on-chip memory, and why.

For programs: ``read_model`` reads a model, ``analyze`` makes its Profile, ``load_program`` and ``estimate`` judge one
order of its steps (docs/library.md).
"""

TYPE_CHECKING = False  # as type checkers know it; the command line starts without the module that has it
if TYPE_CHECKING:
    from spillprof.engine.engine import Engine
    from spillprof.engine.estimation import Estimate, estimate, load_program
    from spillprof.explain.analyze import analyze
    from spillprof.explain.options import AnalyzeOptions
    from spillprof.frontends import read_model
    from spillprof.ir.profile import Profile
    from spillprof.ir.target import Target, load_target

__version__ = "0.1.0"

__all__ = [
    "AnalyzeOptions", "Engine", "Estimate", "Profile", "Target", "__version__", "analyze", "estimate", "load_program",
    "load_target", "read_model",
]  # fmt: skip

_HOMES = {
    "AnalyzeOptions": "spillprof.explain.options",
    "Engine": "spillprof.engine.engine",
    "Profile": "spillprof.ir.profile",
    "analyze": "spillprof.explain.analyze",
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
