"""Shell arguments of suggestions are read back unchanged."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillprof.explain.whatif.change import rate_word, shell_word
from spillprof.ir.units import LARGEST_SIZE, parse_rate, parse_size, size_word


@given(st.integers(1, LARGEST_SIZE))
def test_sizes_are_read_back_exactly(nbytes: int) -> None:
    assert parse_size(size_word(nbytes)) == nbytes


@given(st.floats(1, 1e15))
def test_rates_are_read_back_exactly_or_not_written(bytes_per_s: float) -> None:
    for rate in (bytes_per_s, float(round(bytes_per_s))):
        word = rate_word(rate)
        assert (word is None) == (not rate.is_integer())
        assert word is None or parse_rate(word) == rate


def test_words_are_short() -> None:
    assert [size_word(n) for n in (36 << 20, 3 << 30, 1536 << 10, 70_000)] == ["36MiB", "3GiB", "1536KiB", "70000"]
    assert [rate_word(r) for r in (120e9, 1.5e9, 1234567.0)] == ["120GB/s", "1500MB/s", "1234567B/s"]
    assert [shell_word(w) for w in ("skip_0", "/model.2/cv1", "a b", "it's")] == [
        "skip_0", "/model.2/cv1", "'a b'", "'it'\"'\"'s'",
    ]  # fmt: skip


def test_control_characters_are_escaped() -> None:
    assert shell_word("\x1b[2J\u202e'\\") == "$'\\x1b[2J\\xe2\\x80\\xae\\'\\\\'"
    assert shell_word("a\0b") is None
    assert shell_word("\ud800") is None


@pytest.mark.skipif(os.name == "nt" or shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1), min_size=1))
def test_bash_reads_every_name_back(names: list[str]) -> None:
    words = " ".join(filter(None, map(shell_word, names)))
    assert words.isprintable()
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True, env=env, timeout=60
    )
    assert done.stdout.decode() == "".join(f"{name}\0" for name in names)
