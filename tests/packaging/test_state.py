"""State lives in the Engine: no module keeps a cache, and no cache is keyed by the address of a value."""

import ast
from pathlib import Path

import spillprof

ROOT = Path(spillprof.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

IDENTITY = {"frontends", "lowering"}
"""Rooms whose passes tell nodes of one graph apart by identity, in tables that end with the pass."""


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]  # fmt: skip


def test_no_module_keeps_a_cache() -> None:
    kept = [
        str(module.relative_to(ROOT))
        for module in MODULES
        for node in ast.parse(module.read_text("utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _calls(node.value, "LruCache")
    ]
    assert kept == []


def test_nothing_is_keyed_by_an_address() -> None:
    keyed = [
        str(module.relative_to(ROOT))
        for module in MODULES
        if module.relative_to(ROOT).parts[0] not in IDENTITY and _calls(ast.parse(module.read_text("utf-8")), "id")
    ]
    assert keyed == []
