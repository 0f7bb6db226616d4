"""The share of padding in the peak: terminal page, HTML, Markdown and JSON."""

import json

import pytest
from graphs import MACHINE, graph

from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions
from spillprof.ir.profile import Profile
from spillprof.report.json_text import profile_json
from spillprof.report.profile.html import render as render_html
from spillprof.report.profile.markdown import render as render_markdown
from spillprof.report.profile.terminal import render as render_terminal


def analysed(**target: int) -> Profile:
    """c and r, of 5 channels of 16 elements each, are live at once when step 1 makes r."""
    g = graph({"x": (1, 3, 4, 4)}, ["Conv x w -> c", "Softmax c -> r", "Conv r v -> y"], "y",
              weights={"w": (5, 3, 1, 1), "v": (2, 5, 1, 1)},
              tensors={"c": (1, 5, 4, 4), "r": (1, 5, 4, 4), "y": (1, 2, 4, 4)})  # fmt: skip
    return analyze(g, MACHINE.with_overrides(**target), AnalyzeOptions(strategies=("lru",)))


def test_every_page_says_how_much_is_padding() -> None:
    # Stored as 16 channels: 2 x 1,024 B, of which 2 x 11 x 64 B are padding.
    profile = analysed(channel_align=16, alignment_bytes=64)
    sentence = (
        "At most 2 KiB of activations are live, at #1 r; 1.38 KiB of it is padding (channels to 16, sizes to 64 B)."
    )
    page = render_terminal(profile, color=False, width=200, top=3)
    assert sentence in page
    assert sentence in render_markdown(profile).replace("&#35;", "#")
    assert "at step 1; 1.38 KiB of it is padding" in render_html(profile)
    model = json.loads(profile_json(profile, events=False))["model"]
    assert (model["peak_live_bytes"], model["peak_padding_bytes"]) == (2048, 1408)


def test_alignment_alone_is_named_alone() -> None:
    # x of 192 B and c of 320 B, stored in 512 B each.
    page = render_terminal(analysed(alignment_bytes=512), color=False, width=200, top=3)
    assert "At most 1 KiB of activations are live, at #0 c; 512 B of it is padding (sizes to 512 B)." in page


@pytest.mark.parametrize("channels", [1, 5])
def test_nothing_is_said_where_nothing_is_padded(channels: int) -> None:
    profile = analysed(channel_align=channels, alignment_bytes=64)
    assert profile.model.peak_padding_bytes == 0
    assert "padding" not in render_terminal(profile, color=False, width=200, top=3)
    assert "at step 1; none of it is padding" in render_html(profile)
