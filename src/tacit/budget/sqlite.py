"""The ledger in one SQLite file, durable before any call returns.

Write-ahead log and ``synchronous=FULL``: when a transaction has ended, it is on the disk, and its
last entry is noted in the head file.  All files can be read by their owner only, since they hold
secrets.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import stat
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet, finalize

from tacit.budget.alone import Alone, Given, LetGoIfDropped, Line, busy
from tacit.budget.checks import shortened
from tacit.budget.drafts import draft_of, sweep_drafts, sweep_holds
from tacit.budget.head_file import (
    Torn,
    check_contains,
    is_kept,
    keep_from_now_on,
    missing,
    sync_folder,
)
from tacit.budget.holds import FileHold
from tacit.budget.ledger import Reached, Tail, nobody_watches
from tacit.budget.sqlite_files import (
    ABANDONED,
    Identity,
    Opened,
    Snapshot,
    beside,
    connect,
    engine,
    identity,
    is_writable,
    keep_private,
    replaced,
)
from tacit.budget.sqlite_tables import APPLICATION, SCHEMA, VERSION, SqliteReader, SqliteWriter
from tacit.budget.writers_line import WritersLine
from tacit.errors import (
    BudgetError,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
)

WAIT_SECONDS = 10.0
_FOLDED_EVERY = 256  # entries; about as many pages as SQLite would wait for


class SqliteLedger:
    """A budget file."""

    def __init__(self, path: Path, *, wait: float = WAIT_SECONDS) -> None:
        self.path = path
        self.wait = wait
        self.reached: Reached = nobody_watches
        self.seen = Tail()
        self.line = Line()
        self._opened: Opened | Snapshot | None = None
        self._identity: Identity = None
        self._pid = os.getpid()
        self._blocked_for_fork: object | None = None
        self.vouched = False  # by somebody who gave a head where no head file can be written
        self._closed = False
        _OPEN.add(self)

    @property
    def place(self) -> str:
        """The file's path."""
        return str(self.path)

    @property
    def engine(self) -> str:
        """The SQLite that is at work."""
        return engine()

    @classmethod
    def create(cls, path: Path, fill: Callable[[SqliteWriter], None]) -> None:
        """A new file with what ``fill`` writes; it appears complete or not at all.

        It is made under another name and then linked to its own, which fails if that exists.
        """
        if os.path.lexists(path):
            raise _exists(path)
        try:
            sweep_drafts(path.parent)
            with draft_of(path) as draft:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                with closing(connect(draft, WAIT_SECONDS)) as connection:
                    connection.executescript(f"BEGIN;{SCHEMA}")
                    fill(SqliteWriter(connection))
                    connection.execute("COMMIT")
                    connection.execute("PRAGMA journal_mode = WAL")
                _forget_head_of_another(path)
                os.link(draft, path)
                sync_folder(path.parent)
        except FileExistsError:
            raise _exists(path) from None
        except sqlite3.Error as error:
            raise _translated(error, path, "create", WAIT_SECONDS) from None
        except OSError as error:
            raise LedgerUnwritable(f"{path} could not be created: {error.strerror}") from None
        ledger = cls(path)
        with suppress(BudgetError), ledger.writing("create"):
            pass  # the head file, which any first write would make
        ledger.close()

    def open(self, head: str | None = None) -> None:
        """Check what the file is.  Nothing in it is changed, and the history is not read.

        ``head`` is one that was noted, for a budget whose head file is gone.
        """
        try:
            kind = self.path.stat().st_mode
        except FileNotFoundError:
            raise LedgerMissing(
                f"{self.path}: there is no such file", advice="Budget.create makes one"
            ) from None
        except OSError as error:
            raise LedgerUnwritable(f"{self.path} cannot be opened: {error.strerror}") from None
        if not stat.S_ISREG(kind):
            raise LedgerDamaged(f"{self.path} is not a file, so it is no budget; nothing was done")
        with LetGoIfDropped(_Checking(self, head)) as tail:
            self.seen = tail
        self._sweep()

    def reading(self) -> AbstractContextManager[SqliteReader]:
        """A consistent view; it does not wait for other processes that write."""
        return LetGoIfDropped(_Reading(self, "read"))

    def writing(self, what: str) -> AbstractContextManager[SqliteWriter]:
        """All or nothing, and on the disk when the block ends."""
        return LetGoIfDropped(_Writing(self, what))

    def hold(self, stream: int) -> FileHold | None:
        """One holder a stream, by a lock file beside the budget."""
        path = beside(self.path, f"held-{stream}")
        try:
            hold = FileHold.take(path)
            if hold is None and not self.line.is_mine():  # not even a sweeper, who soon lets go?
                with LetGoIfDropped(_Quiet(self, "hold")):
                    hold = FileHold.take(path)
        except OSError as error:
            raise LedgerUnwritable(
                f"no lock file can be made beside {self.path}: {error.strerror}"
            ) from None
        return hold

    def check(self) -> None:
        """SQLite's own check of every page, and that the history is as long as it was."""
        with LetGoIfDropped(_Checking(self, None)):
            assert self._opened is not None
            ask = self._opened.connection.execute("PRAGMA integrity_check(1)")
            ((found, *_), *_) = ask.fetchall()
        if found != "ok":
            raise LedgerDamaged(f"{self.path} is damaged: SQLite's own check fails")

    def close(self) -> None:
        """Close the file; the log is folded into it if nobody else has it open."""
        with LetGoIfDropped(_Closing(self, "close")):
            self._closed = True
            if self._pid == os.getpid():
                self._disconnect()

    def connection(self, *, to_write: bool = False) -> Opened | Snapshot:
        """What is open, or opened now."""
        if self._pid != os.getpid():
            raise LedgerUnwritable(
                f"{self.path} was in use when this process was forked; open the budget after "
                "the fork"
            )
        if self._closed:
            raise BudgetError(f"{self.path} was closed; Budget.open opens it again")
        opened = self._opened
        if isinstance(opened, Snapshot) and (to_write or not opened.is_current()):
            self.discard(opened)
            opened = None
        return opened or self._connect()

    def _connect(self) -> Opened | Snapshot:
        if identity(self.path) in ABANDONED:
            raise replaced(self.path, "its -wal or -shm was")
        opened = self._opened_to_write() if is_writable(self.path) else self._opened_to_read()
        self._identity = opened.database = self._identity or opened.database
        # Not __del__: among garbage, the connection might be finalised before its ledger.
        opened.forgotten = finalize(self, _close_here, opened, os.getpid())
        opened.forgotten.atexit = False  # leases still have to leave then
        self._opened = opened
        return opened

    def _opened_to_write(self) -> Opened:
        """In our turn, so that nobody folds the log, or removes it, at the same time."""
        line = WritersLine(beside(self.path, "lock"))
        try:
            if not line.take(self.wait):
                raise busy(self.place, self.wait)
            connection = connect(self.path, self.wait)
            try:
                _check_kind(connection, self.path)
                keep_private(self.path)
                _use_log(connection, self.path)
                opened = Opened(self.path, connection, line)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            line.close(remove=not os.path.lexists(beside(self.path, "wal")))
            raise
        line.let_go()
        return opened

    def _opened_to_read(self) -> Snapshot:
        snapshot = Snapshot(self.path)
        try:
            _check_kind(snapshot.connection, self.path)
        except BaseException:
            snapshot.close()
            raise
        return snapshot

    def discard(self, opened: Opened | Snapshot) -> None:
        """Close one connection for good; whatever was half done in it is gone."""
        if self._opened is opened:
            self._opened = None
        if opened.forgotten is not None:
            opened.forgotten.detach()
        opened.close()

    def _disconnect(self) -> None:
        if self._opened is not None:
            self.discard(self._opened)

    def _sweep(self) -> None:
        """Remove what killed processes left beside the budget."""
        if isinstance(self._opened, Opened):
            with suppress(OSError, LedgerBusy):
                sweep_drafts(self.path.parent)
                with LetGoIfDropped(_Quiet(self, "sweep")):
                    sweep_holds(self.path)

    # SQLite's locks belong to a process and its idea of them would be copied by a fork, wrongly.
    # So no connection crosses one: it is closed before, and both sides connect again later.

    def before_fork(self) -> None:
        """Wait for the transaction in progress and close the connection."""
        self._blocked_for_fork = self.line.block(self.wait)
        if self._blocked_for_fork is not None and self._pid == os.getpid():
            self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self.line.unblock(self._blocked_for_fork)

    def after_fork_in_child(self) -> None:
        """Go on with a connection of our own; if one was in use after all, refuse for good."""
        self.line = Line()
        if self._opened is None:
            self._pid = os.getpid()
        else:  # closing it here would disturb the parent's transaction: keep it to the end
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._opened.connection))
            if isinstance(self._opened, Opened):
                self._opened.line.close()  # or it would be locked for as long as this child lives


_OPEN: WeakSet[SqliteLedger] = WeakSet()


def _each_open(act: Callable[[SqliteLedger], None]) -> Callable[[], None]:
    def act_on_all() -> None:
        for ledger in list(_OPEN):
            act(ledger)

    return act_on_all


os.register_at_fork(
    before=_each_open(SqliteLedger.before_fork),
    after_in_parent=_each_open(SqliteLedger.after_fork_in_parent),
    after_in_child=_each_open(SqliteLedger.after_fork_in_child),
)


def _close_here(opened: Opened | Snapshot, process: int) -> None:
    """What a ledger that was dropped leaves open, unless it belongs to another process."""
    if process == os.getpid():
        opened.close(wait=0)


# What is done with a ledger, by one thread at a time


class _Use(Alone[Given]):
    """One use of the connection; SQLite's errors, and the system's, become ours."""

    def __init__(self, ledger: SqliteLedger, what: str) -> None:
        super().__init__(ledger.line, ledger.wait)
        self.ledger = ledger
        self.what = what
        self.opened: Opened | Snapshot | None = None
        self.broken = False

    def where(self) -> str:
        return self.ledger.place

    def begin(self) -> Given:
        try:
            return self.start()
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from None

    @abstractmethod
    def start(self) -> Given:
        """Begin; what is raised is translated."""

    def finish(self) -> None:
        try:
            self.end()
        except (sqlite3.Error, OSError) as error:
            raise self._failed(error) from None

    def end(self) -> None:
        """End well; what is raised is translated."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.broken = self.broken or isinstance(error, sqlite3.Error)
        super().__exit__(kind, error, trace)
        if isinstance(error, sqlite3.Error):
            raise self._failed(error) from None

    def let_go(self, *, unseen: bool) -> None:
        opened = self.opened
        if opened is None:
            return
        if not (unseen or self.broken):
            with suppress(sqlite3.Error, OSError):
                opened.rest()
                return
        self.ledger.discard(opened)  # start afresh: nothing half done survives

    def _failed(self, error: sqlite3.Error | OSError) -> BudgetError:
        self.broken = True
        if isinstance(error, BudgetError):
            return error
        if isinstance(error, OSError):
            return _unwritable(self.ledger.path, self.what, error.strerror)
        return _translated(error, self.ledger.path, self.what, self.ledger.wait)


class _Reading(_Use[SqliteReader]):
    def start(self) -> SqliteReader:
        self.opened = self.ledger.connection()
        self.opened.connection.execute("BEGIN")
        return SqliteReader(self.opened.connection)


class _Writing(_Use[SqliteWriter]):
    def start(self) -> SqliteWriter:
        ledger = self.ledger
        opened = self.opened = ledger.connection(to_write=True)
        if isinstance(opened, Snapshot):
            raise LedgerUnwritable(
                f"{ledger.path} may not be written here, so nothing can be charged ({self.what}); "
                "it can be shown and verified. Give write access to the file and its folder"
            )
        if not opened.line.take(ledger.wait):
            raise busy(ledger.place, ledger.wait)
        opened.connection.execute("BEGIN IMMEDIATE")
        opened.check_same_files()
        self.noted = self._noted(opened)
        ledger.reached(f"{self.what}: begun")
        self.writer = SqliteWriter(opened.connection, ledger.seen)
        return self.writer

    def _noted(self, opened: Opened) -> Tail:
        """The head that is noted, which the history must contain."""
        connection, path = opened.connection, self.ledger.path
        try:
            noted = opened.head.read()
        except Torn:
            noted = None
            if opened.kept:
                raise missing(path, torn=True) from None
        if noted is not None:
            check_contains(connection, noted, path)
        elif opened.kept:
            raise missing(path, torn=False)
        if not opened.kept:
            noted = SqliteReader(connection).tail()
            opened.head.begin(noted)  # before the commit: it must not be missed if we are killed
            keep_from_now_on(connection, noted.number)
        assert noted is not None
        return noted

    def end(self) -> None:
        ledger, opened, what = self.ledger, self.opened, self.what
        assert isinstance(opened, Opened)
        ledger.reached(f"{what}: written")
        opened.connection.execute("COMMIT")
        before, ledger.seen = ledger.seen, self.writer.seen
        opened.kept = True
        ledger.reached(f"{what}: committed")
        if ledger.seen != before:
            opened.head.write(ledger.seen)
            if ledger.seen.number // _FOLDED_EVERY > self.noted.number // _FOLDED_EVERY:
                opened.fold()


class _Checking(_Use[Tail]):
    """Compare the history with the head file, or with a head that was noted elsewhere."""

    def __init__(self, ledger: SqliteLedger, head: str | None) -> None:
        super().__init__(ledger, "open")
        self.head = head

    def start(self) -> Tail:
        opened = self.opened = self.ledger.connection()
        noted, torn = self._read_head(opened)
        opened.connection.execute("BEGIN")  # after the head was read: it is in here, or lost
        tail = SqliteReader(opened.connection).tail()
        if self.head is not None:
            self._check_noted(opened.connection, self.head)
        if noted is not None:
            check_contains(opened.connection, noted, self.ledger.path)
        elif is_kept(opened.connection):
            if self.head is None and not self.ledger.vouched:
                raise missing(self.ledger.path, torn=torn)
            self._note_again(opened)
        return tail

    def _read_head(self, opened: Opened | Snapshot) -> tuple[Tail | None, bool]:
        """What the head file says.  It may look torn while another process writes it."""
        for quiet in (False, True):
            try:
                if quiet and isinstance(opened, Opened) and not opened.line.take(self.ledger.wait):
                    raise busy(self.ledger.place, self.ledger.wait)
                return opened.head.read(), False
            except Torn:
                continue
            finally:
                opened.rest()
        return None, True

    def _check_noted(self, connection: sqlite3.Connection, head: str) -> None:
        if connection.execute("SELECT 1 FROM entries WHERE hash = ?", (head,)).fetchone() is None:
            raise LedgerDamaged(
                f"the head {shortened(head, 100)} that was noted is not in the history of "
                f"{self.ledger.path}: its end was cut off, it was rewritten, or an old copy was "
                "put back"
            )

    def _note_again(self, opened: Opened | Snapshot) -> None:
        """Go on without the head file: the steward has vouched for the history."""
        self.ledger.vouched = isinstance(opened, Snapshot)
        if isinstance(opened, Snapshot):
            return
        opened.rest()
        if not opened.line.take(self.ledger.wait):
            raise busy(self.ledger.place, self.ledger.wait)
        opened.connection.execute("BEGIN")
        opened.head.begin(SqliteReader(opened.connection).tail())


class _Quiet(_Use[None]):
    """While no other process writes, opens or sweeps."""

    def start(self) -> None:
        opened = self.opened = self.ledger.connection()
        if isinstance(opened, Opened) and not opened.line.take(self.ledger.wait):
            raise busy(self.ledger.place, self.ledger.wait)


class _Closing(_Use[None]):
    def start(self) -> None:
        pass


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Before anything is set, so that somebody else's database is not touched.

    Asked of SQLite, not read from the file: closing a file drops SQLite's locks on it.
    """
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if application != APPLICATION:
        raise LedgerDamaged(f"{path} is not a budget file; it was left as it is")
    if version != VERSION:
        raise LedgerDamaged(
            f"{path} is a budget file of version {version}; this Tacit reads version {VERSION}. "
            "It was left as it is: use the Tacit that wrote it"
        )


def _use_log(connection: sqlite3.Connection, path: Path) -> None:
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if mode != "wal":
        raise LedgerUnwritable(f"{path} cannot use a write-ahead log on this file system")


_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_UNWRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_NOMEM,
}


def _translated(error: sqlite3.Error, path: Path, what: str, wait: float) -> BudgetError:
    """What went wrong, and what to do.  SQLite's own words carry no value from the file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _BUSY:
        return busy(str(path), wait)
    if code in _UNWRITABLE:
        return _unwritable(path, what, error)
    return LedgerDamaged(
        f"{path} is not a sound budget file ({what}: {error}); it was left as it is. Use a copy "
        "only if it is the newest: an older one forgets what was spent"
    )


def _unwritable(path: Path, what: str, why: object) -> LedgerUnwritable:
    return LedgerUnwritable(
        f"{path} could not be written ({what}: {why}); nothing was released. Make room or "
        "give write access, then open it again"
    )


def _exists(path: Path) -> LedgerExists:
    return LedgerExists(
        f"{path} exists and is never overwritten", advice="Budget.open opens a budget"
    )


def _forget_head_of_another(path: Path) -> None:
    """A head file without its budget: it belonged to one that was here before."""
    line = WritersLine(beside(path, "lock"))
    try:
        if line.take(WAIT_SECONDS) and not os.path.lexists(path):
            beside(path, "head").unlink(missing_ok=True)
    finally:
        line.close(remove=not os.path.lexists(beside(path, "wal")))
