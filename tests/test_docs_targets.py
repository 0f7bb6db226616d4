"""docs/targets.md and the fields and targets that there are."""

import re
from pathlib import Path

from spillprof.ir.target import builtin_target_names
from spillprof.ir.target_fields import field_names

PAGE = (Path(__file__).parents[1] / "docs" / "targets.md").read_text("utf-8")


def test_the_page_describes_every_field() -> None:
    table = PAGE[PAGE.index("## Fields") : PAGE.index("## Built-in targets")]
    described = set(re.findall(r"`\[?([a-z_]+)\]?`", table))
    assert set(field_names()) - {"name"} <= described


def test_the_page_lists_every_builtin_target() -> None:
    table = PAGE[PAGE.index("## Built-in targets") : PAGE.index("## vela.ini")]
    assert set(builtin_target_names()) <= set(re.findall(r"`([a-z0-9-]+)`", table))
