"""docs/operators.md is current."""

import re
import runpy
from pathlib import Path

import onnx
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_operators_is_current() -> None:
    page = (DOCS / "operators.md").read_text("utf-8")
    written_for = re.search(r"onnx (\d+\.\d+)", page)
    assert written_for is not None
    if not onnx.__version__.startswith(f"{written_for[1]}."):
        pytest.skip(f"the page lists the operators of onnx {written_for[1]}, installed is {onnx.__version__}")
    make = runpy.run_path(str(DOCS / "make_operators.py"))
    assert page == make["render"](), "run: python docs/make_operators.py"
