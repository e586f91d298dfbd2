"""The log and its index: taken away while in use, folded by one at a time."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from typing import Any

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, PROCESSES, start
from tests.budget.common import open_stream, resume, sqlite_of

from tacit.budget import Budget
from tacit.budget import sqlite_files as files
from tacit.budget.locks import WritersLine, open_private
from tacit.budget.sqlite_files import SAFE_SINCE, Opened, folds_safely
from tacit.errors import LedgerDamaged
from tacit.privacy import Cost


def charge(budget: Budget, epsilon: str = "1/1000") -> None:
    budget.charge(Cost.pure(epsilon), table="visits", what="a count")


@pytest.fixture(autouse=True)
def _nothing_is_abandoned(monkeypatch):
    monkeypatch.setattr(files, "ABANDONED", set())
    monkeypatch.setattr("tacit.budget.sqlite.ABANDONED", files.ABANDONED)


# Deleting -wal or -shm


def _spend_twice(path, tmp_path, ends: tuple[str, ...], replace: bool) -> None:
    """Two processes spend; their log is taken away; both go on, and a third one comes."""
    barrier, results = PROCESSES.Barrier(4), PROCESSES.Queue()
    spenders = [start(children.spend_around, path, barrier, results) for _ in range(2)]
    late = start(children.spend_late, path, barrier, results)
    barrier.wait(JOIN_SECONDS)  # both have spent
    for end in ends:
        file = path.with_name(f"{path.name}-{end}")
        if replace:
            shutil.copy(file, tmp_path / end)
            (tmp_path / end).rename(file)
        else:
            file.unlink()
    barrier.wait(JOIN_SECONDS)
    told = [results.get(timeout=JOIN_SECONDS) for _ in range(3)]
    barrier.wait(JOIN_SECONDS)  # nobody ends before all have tried
    for child in (*spenders, late):
        child.join(JOIN_SECONDS)
        assert child.exitcode == 0
    acknowledged = sum(count for count, _ in told)
    assert acknowledged <= 10, f"{acknowledged} acknowledged of 10"
    refused = Counter(why for _, why in told)
    assert refused["LedgerDamaged"] >= 2, told
    try:
        with Budget.open(path) as budget:
            budget.verify()
            assert budget.spent.epsilon * 10 >= acknowledged
    except LedgerDamaged:
        pass  # seen, and not silently forgotten


@pytest.mark.parametrize("ends", [("wal",), ("shm",), ("wal", "shm")])
@pytest.mark.parametrize("replace", [False, True], ids=["deleted", "replaced"])
def test_nothing_is_spent_twice_when_the_log_is_taken_away(path, tmp_path, ends, replace):
    _spend_twice(path, tmp_path, ends, replace)


@pytest.mark.parametrize("end", ["wal", "shm"])
def test_a_log_that_is_deleted_in_use_stops_the_next_write_and_loses_nothing(path, end):
    budget = Budget.open(path)
    lease = open_stream(budget, at_most=3)
    charge(budget)
    path.with_name(f"{path.name}-{end}").unlink()
    with pytest.raises(LedgerDamaged, match="-wal or -shm was moved, removed or replaced"):
        charge(budget)
    for act in (lease.suspend, lambda: charge(budget), lambda: budget.spent):
        with pytest.raises(LedgerDamaged, match="-wal or -shm was moved, removed or replaced"):
            act()
    with pytest.raises(LedgerDamaged, match="end every program"):
        Budget.open(path)  # nor again in this process, which still has the old log
    results = PROCESSES.Queue()
    child = start(children.look, path, results)
    assert results.get(timeout=JOIN_SECONDS) == (3, "101/1000")  # what was in the log is saved
    child.join(JOIN_SECONDS)


def test_our_own_reconnecting_is_no_replacement(path):
    one = Budget.open(path)
    charge(one)
    sqlite_of(one)._disconnect()  # the last one: SQLite removes the log
    assert not path.with_name(f"{path.name}-wal").exists()
    charge(one)
    with Budget.open(path) as other:
        charge(other)
    charge(one)
    assert len(one.history) == 5


# One checkpointer at a time


def test_versions_of_sqlite():
    assert SAFE_SINCE == ((3, 44, 6), (3, 50, 7), (3, 51, 3))
    for version in [(3, 7, 0), (3, 40, 1), (3, 44, 5), (3, 45, 0), (3, 50, 6), (3, 51, 2)]:
        assert not folds_safely(version), version
    for version in [(3, 44, 6), (3, 50, 7), (3, 50, 9), (3, 51, 3), (3, 52, 0), (3, 53, 1)]:
        assert folds_safely(version), version
    assert folds_safely() == folds_safely(sqlite3.sqlite_version_info)


def _is_our_turn(path) -> bool:
    """Whether somebody has the writers' lock, asked from outside."""
    line = WritersLine(path.with_name(f"{path.name}-lock"))
    free = line.take(0)
    line.close()
    return not free


def test_sqlite_folds_nothing_by_itself(path):
    """However long the log grows: only where we say so, and only while we hold the lock."""
    budget = Budget.open(path)
    opened = sqlite_of(budget)._opened
    assert opened is not None
    connection = opened.connection
    assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    before = path.read_bytes()
    folded: list[tuple[int, bool]] = []
    fold = Opened.fold

    def watched(opened: Opened) -> None:
        folded.append((len(folded), _is_our_turn(path)))
        assert path.read_bytes() == before  # until now the log has all of it
        fold(opened)
        assert path.read_bytes() != before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Opened, "fold", watched)
        for _ in range(255):
            with budget._ledger.writing("fill") as writer:
                writer.append("charge", {"what": "x" * 9000})  # three pages each
    assert folded == [(0, True)]
    assert path.with_name(f"{path.name}-wal").stat().st_size > 1000 * 4096
    budget.close()


def test_the_last_fold_on_closing_is_in_turn_as_well(path, monkeypatch):
    budget, other = Budget.open(path), Budget.open(path)
    charge(budget)
    other.close()
    wal = path.with_name(f"{path.name}-wal")
    assert wal.stat().st_size > 0  # not the last: nothing is folded
    turns, close = [], sqlite3.Connection.close
    opened: Any = sqlite_of(budget)._opened

    class Watched:
        in_transaction = False

        def close(self) -> None:
            turns.append(_is_our_turn(path))
            close(connection)

    connection, opened.connection = opened.connection, Watched()
    budget.close()
    assert turns == [True]
    assert not wal.exists()
    assert not path.with_name(f"{path.name}-lock").exists()


def test_connecting_is_in_turn_as_well(path, monkeypatch):
    """So nobody connects while the last one folds the log and removes it."""
    turns = []
    connect = files.connect
    monkeypatch.setattr(
        "tacit.budget.sqlite.connect",
        lambda *given: turns.append(_is_our_turn(path)) or connect(*given),
    )
    Budget.open(path).close()
    assert turns == [True]


def test_the_lock_file_may_be_removed_by_hand(path):
    """It is made again, and SQLite's own locks hold meanwhile."""
    one, other = Budget.open(path), Budget.open(path)
    charge(one)
    path.with_name(f"{path.name}-lock").unlink()
    charge(other)
    charge(one)
    other.close()
    assert len(one.history) == 4
    open_private(path.with_name(f"{path.name}-lock")).close()
    one.close()
    assert sorted(os.listdir(path.parent)) == [path.name, f"{path.name}-head"]


def test_a_stream_is_lost_not_doubled_when_the_log_is_taken_away(path):
    budget = Budget.open(path)
    lease = open_stream(budget, at_most=2)
    path.with_name(f"{path.name}-wal").unlink()
    with pytest.raises(LedgerDamaged), lease.turn():
        lease.record_top({"above": True}, question_key="q")
    assert not lease.alive
    results = PROCESSES.Queue()
    child = start(children.resume_and_look, path, results)
    assert results.get(timeout=JOIN_SECONDS) == (0, 1)  # given, lost
    child.join(JOIN_SECONDS)
    with pytest.raises(LedgerDamaged):
        resume(budget)
