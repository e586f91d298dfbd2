"""A sign of life at a terminal, and only there."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from tacit.support import waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def system(stderr):
    """What ``tacit.support`` sees of ``sys``: modules may be loaded meanwhile."""
    return SimpleNamespace(stderr=stderr, modules=sys.modules)


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("tacit.support.sys", system(terminal))
    return terminal


@pytest.fixture
def _slow(monkeypatch):
    """A clock on which every look takes a second."""
    ticks = iter(range(10**9))
    monkeypatch.setattr("tacit.support.monotonic", lambda: float(next(ticks)))


def shown(terminal):
    """What is left on the line, and what stood there on the way."""
    states = terminal.getvalue().split("\r")
    return states[-1], [state for state in states if state.strip()]


def test_it_shows_the_time_after_two_seconds_and_goes(terminal):
    with waiting("drawing") as tell:
        tell(1.9)
        assert terminal.getvalue() == ""
        tell(2.0)
        tell(61.2)
    left, states = shown(terminal)
    assert (left, states) == ("", ["drawing ... 2 s", "drawing ... 61 s"])


def test_it_goes_when_the_work_fails(terminal):
    def work(tell):
        tell(5)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), waiting("drawing") as tell:
        work(tell)
    assert shown(terminal) == ("", ["drawing ... 5 s"])


def test_a_pipe_and_a_quick_work_see_nothing(terminal, monkeypatch):
    assert tacit.vc_dimension(np.eye(5, dtype=int)).dimension == 1
    assert terminal.getvalue() == ""
    pipe = io.StringIO()
    monkeypatch.setattr("tacit.support.sys", system(pipe))
    with waiting("drawing") as tell:
        tell(100)
    assert pipe.getvalue() == ""


@pytest.mark.usefixtures("_slow")
@pytest.mark.parametrize("find", ["vc", "fat"])
def test_a_long_search_shows_that_it_lives(terminal, find):
    matrix = np.random.default_rng(1).integers(0, 2, (40, 40))
    heard: list[float] = []
    dimension = {
        "vc": lambda **more: tacit.vc_dimension(matrix, **more),
        "fat": lambda **more: tacit.fat_shattering_dimension(matrix, "1/4", **more),
    }[find]
    found = dimension()
    assert all(
        line.startswith("searching for a larger shattered set ... ") for line in shown(terminal)[1]
    )
    assert len(shown(terminal)[1]) > 1
    terminal.truncate(0)
    assert dimension(progress=heard.append) == found
    assert heard == sorted(heard)
    assert len(heard) > 1
    assert terminal.getvalue() == ""
