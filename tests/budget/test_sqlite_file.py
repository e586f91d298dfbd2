"""The budget file: who may read it, what is refused, and that nothing is lost by it."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sqlite3
import stat
import threading
import time
from contextlib import closing

import pytest
from tests.budget import children
from tests.budget.children import run
from tests.budget.common import ask, lost_by_resuming, open_stream, resume, sqlite_of
from tests.budget.watched import nothing_happens, watch, watched

from tacit.budget import Budget
from tacit.budget.accountants import SumAccountant
from tacit.budget.locks import FileHold
from tacit.budget.spending import Charge
from tacit.budget.sqlite import SqliteLedger
from tacit.errors import (
    BadParameter,
    BudgetError,
    BudgetExhausted,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
    NotCovered,
)
from tacit.privacy import Cost, Privacy


def charge(budget, epsilon="1/10"):
    return budget.charge(Cost.pure(epsilon), table="visits", what="a count")


def test_it_outlives_the_object(path):
    with Budget.open(path) as budget:
        charge(budget, "1/3")
        budget.share("ana", epsilon="1/3")
        head = budget.head
    again = Budget.open(path)
    assert again.promise == Privacy(1)
    assert again.spent.epsilon == Cost.pure("1/3").privacy.epsilon
    assert [share.analyst for share in again.shares] == [None, "ana"]
    assert (again.head, again.covers) == (head, ("visits",))


def test_create_never_overwrites(path, tmp_path):
    before = path.read_bytes()
    with pytest.raises(LedgerExists, match="never overwritten"):
        Budget.create(path, epsilon=100, covers=["visits"])
    assert path.read_bytes() == before
    (tmp_path / "notes.txt").write_text("not a budget")
    with pytest.raises(FileExistsError):
        Budget.create(tmp_path / "notes.txt", epsilon=1, covers=["visits"])
    assert (tmp_path / "notes.txt").read_text() == "not a budget"


def test_create_in_a_race_is_won_once(tmp_path, monkeypatch):
    """The check at the start is a courtesy; the link at the end decides."""
    path = tmp_path / "clinic.budget"
    link = os.link

    def somebody_is_quicker(draft, target):
        monkeypatch.setattr(os, "link", link)
        Budget.create(path, epsilon=1, covers=["visits"]).close()
        link(draft, target)

    monkeypatch.setattr(os, "link", somebody_is_quicker)
    with pytest.raises(LedgerExists):
        Budget.create(path, epsilon=2, covers=["visits"])
    assert Budget.open(path).promise == Privacy(1)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_a_creation_cut_short_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "clinic.budget"

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(LedgerUnwritable, match="No space left"):
        Budget.create(path, epsilon=1, covers=["visits"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LedgerUnwritable, match="No such file"):
        Budget.create(tmp_path / "nowhere" / "clinic.budget", epsilon=1, covers=["visits"])


def test_files_are_private_to_their_owner(tmp_path):
    path = tmp_path / "clinic.budget"
    old = os.umask(0)
    try:
        budget = Budget.create(path, epsilon=1, covers=["visits"])
        lease = open_stream(budget)
        files = sorted(file.name for file in tmp_path.iterdir())
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(old)
    assert files == [
        "clinic.budget",
        "clinic.budget-head",
        "clinic.budget-held-1",
        "clinic.budget-lock",
        "clinic.budget-shm",
        "clinic.budget-wal",
    ]
    assert modes == {0o600}
    lease.suspend()
    budget.close()
    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == ["clinic.budget", "clinic.budget-head"]  # all of it, and the note of its end


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o602])
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-head"])
def test_what_others_can_read_is_not_opened(path, end, mode):
    with Budget.open(path) as budget:
        charge(budget)
        shown = path.with_name(path.name + end)
        shown.chmod(mode)
        with pytest.raises(LedgerUnwritable) as refused:
            Budget.open(path)
        for said in ("holds secrets", f"chmod 600 {shown}", "nothing was opened"):
            assert said in str(refused.value)
        assert stat.S_IMODE(shown.stat().st_mode) == mode
        shown.chmod(0o600)
        Budget.open(path).close()


def test_no_file_is_named_that_is_gone_when_it_is_refused(path, tmp_path):
    """SQLite makes some beside it, of the same mode, to read what kind of file it is."""
    path.chmod(0o644)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(LedgerUnwritable, match=f"chmod 600 {re.escape(str(path))}\\. People"):
        Budget.open(path)
    assert sorted(tmp_path.iterdir()) == before


def test_a_log_that_was_left_behind_is_there_when_it_is_refused(path, tmp_path):
    """SQLite would fold it into the file and remove it, and then nothing would be refused."""
    assert run(children.spend_and_die, path, tmp_path / "log") == -signal.SIGKILL
    log = path.with_name(f"{path.name}-wal")
    log.chmod(0o644)
    before = path.read_bytes(), log.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerUnwritable, match=f"chmod 600 {re.escape(str(log))}\\. People"):
            Budget.open(path)
    assert (path.read_bytes(), log.read_bytes()) == before
    log.chmod(0o600)
    with Budget.open(path) as budget:
        assert len(budget.history) == 14


def test_all_files_that_others_can_read_are_named(path, tmp_path):
    with Budget.open(path) as budget:
        charge(budget)
        for file in tmp_path.iterdir():
            file.chmod(0o644)
        with pytest.raises(LedgerUnwritable) as refused:
            Budget.open(path)
        command = str(refused.value).split("chmod 600 ")[1].split(".budget-lock")[0]
        assert [word.partition(".budget")[2] for word in command.split()] == [
            "",
            "-wal",
            "-shm",
            "-head",
            "",
        ]
        for file in tmp_path.iterdir():
            file.chmod(0o600)


@pytest.mark.parametrize("name", ["a folder", "text", "empty", "other.db", "version 9", "a pipe"])
def test_what_is_not_a_budget_is_named_and_left_alone(tmp_path, name):
    path = tmp_path / name
    if name == "a folder":
        path.mkdir()
    elif name == "text":
        path.write_text("Dear diary, " * 1000)
    elif name == "empty":
        path.touch()
    elif name == "a pipe":
        os.mkfifo(path)
    elif name == "other.db":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE entries (x)")
        connection.close()
    else:
        Budget.create(path, epsilon=1, covers=["visits"]).close()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA user_version = 9")
        connection.close()
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(LedgerDamaged, match="version 9" if name == "version 9" else "not a"):
        Budget.open(path)
    assert (path.read_bytes() if path.is_file() else b"") == before
    with pytest.raises(LedgerExists):
        Budget.create(path, epsilon=1, covers=["visits"])


def test_a_missing_file(tmp_path):
    with pytest.raises(LedgerMissing, match=r"Budget.create makes one"):
        Budget.open(tmp_path / "clinic.budget")
    with pytest.raises(FileNotFoundError):
        Budget.open(tmp_path / "nowhere" / "clinic.budget")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_refused_and_left_alone(path, keep):
    with Budget.open(path) as budget:
        for _ in range(100):
            charge(budget, "1/1000")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(LedgerDamaged):
        Budget.open(path)
    assert path.read_bytes() == whole[: int(len(whole) * keep)]
    path.write_bytes(whole)
    assert Budget.open(path).verify().entries == 101


@pytest.mark.parametrize("page", range(2, 8))
def test_a_page_of_rubbish_is_found(path, page):
    with Budget.open(path) as budget:
        open_stream(budget).suspend()
        for _ in range(100):
            charge(budget, "1/1000")
    content = bytearray(path.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"\xa5" * 4096
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged):
        Budget.open(path).verify()


@pytest.mark.parametrize("wait", [0, -1, "soon", None, 10**7])
def test_a_wait_that_makes_no_sense_is_refused_before_there_is_a_file(tmp_path, wait):
    path = tmp_path / "clinic.budget"
    with pytest.raises(BadParameter, match="wait"):
        Budget.create(path, epsilon=1, covers=["visits"], wait=wait)
    assert list(tmp_path.iterdir()) == []
    Budget.create(path, epsilon=1, covers=["visits"]).close()
    with pytest.raises(BadParameter, match="wait"):
        Budget.open(path, wait=wait)


def test_a_locked_file_gives_a_clear_error_after_a_bounded_wait(path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    budget = Budget.open(path, wait=0.2)
    start = time.monotonic()
    with pytest.raises(LedgerBusy, match=r"locked by another process or thread for 0\.2 seconds"):
        charge(budget)
    assert time.monotonic() - start < 30
    assert budget.spent.epsilon == 0  # looking needs no lock
    other.execute("ROLLBACK")
    other.close()
    charge(budget)
    budget.verify()


def test_a_thread_that_takes_too_long_gives_the_same_error(path):
    budget = watched(Budget.open(path, wait=0.2))
    begun, go_on = threading.Event(), threading.Event()

    def dawdle(point: str) -> None:
        if point == "charge: begun":
            begun.set()
            go_on.wait(30)

    watch(budget, dawdle)
    thread = threading.Thread(target=charge, args=(budget,))
    thread.start()
    begun.wait(30)
    with pytest.raises(LedgerBusy):
        budget.share("ana", epsilon="1/10")
    go_on.set()
    thread.join(30)
    assert len(budget.history) == 2


def test_a_busy_ledger_ends_the_lease_that_could_not_record(path):
    budget = Budget.open(path, wait=0.1)
    lease = open_stream(budget, at_most=3)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusy):
        ask(lease, "a")
    other.execute("ROLLBACK")
    other.close()
    assert not lease.alive
    assert lost_by_resuming(budget) == 1


def test_a_suspension_that_failed_can_be_tried_again(path):
    budget = Budget.open(path, wait=0.1)
    lease = open_stream(budget, at_most=3)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusy):
        lease.suspend()
    other.execute("ROLLBACK")
    other.close()
    with pytest.raises(BudgetError):
        ask(lease, "a", above=False)  # nothing may be asked once leaving was tried
    lease.suspend()
    assert lost_by_resuming(budget) == 0


def test_a_suspension_that_was_written_after_all_is_not_written_twice(path):
    budget = watched(Budget.open(path))
    lease = open_stream(budget, at_most=3)

    def fail(point: str) -> None:
        if point == "suspend: committed":
            raise LedgerUnwritable("the disk said no, and meant yes")

    watch(budget, fail)
    with pytest.raises(LedgerUnwritable):
        lease.suspend()
    watch(budget, nothing_happens)
    lease.suspend()
    assert [entry.kind for entry in budget.history] == ["created", "open", "suspend"]
    assert lost_by_resuming(budget) == 0
    budget.verify()


def test_a_file_moved_away_takes_no_more_charges(path, tmp_path):
    budget = Budget.open(path)
    charge(budget)
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(LedgerDamaged, match="moved, removed or replaced"):
        charge(budget)


def test_links_lead_to_the_same_budget(path, tmp_path):
    alias = tmp_path / "alias"
    alias.symlink_to(path)
    one, other = Budget.open(path), Budget.open(alias)
    charge(one)
    charge(other)
    assert one.spent.epsilon == other.spent.epsilon == Cost.pure("1/5").privacy.epsilon
    open_stream(one)
    lease = resume(other)
    with pytest.raises(BudgetError, match="held"):
        resume(one)
    lease.suspend()


def test_odd_names_work(tmp_path):
    path = tmp_path / "what? #1 100% ünï.budget"
    Budget.create(path, epsilon=1, covers=["visits"]).close()
    assert Budget.open(str(path)).promise == Privacy(1)


def test_two_objects_of_one_process_exclude_each_other(path):
    one, other = Budget.open(path), Budget.open(path)
    lease = open_stream(one)
    with pytest.raises(BudgetError, match="held by another"):
        resume(other)
    lease.suspend()
    assert resume(other).tops_left == 3


def test_opening_reads_the_last_thousand_entries(path):
    """Constant work, whatever the length: counted in rows that SQLite hands over."""
    budget = Budget.open(path)
    with budget._ledger.writing("fill") as writer:
        for _ in range(2000):
            writer.append("charge", {"what": "filler"})
    budget.close()
    read = []
    original = SqliteLedger._connect

    def counting(self):
        opened = original(self)
        opened.connection.row_factory = lambda cursor, row: read.append(1) or row
        return opened

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteLedger, "_connect", counting)
        Budget.open(path)
    assert 1000 < len(read) < 1020


def test_secrets_stay_out_of_sight(path, tmp_path):
    budget = Budget.open(path)
    lease = open_stream(budget, secret=b"OFFSET 0")
    with lease.turn():
        lease.record_top({"above": True}, question_key="a", secret=b"OFFSET 1")
    budget.export(tmp_path / "export.jsonl")
    assert "OFFSET" not in (tmp_path / "export.jsonl").read_text()
    assert "OFFSET" not in "".join(entry.text for entry in budget.history)
    lease.close()
    budget.close()
    assert b"OFFSET" not in path.read_bytes()  # overwritten when the stream ended


def test_what_is_committed_is_on_the_disk(path):
    """SQLite's own words for it: a write-ahead log, synced at every commit (2 is FULL)."""
    budget = Budget.open(path)
    charge(budget)
    for setting, value in {
        "journal_mode": "wal",
        "synchronous": 2,
        "fullfsync": 1,
        "secure_delete": 1,
    }.items():
        opened = sqlite_of(budget)._opened
        assert opened is not None
        assert opened.connection.execute(f"PRAGMA {setting}").fetchone() == (value,)
    assert (path.parent / "clinic.budget-wal").stat().st_size > 0


def test_a_lock_file_that_was_removed_in_between_is_not_a_hold(tmp_path, monkeypatch):
    """Between opening and locking the file, its holder goes and another one comes."""
    path = tmp_path / "held"
    first = FileHold.take(path)
    assert first is not None
    later: list[FileHold | None] = []
    flock = fcntl.flock

    def slowly(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        first.release()
        later.append(FileHold.take(path))
        flock(descriptor, how)  # on the file that is gone: it succeeds, and means nothing

    monkeypatch.setattr(fcntl, "flock", slowly)
    assert FileHold.take(path) is None
    assert later[0] is not None
    later[0].release()
    assert FileHold.take(path) is not None


def test_what_others_wrote_is_read_again(path):
    """Whoever writes remembers what they wrote last, until somebody else writes."""
    with Budget.open(path) as one, Budget.open(path) as other:
        for turn in range(4):
            charge(one, "1/20")
            assert charge(other, "1/20").left.epsilon == 1 - Cost.pure("1/10").privacy.epsilon * (
                turn + 1
            )
        other.share("ana", epsilon="1/10")
        other.cover("labs")
        assert one.charge(Cost.pure("1/20"), table="labs", what="x").left.epsilon == (
            1 - Cost.pure("11/20").privacy.epsilon
        )
        assert one.charge(Cost.pure("1/20"), table="visits", what="x", analyst="ana").number == (
            other.history[-1].number
        )
        assert one.verify().entries == len(other.history)


def write_half(budget):
    with budget._ledger.writing("test") as writer:
        budget._terms.pay(writer, Charge(Cost.pure("1/2"), "visits", None, None), "x")
        writer.add_table("labs")
        writer.append("cover", {"table": "labs"})
        assert writer.covers("labs")
        raise OSError("half way")


def test_what_was_taken_back_is_not_remembered(path):
    """A write that failed half way, with a new total, a table and an entry in it."""
    with Budget.open(path) as budget:
        charge(budget)
        before, head = budget.left, budget.head
        with pytest.raises(OSError, match="half way"):
            write_half(budget)
        with pytest.raises(NotCovered):
            budget.charge(Cost.pure("1/10"), table="labs", what="x")
        assert (budget.left, budget.head) == (before, head)
        left = charge(budget, "1/10").left
        assert left == before - SumAccountant().charge(Cost.pure("1/10"))
        budget.verify()


def test_what_is_edited_beside_us_is_seen(path):
    """By another program, between two charges: no total of ours is put in its place."""
    with Budget.open(path) as budget:
        charge(budget)
        with closing(sqlite3.connect(path, isolation_level=None)) as program:
            program.execute("UPDATE pots SET spent = most")
        with pytest.raises(BudgetExhausted):
            charge(budget)
        with closing(sqlite3.connect(path, isolation_level=None)) as program:
            program.execute("PRAGMA user_version = 99")
        with pytest.raises(LedgerDamaged, match="version 99"):
            charge(budget)
