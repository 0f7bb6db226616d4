"""Text and charts of the report about larger and smaller memories."""

import shlex
from dataclasses import replace

import pytest
from profiles import HOSTILE_NAMES, MIB, make_profile

from spillprof.ir.profile import Profile, SizeCurve
from spillprof.report.exports import tables
from spillprof.report.profile.html import render
from spillprof.report.profile.size_figures import size_section, sweep_command


@pytest.fixture(scope="module")
def profile() -> Profile:
    return make_profile()


def test_sentences_name_enough_knee_cliff_and_what_cannot_run(profile: Profile) -> None:
    section = size_section(profile)
    assert section.sentences == (
        "Nothing spills under interval from 40 MiB on (1.25 × this memory); in 36 MiB, 240 MiB spill.",
        "It does not run in less than 24 MiB, grey: step 41 needs 20 MiB at once.",
        "More memory is not always better: in 36 MiB, 240 MiB spill under interval, in 32 MiB only 200 MiB.",
    )
    (_, _, spills), (_, _, latency) = section.figures
    assert spills == (
        "Under interval 900 MiB spill in 24 MiB, 0 in 44 MiB. The knee is at 28 MiB, where 300 MiB spill: up to there "
        "each MiB of memory saves 150 MiB, from there on 18.8 MiB."
    )
    assert latency.startswith("12 ms in this memory under interval; at best 10 ms in 40 MiB, at worst 19 ms in 24 MiB.")


def test_curves_have_their_bound_marks_regions_and_this_run(profile: Profile) -> None:
    (spills, _, _), (latency, _, _) = size_section(profile).figures
    assert [trace["name"] for trace in spills.traces] == ["interval", "lower bound", "knee", "cliff"]
    assert [trace["name"] for trace in latency.traces] == ["interval", "knee", "cliff"]
    assert [words["text"] for words in spills.layout["annotations"]] == [
        "does not run", "operators are tiled", "this run",
    ]  # fmt: skip
    here = spills.layout["shapes"][-1]
    assert here["x0"] == here["x1"] == 32 * MIB
    assert "range" not in spills.layout["yaxis"]


def test_a_cliff_of_gigabytes_does_not_flatten_what_spills_here(profile: Profile) -> None:
    points = [replace(p, spill_bytes=p.spill_bytes and p.spill_bytes * (100 if p.sram_bytes < 28 * MIB else 1))
              for p in profile.size_curve.points]  # fmt: skip
    (spills, _, _), _ = size_section(replace(profile, size_curve=SizeCurve(points=tuple(points)))).figures
    assert spills.layout["yaxis"]["range"] == [0, 8 * 200]
    assert "leave the drawing" in spills.note


def test_without_points_the_page_says_why_and_how_to_have_them(profile: Profile) -> None:
    left_out = replace(profile, size_curve=SizeCurve(left_out="it would take too long"))
    assert size_section(left_out).sentences == ("Other sizes of memory were not tried: it would take too long.",)
    off = replace(profile, size_curve=None)
    assert size_section(off).sentences == ("Other sizes of memory were not tried (--what-if off).",)
    for each in (left_out, off):
        assert "spillprof sweep models/residual_cnn.onnx --sram auto" in render(each)


def test_sizes_that_all_fail_or_all_suffice_have_a_section(profile: Profile) -> None:
    points = profile.size_curve.points
    failed = replace(profile, size_curve=SizeCurve(points=points[:1]))
    assert size_section(failed).sentences[1] == "It runs in none of the sizes tried."
    fine = replace(profile, size_curve=SizeCurve(points=points[-2:]))
    assert size_section(fine).sentences == ("Nothing spills under interval in any size tried: 40 MiB are enough.",)
    for each in (failed, fine):
        assert 'id="sizes"' in render(each)


@pytest.mark.parametrize(
    ("typed", "swept"),
    [
        ("spillprof analyze a.onnx --sram 32MB -o x.html --strategy lru,cost", "a.onnx --strategy lru,cost"),
        ("spillprof analyze --sram=32MB 'my model.onnx' --what-if off --events -ox.json", "'my model.onnx'"),
        ("spillprof analyze a.onnx --dim batch=4 --top 3 --json --no-report", "a.onnx --dim batch=4"),
        ("", "models/residual_cnn.onnx"),
    ],
)
def test_the_command_becomes_a_sweep(profile: Profile, typed: str, swept: str) -> None:
    assert sweep_command(replace(profile, command=typed)) == f"spillprof sweep {swept} --sram auto"


def test_a_tiled_run_is_swept_around_its_own_size_and_settings_stay_in_front(profile: Profile) -> None:
    small = replace(profile, target=replace(profile.target, sram_bytes=20 * MIB),
                    command="SPILLPROF_WEIGHTS='cach ed' spillprof analyze a.onnx")  # fmt: skip
    assert sweep_command(small) == "SPILLPROF_WEIGHTS='cach ed' spillprof sweep a.onnx --sram 10MiB..80MiB"


@pytest.mark.parametrize("command", HOSTILE_NAMES)
def test_any_command_gives_words_for_a_shell(profile: Profile, command: str) -> None:
    assert shlex.split(sweep_command(replace(profile, command=command)))[:2] == ["spillprof", "sweep"]


def test_points_are_a_table_too(profile: Profile) -> None:
    lines = tables.render(profile, table="sizes").splitlines()
    assert lines[0] == "sram_bytes,strategy,spill_bytes,spill_bytes_lower,latency_s,reason"
    assert lines[1] == f"{16 * MIB},interval,,,,step 41 needs 20 MiB at once"
    assert lines[4] == f"{32 * MIB},interval,{200 * MIB},{100 * MIB},0.012,"
    assert len(tables.frame(replace(profile, size_curve=None), "sizes")) == 0
