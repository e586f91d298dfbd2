"""Waiting for a budget: in turn, whoever asks and whoever dies in the line."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, start
from tests.budget.watched import watch, watched

from tacit.budget import Budget, locks
from tacit.budget.locks import WritersLine
from tacit.budget.sqlite import SqliteLedger
from tacit.errors import LedgerBusy
from tacit.privacy import Cost
from tacit.testing.watched_ledger import WatchedLedger

WAITERS = 6


def _until(happened) -> None:
    deadline = time.monotonic() + JOIN_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.002)


def _numbers_drawn(lock: Path) -> int:
    return int.from_bytes(lock.read_bytes(), "little")


def _words(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


class Blocking:
    """A budget in the middle of a charge until it is let go on."""

    def __init__(self, path: Path) -> None:
        self.budget = watched(Budget.open(path, wait=JOIN_SECONDS))
        self.begun, self.go_on = threading.Event(), threading.Event()
        watch(self.budget, self._reached)
        self.thread = threading.Thread(target=charge, args=(self.budget, "first"))
        self.thread.start()
        assert self.begun.wait(JOIN_SECONDS)

    def _reached(self, point: str) -> None:
        if point == "charge: begun":
            self.begun.set()
            self.go_on.wait(JOIN_SECONDS)

    def release(self) -> None:
        self.go_on.set()
        self.thread.join(JOIN_SECONDS)


def charge(budget: Budget, what: str) -> None:
    budget.charge(Cost.pure("1/1000"), table="visits", what=what)


def _line_up(path: Path, names: list[str]) -> tuple[Blocking, list[Any]]:
    """Somebody is writing; the others come one by one, each when the one before is waiting."""
    lock = path.with_name(f"{path.name}-lock")
    budgets = [start(children.charge_when_told, path, name) for name in names]
    _until(lambda: all(Path(f"{path}.{name}.ready").exists() for name in names))
    blocking, drawn = Blocking(path), _numbers_drawn(lock)
    for number, name in enumerate(names, 1):
        Path(f"{path}.{name}.go").touch()
        _until(lambda number=number: _numbers_drawn(lock) == drawn + number)
    return blocking, budgets


def _served(path: Path) -> list[str]:
    with Budget.open(path) as budget:
        return [entry.body["what"] for entry in budget.history[1:]]


def test_whoever_asked_first_is_served_first(path):
    names = [f"waiter-{number}" for number in range(WAITERS)]
    blocking, waiters = _line_up(path, names)
    blocking.release()
    charge(blocking.budget, "again")  # at once, and yet behind all who wait
    for waiter in waiters:
        waiter.join(JOIN_SECONDS)
        assert waiter.exitcode == 0
    assert _served(path) == ["first", *names, "again"]


def test_a_waiter_that_is_killed_is_in_nobodys_way(path):
    names = [f"waiter-{number}" for number in range(WAITERS)]
    blocking, waiters = _line_up(path, names)
    for killed in (0, 3, 5):
        os.kill(waiters[killed].pid, signal.SIGKILL)
        waiters[killed].join(JOIN_SECONDS)
    blocking.release()
    for waiter in waiters:
        waiter.join(JOIN_SECONDS)
    assert _served(path) == ["first", *(names[number] for number in (1, 2, 4))]


def _overtakings(path: Path, tmp_path: Path, processes: int, times: int) -> int:
    """The most that were served between somebody's drawing a number and her turn."""
    log = tmp_path / "log"
    workers = [start(children.charge_and_log, path, log, times) for _ in range(processes)]
    for worker in workers:
        worker.join(10 * JOIN_SECONDS)
        assert worker.exitcode == 0
    waiting: dict[str, int] = {}
    worst = 0
    for line in log.read_text().splitlines():
        what, who = line.split()
        if what == "drew":
            waiting[who] = 0
        else:
            worst = max(worst, waiting.pop(who, 0))
            for other in waiting:
                waiting[other] += 1
    assert log.read_text().count("served") == processes * times
    return worst


def test_nobody_is_overtaken_again_and_again(path, tmp_path):
    assert _overtakings(path, tmp_path, 5, 25) <= 2 * 5


@pytest.mark.long
def test_nobody_is_overtaken_again_and_again_by_many(path, tmp_path):
    worst = _overtakings(path, tmp_path, 12, 300)
    print("at most", worst)
    assert worst <= 2 * 12


def test_threads_wait_in_turn_as_well(path):
    blocking = Blocking(path)
    ledger = blocking.budget._ledger
    assert isinstance(ledger, WatchedLedger)
    assert isinstance(ledger.ledger, SqliteLedger)
    line = ledger.ledger.line
    threads = []
    for number in range(WAITERS):
        thread = threading.Thread(target=charge, args=(blocking.budget, f"thread {number}"))
        thread.start()
        _until(lambda number=number: len(line._places) == number + 2)
        threads.append(thread)
    blocking.release()
    for thread in threads:
        thread.join(JOIN_SECONDS)
    assert _served(path) == ["first", *(f"thread {number}" for number in range(WAITERS))]


def test_the_wait_is_bounded_and_a_place_that_is_given_up_is_free(path):
    other = Budget.open(path, wait=0.2)
    blocking = Blocking(path)
    with pytest.raises(LedgerBusy, match=r"locked by another process or thread for 0\.2 seconds"):
        charge(other, "too late")
    blocking.release()
    charge(other, "in time")
    assert _served(path) == ["first", "in time"]


def test_without_such_locks_one_waits_all_the_same(path, monkeypatch):
    monkeypatch.setattr(locks, "IN_TURN", False)
    one = WritersLine(path.with_name("lock"))
    other = WritersLine(path.with_name("lock"))
    assert one.take(1)
    assert not other.take(0.05)
    one.let_go()
    assert other.take(1)
    one.close()
    other.close(remove=True)
    assert not path.with_name("lock").exists()


def test_a_lock_file_that_the_last_one_removed_is_no_lock(path):
    lock = path.with_name("lock")
    one, other, third = WritersLine(lock), WritersLine(lock), WritersLine(lock)
    assert one.take(1)
    other._opened()  # it knows the file that is now removed
    one.close(remove=True)
    assert third.take(1)
    assert not other.take(0.05)
    third.let_go()
    assert other.take(1)
    for line in (other, third):
        line.close()
