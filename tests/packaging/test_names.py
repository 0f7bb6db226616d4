"""One public word has one meaning in the whole package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import spillprof

ROOT = Path(spillprof.__file__).parent

DOORS = {"command", "render", "render_csv", "render_json", "render_markdown", "to_json", "schema", "TYPE_CHECKING"}
"""What many modules offer in the same sense: the command that a module is, its rendering of a value."""


def public_names(module: Path) -> Iterator[str]:
    """Classes, functions, constants and aliases that a module defines."""
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found = [node.name]
        elif isinstance(node, ast.Assign):
            parts = [e for t in node.targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
            found = [part.id for part in parts if isinstance(part, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found = [node.target.id]
        else:
            found = []
        yield from (name for name in found if not name.startswith("_"))


def test_a_public_name_is_defined_once() -> None:
    where = defaultdict(list)
    for module in sorted(ROOT.rglob("*.py")):
        for name in public_names(module):
            where[name].append(str(module.relative_to(ROOT)))
    assert {name: modules for name, modules in where.items() if len(modules) > 1 and name not in DOORS} == {}


def test_files_hold_at_most_350_lines() -> None:
    lengths = {str(m.relative_to(ROOT)): len(m.read_text("utf-8").splitlines()) for m in ROOT.rglob("*.py")}
    assert {name: n for name, n in lengths.items() if n > 350} == {}
