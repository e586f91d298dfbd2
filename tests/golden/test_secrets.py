"""A stream goes on from the noisy threshold that 0.1 stored; only a ⊤ that ends a group moves it.

The offsets in ``secrets.budget`` were put thousands of people away from the threshold, with so
much ε that all other noise together stays within a few: the chance of a false alarm here is far
below 10⁻¹⁰⁰.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.golden.stored import noted

SLACK = 100
QUESTION = "age >= 0"  # as many as there are people with an age; known to the test below
LOSE = """
import os, signal, sys
import tacit
budget = tacit.Budget.open(sys.argv[1])
table = tacit.open(sys.argv[2], person="pid")
held = [table.resume(name, budget=budget) for name in sys.argv[3:]]
os.kill(os.getpid(), signal.SIGKILL)
"""


def people(stored):
    (steps,) = stored.table().engine.values([stored.table().prepare(QUESTION).question()])
    return steps


def is_at(stream, offset, value, told):
    """Whether the noisy threshold is the threshold plus this offset, as far as answers tell."""
    assert not stream.ask(QUESTION, threshold=value - offset + SLACK)
    limit = value - offset - SLACK
    above = stream.ask(QUESTION, threshold=limit)
    assert above.above
    if told["tells_its_gap"]:
        assert abs(above.gap - (value - limit - offset)) <= SLACK // 2
    return True


def test_a_resumed_stream_goes_on_from_its_stored_offset(stored):
    budget, value, offsets = stored.budget("secrets"), people(stored), noted("offsets")
    for name, told in offsets.items():
        with stored.table().resume(name, budget=budget) as stream:
            assert is_at(stream, told["offset"], value, told), name
    assert {told["tops_in_a_group"] for told in offsets.values()} > {1, 6}


def test_it_stays_there_until_the_group_ends(stored):
    budget, value = stored.budget("secrets"), people(stored)
    for name, told in noted("offsets").items():
        with stored.table().resume(name, budget=budget) as stream:
            for nth in range(1, 6):  # another question each, since a ⊤ is never asked twice
                offset = told["offset"] if nth <= told["tops_in_a_group"] else 0
                limit = value - offset - SLACK - nth
                assert not stream.ask(QUESTION, threshold=value - offset + SLACK + nth), name
                assert stream.ask(QUESTION, threshold=limit), name


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill −9 here")
def test_a_lost_top_moves_it_only_where_it_ends_a_group(stored):
    offsets = noted("offsets")
    path, data = stored.folder / "secrets.budget", stored.folder / "visits.csv"
    ended = subprocess.run(
        [sys.executable, "-c", LOSE, str(path), str(data), *offsets], check=False, timeout=300
    )
    assert ended.returncode == -signal.SIGKILL
    budget, value = stored.budget("secrets"), people(stored)
    for name, told in offsets.items():
        with stored.table().resume(name, budget=budget) as stream:
            assert stream.tops_left == 5
            offset = told["offset"] if told["tops_in_a_group"] > 1 else 0
            assert is_at(stream, offset, value, told), name
