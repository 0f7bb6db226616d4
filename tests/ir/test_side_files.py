"""Side files: regular files only, bounded in size, depth, digits and values; errors name the place."""

import io
import json
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from spillprof.ir.errors import UsageError
from spillprof.ir.side_files.json_text import parse_json
from spillprof.ir.side_files.kinds import FileKind
from spillprof.ir.side_files.opening import decoded_stdin, read_bytes, read_text, watched
from spillprof.ir.side_files.tables import check_table
from spillprof.ir.side_files.toml_text import parse_toml

SMALL = FileKind(what="the thing", most_bytes=1000, most_values=100, most_lines=5)
LARGE = FileKind(what="the thing", most_bytes=1 << 24, most_values=4_000_000)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


def said(error: pytest.ExceptionInfo[UsageError]) -> str:
    return " | ".join((error.value.message, *error.value.where))


@POSIX
@pytest.mark.parametrize(
    ("name", "reason"), [("pipe", "it is a pipe"), ("/dev/zero", "it is a device"), (".", "it is a folder")]
)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, name: str, reason: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError) as caught:
        read_text(tmp_path / name, SMALL)
    assert caught.value.message == "cannot read the thing"
    assert reason in caught.value.where[0]


def test_a_name_with_a_null_character_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot read the thing"):
        read_bytes("a\0b", SMALL)


def test_a_file_is_read_up_to_its_limit_and_not_beyond(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 1000)
    assert read_bytes(path, SMALL) == b"x" * 1000
    path.write_bytes(b"x" * 1001)
    with pytest.raises(UsageError, match="the thing is larger than 1000 B"):
        read_bytes(path, SMALL)


def test_a_huge_file_is_not_read_to_be_refused(tmp_path: Path) -> None:
    with open(tmp_path / "f", "wb") as file:
        file.truncate(1 << 33)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="larger than"):
            read_bytes(tmp_path / "f", LARGE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a file without a size")
def test_a_file_without_a_size_is_bounded_too() -> None:
    with pytest.raises(UsageError, match="larger than 1000 B"):
        read_bytes("/proc/self/status", SMALL)


def test_bytes_that_are_no_text_are_placed(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one\ntwo \xff\n")
    with pytest.raises(UsageError, match="is not UTF-8 text") as caught:
        read_text(tmp_path / "f", SMALL)
    assert "line 2, byte 8" in said(caught)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbfa")
    assert read_text(tmp_path / "f", SMALL) == "a"


def test_stdin_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, result in ((b"x" * 1000, "x" * 1000), (b"x" * 1001, None)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        if result is None:
            with pytest.raises(UsageError, match="larger than 1000 B"):
                decoded_stdin(SMALL)
        else:
            assert decoded_stdin(SMALL) == result


def test_a_watcher_is_told_and_may_object(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    told: list[str] = []
    with watched(told.append):
        read_text(tmp_path / "f", SMALL)
    read_text(tmp_path / "f", SMALL)
    assert told == [str(tmp_path / "f")]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 64 + "]" * 64,
        json.dumps("[" * 500),
        json.dumps(["[{" * 50, '\\"[[' * 50, "]" * 200]),
        "[" + ",".join(["[[]]"] * 30) + "]",
        '{"a": ' + "9" * 100 + "}",
        json.dumps(["9" * 300, "1e999", ", 1e999 ,", "NaN"]),
        "[1e99, -1.5e+99, 1e-400, 0.1000000000000000055511151231257827021181583404541015625]",
    ],
)
def test_json_within_its_limits_is_read_as_it_stands(text: str) -> None:
    assert parse_json(text, LARGE, "f") == json.loads(text)


@pytest.mark.parametrize(
    ("text", "complaint", "place"),
    [
        ("[" * 65 + "]" * 65, "nested more than 64 deep", "line 1 column 65"),
        ('{"a":\n' * 65 + "1" + "}" * 65, "nested more than 64 deep", "line 65 column 1"),
        ("[" * 100_000, "nested more than 64 deep", "line 1 column 65"),
        ("]" * 500 + "[" * 65, "nested more than 64 deep", ""),
        ('["]]]]]", ' * 65 + "1" + "]" * 65, "nested more than 64 deep", "column 641"),
        ('{"a": 1,\n "b": ' + "9" * 101 + "}", "number of more than 100 digits", "line 2 column 7"),
        ('{"a": 0.' + "9" * 101 + "}", "number of more than 100 digits", "line 1 column 9"),
        ("[1e400]", "number beyond 1e99", "line 1 column 2"),
        ("[1, -2.5E+0100]", "number beyond 1e99", "line 1"),
        ('["NaN", NaN]', "a number that is not finite", "line 1 column 9"),
        ("[\n-Infinity]", "a number that is not finite", "line 2 column 1"),
        ("[1,,]", "is no JSON", "column 4"),
        ('["\\', "is no JSON", "column"),
        ('"' + '\\"' * 100_000, "is no JSON", "column"),
        ('"[' * 50_000, "nested more than 64 deep", "column 260"),
        ("", "is no JSON", "column 1"),
    ],
)
def test_json_beyond_its_limits_is_refused_with_the_place(text: str, complaint: str, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_json(text, LARGE, "f.json")
    assert complaint in said(caught)
    assert place in said(caught)
    assert "f.json" in said(caught)


def test_json_of_many_values_is_refused_before_they_are_made() -> None:
    assert parse_json("[" + "1," * 98 + "1]", SMALL, "f") == [1] * 99
    with pytest.raises(UsageError, match="more than 100 values"):
        parse_json("[" + "1," * 100 + "1]", SMALL, "f")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = " + "[" * 64 + "]" * 64, None),
        ("a = '''" + "[" * 100 + "'''", "[" * 100),
        ('a = """x\\"' + "[" * 100 + '"""""', 'x"' + "[" * 100 + '""'),
        ("a = 1 # " + "[" * 100 + "x." * 100 + "9" * 200, 1),
        ('a = "' + "9" * 200 + "x." * 100 + '"', "9" * 200 + "x." * 100),
        ("a = [" + "1.5, " * 100 + "]", [1.5] * 100),
        ("a = " + "9" * 100, int("9" * 100)),
        (".".join("a" * 17) + " = 1", None),
    ],
)
def test_toml_within_its_limits_is_read_as_it_stands(text: str, value: object) -> None:
    found = parse_toml(text, LARGE, "f")["a"]
    assert found == value or value is None


@pytest.mark.parametrize(
    ("text", "complaint", "place"),
    [
        ("x = 1\na = " + "[" * 990 + "]" * 990, "nested more than 64 deep", "line 2 column 69"),
        ("a = " + "{a=" * 990, "nested more than 64 deep", "line 1"),
        ('a = ["""x"""", ' + "[" * 990, "nested more than 64 deep", "line 1"),
        (".".join("a" * 18) + " = 1", "a key of more than 16 dots", "line 1 column 1"),
        ('\n"a" . ' + "'b'." * 17 + "c = 1", "a key of more than 16 dots", "line 2 column 1"),
        ("[" + ".".join(["a"] * 50_000) + "]", "a key of more than 16 dots", "column 2"),
        ("a = " + "9" * 5000, "a number of more than 100 digits", "line 1 column 5"),
        ("a = -" + "9_" * 80 + "9", "a number of more than 100 digits", "line 1 column 5"),
        ("a = 0x" + "f" * 100_000, "a number of more than 100 digits", "line 1 column 5"),
        ("a = 0." + "9" * 5000, "a number of more than 100 digits", "line 1 column 5"),
        ("a = \n", "is not valid TOML", "line 1"),
        ("a.b = 1\n" * 2, "is not valid TOML", "line 2"),
        ('a = """' + "\\\\" * 100_000, "is not valid TOML", ""),
        ('a = "' + '\\"' * 100_000, "is not valid TOML", ""),
    ],
)
def test_toml_beyond_its_limits_is_refused_with_the_place(text: str, complaint: str, place: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_toml(text, LARGE, "f.toml")
    assert complaint in said(caught)
    assert place in said(caught)
    assert "f.toml" in said(caught)


def test_tables_of_many_lines_or_cells_are_refused() -> None:
    check_table("a,b\n" * 5, SMALL, "f.csv")
    for text, complaint in (("\n" * 6, "more than 5 lines"), ("," * 101, "more than 100 cells")):
        with pytest.raises(UsageError, match=complaint):
            check_table(text, SMALL, "f.csv")
