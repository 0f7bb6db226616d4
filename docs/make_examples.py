"""Renews what commands print in the pages that show it. ``python docs/make_examples.py``; a test checks the pages.

A page is Markdown. Comments in it, which readers do not see, say how its blocks are made:

``<!-- folder: FILE ... -->``   the commands run in a new folder, with copies of these files of the repository
``<!-- save: NAME -->``         the next block is a file: it is written into that folder
``<!-- show: 1 3-5 -->``        of the output below, keep these paragraphs (counted from 1); without it, all
``<!-- exit: 1 -->``            the next command is to end with this code; without it, with 0

A block that starts with ``$ spillprof ...`` or ``$ python ...`` is a command, and what it prints on stdout follows.
Other blocks are left alone.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("docs/tutorial.md", "docs/explanation.md", "docs/tiling.md")

_PART = re.compile(
    r"<!-- (?P<key>folder|save|show|exit): (?P<value>.+?) -->\n"
    r"|^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PROGRAMS = {"spillprof": ["-m", "spillprof"], "python": []}


def renewed(page: str) -> str:
    """The page with every output as the commands print it now. ``AssertionError`` where a command ends otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        notes: dict[str, str] = {}

        def renew(part: re.Match[str]) -> str:
            if part["key"] == "folder":
                for name in part["value"].split():
                    shutil.copy(ROOT / name, folder)
            elif part["key"]:
                notes[part["key"]] = part["value"]
            else:
                text = part["text"]
                if "save" in notes:
                    (Path(folder) / notes["save"]).write_text(text, encoding="utf-8", newline="\n")
                elif text.startswith("$ ") and text.split()[1] in _PROGRAMS:
                    text = _renewed_block(text, folder, notes)
                notes.clear()
                return f"```{part['kind']}\n{text}```"
            return part[0]

        return _PART.sub(renew, page)


def _renewed_block(text: str, folder: str, notes: dict[str, str]) -> str:
    """The command, and what it prints."""
    command = re.match(r"\$ (?:.*\\\n)*.*\n", text)
    assert command is not None
    program, *arguments = shlex.split(command[0][2:])
    done = subprocess.run(
        [sys.executable, *_PROGRAMS[program], *arguments],
        capture_output=True,
        cwd=folder,
        env=_environment(),
        check=False,
    )
    expected = int(notes.get("exit", "0"))
    assert done.returncode == expected, f"{command[0]}ended with {done.returncode}: {done.stderr.decode()}"
    return command[0] + _shown(done.stdout.decode("utf-8").replace("\r\n", "\n"), notes.get("show"))


def _environment() -> dict[str, str]:
    """As in a new shell, with UTF-8 whatever the system's own encoding is."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("SPILLPROF_") and name != "COLUMNS"
    }
    always = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}
    return {**kept, **always, "SPILLPROF_OPTIMIZE_SECONDS": "600"}  # on a busy machine the search takes longer


def _shown(output: str, wanted: str | None) -> str:
    """The paragraphs that are wanted, with ``...`` for those between."""
    if wanted is None:
        return output
    paragraphs = output.rstrip("\n").split("\n\n")
    numbers = [i for item in wanted.split() for i in _range(item)]
    assert max(numbers) <= len(paragraphs), f"there are {len(paragraphs)} paragraphs, not {max(numbers)}"
    parts = ["  ..."] if numbers[0] > 1 else []
    for before, i in zip([0, *numbers], numbers, strict=False):
        parts += ["  ..."] if 0 < before < i - 1 else []
        parts.append(paragraphs[i - 1])
    parts += ["  ..."] if numbers[-1] < len(paragraphs) else []
    return "\n\n".join(parts) + "\n"


def _range(item: str) -> range:
    first, _, last = item.partition("-")
    return range(int(first), int(last or first) + 1)


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        path = ROOT / name
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
