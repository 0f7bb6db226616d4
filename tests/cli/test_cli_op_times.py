"""``--op-times`` on the command line."""

import json
from pathlib import Path

import pytest

from spillprof.cli import run

MODEL = str(Path(__file__).parents[2] / "sample_models" / "unet.onnx")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Names of the model's steps; a file of one second each but for the last, and one name too many."""
    monkeypatch.chdir(tmp_path)
    assert run(["analyze", MODEL, "--strategy", "lru", "--json"]) == 0
    found = [step["name"] for step in json.loads(capsys.readouterr().out)["steps"]]
    lines = [f'"{name}",1' for name in [*found[:-1], "gone"]]
    (tmp_path / "times.csv").write_text("\n".join(["name,seconds", *lines]) + "\n", "utf-8")
    return found


def test_measured_times_are_used_counted_and_listed(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["analyze", MODEL, "--op-times", "times.csv", "--sram", "12MB", "--strategy", "interval"]
    assert run([*arguments, "--json"]) == 0
    profile = json.loads(capsys.readouterr().out)
    assert profile["op_times"] == {
        "source": "times.csv", "measured_steps": len(names) - 1, "estimated_steps": 1, "estimated": names[-1:],
        "unused_names": 1, "unused": ["gone"],
    }  # fmt: skip
    assert profile["ideal"]["latency_s"] == pytest.approx(len(names) - 1, rel=1e-3)
    assert run([*arguments, "--no-report"]) == 0
    assert f"times of times.csv: {len(names) - 1} steps measured, 1 estimated" in capsys.readouterr().out


def test_without_the_option_every_time_is_estimated(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", MODEL, "--strategy", "lru", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["op_times"] is None


def test_a_sweep_uses_them(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", MODEL, "--sram", "32MB", "--strategy", "lru", "--jobs", "1", "--json", "--op-times", "times.csv"]
    assert run(sweep) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["latency_s"] == pytest.approx(len(names) - 1, rel=1e-3)


def test_a_gate_refuses_to_compare_measured_with_estimated(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    gate = ["gate", MODEL, "--sram", "12MB"]
    assert run([*gate, "--op-times", "times.csv", "--update"]) == 0
    assert run([*gate, "--op-times", "times.csv"]) == 0
    capsys.readouterr()
    assert run(gate) != 0
    assert "op_times" in capsys.readouterr().out


def test_a_plan_is_costed_with_them(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--sram", "12MB"]
    assert run(["analyze", MODEL, *common, "--strategy", "lru", "--plan", "plan.json", "--no-report"]) == 0
    capsys.readouterr()
    assert run(["verify", MODEL, "plan.json", *common, "--op-times", "times.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["latency_s"] > len(names) - 1


def test_a_configuration_names_the_file_beside_it(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spillprof.toml").write_text('op-times = "times.csv"\n', "utf-8")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert run(["analyze", MODEL, "--strategy", "lru", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["op_times"]["measured_steps"] == len(names) - 1


def test_times_of_another_model_are_an_error(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.csv").write_text("name,ms\nlayer_1,3\n", "utf-8")
    assert run(["analyze", MODEL, "--op-times", "other.csv"]) == 2
    assert "no operator of the model has a time in the file" in capsys.readouterr().err
