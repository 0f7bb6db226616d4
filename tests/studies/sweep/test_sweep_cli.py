"""``spillprof sweep`` from the command line."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pyarrow.parquet as pq
import pytest
from onnx import helper, numpy_helper

from spillprof.cli import run
from spillprof.cli.progress import ProgressBar
from spillprof.report.json_text import published_schema

SAMPLES = Path(__file__).parents[3] / "sample_models"
UNET, BLOCKS = str(SAMPLES / "unet.onnx"), str(SAMPLES / "transformer_blocks.onnx")


pytestmark = pytest.mark.usefixtures("empty_folder")


def test_a_table_has_a_line_a_size_and_a_column_a_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", UNET, "--sram", "8MB..32MB", "--strategy", "lru,interval", "-j", "1"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +SRAM +lru +interval +lower bound +fastest$", out, re.MULTILINE)
    assert re.search(r"^ +8 MiB +40 MiB +#+ +40 MiB +#+ +40 MiB +[\d.]+ ms +\w+ +tiled$", out, re.MULTILINE)
    assert re.search(r"^ +32 MiB +0 +0 +0 +1.40 ms +\w+$", out, re.MULTILINE)
    assert "smallest SRAM with no spill: 32 MiB (33,554,432 B), lru best-fit" in out


def test_every_format_says_the_same(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [argument for name in ("a.json", "a.csv", "a.parquet", "a.html") for argument in ("-o", name)]
    arguments = ["sweep", UNET, BLOCKS, "--sram", "1MB,2MB", "--vary", "dram-read=30GB/s,60GB/s", "-j", "1",
                 "--strategy", "lru"]  # fmt: skip
    assert run([*arguments, *files]) == 0
    data = json.loads(Path("a.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(published_schema("sweep"))
    jsonschema.validate(data, published_schema("sweep"))
    rows = list(csv.DictReader(io.StringIO(Path("a.csv").read_text("utf-8"))))
    table = pq.read_table("a.parquet").to_pylist()
    assert len(rows) == len(table) == len(data["rows"]) == 8
    for from_json, from_csv, from_parquet in zip(data["rows"], rows, table, strict=True):
        assert from_csv["dram_read_bytes_per_s"] == repr(from_json["settings"]["dram_read_bytes_per_s"])
        for name in ("model", "strategy", "sram_bytes", "spill_bytes", "latency_s", "energy_j", "status", "key"):
            assert from_csv[name] == str(from_json[name])
            assert from_parquet[name] == from_json[name]
    page = Path("a.html").read_text("utf-8")
    assert "default-src 'none'" in page
    assert "dram_read_bytes_per_s=30 GB/s" in page
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["rows"] == data["rows"]


def test_element_types_are_an_axis(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", UNET, "--sram", "4MB", "--strategy", "lru", "-j", "1", "--weight-dtype", "int8",
                 "--act-dtype", "file,int8", "-o", "a.csv", "-o", "a.html", "--json"]  # fmt: skip
    assert run(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, published_schema("sweep"))
    assert [row["settings"] for row in data["rows"]] == [{"act_dtype": "file"}, {"act_dtype": "int8"}]
    assert (data["config"]["act_dtype"], data["config"]["weight_dtype"]) == (["file", "int8"], "int8")
    for row, dtype in zip(data["rows"], ("file", "int8"), strict=True):
        single = ["analyze", UNET, "--sram", "4MB", "--strategy", "lru", "--weight-dtype", "int8", "--json"]
        assert run([*single, "--act-dtype", dtype]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        assert {name: row[name] for name in ("spill_bytes", "latency_s", "energy_j", "peak_bytes")} == {
            name: result[name] for name in ("spill_bytes", "latency_s", "energy_j", "peak_bytes")
        }
    assert [r["act_dtype"] for r in csv.DictReader(io.StringIO(Path("a.csv").read_text("utf-8")))] == ["file", "int8"]
    assert "act_dtype=int8" in Path("a.html").read_text("utf-8")


def test_order_is_an_axis(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "sweep",
        UNET,
        "--sram",
        "4MB",
        "--strategy",
        "cost,lru",
        "-j",
        "1",
        "--order",
        "memory,file",
        "--json",
    ]
    assert run([*arguments, "-o", "a.html"]) == 0
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, published_schema("sweep"))
    assert [row["settings"]["order"] for row in data["rows"]] == ["memory", "memory", "file", "file"]
    assert data["config"]["order"] == ["memory", "file"]
    for order in ("memory", "file"):
        assert run(["analyze", UNET, "--sram", "4MB", "--strategy", "cost,lru", "--order", order, "--json"]) == 0
        results = json.loads(capsys.readouterr().out)["results"]
        rows = [row for row in data["rows"] if row["settings"]["order"] == order]
        for name in ("spill_bytes", "latency_s", "energy_j", "peak_bytes"):
            assert [row[name] for row in rows] == [result[name] for result in results]
    assert "order=memory" in Path("a.html").read_text("utf-8")


def test_auto_reaches_from_the_smallest_sram_to_no_spill(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", BLOCKS, "--strategy", "belady", "-j", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    sizes = [row["sram_bytes"] for row in data["rows"]]
    assert sizes[0] == data["cases"][0]["min_sram_bytes"]
    assert sizes[-1] == data["cases"][0]["ideal_peak_bytes"]
    assert sizes == sorted(set(sizes))
    assert data["rows"][-1]["spill_bytes"] == 0


def test_dimensions_are_swept(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(corpus / "models" / "resnet50_dynbatch_legacy.onnx")
    dims = ["--dim", "batch=1,2", "--dim", "height=224", "--dim", "width=224"]
    assert run(["sweep", model, "--sram", "2MB,4MB", *dims, "--strategy", "lru", "-j", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["dims"] for row in data["rows"]] == [{"batch": 1}] * 2 + [{"batch": 2}] * 2
    assert data["rows"][2]["spill_bytes"] > data["rows"][0]["spill_bytes"]


def test_an_unreadable_model_is_rows_with_its_error_beside_one_that_is_read(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty_folder / "broken.onnx").write_bytes(b"nothing")
    assert run(["sweep", "broken.onnx", BLOCKS, "--sram", "2MB", "--strategy", "lru", "-j", "1", "-o", "a.csv"]) == 0
    out, err = capsys.readouterr()
    assert "1 point failed" in out
    assert "warning: " in err
    assert run(["sweep", "broken.onnx", "--sram", "2MB", "-j", "1"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_where_nothing_fits_the_exit_code_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", UNET, "--sram", "1MB", "--oversized", "error", "-j", "1"]) == 2
    out, err = capsys.readouterr()
    assert "no point could be simulated" in out
    assert err.startswith("error: no point of the sweep could be simulated")


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["--sram", "8MB..1MB"], ["--vary", "dram-reed=1GB/s"], ["--strategy", "lry"], ["--placement", "worst"],
        ["--dim", "batch"], ["--dim", "batch=x"], ["-o", "a.txt"], ["--within", "lots"], ["--resume", "absent.json"],
        ["--vary", "dram-read=1GB/s", "--vary", "dram-read=2GB/s"], ["-o", "absent/a.csv"], ["-j", "0"],
    ],
)  # fmt: skip
def test_invalid_arguments_are_an_error_of_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", *([BLOCKS] if arguments else []), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err


def test_resume_reuses_finished_rows(capsys: pytest.CaptureFixture[str]) -> None:
    base = ["sweep", BLOCKS, "--strategy", "lru", "-j", "1"]
    assert run([*base, "--sram", "1MB..4MB", "-o", "a.csv"]) == 0
    assert run([*base, "--sram", "1MB..8MB", "--resume", "a.csv", "-o", "b.csv"]) == 0
    assert "3 of 4 points taken from a.csv" in capsys.readouterr().err
    assert run([*base, "--sram", "1MB..8MB", "-o", "c.csv"]) == 0
    assert Path("b.csv").read_bytes() == Path("c.csv").read_bytes()


def test_resume_knows_a_model_by_the_external_data_that_sizes_follow_from(capsys: pytest.CaptureFixture[str]) -> None:
    shape = numpy_helper.from_array(np.array([4, 6], np.int64), "s")
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"]), helper.make_node("Softmax", ["y"], ["z"])]
    ends = [helper.make_tensor_value_info(n, 1, dims) for n, dims in (("x", [2, 12]), ("z", None))]
    made = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [shape]))
    onnx.save(made, "m.onnx", save_as_external_data=True, size_threshold=0, location="m.bin")
    base = ["sweep", "m.onnx", "--sram", "64KiB,128KiB", "--strategy", "lru", "-j", "1"]
    assert run([*base, "-o", "a.json"]) == 0
    assert run([*base, "--resume", "a.json"]) == 0
    assert "2 of 2 points taken from a.json" in capsys.readouterr().err
    Path("m.bin").write_bytes(np.array([8, 3], np.int64).tobytes())
    assert run([*base, "--resume", "a.json", "-o", "b.json"]) == 0
    assert "0 of 2 points taken from a.json" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_what_is_finished(empty_folder: Path, jobs: str) -> None:
    pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
    swept = ["--sram", "22MB..80MB/2MB", "--strategy", "lru,interval", "-j", jobs]
    model = str(SAMPLES / "residual_cnn.onnx")
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "spillprof", "sweep", model, *swept, "-o", "part.json", "-o", "part.csv"],
        stdout=subprocess.PIPE, stderr=other_end, start_new_session=True, text=True, preexec_fn=_heed_interrupts,
    )  # fmt: skip
    os.close(other_end)
    shown = b""
    while b" left" not in shown:  # progress: some points are finished
        shown += os.read(terminal, 1000)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    rest = _read_all(terminal)
    assert "Traceback" not in (shown + rest).decode()
    assert re.search(rb"\d+ of 60 points, \d+ (s|min) left", shown)
    assert "Interrupted" in out
    data = json.loads(Path("part.json").read_text("utf-8"))
    jsonschema.validate(data, published_schema("sweep"))
    assert data["complete"] is False
    assert 0 < len(data["rows"]) < 60
    assert all(row["status"] == "ok" for row in data["rows"])
    assert len(Path("part.csv").read_text("utf-8").splitlines()) == len(data["rows"]) + 1


def _heed_interrupts() -> None:
    """Restores Ctrl-C, which a shell disables for background processes and so for all that tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _read_all(terminal: int) -> bytes:
    found = b""
    try:
        while chunk := os.read(terminal, 1000):
            found += chunk
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(terminal)
    return found


def test_progress_is_for_terminals_and_long_work() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((io.StringIO(), True), (Terminal(), False)):
        progress = ProgressBar(stream, shown=shown)
        progress._start_s -= 100
        progress._last_s -= 100
        progress(1, 100)
        assert stream.getvalue() == ""
    terminal = Terminal()
    progress = ProgressBar(terminal, shown=True)
    progress(10, 100)
    assert terminal.getvalue() == ""
    progress._start_s -= 10
    progress._last_s -= 10
    progress(20, 100)
    assert terminal.getvalue() == "\r[####................] 20 of 100 points, 80 s left"
    progress.clear()
    assert terminal.getvalue().endswith("\r" + " " * 50 + "\r")


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [("distributed", ["--dask", "tcp://127.0.0.1:9"], "dask"), ("pyarrow", ["-o", "a.parquet"], "parquet")],
)
def test_an_extra_that_is_missing_is_named(
    module: str, arguments: list[str], extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert run(["sweep", BLOCKS, "--sram", "2MB", "-j", "1", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"hint: pip install 'spillprof[{extra}]'" in err


def test_a_time_limit_for_the_optimum_is_said_to_shape_figures(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sweep", UNET, "--sram", "12MB", "-j", "1", "--strategy", "lru,optimal"]
    assert run([*arguments, "--optimize-seconds", "1"]) == 0
    assert "the figures of optimal depend on this machine" in capsys.readouterr().err
    assert run(arguments) == 0
    assert "depend on this machine" not in capsys.readouterr().err
