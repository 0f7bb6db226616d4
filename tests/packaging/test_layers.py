"""Imports point down the layers, and each heavy library is imported in one place."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "spillprof"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("__init__",),
    ("ir",),
    ("frontends", "lowering", "planning", "timing", "verify"),
    ("analysis",),
    ("engine",),
    ("explain",),
    ("studies",),
    ("report",),
    ("cli",),
    ("__main__",),
)
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

PEERS = {
    ("lowering.fitting", "spillprof.planning.liveness"),
    ("lowering.fitting", "spillprof.planning.tiling.menus"),
    ("lowering.im2col", "spillprof.planning.liveness"),
    ("lowering.algorithms", "spillprof.planning.options"),
    ("lowering.algorithms", "spillprof.planning.planner"),
    ("lowering.algorithms", "spillprof.timing.timeline"),
}
"""Imports within a layer. Fitting a program to a memory, and blocks to what is free of it, ask what is live, and
whether a tile fits. Which algorithms convolutions run with is judged by playing the run.
"""

HOMES = {
    "onnx": ("frontends",),
    "google": ("frontends",),
    "pandas": ("report.exports.tables",),
    "plotly": ("report.profile.step_figures", "report.sweep.figures"),
    "pyarrow": ("report.sweep.data",),
    "distributed": ("studies.sweep.cluster",),
    "jinja2": ("report",),
    "markdown_it": ("report.page",),
    "rich": ("report.profile.terminal",),
    "highspy": ("planning", "engine.recompute.binary_program"),
    "click": ("cli",),
    "cuda": ("frontends.calibration.cuda",),
}
"""Where each library may be imported: a part of the package, or one module of it."""


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts), path


def _imports(path: Path) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of everything that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            assert node.module is not None
            if node.module == "spillprof":  # names of it are modules, or defined in its __init__
                yield from (
                    (f"spillprof.{a.name}" if a.name in LEVEL else "spillprof.__init__", node.lineno)
                    for a in node.names
                )
            else:
                yield node.module, node.lineno


MODULES = dict(_modules())


def test_imports_point_down() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, path in MODULES.items()
        for name, line in _imports(path)
        if module != "__init__"  # it names what the package offers, for type checkers; it imports when asked
        if name.startswith("spillprof.") and _points_up(module, name) and (module, name) not in PEERS
    ]
    assert wrong == []


def test_libraries_are_imported_only_at_home() -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module, path in MODULES.items()
        for name, line in _imports(path)
        for homes in [HOMES.get(name.split(".")[0])]
        if homes is not None and not any(module == home or module.startswith(f"{home}.") for home in homes)
    ]
    assert wrong == []


def _points_up(module: str, name: str) -> bool:
    own, other = module.split(".")[0], name.split(".")[1]
    return other != own and LEVEL[other] >= LEVEL[own]


def test_the_verifier_shares_no_code_with_the_planner() -> None:
    for module, path in MODULES.items():
        if module.split(".")[0] == "verify":
            own = {name for name, _ in _imports(path) if name.startswith("spillprof.")}
            assert all(name.startswith(("spillprof.ir", "spillprof.verify")) for name in own), module


def test_the_page_lists_the_rooms_in_order_each_with_its_sentence() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rooms = [room for layer in LAYERS for room in layer if (PACKAGE / room).is_dir()]
    sentences = {}
    for room in rooms:
        text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8")))
        assert text, room
        sentences[room] = text.splitlines()[0]
    assert re.findall(r"^\| \[`(\w+)`\]\(.*?\) \| (.*) \|$", page, re.MULTILINE) == list(sentences.items())


def test_every_part_of_the_package_has_a_layer() -> None:
    assert {module.split(".")[0] for module in MODULES} <= set(LEVEL)
