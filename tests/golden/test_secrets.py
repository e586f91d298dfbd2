"""A stream goes on from the noisy threshold that was stored; only a ⊤ that ends a group moves it.

The offsets in ``secrets.budget`` were put thousands of people away from the threshold, with so
much ε that all other noise together stays within a few: the chance of a false alarm here is far
below 10⁻¹⁰⁰.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.golden.stored import every_version

import tacit

SLACK = 100
QUESTION = "age >= 0"  # as many as there are people with an age; known to the test below
LOSE = """
import os, signal, sys
import tacit
from tests.golden.stored import visits_in
version, folder, path, *names = sys.argv[1:]
table, budget = visits_in(version, folder), tacit.Budget.open(path)
held = [table.resume(name, budget=budget) for name in names]
os.kill(os.getpid(), signal.SIGKILL)
"""


def people(stored):
    (steps,) = stored.table().engine.values([stored.table().prepare(QUESTION).question()])
    return steps


def in_a_group(told):
    """How many ⊤ the noisy threshold is for: all, where each has a price."""
    return 10**9 if told["tops_in_a_group"] is None else told["tops_in_a_group"]


def is_at(stream, offset, value, told):
    """Whether the noisy threshold is the threshold plus this offset, as far as answers tell."""
    assert not stream.ask(QUESTION, threshold=value - offset + SLACK)
    limit = value - offset - SLACK
    above = stream.ask(QUESTION, threshold=limit)
    assert above.above
    if told["tells_its_gap"]:
        assert abs(above.gap - (value - limit - offset)) <= SLACK // 2
    return True


@every_version
def test_a_resumed_stream_goes_on_from_its_stored_offset(stored):
    budget, value, offsets = stored.budget("secrets"), people(stored), stored.noted("offsets")
    for name, told in offsets.items():
        with stored.table().resume(name, budget=budget) as stream:
            assert is_at(stream, told["offset"], value, told), name
    assert {told["tops_in_a_group"] for told in offsets.values()} >= {1, 6}


@every_version
def test_it_stays_there_until_the_group_ends(stored):
    budget, value = stored.budget("secrets"), people(stored)
    for name, told in stored.noted("offsets").items():
        with stored.table().resume(name, budget=budget) as stream:
            for nth in range(1, 6):  # another question each, since a ⊤ is never asked twice
                offset = told["offset"] if nth <= in_a_group(told) else 0
                limit = value - offset - SLACK - nth
                assert not stream.ask(QUESTION, threshold=value - offset + SLACK + nth), name
                assert stream.ask(QUESTION, threshold=limit), name


@every_version
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill −9 here")
def test_a_lost_top_moves_it_only_where_it_ends_a_group(stored):
    offsets = stored.noted("offsets")
    path = stored.unpack("secrets")
    ended = subprocess.run(
        [sys.executable, "-c", LOSE, stored.version, stored.folder, path, *offsets],
        check=False,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert ended.returncode == -signal.SIGKILL
    budget, value = stored.enter_context(tacit.Budget.open(path)), people(stored)
    for name, told in offsets.items():
        with stored.table().resume(name, budget=budget) as stream:
            if told["tops_in_a_group"] is not None:
                assert stream.tops_left == 5
            offset = told["offset"] if in_a_group(told) > 1 else 0
            assert is_at(stream, offset, value, told), name
