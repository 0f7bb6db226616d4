"""The progress line of long work on a terminal."""

import io
import threading

import pytest
from graphs import MACHINE, chain

from spillprof.cli import progress
from spillprof.cli.progress import stages
from spillprof.explain.analyze import analyze
from spillprof.explain.options import AnalyzeOptions


class Terminal(io.StringIO):
    """Says when something was written."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        self.written.set()
        return super().write(text)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "_QUIET_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")


def test_line_says_which_stage_runs_and_is_gone_in_the_end(at_once):
    terminal = Terminal()
    with stages(terminal, shown=True) as stage:
        stage(3, 9, "strategy cost")
        terminal.written.clear()
        assert terminal.written.wait(30)
    lines = [line.rstrip() for line in terminal.getvalue().split("\r")]
    assert "[######..............] strategy cost, 1 s" in lines
    assert terminal.getvalue().endswith(" \r")


def test_short_work_shows_nothing(monkeypatch):
    monkeypatch.setattr(progress, "_QUIET_S", 1000.0)
    terminal = Terminal()
    with stages(terminal, shown=True) as stage:
        stage(0, 2, "reading")
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("stream", "shown", "term"), [(io.StringIO(), True, "xterm"), (Terminal(), False, "xterm"),
                                                        (Terminal(), True, "dumb")])  # fmt: skip
def test_pipes_quiet_runs_and_dumb_terminals_show_nothing(stream, shown, term, at_once, monkeypatch):
    monkeypatch.setenv("TERM", term)
    with stages(stream, shown=shown) as stage:
        stage(0, 2, "reading")
    assert stream.getvalue() == ""


def test_line_is_cut_before_it_wraps(at_once, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with stages(terminal, shown=True) as stage:
        stage(0, 2, "x" * 100)
        terminal.written.clear()
        assert terminal.written.wait(30)
    assert max(len(line) for line in terminal.getvalue().split("\r")) == 39


def test_failure_inside_takes_the_line_away_and_goes_on(at_once):
    terminal = Terminal()

    def fail():
        with stages(terminal, shown=True) as stage:
            stage(0, 1, "work")
            terminal.written.clear()
            assert terminal.written.wait(30)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.getvalue().endswith(" \r")


def test_analysis_tells_its_stages_in_order_and_how_many_there_are():
    told = []
    options = AnalyzeOptions(strategies=("none", "lru", "cost"), what_if=True)
    analyze(chain(3), MACHINE, options, stage=lambda *stage: told.append(stage))
    assert told == [
        (0, 1, "the program"),
        (1, 5, "strategy lru"),
        (2, 5, "strategy cost"),
        (3, 5, "why it spills"),
        (4, 5, "what would help"),
    ]
