"""Killed with −9 at every named point and at random: what was released is on record.

The children keep a log that survives them: ``drawn`` just before an answer above the threshold
is recorded (from there on a watcher may know of it), ``released`` once it may be shown.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, run, start
from tests.budget.common import open_stream, resume_when_free

from tacit.budget import Budget
from tacit.errors import StreamEnded
from tacit.privacy import Cost

ON_A_LEASE = ("record top", "record told", "suspend", "close")
ACTS = ("charge", "answer", "share", "cover", "open", "resume", *ON_A_LEASE)
POINTS = [f"{act}: {point}" for act in ACTS for point in ("begun", "written", "committed")]


def read_log(path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def recorded(budget: Budget) -> set[tuple[str, str]]:
    tops = [entry.body for entry in budget.history if entry.kind == "top"]
    return {(body["stream"], body["question"]) for body in tops}


@pytest.fixture
def prepared(place):
    with Budget.open(place) as budget:
        open_stream(budget, at_most=3).suspend()
    return place


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_named_point_it_happened_or_it_did_not(prepared, tmp_path, point):
    act = point.split(":")[0]
    with Budget.open(prepared) as budget:
        before = len(budget.history)
    assert run(children.die_at, prepared, act, point, tmp_path / "log") == -signal.SIGKILL

    budget = Budget.open(prepared, wait=JOIN_SECONDS)
    budget.verify()
    happened = [entry.kind for entry in budget.history[before:]]
    first = ["resume"] if act in ON_A_LEASE else ["charge"] if act == "answer" else []
    done = {"record top": "top", "record told": "told"}.get(act, act)
    assert happened == [*first, *([done] if point.endswith("committed") else [])]
    if act in ("charge", "answer", "record told"):
        check_retry(budget, act, happened)

    log = read_log(tmp_path / "log")
    assert [line[0] for line in log] == (["drawn"] if act == "record top" else [])
    state = budget.stream("flu")
    if point == "close: committed":
        assert state.status == "closed"
        return
    lease = resume_when_free(budget)
    clean = act in ("charge", "answer", "share", "cover", "open") or point in (
        *("resume: begun", "resume: written", "suspend: committed"),
    )
    state = budget.stream("flu")
    assert state.lost == (0 if clean else 1)
    assert state.tops == (1 if point == "record top: committed" else 0)
    assert lease.tops_left == state.tops_left
    assert state.tops_used >= len(log)  # whatever a watcher may know was paid for


def check_retry(budget: Budget, act: str, happened: list[str]) -> None:
    """Whoever asks again under the same key pays once in all, and is told what was kept."""
    found = budget.answers.under(children.RETRY)
    assert (found is not None) is ("charge" in happened or "told" in happened)
    if act == "record told":
        assert found is None or found.response == {"above": False}
        return
    children.charge_keyed(budget)
    paid = children.charge_keyed(budget)
    assert paid.before is not None
    assert paid.before.response == ({"told": 1} if "answer" in happened else None)
    assert budget.keep(paid.number, {"told": 2}) == (paid.before.response or {"told": 2})
    charges = [entry for entry in budget.history if entry.kind == "charge"]
    assert len(charges) == 1
    budget.verify()


def _kill_at_random(path, tmp_path, rounds: int) -> Counter[str]:
    """Kill a busy child again and again; check everything after each time.

    On a busy machine the first children may be killed before they have drawn: others follow.
    """
    log_path, dice, seen = tmp_path / "log", random.Random(5), Counter[str]()
    for seed in range(10 * rounds):
        if seed >= rounds and seen["drawn"]:
            break
        lines = len(read_log(log_path))
        child = start(children.work_until_killed, path, log_path, seed)
        deadline = time.monotonic() + JOIN_SECONDS
        while len(read_log(log_path)) == lines and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.15))
        os.kill(child.pid, signal.SIGKILL)
        child.join(JOIN_SECONDS)
        assert child.exitcode == -signal.SIGKILL

        budget = Budget.open(path)
        log, on_record = read_log(log_path), recorded(budget)
        streams = {state.name: state for state in budget.streams()}
        drawn = Counter(line[1] for line in log if line[0] == "drawn")
        for line in log:
            if line[0] == "released":
                assert (line[1], line[2]) in on_record, "released without a durable record"
            if line[0] in ("opened", "resumed"):
                assert line[1] in streams
        for name, count in drawn.items():
            state = streams[name]
            assert count <= state.tops_used + state.reserved <= 4, "more ⊤ than were paid for"
        charges = Counter(entry.body["what"] for entry in budget.history if entry.kind == "charge")
        charged = Counter(f"seed {line[1]}" for line in log if line[0] == "charged")
        assert all(charges[what] >= times for what, times in charged.items())
        budget.close()
        seen = Counter(line[0] for line in log)
    Budget.open(path).verify()
    return seen


def test_killed_at_random(place, tmp_path):
    assert _kill_at_random(place, tmp_path, rounds=6)["drawn"] > 0


@pytest.mark.long
def test_killed_at_random_two_hundred_times(place, tmp_path):
    seen = _kill_at_random(place, tmp_path, rounds=250)
    print(dict(seen))
    assert seen["drawn"] > 100


def test_a_stream_killed_again_and_again_never_grants_more_than_was_paid_for(place, tmp_path):
    with Budget.open(place) as budget:
        open_stream(budget, at_most=5, cost=Cost.pure("1/10")).suspend()
    for number in range(20):
        point = ("record top: begun", "record top: written", "record top: committed")[number % 3]
        run(children.die_at, place, "record top", point, tmp_path / "log")
    log = read_log(tmp_path / "log")
    assert len(log) <= 5
    budget = Budget.open(place)
    with pytest.raises(StreamEnded):
        resume_when_free(budget)
    state = budget.stream("flu")
    assert (state.status, state.tops_used) == ("halted", 5)
    budget.verify()
