"""Loads the two modules of the onnx package that reading a model needs, without the package itself.

``import onnx`` also imports its checker, composer, converters, printer and ml_dtypes, which takes longer than reading
and inspecting a small model. Only the command line loads onnx in part: other programs may need the whole package.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

_MODULES = ("onnx_ml_pb2", "onnx_cpp2py_export")


def import_light() -> None:
    """Puts the modules into ``sys.modules``, unless onnx is imported or its files lie elsewhere in this version."""
    if "onnx" in sys.modules:
        return
    package = find_spec("onnx")
    folders = package.submodule_search_locations if package else None
    specs = [PathFinder.find_spec(f"onnx.{name}", folders) for name in _MODULES] if folders else []
    for spec in specs:
        if spec is None or spec.loader is None or spec.name in sys.modules:
            continue
        module = sys.modules[spec.name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[spec.name]
            raise
