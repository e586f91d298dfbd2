"""The ledger in one SQLite file, durable before any call returns.

Write-ahead log and ``synchronous=FULL``: when a transaction has ended, it is on the disk, and its
last entry is noted in the head file.  All files can be read by their owner only, since they hold
secrets: with another mode nothing is opened.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import stat
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Self
from weakref import WeakSet, finalize

from tacit.arguments import file_path
from tacit.budget.head_file import sync_folder
from tacit.budget.ledger import WAIT_SECONDS, Fill, HistoryEnd
from tacit.budget.locks import (
    FileHold,
    FileIdentity,
    WritersLine,
    draft_of,
    holds_of,
    identity,
    sweep_drafts,
    sweep_holds,
)
from tacit.budget.sqlite_files import (
    ABANDONED,
    Opened,
    Snapshot,
    beside,
    connect,
    engine,
    is_writable,
    refuse_shown,
    replaced,
    shown_files,
    translated,
)
from tacit.budget.sqlite_tables import APPLICATION, SCHEMA, VERSION, SqliteReader, SqliteWriter
from tacit.budget.sqlite_uses import Checking, ClosingFile, Quiet, Reading, Writing
from tacit.budget.turns import LetGoIfDropped, Line, busy, tell_of_forks
from tacit.errors import (
    BadParameter,
    BudgetError,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
)
from tacit.support import Uncopyable

URL = "sqlite://"
_FORMS = "sqlite:///clinic.budget, or sqlite:////srv/clinic.budget for a path from the root"


def path_of(address: str | os.PathLike[str]) -> Path:
    """The file that a path or a URL names.

    ``sqlite:///`` is followed by the path as it stands: nothing in it is decoded, and one from the
    root begins with a slash of its own.  Links are followed, so that one file has one name and
    its log lies beside the file itself.
    """
    if isinstance(address, str) and address[: len(URL)].lower() == URL:
        address = address[len(URL) :]
        if not address.startswith("/") or address == "/":
            raise BadParameter("path", repr(URL + address), f"give {_FORMS}")
        address = address[1:]
    return Path(os.path.realpath(file_path(address, "path", "the path of a budget file")))


class SqliteLedger(Uncopyable):
    """A budget file."""

    def __init__(self, path: Path, *, wait: float = WAIT_SECONDS) -> None:
        self.path = path
        self.wait = wait
        self.seen = HistoryEnd()
        self.line = Line()
        self._opened: Opened | Snapshot | None = None
        self._identity: FileIdentity = None
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
    def create(
        cls, address: str | os.PathLike[str], fill: Fill, *, wait: float = WAIT_SECONDS
    ) -> Self:
        """A new file with what ``fill`` writes; it appears complete or not at all.

        It is made under another name and then linked to its own, which fails if that exists.
        """
        path = path_of(address)
        if os.path.lexists(path):
            raise _exists(path)
        try:
            sweep_drafts(path.parent)
            with draft_of(path) as draft:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                with closing(connect(draft, WAIT_SECONDS)) as connection:
                    connection.executescript(f"BEGIN;{SCHEMA}")
                    fill(SqliteWriter(connection).upgrade())
                    connection.execute("COMMIT")
                    connection.execute("PRAGMA journal_mode = WAL")
                _make_room(path)
                os.link(draft, path)
                sync_folder(path.parent)
        except LedgerExists:
            raise
        except FileExistsError:
            raise _exists(path) from None
        except sqlite3.Error as error:
            raise translated(error, path, "create", WAIT_SECONDS) from None
        except OSError as error:
            raise LedgerUnwritable(
                f"{path} could not be created: {error.strerror}; name a file in a folder "
                "that exists and may be written"
            ) from None
        ledger = cls(path)
        with suppress(BudgetError), ledger.writing("create"):
            pass  # the head file, which any first write would make
        ledger.close()
        return cls.open(path, wait=wait)

    @classmethod
    def open(
        cls,
        address: str | os.PathLike[str],
        *,
        wait: float = WAIT_SECONDS,
        head: str | None = None,
    ) -> Self:
        """Open a file and check what it is.  Nothing in it is changed; the history is not read.

        With a ``head``, the head file may be gone: it is written again.
        """
        ledger = cls(path_of(address), wait=wait)
        ledger._check_file(head)
        return ledger

    def _check_file(self, head: str | None) -> None:
        try:
            kind = self.path.stat().st_mode
        except FileNotFoundError:
            raise LedgerMissing(
                f"{self.path}: there is no such file", advice="Budget.create makes one"
            ) from None
        except OSError as error:
            raise LedgerUnwritable(f"{self.path} cannot be opened: {error.strerror}") from None
        if not stat.S_ISREG(kind):
            raise LedgerDamaged(
                f"{self.path} is not a file, so it cannot be a budget; nothing was done"
            )
        with LetGoIfDropped(Checking(self, head)) as tail:
            self.seen = tail
        self._sweep()

    def reading(self) -> AbstractContextManager[SqliteReader]:
        """A consistent view; it does not wait for other processes that write."""
        return LetGoIfDropped(Reading(self, "read"))

    def writing(self, what: str) -> AbstractContextManager[SqliteWriter]:
        """All or nothing, and on the disk when the block ends."""
        return LetGoIfDropped(Writing(self, what))

    def hold(self, stream: int) -> FileHold | None:
        """One holder a stream, by a lock file beside the budget."""
        path = beside(self.path, f"held-{stream}")
        try:
            hold = FileHold.take(path)
            if hold is None and not self.is_writing():  # unless a sweeper has it, and soon lets go
                with LetGoIfDropped(Quiet(self, "hold")):
                    hold = FileHold.take(path)
        except OSError as error:
            raise LedgerUnwritable(
                f"no lock file can be made beside {self.path}: {error.strerror}; give write "
                "access to its folder"
            ) from None
        return hold

    def is_writing(self) -> bool:
        """Whether this thread is in the middle of a transaction."""
        return self.line.is_mine()

    def check(self) -> None:
        """SQLite's own check of every page, and that the history is as long as it was."""
        with LetGoIfDropped(Checking(self, None)):
            assert self._opened is not None
            ask = self._opened.connection.execute("PRAGMA integrity_check(1)")
            ((found, *_), *_) = ask.fetchall()
        if found != "ok":
            raise LedgerDamaged(f"{self.path} is damaged: SQLite's own check fails")

    def close(self) -> None:
        """Close the file; the log is folded into it if nobody else has it open."""
        with LetGoIfDropped(ClosingFile(self, "close")):
            self._closed = True
            if self._pid == os.getpid():
                self._disconnect()

    def connection(self, *, to_write: bool = False) -> Opened | Snapshot:
        """What is open, or opened now."""
        self.refuse_if_gone()
        opened = self._opened
        stale = isinstance(opened, Snapshot) and (to_write or not opened.is_current())
        if opened is not None and (stale or opened.unusable):
            self.discard(opened)
            opened = None
        return opened or self._connect()

    def refuse_if_gone(self) -> None:
        """Refuse what was closed, or belongs to the process that this one was forked from."""
        if self._pid != os.getpid():
            raise LedgerUnwritable(
                f"{self.path} was in use when this process was forked; open the budget after "
                "the fork"
            )
        if self._closed:
            raise BudgetError(f"{self.path} was closed; Budget.open opens it again")

    def _connect(self) -> Opened | Snapshot:
        if identity(self.path) in ABANDONED:
            raise replaced(self.path, "its -wal or -shm was")
        shown = shown_files(self.path)
        to_write = is_writable(self.path) and not shown
        opened = self._opened_to_write() if to_write else self._opened_to_read(shown)
        self._identity = opened.database = self._identity or opened.database
        # Not __del__: among garbage, the connection might be finalised before its ledger.
        opened.forgotten = finalize(self, _close_here, opened, os.getpid())
        opened.forgotten.atexit = False  # leases still have to leave then
        self._opened = opened
        return opened

    def _opened_to_write(self) -> Opened:
        """Open it in our turn, so that nobody folds or removes the log at the same time."""
        line = WritersLine(beside(self.path, "lock"))
        try:
            if not line.take(self.wait):
                raise busy(self.place, self.wait)
            connection = connect(self.path, self.wait)
            try:
                _check_kind(connection, self.path)
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

    def _opened_to_read(self, shown: list[Path]) -> Snapshot:
        """A copy in memory: what is to be refused keeps its files, and its log, as they are."""
        snapshot = Snapshot(self.path)
        try:
            _check_kind(snapshot.connection, self.path)
            refuse_shown(self.path, shown)
        except BaseException:
            snapshot.close()
            raise
        return snapshot

    def discard(self, opened: Opened | Snapshot) -> None:
        """Close one connection for good; whatever was half done in it is gone."""
        opened.close()
        if opened.forgotten is not None:
            opened.forgotten.detach()
        if self._opened is opened:
            self._opened = None

    def _disconnect(self) -> None:
        if self._opened is not None:
            self.discard(self._opened)

    def _sweep(self) -> None:
        """Remove what killed processes left beside the budget."""
        if isinstance(self._opened, Opened):
            with suppress(OSError, LedgerBusy):
                sweep_drafts(self.path.parent)
                held = holds_of(self.path)
                if held:
                    with LetGoIfDropped(Quiet(self, "sweep")):
                        sweep_holds(held)

    # SQLite's locks belong to a process and its idea of them would be copied by a fork, wrongly.
    # So no connection crosses one: it is closed before, and both sides connect again later.

    def before_fork(self) -> None:
        """Wait for the transaction in progress and close the connection."""
        self._blocked_for_fork = self.line.block(self.wait)
        if self._blocked_for_fork is not None and self._pid == os.getpid():
            self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Let other threads go on."""
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


tell_of_forks(_OPEN)


def _close_here(opened: Opened | Snapshot, process: int) -> None:
    """Close what a dropped ledger left open, unless it belongs to another process."""
    if process == os.getpid():
        opened.close(wait=0)


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Check what the file is, before any setting is made: another program's is not touched.

    Asked of SQLite, not read from the file: closing a file drops SQLite's locks on it.
    """
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if application != APPLICATION:
        raise LedgerDamaged(f"{path} is not a budget file; it was left as it is")
    if not 1 <= version <= VERSION:
        raise LedgerDamaged(
            f"{path} is a budget file of version {version}; this Tacit reads versions 1 to "
            f"{VERSION}. It was left as it is: use the Tacit that wrote it"
        )


def _use_log(connection: sqlite3.Connection, path: Path) -> None:
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if mode != "wal":
        raise LedgerUnwritable(f"{path} cannot use a write-ahead log on this file system")


def _exists(path: Path) -> LedgerExists:
    return LedgerExists(
        f"{path} exists and is never overwritten", advice="Budget.open opens a budget"
    )


def _make_room(path: Path) -> None:
    """Remove the head of a budget that was here before; refuse if its log is still here."""
    line, log = WritersLine(beside(path, "lock")), beside(path, "wal")
    try:
        if line.take(WAIT_SECONDS) and not os.path.lexists(path):
            if log.exists() and log.stat().st_size:
                raise LedgerExists(
                    f"{log} is the log of a budget that was at {path}, and SQLite would read it "
                    "into a new one; put it back beside its budget, or remove it"
                )
            beside(path, "head").unlink(missing_ok=True)
    finally:
        line.close(remove=not os.path.lexists(beside(path, "wal")))
