import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_command_line_reference_is_current() -> None:
    make_cli = runpy.run_path(str(DOCS / "make_cli.py"))
    assert (DOCS / "cli.md").read_text("utf-8") == make_cli["render"](), "run: python docs/make_cli.py"
