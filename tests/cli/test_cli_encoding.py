"""Pages on terminals and pipes that cannot encode every character, and display widths."""

import io
import os
import subprocess
import sys
from functools import cache

import pytest

from spillprof.cli.streams import make_encodable, with_whole_bars
from spillprof.report.text import BARS, display_width, ljust, rjust, shorten_middle

UNET = "sample_models/unet.onnx"


def _run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "spillprof", *arguments],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


@cache
def _analyze(**environment):
    """What a pipe gets: of a process of its own, whose stdout really has that encoding."""
    done = _run(
        "analyze", UNET, "--sram", "12MB", "--strategy", "lru", "--what-if", "off", "--no-report", **environment
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437", "cp932"])
def test_page_has_no_escape_and_the_same_columns_in_every_code_page(encoding):
    usual = _analyze(PYTHONIOENCODING="utf-8").decode().splitlines()
    page = _analyze(PYTHONIOENCODING=encoding).decode(encoding).splitlines()
    assert "\\u" not in "".join(page)
    assert [len(line) for line in page] == [len(line) for line in usual]
    assert any(line.startswith("    live    ") and "@" in line and BARS[-1] not in line for line in page)


def test_names_that_cannot_be_encoded_are_escaped_and_nothing_breaks(tmp_path):
    page = _run("inspect", str(tmp_path / "卷积.onnx"), PYTHONIOENCODING="cp1252")
    assert page.returncode == 2
    assert b"\\u5377\\u79ef.onnx" in page.stderr


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "utf-8"}, {"COLUMNS": "60"}])
def test_piped_page_has_no_control_character(environment):
    assert b"\x1b" not in _analyze(**environment)


def test_signs_are_replaced_one_by_one_and_the_rest_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    make_encodable(stream)
    stream.write("−5 µs · f… → é")
    stream.flush()
    assert stream.buffer.getvalue() == b"-5 us | f~ > \\xe9"


def test_bars_are_all_blocks_or_all_ascii():
    assert with_whole_bars(f"a {BARS}", "utf-8") == f"a {BARS}"
    assert with_whole_bars(f"a {BARS}", "gbk") == f"a {BARS}"
    assert with_whole_bars(f"a {BARS}", "cp437") == "a .:-=+*#@"


def test_wide_characters_take_two_columns_and_marks_none():
    assert [display_width(text) for text in ("conv", "卷积", "e\u0301", "ｗ", "")] == [4, 4, 1, 2, 0]
    assert (ljust("卷积", 6), rjust("卷积", 6)) == ("卷积  ", "  卷积")


def test_cut_names_fit_their_columns():
    assert shorten_middle("卷积卷积卷积卷积", 8) == "卷…卷积"
    assert display_width(shorten_middle("卷" * 100, 9)) <= 9
