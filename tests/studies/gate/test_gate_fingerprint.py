"""Settings at their default are absent from fingerprints: an added field makes no baseline stale."""

import json
from dataclasses import dataclass, fields
from typing import Any

import pytest
from gate_models import Project

from spillprof.cli import run
from spillprof.explain.options import AnalyzeOptions, configuration
from spillprof.ir.graph import Bindings
from spillprof.ir.revision import SIMULATOR_REVISION
from spillprof.ir.target import Target, load_target
from spillprof.studies import fingerprint as module
from spillprof.studies.fingerprint import default_setting, fingerprint, without_defaults
from spillprof.studies.gate.compare import mismatches
from spillprof.studies.gate.values import Entry, Figures

Capture = pytest.CaptureFixture[str]
CONFIG = configuration(AnalyzeOptions(strategies=("lru",)))
TOTALS = Figures(spill_bytes=0, latency_ns=0, peak_live_bytes=0, energy_pj=0, spill_count=0, reload_count=0)


@dataclass(frozen=True, kw_only=True)
class _Later(Target):
    """The target of a later version, with a field more."""

    banks: int = 1


def _later(**more: int) -> _Later:
    target = load_target("generic-npu")
    return _Later(**{column.name: getattr(target, column.name) for column in fields(target)}, **more)


def _entry(config: dict[str, Any]) -> Entry:
    return Entry(config=config, model_sha256="", totals=TOTALS)


def test_a_field_of_a_later_version_counts_where_it_is_not_at_its_default() -> None:
    today = fingerprint(load_target("generic-npu"), CONFIG, Bindings())
    assert fingerprint(_later(), CONFIG, Bindings()) == today
    assert fingerprint(_later(banks=4), CONFIG, Bindings()) == {**today, "target.banks": 4}


def test_an_option_of_a_later_version_counts_where_it_is_not_at_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    target = load_target("generic-npu")
    today = fingerprint(target, CONFIG, Bindings())
    monkeypatch.setattr(module, "configuration", lambda options: {**configuration(options), "banking": "off"})
    assert fingerprint(target, {**CONFIG, "banking": "off"}, Bindings()) == today
    assert fingerprint(target, {**CONFIG, "banking": "on"}, Bindings()) == {**today, "banking": "on"}


def test_only_what_differs_from_its_default_is_named() -> None:
    target = Target(name="t", sram_bytes=65536, dram_read_bytes_per_s=1e9, dram_write_bytes_per_s=1.5e9,
                    dram_read_setup_s=1e-6, dram_write_setup_s=0.0, sram_bytes_per_s=1e11, cores=2,
                    macs_per_s={"default": 1e12})  # fmt: skip
    assert fingerprint(target, CONFIG, Bindings(dims={"batch": 4}, batch=2)) == {
        "simulator": SIMULATOR_REVISION,
        "strategy": "lru",
        "dims": "batch=4",
        "batch": 2,
        "target.sram_bytes": 65536,
        "target.dram_read_bytes_per_s": 1000000000,
        "target.dram_write_bytes_per_s": 1500000000,
        "target.dram_read_setup_s": "1e-06",
        "target.dram_write_setup_s": 0,
        "target.sram_bytes_per_s": 100000000000,
        "target.cores": 2,
        "target.macs_per_s": "default=1000000000000",
    }


def test_an_entry_that_names_defaults_too_is_comparable() -> None:
    """Baselines of earlier versions name every field."""
    now = fingerprint(load_target("generic-npu"), CONFIG, Bindings())
    full = {**now, "target.dma_read_channels": 1, "target.weight_staging_bytes": None, "dims": "", "pin": "",
            "inplace": True, "act_dtype": None, "target.background_bytes_per_s": 0}  # fmt: skip
    assert without_defaults(full) == now
    assert mismatches(_entry(now), _entry(full)) == mismatches(_entry(full), _entry(now)) == ()


def test_what_is_absent_is_compared_as_its_default() -> None:
    now = fingerprint(load_target("generic-npu"), CONFIG, Bindings())
    then = {**now, "simulator": SIMULATOR_REVISION - 1, "inplace": False, "target.dma_read_channels": 2, "moon": 1}
    assert mismatches(_entry(now), _entry(then)) == (
        f"simulator: baseline {SIMULATOR_REVISION - 1}, now {SIMULATOR_REVISION}",
        "inplace: baseline False, now True",
        "moon: baseline 1, now 'absent'",
        "target.dma_read_channels: baseline 2, now 1",
    )


def test_every_option_and_every_field_that_may_be_left_out_has_a_default() -> None:
    absent = object()
    named = [key for key in CONFIG if key != "strategies"]
    named += [f"target.{name}" for name in Target.__dataclass_fields__ if name not in ("name", "sources")]
    required = {key.removeprefix("target.") for key in named if default_setting(key, otherwise=absent) is absent}
    assert required == {
        "sram_bytes", "dram_read_bytes_per_s", "dram_write_bytes_per_s", "dram_read_setup_s", "dram_write_setup_s",
        "sram_bytes_per_s",
    }  # fmt: skip


def test_a_committed_baseline_that_names_every_default_still_judges(project: Project, capsys: Capture) -> None:
    data = json.loads(project.baseline.read_text("utf-8"))
    for entry in data["entries"].values():
        assert "target.dma_read_channels" not in entry["config"]
        entry["config"] |= {"target.dma_read_channels": 1, "release": "last-use", "batch": None, "shapes": ""}
    project.baseline.write_text(json.dumps(data), "utf-8")
    assert run(["gate"]) == 0
    assert "2 of 2 passed" in capsys.readouterr().out
    for entry in data["entries"].values():
        entry["config"]["release"] = "end"
    project.baseline.write_text(json.dumps(data), "utf-8")
    assert run(["gate"]) == 2
    assert "release: baseline 'end', now 'last-use'" in capsys.readouterr().out
