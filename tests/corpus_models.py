"""The corpus of real models, if present: names, bindings, and graphs, each read once."""

import csv
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from spillprof.ir.graph import Graph

CORPUS = Path(os.environ.get("SPILLPROF_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
ABSENT = f"no model corpus at {CORPUS} (set SPILLPROF_CORPUS)"


def rows(index: str) -> list[dict[str, str]]:
    """The rows of an index of the corpus; none where there is no corpus."""
    path = CORPUS / index
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.is_file() else []


MODELS = {row["file"]: row for row in rows("models.csv")}
"""What the index says of each model, by file name."""

needs_models = pytest.mark.skipif(not MODELS, reason=ABSENT)


def bindings(file: str) -> dict[str, int]:
    """Dimensions to bind. The corpus writes ``?NAME.AXIS`` for what we call ``NAME[AXIS]``."""
    dims: Mapping[str, int] = json.loads(MODELS[file]["dims"] or "{}")
    return {re.sub(r"^\?(.+)\.(\d+)$", r"\1[\2]", key): size for key, size in dims.items()}


@cache
def graph_of(file: str) -> Graph:
    """The model as its index binds it. It is read once in a process: a graph never changes."""
    from spillprof.frontends import read_model  # not above: the process that deals out the tests reads nothing

    return read_model(CORPUS / "models" / file, dims=bindings(file))
