"""Baselines of two branches in real merges."""

import json

import pytest
from gate_models import Project, chain

from spillprof.cli import run

NAMES = ("a", "b", "c", "d", "e")


def _branch(project: Project, name: str) -> None:
    project.git("checkout", "-q", "-b", name, "main")


def _update(project: Project, message: str) -> None:
    assert run(["gate", "--update", "-q"]) == 0
    project.commit(message)


def _watched(project: Project) -> list[str]:
    return list(json.loads(project.baseline.read_text("utf-8"))["entries"])


@pytest.fixture
def five(project: Project) -> Project:
    project.add_models(NAMES[2:])
    _update(project, "five models")
    return project


@pytest.mark.parametrize(("left", "right"), [("a", "b"), ("b", "a"), ("b", "c"), ("d", "e"), ("a", "e")])
@pytest.mark.parametrize("shrinks", [False, True])
def test_two_branches_that_touch_different_models_merge(five: Project, left: str, right: str, shrinks: bool) -> None:
    if shrinks:  # rows of operators and buffers appear on one side and vanish on the other
        chain(five.folder / "models" / f"{right}.onnx", skip=True)
        _update(five, "spills at first")
    _branch(five, "left")
    chain(five.folder / "models" / f"{left}.onnx", skip=True, prefix="left")
    _update(five, "left")
    _branch(five, "right")
    chain(five.folder / "models" / f"{right}.onnx", skip=not shrinks, convs=6)
    _update(five, "right")
    five.git("merge", "-q", "--no-edit", "left")
    assert run(["gate", "--ratchet"]) == 0
    merged = five.baseline.read_bytes()
    assert run(["gate", "--update", "-q"]) == 0
    assert five.baseline.read_bytes() == merged


@pytest.mark.parametrize("added", ["0", "a1", "b1", "z"])
@pytest.mark.parametrize("touched", NAMES)
def test_a_new_model_merges_with_a_change_of_another(five: Project, added: str, touched: str) -> None:
    _branch(five, "left")
    five.add_models([added])
    _update(five, "one more")
    _branch(five, "right")
    chain(five.folder / "models" / f"{touched}.onnx", skip=True)
    _update(five, "right")
    five.git("merge", "-q", "--no-edit", "left")
    assert run(["gate", "--ratchet"]) == 0
    assert len(_watched(five)) == 6


def test_two_new_models_merge_where_others_lie_between(five: Project) -> None:
    _branch(five, "left")
    five.add_models(["a1"])
    _update(five, "left")
    _branch(five, "right")
    text = (five.folder / "pyproject.toml").read_text("utf-8")
    five.add_models(["c1"])
    new = (five.folder / "pyproject.toml").read_text("utf-8").removeprefix(text)
    (five.folder / "pyproject.toml").write_text(text.replace("[[tool", new + "\n[[tool", 1), "utf-8")
    _update(five, "right")
    five.git("merge", "-q", "--no-edit", "left")
    assert run(["gate"]) == 0
    assert len(_watched(five)) == 7
