"""docs/targets.md lists every target field and every built-in target."""

import re
import runpy
from pathlib import Path

from spillprof.ir.target import builtin_target_names

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "targets.md").read_text("utf-8")


def test_the_table_of_fields_is_that_of_the_registry() -> None:
    assert runpy.run_path(str(DOCS / "make_targets.py"))["render"](PAGE) == PAGE, "run: python docs/make_targets.py"


def test_the_page_lists_every_builtin_target() -> None:
    table = PAGE[PAGE.index("## Built-in targets") : PAGE.index("## vela.ini")]
    assert set(builtin_target_names()) <= set(re.findall(r"`([a-z0-9-]+)`", table))
