"""Configuration files: which file applies, its keys, and its errors."""

from pathlib import Path

import pytest

from spillprof.cli import run
from spillprof.cli.config import Config, find_config, load_config, parse_config
from spillprof.ir.errors import UsageError
from spillprof.ir.target import load_target

SAMPLES = Path(__file__).parents[2] / "sample_models"
UNET = str(SAMPLES / "unet.onnx")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)


def _config(text: str, name: str = "spillprof.toml") -> Config:
    return parse_config(text, Path("/p") / name)


def _complaint(text: str, name: str = "spillprof.toml") -> UsageError:
    with pytest.raises(UsageError) as caught:
        _config(text, name)
    return caught.value


def test_the_nearest_file_upwards_wins(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "spillprof.toml").write_text('sram = "1MiB"', "utf-8")
    assert load_config(start=inner).settings == {"sram": "1MiB"}
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.spillprof]\nsram = "2MiB"', "utf-8")
    assert load_config(start=inner).settings == {"sram": "2MiB"}
    (tmp_path / "a" / "spillprof.toml").write_text('sram = "3MiB"', "utf-8")
    assert load_config(start=inner).settings == {"sram": "3MiB"}


@pytest.mark.parametrize(
    "text", ["[tool.ruff]\n", "[tool]\n", "tool = 1\n", "broken = [", "[project]\nname='spillprof'\n"]
)
def test_a_pyproject_that_is_not_about_us_is_passed_by(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    (tmp_path / "x").mkdir()
    assert find_config(tmp_path / "x") != tmp_path / "pyproject.toml"


def test_a_broken_file_of_ours_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.spillprof]\nsram = [", "utf-8")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_config(start=tmp_path)


def test_an_unknown_key_names_file_key_and_nearest_key() -> None:
    error = _complaint('[tool.spillprof]\nstratgy = "lru"', "pyproject.toml")
    assert error.message == "unknown key 'stratgy'"
    assert error.where == ("/p/pyproject.toml: [tool.spillprof] stratgy",)
    assert error.hint == "did you mean 'strategy'?"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('sram = "1,5MiB"', "'1,5MiB' is not a size", "sram"),
        ("sram = -1", "'-1' is not a size", "sram"),
        ("sram = true", "True is no quantity", "sram"),
        ('dram-read = "32mbps"', "'32mbps' is not a bandwidth", "dram-read"),
        ('fuse = "all"', "'all' is none of none, standard", "fuse"),
        ('cold = "yes"', "'yes' is no switch", "cold"),
        ("inplace = 1", "1 is none of on, off", "inplace"),
        ("strategy = []", "an empty list", "strategy"),
        ("pin = [1]", "1 is no text", "pin"),
        ("top = -1", "-1 is not a whole number from 0 up", "top"),
        ("gate = 1", "this is no table", "[gate]"),
        ('[gate]\nmax-increase = "1"', "'1' is not a percentage", "[gate] max-increase"),
        ('[gate]\nmetrics = ["spills"]', "'spills' is none of spill-bytes", "[gate] metrics"),
        ("[gate]\nmax-incraese = 1", "unknown key 'max-incraese'", "[gate] max-incraese"),
        ('[targets.t]\nsrma = "1MiB"', "unknown key 'srma'", "[targets.t] srma"),
        ('[targets.t]\nsram = "x"', "'x' is not a size", "[targets.t] sram"),
        ('[targets.t]\ninherit = "none"', "unknown target 'none'", "[targets.t] inherit"),
        ('[targets.a]\ninherit = "b"\n[targets.b]\ninherit = "a"', "inherits from itself", "inherit"),
        ('targets = "x"', "this is no table", "[targets]"),
        ('models = "x"', "models are a list of tables", "[models]"),
        ("[[models]]\nname = 'a'", "model 1 has no path", "[models] path"),
        ("models = [1]", "this is no table", "[models]"),
        ("[[models]]\npath = 'a'\ndims = { n = 'x' }", "'x' is not a whole number", "[models] dims"),
        ("[[models]]\npath = 'a'\nshapes = { n = 3 }", "gives no shapes", "[models] shapes"),
        ("[[models]]\npath = 'a'\nmax-spill = '-1'", "'-1' is not a size", "[models] max-spill"),
        ("[[models]]\npath = 'a'\nmax-latency = '1MB'", "'1MB' is not a time", "[models] max-latency"),
        ("[[models]]\npath = 'a'\ntargets = ['t']", "unknown target 't'", "a"),
        ("[[models]]\npath = 'a'\n[[models]]\npath = 'a'", "model 'a' is listed twice", "a"),
    ],
)
def test_an_error_names_the_file_and_the_key(text: str, message: str, place: str) -> None:
    error = _complaint(text)
    assert message in error.message
    assert error.where[0].startswith("/p/spillprof.toml")
    assert place in error.where[0]


def test_models_with_targets_budgets_and_lines() -> None:
    config = _config(
        '[tool.spillprof.targets.npu]\nsram = "2MiB"\n\n[[tool.spillprof.models]]\npath = "m/a.onnx"\n'
        'dims = { batch = 1 }\nshapes = { x = [1, 3] }\ntargets = ["npu", "generic-npu"]\nmax-spill = "24MiB"\n'
        'max-latency = "2ms"\nmax-energy = "3uJ"\nmax-peak = 0\n\n[[ tool . spillprof . models ]]\npath = "m/a.onnx"\n'
        'name = "a2"\nbatch = 2\n',
        "pyproject.toml",
    )
    first, second = config.models
    assert (first.name, first.line, first.targets) == ("m/a.onnx", 4, ("npu", "generic-npu"))
    assert (first.bindings.dims, first.bindings.shapes) == ({"batch": 1}, {"x": (1, 3)})
    assert first.budgets.spill_bytes == 24 * 2**20
    assert first.budgets.latency_s == pytest.approx(2e-3)
    assert first.budgets.energy_j == pytest.approx(3e-6)
    assert first.budgets.peak_bytes == 0
    assert (second.name, second.line, second.bindings.batch) == ("a2", 14, 2)


def test_targets_inherit_and_say_where_their_figures_come_from() -> None:
    config = _config(
        '[targets.small]\ninherit = "large"\nsram = "1MiB"\n[targets.large]\nsram = "8MiB"\ndram-read = "4GB/s"\n'
        'dram-write-setup = "2us"\nalign = 32\nstrided-views = true\n'
    )
    small, large = config.targets["small"], config.targets["large"]
    assert (small.sram_bytes, large.sram_bytes) == (2**20, 2**23)
    assert small.dram_read_bytes_per_s == 4e9
    assert small.dram_write_setup_s == pytest.approx(2e-6)
    assert (small.alignment_bytes, small.strided_views, small.name) == (32, True, "small")
    assert small.macs_per_s == config.target("generic-npu").macs_per_s
    assert small.sources["sram_bytes"] == "spillprof.toml"


def test_a_target_may_shadow_the_built_in_one_that_it_changes() -> None:
    config = _config('[targets.generic-npu]\nsram = "1MiB"\n')
    assert config.target("generic-npu").sram_bytes == 2**20


def test_a_target_file_lies_beside_the_configuration() -> None:
    assert _config('target = "npu.toml"').settings["target"] == str(Path("/p/npu.toml"))


def _sram_of(arguments: list[str], capsys: Capture) -> str:
    assert run(["info", "config", *arguments]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("sram "))
    return " ".join(line.split()[1:])


def test_option_beats_environment_beats_file_beats_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def spilled(*arguments: str) -> str:
        assert run(["analyze", UNET, "--strategy", "lru", "--no-report", *arguments]) == 0
        return next(line for line in capsys.readouterr().out.splitlines() if "SRAM" in line)

    assert _sram_of([], capsys) == "- default"
    (tmp_path / "spillprof.toml").write_text('sram = "10MiB"', "utf-8")
    assert "SRAM 10 MiB" in spilled()
    assert _sram_of([], capsys) == f"10 MiB (10,485,760 B) {tmp_path / 'spillprof.toml'}"
    monkeypatch.setenv("SPILLPROF_SRAM", "11MiB")
    assert "SRAM 11 MiB" in spilled()
    assert _sram_of([], capsys) == "11 MiB (11,534,336 B) environment SPILLPROF_SRAM"
    assert "SRAM 12 MiB" in spilled("--sram", "12MiB")


def test_a_named_target_keeps_its_own_figures_against_those_of_the_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "spillprof.toml").write_text('sram = "10MiB"\n[targets.t]\nsram = "13MiB"\n', "utf-8")
    assert run(["analyze", UNET, "--strategy", "lru", "--no-report", "--target", "t"]) == 0
    assert "SRAM 13 MiB" in capsys.readouterr().out
    assert run(["inspect", UNET, "--target", "x"]) == 2


def test_every_command_takes_a_file(tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "other.toml"
    other.write_text(
        'sram = "12MiB"\nstrategy = "interval"\npin = ["down0/relu2"]\ninplace = false\ncold = true\ntop = 1\n'
    )
    file = ["--config", str(other)]
    assert run(["analyze", UNET, "-o", "p.json", "--plan", "plan.json", *file]) == 0
    assert '"pin": ["down0/relu2"]' in Path("p.json").read_text("utf-8")
    assert run(["verify", UNET, "plan.json", *file]) == 0
    assert run(["inspect", UNET, *file]) == 0
    assert run(["gate", UNET, *file]) == 0
    capsys.readouterr()
    assert run(["info", "config", *file]) == 0
    assert "down0/relu2" in capsys.readouterr().out
    assert run(["analyze", UNET, "--config", "absent.toml"]) == 2
    assert "absent.toml: No such file" in capsys.readouterr().err


def test_the_command_that_reproduces_names_the_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "spillprof.toml").write_text('sram = "12MiB"\nstrategy = "lru"\n', "utf-8")
    assert run(["analyze", UNET, "--json"]) == 0
    assert '--json --config spillprof.toml"' in capsys.readouterr().out


def test_targets_of_the_file_are_listed_and_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "spillprof.toml").write_text('[targets.npu-2m]\nsram = "2MiB"\n', "utf-8")
    assert run(["info", "targets"]) == 0
    assert "npu-2m          SRAM 2 MiB" in capsys.readouterr().out
    monkeypatch.setenv("_SPILLPROF_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "spillprof gate --target npu")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert run([]) == 0
    assert capsys.readouterr().out.splitlines() == ["plain,npu-2m"]


def test_targets_inherit_through_a_bounded_number_of_others(tmp_path: Path) -> None:
    def chain(length: int) -> str:
        links = (f'[targets.t{i}]\ninherit = "t{i + 1}"\n' for i in range(length))
        return "".join(links) + f"[targets.t{length}]\nsram = '1MB'\n"

    assert parse_config(chain(16), tmp_path / "spillprof.toml").targets["t0"].sram_bytes == 1 << 20
    for length in (17, 1000):
        with pytest.raises(UsageError, match="'t0' inherits through more than 16 others"):
            parse_config(chain(length), tmp_path / "spillprof.toml")


def test_files_of_targets_inherit_through_a_bounded_number_of_others(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"t{i}.toml").write_text(f'inherit = "t{i + 1}.toml"\n', "utf-8")
    (tmp_path / "t40.toml").write_text('inherit = "generic-npu"\nsram_bytes = "1MB"\n', "utf-8")
    assert load_target(str(tmp_path / "t26.toml")).sram_bytes == 1 << 20
    with pytest.raises(UsageError, match="a target inherits through more than 16 others"):
        load_target(str(tmp_path / "t0.toml"))
