"""Writes the list of formats in docs/exports.md. ``python docs/make_exports.py``; a test checks that it is current."""

import re
from pathlib import Path

from spillprof.report.exports.registry import markdown_list

START, END = "<!-- list of formats -->", "<!-- end of the list -->"

if __name__ == "__main__":
    page = Path(__file__).parent / "exports.md"
    made = "\n".join((START, "", *markdown_list(), "", END))
    text = re.sub(f"{START}.*?{END}", lambda _: made, page.read_text("utf-8"), flags=re.DOTALL)
    page.write_text(text, encoding="utf-8", newline="\n")
