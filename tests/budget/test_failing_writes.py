"""A write that fails tells an outsider something.  What it tells must have been paid for.

The naive design records an answer above the threshold after it was drawn and reserves nothing:
when the record fails, nothing is shown, and nothing is counted.  But whoever sees the failure
knows that the answer was above, since below writes nothing; and may ask again, for ever.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, PROCESSES, run
from tests.budget.common import BINDING, ask, open_stream, resume
from tests.budget.watched import nothing_happens, watch, watched

from tacit.budget import Budget
from tacit.errors import LedgerUnwritable, StreamEnded

AT_MOST = 10
TRUTH = [number % 3 == 0 for number in range(6000)]  # above or below, for every question asked


class BrokenDisk:
    """It fails whenever an answer is recorded, and at no other time."""

    def __call__(self, point: str) -> None:
        if point == "record top: written":
            raise LedgerUnwritable("no space left")


class NaiveStream:
    """What one would write first: count an answer when it is recorded."""

    def __init__(self, disk: BrokenDisk) -> None:
        self._disk = disk
        self._tops_on_disk = 0

    def resume(self) -> int:
        if self._tops_on_disk >= AT_MOST:
            raise StreamEnded("halted")
        return self._tops_on_disk

    def ask(self, above: bool) -> None:
        if above:
            self._disk("record top: written")
            self._tops_on_disk += 1


def _learn(ask_one, begin_again) -> int:
    """How many answers an outsider learns to be above, who resumes after every failure."""
    learned = 0
    for number, above in enumerate(TRUTH):
        try:
            ask_one(number, above)
        except LedgerUnwritable:
            learned += 1  # below never fails
            try:
                begin_again()
            except StreamEnded:
                return learned
    return learned


def test_the_naive_design_leaks_thousands():
    stream = NaiveStream(BrokenDisk())
    learned = _learn(lambda number, above: stream.ask(above), stream.resume)
    assert learned == sum(TRUTH) == 2000  # of the 10 that were paid for


def test_ours_leaks_none(make):
    budget = watched(make())
    leases = [open_stream(budget, at_most=AT_MOST)]
    watch(budget, BrokenDisk())
    learned = _learn(
        lambda number, above: ask(leases[-1], f"q{number}", above=above),
        lambda: leases.append(resume(budget)),
    )
    assert learned == AT_MOST
    assert budget.stream("flu").status == "halted"
    assert len(leases) == AT_MOST
    budget.verify()


@pytest.mark.parametrize("fails_at", ["begun", "written", "committed"])
@pytest.mark.parametrize("act", ["open", "resume", "record top", "suspend"])
def test_wherever_a_write_fails_no_more_is_granted_than_was_paid_for(path, act, fails_at):
    """Drive one stream to its end with a disk that fails at one point every other time."""
    budget = watched(Budget.open(path))
    calls = 0

    def fail_now_and_then(point: str) -> None:
        nonlocal calls
        if point == f"{act}: {fails_at}":
            calls += 1
            if calls % 2:
                raise LedgerUnwritable(point)

    watch(budget, fail_now_and_then)
    drawn, released, lease = 0, [], None
    for number in range(100):
        try:
            if lease is None:
                exists = [state for state in budget.streams() if state.name == "flu"]
                lease = resume(budget) if exists else open_stream(budget, at_most=4)
            drawn += 1
            ask(lease, f"q{number}")
            released.append(f"q{number}")
            lease.suspend()
            lease = None
        except LedgerUnwritable:
            lease = None  # whoever held it has seen enough
        except StreamEnded:
            break
    else:
        pytest.fail("the stream never ended")
    state = budget.stream("flu")
    assert drawn <= 4
    assert len(released) <= state.tops <= drawn
    on_record = [entry.body["question"] for entry in budget.history if entry.kind == "top"]
    assert set(released) <= set(on_record)
    assert budget.spent.epsilon * 10 == 1  # paid once
    budget.verify()


@pytest.mark.parametrize("fails_at", ["begun", "written", "committed"])
def test_a_stream_whose_closing_failed_can_be_closed_again(path, fails_at):
    budget = watched(Budget.open(path))
    lease = open_stream(budget, at_most=3)

    def fail(point: str) -> None:
        if point == f"close: {fails_at}":
            raise LedgerUnwritable(point)

    watch(budget, fail)
    with pytest.raises(LedgerUnwritable):
        lease.close()
    watch(budget, nothing_happens)
    lease.close()
    assert [entry.kind for entry in budget.history] == ["created", "open", "close"]
    budget.verify()


def test_a_full_disk(path):
    """The operating system itself refuses to let the files grow."""
    with Budget.open(path) as budget:
        open_stream(budget, at_most=5).suspend()
        spent = budget.spent
    results = PROCESSES.Queue()
    assert run(children.meet_a_full_disk, path, results) == 0
    drawn, released, refused = results.get(timeout=JOIN_SECONDS)
    assert (drawn, released, refused) == (5, 0, 15)
    budget = Budget.open(path)
    assert budget.spent == spent
    assert budget.stream("flu").tops_used == 5
    assert len(budget.streams()) == 1
    budget.verify()


def test_a_read_only_file():
    with tempfile.TemporaryDirectory() as folder:  # where a child that is nobody can come in
        path = Path(folder) / "clinic.budget"
        with Budget.create(path, epsilon=1, covers=["visits"]) as budget:
            open_stream(budget).suspend()
        results = PROCESSES.Queue()
        assert run(children.meet_a_read_only_file, path, results) == 0
        assert results.get(timeout=JOIN_SECONDS) == 4


def test_a_dead_stream_shows_its_recorded_answer_when_it_was_recorded_after_all(path):
    """The write was reported as failed but had reached the disk: nothing is drawn twice."""
    budget = watched(Budget.open(path))
    lease = open_stream(budget, at_most=3)

    def fail(point: str) -> None:
        if point == "record top: committed":
            raise LedgerUnwritable("too late to be true")

    watch(budget, fail)
    with pytest.raises(LedgerUnwritable):
        ask(lease, "q")
    watch(budget, nothing_happens)
    lease = budget.resume_stream("flu", binding=BINDING, after_loss=lambda secret: b"threshold 9")
    assert lease.answers == {"q": {"above": True}}
    state = budget.stream("flu")
    assert (state.tops, state.lost, lease.tops_left) == (1, 1, 1)
