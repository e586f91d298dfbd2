"""Threads that share transactions: one commit for all, and nobody is told before it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.budget.common import open_stream

from tacit.budget import Budget
from tacit.budget.sqlite_together import TogetherLedger, open_for_threads
from tacit.budget.sqlite_uses import Writing
from tacit.errors import BudgetExhausted, LedgerBusy, LedgerUnwritable, StreamEnded
from tacit.privacy import Cost

PATIENCE = 60


@pytest.fixture
def budget(tmp_path: Path) -> Iterator[Budget]:
    path = tmp_path / "b.budget"
    Budget.create(path, epsilon=10, covers=["visits"]).close()
    with open_for_threads(str(path)) as budget:
        yield budget


class Crowd:
    """Threads that want to write while the first of them is held back inside its block."""

    def __init__(self, budget: Budget) -> None:
        assert isinstance(budget._ledger, TogetherLedger)
        self.ledger = budget._ledger
        self.inside, self.go_on = Event(), Event()
        self.threads: list[Thread] = []
        self.found: dict[str, Any] = {}

    def begin(self) -> None:
        """Begin a transaction, and stay in it."""

        def first() -> None:
            with self.ledger.writing("first") as writer:
                self.inside.set()
                assert self.go_on.wait(PATIENCE)
                writer.append("cover", {"table": "first"})
                writer.add_table("first")

        self.add("first", first)
        assert self.inside.wait(PATIENCE)

    def add(self, name: str, work: Callable[[], Any]) -> None:
        """Something that another thread does; it waits in the line by the time this returns."""

        def worked() -> None:
            try:
                self.found[name] = work()
            except BaseException as error:
                self.found[name] = error

        thread = Thread(target=worked, daemon=True)
        waited = len(self.ledger._waiting)
        self.threads.append(thread)
        thread.start()
        while name != "first" and len(self.ledger._waiting) == waited and thread.is_alive():
            thread.join(0.001)

    def end(self) -> dict[str, Any]:
        """Let the first go on; what became of each."""
        self.go_on.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return self.found


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ends of the history at each commit."""
    seen: list[int] = []
    commit = Writing.commit

    def watched(self: Writing, opened: Any) -> None:
        commit(self, opened)
        seen.append(self.ledger.seen.number)

    monkeypatch.setattr(Writing, "commit", watched)
    return seen


def charge(budget: Budget, epsilon: object = 1) -> Callable[[], Any]:
    return lambda: budget.charge(Cost.pure(epsilon), table="visits", what="count").number  # type: ignore[arg-type]


def test_writes_that_meet_are_one_commit(budget, commits):
    before = len(budget.history)
    crowd = Crowd(budget)
    crowd.begin()
    for number in range(5):
        crowd.add(str(number), charge(budget))
    found = crowd.end()
    assert commits == [before + 6]
    assert sorted(found.pop(str(n)) for n in range(5)) == [before + 2 + n for n in range(5)]
    assert found == {"first": None}
    assert str(budget.whole.spent) == "ε = 5, δ = 0"
    assert budget.verify()


def test_a_part_that_is_refused_takes_back_only_itself(budget, commits):
    before = len(budget.history)
    crowd = Crowd(budget)
    crowd.begin()
    crowd.add("fits", charge(budget, 6))
    crowd.add("does not", charge(budget, 6))
    crowd.add("fits, too", charge(budget, 4))
    found = crowd.end()
    assert isinstance(found["does not"], BudgetExhausted)
    assert found["fits"] == before + 2
    assert found["fits, too"] == before + 3
    assert commits == [before + 3]
    assert budget.verify()


def test_a_part_that_failed_half_way_leaves_nothing(budget):
    crowd = Crowd(budget)
    ledger = crowd.ledger

    def half() -> None:
        with ledger.writing("half") as writer:
            writer.append("cover", {"table": "half"})
            writer.add_table("half")
            raise RuntimeError("half-way")

    crowd.begin()
    crowd.add("half", half)
    crowd.add("whole", charge(budget))
    found = crowd.end()
    assert str(found["half"]) == "half-way"
    with ledger.reading() as reader:
        assert not reader.covers("half")
        assert [entry.kind for entry in reader.entries()][-2:] == ["cover", "charge"]


def test_if_the_commit_fails_all_have_failed_and_nobody_was_told(budget, monkeypatch):
    lease = open_stream(budget)
    before = len(budget.history)

    def refused(self: Writing, opened: Any) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    def record() -> None:
        with lease.turn():
            lease.record_top({"above": True}, question_key="q", secret=b"threshold 1")

    crowd = Crowd(budget)
    crowd.begin()
    crowd.add("charge", charge(budget))
    crowd.add("record", record)
    with monkeypatch.context() as patch:
        patch.setattr(Writing, "commit", refused)
        found = crowd.end()
    kinds = {name: type(error) for name, error in found.items()}
    assert len(set(kinds.values())) == 1, kinds
    assert len({id(error) for error in found.values()}) == 3, "each has an error of its own"
    assert len(budget.history) == before
    with pytest.raises(StreamEnded):  # it may have been above: the reserved answer is lost
        lease.turn().__enter__()
    assert charge(budget)() == before + 1, "the next one begins afresh"


def test_if_the_disk_refuses_one_part_all_have_failed(budget):
    crowd = Crowd(budget)
    before = len(budget.history)

    def broken() -> None:
        with crowd.ledger.writing("broken") as writer:
            writer.execute("INSERT INTO nowhere VALUES (1)")

    crowd.begin()
    crowd.add("early", charge(budget))
    crowd.add("broken", broken)
    crowd.add("late", charge(budget))
    found = crowd.end()
    assert isinstance(found["first"], LedgerUnwritable)
    assert isinstance(found["early"], LedgerUnwritable)
    assert "nowhere" in str(found["broken"])
    assert found["late"] == before + 1, "it came into the next transaction"
    assert len(budget.history) == before + 1


def test_reading_waits_for_no_commit_and_sees_what_is_on_the_disk(budget):
    before = len(budget.history)
    crowd = Crowd(budget)
    crowd.begin()
    crowd.add("charge", charge(budget))
    assert len(budget.history) == before
    assert str(budget.whole.spent) == "ε = 0, δ = 0"
    crowd.end()
    assert len(budget.history) == before + 2


def test_a_thread_cannot_begin_two(budget):
    ledger = Crowd(budget).ledger

    def nested(outer: str, inner: str) -> None:
        def begin(which: str) -> Any:
            return ledger.reading() if which == "read" else ledger.writing("write")

        with begin(outer), pytest.raises(LedgerBusy, match="this very thread"), begin(inner):
            pass

    for outer in ("read", "write"):
        for inner in ("read", "write"):
            nested(outer, inner)
    assert charge(budget)() == len(budget.history)


def test_streams_are_opened_and_asked_in_shared_transactions(budget, commits):
    crowd = Crowd(budget)
    crowd.begin()
    for number in range(3):
        crowd.add(f"s{number}", lambda name=f"s{number}": open_stream(budget, name))  # type: ignore[misc]
    leases = [found for name, found in sorted(crowd.end().items()) if name != "first"]
    assert len(commits) == 1
    assert [lease.name for lease in leases] == ["s0", "s1", "s2"]
    for lease in leases:
        with lease.turn():
            lease.record_top({"above": True}, question_key="q", secret=b"threshold 1")
        lease.suspend()
    assert [state.tops for state in budget.streams()] == [1, 1, 1]
    assert budget.verify()
