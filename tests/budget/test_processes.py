"""Many processes at one budget: races, forks, holders that vanish."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, PROCESSES, run, start
from tests.budget.common import lost_by_resuming, open_stream, resume

from tacit.budget import Budget
from tacit.errors import StreamHeld
from tacit.privacy import Cost

RACERS = 8


def _race(target, path: str, rounds: int, prepare) -> list[Counter[str]]:
    """RACERS processes meet at a barrier in each round; what came out, round by round."""
    barrier, results = PROCESSES.Barrier(RACERS + 1), PROCESSES.Queue()
    racers = [start(target, path, barrier, rounds, results) for _ in range(RACERS)]
    outcomes = [Counter[str]() for _ in range(rounds)]
    for number in range(rounds):
        prepare(number)
        barrier.wait(JOIN_SECONDS)
        barrier.wait(JOIN_SECONDS)
        for _ in range(RACERS):
            at, outcome = results.get(timeout=JOIN_SECONDS)
            outcomes[at][outcome] += 1
    for racer in racers:
        racer.join(JOIN_SECONDS)
        assert racer.exitcode == 0
    return outcomes


def _charging(nowhere: str, rounds: int) -> None:
    def prepare(number: int) -> None:
        with Budget.create(f"{nowhere}{number}", epsilon=1, covers=["visits"]) as budget:
            budget.charge(Cost.pure("8/11"), table="visits", what="all but three grains")
        Path(f"{nowhere}{number - 2}").unlink(missing_ok=True)

    for outcome in _race(children.race_to_charge, nowhere, rounds, prepare):
        assert outcome == {"charged": 3, "exhausted": RACERS - 3}
    budget = Budget.open(f"{nowhere}{rounds - 1}")
    assert budget.spent.epsilon == 1
    budget.verify()


def _resuming(nowhere: str, rounds: int) -> None:
    budget = Budget.create(nowhere, epsilon=1, covers=["visits"], wait=60)

    def prepare(number: int) -> None:
        tiny = Cost.pure(Fraction(1, 10**6))
        open_stream(budget, f"stream {number}", at_most=3, cost=tiny).suspend()

    outcomes = _race(children.race_to_resume, nowhere, rounds, prepare)
    for number, outcome in enumerate(outcomes):
        state = budget.stream(f"stream {number}")
        assert 1 <= outcome["above"] == state.tops
        assert state.tops + state.lost + state.reserved <= 3
    budget.verify()


def test_racing_for_the_last_grains(nowhere):
    _charging(nowhere, rounds=5)


def test_racing_to_resume_one_stream(nowhere):
    _resuming(nowhere, rounds=5)


@pytest.mark.long
def test_racing_for_the_last_grains_a_thousand_times(nowhere):
    _charging(nowhere, rounds=1000)


@pytest.mark.long
def test_racing_to_resume_one_stream_a_thousand_times(nowhere):
    _resuming(nowhere, rounds=1000)


def test_a_holder_in_another_process_holds_until_it_is_killed(place):
    budget = Budget.open(place)
    open_stream(budget, at_most=3).suspend()
    results = PROCESSES.Queue()
    holder = start(children.hold_until_killed, place, results)
    results.get(timeout=JOIN_SECONDS)
    with pytest.raises(StreamHeld):
        resume(budget)
    os.kill(holder.pid, signal.SIGKILL)
    holder.join(JOIN_SECONDS)
    assert lost_by_resuming(budget) == 1
    budget.verify()


def test_a_program_that_ends_normally_leaves_cleanly(place):
    assert run(children.end_by_exit, place) == 0
    budget = Budget.open(place)
    assert lost_by_resuming(budget) == 0
    assert budget.stream("flu").tops == 1


def test_a_forked_copy_of_a_stream_refuses(place):
    results = PROCESSES.Queue()
    assert run(children.fork_with_a_lease, place, results) == 0
    code, tops, lost, spent, entries = results.get(timeout=JOIN_SECONDS)
    assert code == 0
    assert (tops, lost, spent, entries) == (1, 0, "3/25", 5)


def test_a_forked_child_can_charge_after_its_parent_closed(place):
    results = PROCESSES.Queue()
    assert run(children.fork_and_let_the_child_go_on, place, results) == 0
    assert results.get(timeout=JOIN_SECONDS) == (0, 8, 8)


def test_a_forked_child_does_not_keep_its_dead_parents_stream(place):
    results = PROCESSES.Queue()
    parent = start(children.die_while_a_forked_child_lives, place, results)
    child, name = results.get(timeout=JOIN_SECONDS)
    parent.join(JOIN_SECONDS)
    try:
        os.kill(child, 0)  # it lives
        assert lost_by_resuming(Budget.open(place), name) == 1
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_budget_in_memory_refuses_in_a_forked_process():
    results = PROCESSES.Queue()
    assert run(children.fork_a_budget_in_memory, results) == 0
    assert results.get(timeout=JOIN_SECONDS) == 0


def test_a_fork_in_the_middle_of_a_transaction(place):
    results = PROCESSES.Queue()
    assert run(children.fork_in_the_middle_of_a_transaction, place, results) == 0
    assert results.get(timeout=JOIN_SECONDS) == 0
    assert results.get(timeout=JOIN_SECONDS) == ("1/100", 2)


def test_a_waiting_writer_is_served_when_the_lock_is_free(place):
    """No error while the wait lasts: eight writers, one file, all get through."""
    workers = [start(children.charge_often, place, 10) for _ in range(RACERS)]
    deadline = time.monotonic() + JOIN_SECONDS
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
        assert worker.exitcode == 0
    budget = Budget.open(place)
    assert budget.spent.epsilon == Fraction(80, 1000)
    assert budget.verify().entries == 81
