"""Placement problems as CSV: accepted and refused files."""

from pathlib import Path

import pytest

from spillprof.frontends.minimalloc import read_minimalloc, read_minimalloc_bytes
from spillprof.ir.errors import ModelError
from spillprof.ir.layout_problem import Layout, LayoutBuffer
from spillprof.report.packing import render_csv


def test_columns_in_any_order_with_quotes_spaces_and_a_byte_order_mark() -> None:
    data = '\ufeffsize, id ,upper,lower\r\n4,"a,b",3,0\r\n\r\n8, c ,9,3\r\n'.encode()
    assert read_minimalloc_bytes(data, name="x").buffers == (
        LayoutBuffer(name="a,b", lower=0, upper=3, size_bytes=4),
        LayoutBuffer(name="c", lower=3, upper=9, size_bytes=8),
    )


def test_a_solution_is_read_as_a_problem_and_written_as_it_was() -> None:
    text = 'id,lower,upper,size,offset\nb1,0,3,4,8\n"b,2",3,9,4,8\n'
    problem = read_minimalloc_bytes(text.encode(), name="x")
    layout = Layout(offsets=(8, 8), peak_bytes=12, lower_bound_bytes=4, found_by="hand")
    assert render_csv(problem, layout) == text
    assert render_csv(problem, None) == 'id,lower,upper,size\nb1,0,3,4\n"b,2",3,9,4\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("id,lower,upper\na,0,1\n", "there is no column 'size'"),
        ("id,lower,upper,size,size\na,0,1,1,1\n", "there is more than one column 'size'"),
        ("id,lower,upper,size,gaps\na,0,1,1,0-1\n", "column 'gaps' is not understood"),
        ("id,lower,upper,size\na,0,1\n", "3 values where there are 4 columns"),
        ("id,lower,upper,size\na,0,1,1,1\n", "5 values where there are 4 columns"),
        ("id,lower,upper,size\na,0,1,-4\n", "buffer 'a' has the size -4"),
        ("id,lower,upper,size\na,-2,1,4\n", "buffer 'a' begins at time -2"),
        ("id,lower,upper,size\na,1,1,4\n", "buffer 'a' is never live: lower 1, upper 1"),
        ("id,lower,upper,size\na,2,1,4\n", "buffer 'a' is never live: lower 2, upper 1"),
        ("id,lower,upper,size\na,0,1,4.5\n", "size '4.5' is no whole number"),
        ("id,lower,upper,size\na,0,1,1e9\n", "size '1e9' is no whole number"),
        ("id,lower,upper,size\na,0,1,\n", "size '' is no whole number"),
        ("id,lower,upper,size\na,0,1,٣\n", "size '٣' is no whole number"),
        ("id,lower,upper,size\na,0,1,99999999999999999999999\n", "size '99999999999999999999999' is no whole number"),
        ("id,lower,upper,size\na,0,1,2000000000000000000\n", "buffer 'a' is larger than any memory"),
        ("id,lower,upper,size\na,0,1,1152921504606846975\nb,0,1,9\n", "the buffers together are larger than any"),
        ("id,lower,upper,size\na,0,2000000000000000000,2\n", "buffer 'a' lives beyond time 2^60"),
        ("id,lower,upper,size\n,0,1,4\n", "a buffer has no id"),
        ("id,lower,upper,size\na,0,1,4\na,0,1,4\n", "two buffers have the id 'a'"),
        ('id,lower,upper,size\n"a,0,1,4\n', "the file is no CSV"),
        ("id,lower,upper,size\n" + "x" * 200_000 + ",0,1,4\n", "the file is no CSV"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(ModelError) as error:
        read_minimalloc_bytes(text.encode(), name="bad.csv")
    assert error.value.message.startswith(message)
    assert error.value.where[0].startswith("bad.csv")


def test_what_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the file is no text"):
        read_minimalloc_bytes(b"\xff\xfe\x00", name="x")
    with pytest.raises(ModelError, match="cannot read"):
        read_minimalloc(tmp_path)
    with pytest.raises(ModelError, match="cannot read"):
        read_minimalloc("a\0b")


def test_an_error_quotes_no_more_than_a_little_of_a_long_name() -> None:
    with pytest.raises(ModelError) as error:
        read_minimalloc_bytes(b"id,lower,upper,size\n" + b"y" * 50_000 + b",3,1,4\n", name="x")
    assert len(error.value.message) < 200
