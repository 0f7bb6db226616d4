"""Measured operator times in files of other tools."""

import json
from pathlib import Path
from typing import Any

import pytest

from spillprof.frontends.op_times import read_op_times
from spillprof.ir.errors import UsageError
from spillprof.ir.op_times import TimeUnit


def written(tmp_path: Path, content: object) -> str:
    path = tmp_path / "times"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("name,seconds\na,0.5\nb,1e-3\n", {"a": 0.5, "b": 1e-3}),
        ("name,time_us\na,500\n", {"a": 500e-6}),
        ("\ufeffNode Name,Time (ms)\r\na,0.5\r\n", {"a": 0.5e-3}),
        ("op_type;node;avg ns\nConv;a;250\n", {"a": 250e-9}),
        ("operator\tduration\na\t1.5us\nb\t2 ms\n", {"a": 1.5e-6, "b": 2e-3}),
        ('time_us,name\n3,"a,b"\n\n4,c\n', {"a,b": 3e-6, "c": 4e-6}),
        ("name,seconds\na,3\na,1\na,2\n", {"a": 2.0}),
        ("name,µs\na,0\n", {"a": 0.0}),
    ],
)
def test_a_table_names_its_unit_in_the_header(tmp_path: Path, text: str, seconds: dict[str, float]) -> None:
    times = read_op_times(written(tmp_path, text))
    assert times.unit is TimeUnit.SECONDS
    assert dict(times.times) == pytest.approx(seconds)


def test_layers_of_vela_are_cycles_of_npu_or_sram(tmp_path: Path) -> None:
    """Transfers off-chip, which the cycles of the whole operator hold too, are simulated here."""
    header = "Original Operator,NNG Operator,Target,Op Cycles,NPU,SRAM AC,DRAM AC,Name\n"
    rows = (
        "CONV_2D,Conv2D,NPU,900,100,120,900,a\n"
        + header
        + "CONV_2D,Conv2D,NPU,50,40,30,50,a\nADD,Add,NPU,9,8,7,9,b,c\n"
    )
    times = read_op_times(written(tmp_path, header + rows))
    assert times.unit is TimeUnit.CYCLES
    assert dict(times.times) == {"a": 160.0, "b,c": 8.0}
    assert times.seconds(2.0) == {"a": 80.0, "b,c": 4.0}


def kernel(name: str, ts: float, dur: float, cat: str = "Node") -> dict[str, Any]:
    return {"cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1, "ph": "X", "args": {"op_name": "Conv"}}


def test_a_profile_gives_the_median_run_of_each_node(tmp_path: Path) -> None:
    events = [
        kernel("model_loading", 0, 5, "Session"),
        *(kernel("model_run", 1000 * run, 900, "Session") for run in (1, 2, 3)),
        *(kernel("a_kernel_time", 1000 * run + 10, dur) for run, dur in ((1, 90), (2, 10), (3, 12))),
        *(kernel("a_fence_before", 1000 * run + 5, 1) for run in (1, 2, 3)),
        *(kernel("body_kernel_time", 1000 * run + at, 4) for run in (1, 2, 3) for at in (20, 30)),
        "no event",
    ]
    expected = {"a": 12e-6, "body": 8e-6}
    assert dict(read_op_times(written(tmp_path, events)).times) == pytest.approx(expected)
    assert dict(read_op_times(written(tmp_path, {"traceEvents": events})).times) == pytest.approx(expected)


def test_without_marks_of_runs_every_event_is_one(tmp_path: Path) -> None:
    events = [kernel("a_kernel_time", 0, dur) for dur in (1, 5, 2)]
    assert dict(read_op_times(written(tmp_path, events)).times) == pytest.approx({"a": 2e-6})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "there is no time in the file"),
        ("name,seconds\n", "there is no time in the file"),
        ("a,0.5\nb,0.6\n", "no column of names, or none of times"),
        ("name,speed\na,3\n", "no column of names, or none of times"),
        ("name,min_us,max_us\na,3,4\n", "several columns give times"),
        ("name,time_us\na\n", "a line has too few columns"),
        ("name,time_us\na,fast\n", "'fast' is no time"),
        ("name,time_us\na,-1\n", "'-1' is no time"),
        ("name,time_us\na,nan\n", "'nan' is no time"),
        ("name,time\na,3\n", "'3' is not a time"),
        ('name,time_us\n"a' + "x" * 200_000 + '",3\n', "the file of times is no CSV"),
        ("Op Cycles,NPU,Name\n5,4\n", "a line has too few columns"),
        ("Op Cycles,NPU,Name\n5,x,a\n", "'x' is no time"),
        ("[{", "the file of times is no JSON"),
        ("[" * 100_000, "the file of times is nested more than 64 deep"),
        ({"a": 3}, "no profile of ONNX Runtime"),
        ([], "the profile has no event of a node"),
        ([kernel("a_kernel_time", 0, -1)], "has dur = -1"),
        ([{"cat": "Node", "name": "a_kernel_time", "ts": 1}], "has dur = None"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path: Path, content: object, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_op_times(written(tmp_path, content))
    assert complaint in caught.value.message
    assert caught.value.where


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the file of times"):
        read_op_times(str(tmp_path / "none.csv"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_op_times(str(tmp_path / "binary"))
