"""A budget's files: who may read them, whether they are still the same, and how they are opened."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import finalize

from tacit.budget.chain import damaged
from tacit.budget.head_file import HeadFile, is_kept
from tacit.budget.locks import FileIdentity, WritersLine, identity, is_named
from tacit.budget.sqlite_tables import Remembered
from tacit.budget.turns import busy
from tacit.errors import BudgetError, LedgerBusy, LedgerDamaged, LedgerUnwritable
from tacit.support import Uncopyable

ABANDONED: set[FileIdentity] = set()
"""Budgets whose log was taken away while this process had them open."""

SAFE_SINCE = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""SQLite before these, from 3.7.0 on, may damage a log that two connections fold at once."""

_BESIDE = ("wal", "shm", "journal", "head", "lock")
_CLOSE_WAIT_SECONDS = 1.0
_TRIES = 5
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


# What SQLite and the system say, as errors of ours ------------------------------------------------


def translated(error: sqlite3.Error, path: Path, what: str, wait: float) -> BudgetError:
    """What went wrong, and what to do.  SQLite's own words carry no value from the file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _BUSY:
        return busy(str(path), wait)
    if code in _UNWRITABLE:
        return unwritable(path, what, error)
    return damaged(f"{path} is not a sound budget file ({what}: {error})")


def unwritable(path: Path, what: str, why: object) -> LedgerUnwritable:
    """The error when the disk or the system refuses a write."""
    return LedgerUnwritable(
        f"{path} could not be written ({what}: {why}); nothing was released. Make room or "
        "give write access, then open it again"
    )


def folds_safely(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether this SQLite is free of the "WAL-reset bug" (https://sqlite.org/wal.html)."""
    return version >= SAFE_SINCE[-1] or any(
        fixed <= version < (*fixed[:1], fixed[1] + 1) for fixed in SAFE_SINCE
    )


def engine() -> str:
    """Which SQLite is at work, and what there is to know about it."""
    known = f"SQLite {sqlite3.sqlite_version}"
    if folds_safely():
        return known
    *some, newest = (".".join(map(str, version)) for version in SAFE_SINCE)
    return (
        f"{known}, whose log may be damaged if two programs fold it into the file at once. Tacit "
        "lets one at a time; do not let another program, or Tacit 0.1, write to a budget as well. "
        f"{', '.join(some)}, {newest} and later have no such fault"
    )


# Files, and a connection that stands on them ------------------------------------------------------


def beside(path: Path, end: str) -> Path:
    """The file of this kind that belongs to a budget."""
    return path.with_name(f"{path.name}-{end}")


class Opened(Uncopyable):
    """A connection to a budget, and the files that it stands on."""

    unusable = False  # closed, in part or in whole, or taken away from us

    def __init__(self, path: Path, connection: sqlite3.Connection, line: WritersLine) -> None:
        self.connection = connection
        self.cursor = connection.cursor()  # for what is done at every charge
        self.line = line
        self.head = HeadFile(beside(path, "head"))
        self.kept = is_kept(connection)  # reading makes sure that there is a log
        self.database = identity(path)
        self.forgotten: finalize[Any, Any] | None = None
        self.remembered: Remembered | None = None
        self._path, self._name = path, os.fspath(path)
        self._beside = [os.fspath(beside(path, end)) for end in ("wal", "shm")]
        found = self._found_beside()
        if None in found:
            raise replaced(path, "its -wal or -shm was")
        self._side_files = list(zip(self._beside, found, strict=True))

    def check_same_files(self) -> None:
        """What is written to a file that was removed or replaced would be lost."""
        if not is_named(self._name, self.database):
            raise replaced(self._path, "it was")
        for name, known in self._side_files:
            if not is_named(name, known):
                self._abandon()
                raise replaced(self._path, "its -wal or -shm was")
        if not self.head.is_in_place():
            raise replaced(self._path, "its head file was")

    def _found_beside(self) -> list[FileIdentity]:
        return [identity(path) for path in self._beside]

    def _abandon(self) -> None:
        """Keep away from a log that others may have started again.

        If there is no other yet, what is in ours is folded into the budget, so that nothing is
        lost.  Closing would do that whatever others have written meanwhile, so this connection
        is never closed: it ends with the process, and until then the process cannot connect again.
        """
        self.rest()
        if None in self._found_beside():
            self.fold()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        ABANDONED.add(self.database)
        self.unusable = True
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)

    def rest(self) -> None:
        """Roll back what was not committed, and let the next one write."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.line.let_go()

    def fold(self) -> None:
        """Copy the log into the file; only in our turn, since SQLite's own care has a hole.

        Until 3.51.2 a log may be damaged if one connection restarts it while another copies it.
        """
        with suppress(sqlite3.Error):
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self, wait: float = _CLOSE_WAIT_SECONDS) -> None:
        """Close all.  The last one folds the log into the file, and does so in its turn.

        If our turn does not come, others are at work on this budget, and SQLite folds nothing.
        """
        self.unusable = True
        ours = False
        try:
            with suppress(OSError):
                ours = self.line.take(wait)
            with suppress(sqlite3.Error):
                self.connection.close()
            self.head.close()
            self.line.close(remove=ours and not os.path.lexists(self._beside[0]))
        finally:
            self.line.close()  # also if it was interrupted; then the rest can be done again


def replaced(path: Path, what: str) -> LedgerDamaged:
    """A file is not the one that was opened."""
    return LedgerDamaged(
        f"{path} cannot be used: {what} moved, removed or replaced while it was open. Nothing more "
        "is written to it: end every program that uses it, put back what was there (the newest "
        "copy) and open it again"
    )


def is_writable(path: Path) -> bool:
    """Whether a budget can be written: the file, what lies beside it, and their folder."""
    files = [path, *(beside(path, end) for end in ("wal", "shm", "head", "lock"))]
    existing = [file for file in files if file.exists()]
    return all(_may(file, os.W_OK) for file in existing) and _may(path.parent, os.W_OK | os.X_OK)


def _may(path: Path, how: int) -> bool:
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def shown_files(path: Path) -> list[Path]:
    """Those of a budget's files that others may read or write.

    Asked before SQLite connects to write: it makes some of the same mode, and takes them away.
    """
    return [file for file in (path, *(beside(path, end) for end in _BESIDE)) if _is_shown(file)]


def refuse_shown(path: Path, shown: list[Path]) -> None:
    """Refuse a budget that others may read or write: its files hold secrets.

    It is not mended in silence, since what others could read may be known to them by now.
    """
    if shown:
        files = " ".join(map(os.fspath, shown))
        raise LedgerUnwritable(
            f"{path} holds secrets, and others may read or write it; nothing was opened: "
            f"chmod 600 {files}. People who share a budget use a server, or one in PostgreSQL"
        )


def _is_shown(file: Path) -> bool:
    with suppress(FileNotFoundError):
        return bool(stat.S_IMODE(file.stat().st_mode) & 0o077)
    return False


def connect(path: Path, wait: float) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return."""
    # mode=rw: a missing file is an error, not a new and empty database.
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's own cache
        connection.execute("PRAGMA secure_delete = ON")  # a forgotten secret is overwritten
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # we fold the log, in our turn
    except BaseException:  # not a database
        connection.close()
        raise
    return connection


# Reading where nothing may be written -------------------------------------------------------------


class Snapshot(Uncopyable):
    """A copy in memory of a budget that this process may not write."""

    unusable = False

    def __init__(self, path: Path) -> None:
        self.head = HeadFile(beside(path, "head"))
        self.database = identity(path)
        self.forgotten: finalize[Any, Any] | None = None
        self._path = path
        for _ in range(_TRIES):
            self._state = self._found()
            self.connection = _copied(path)
            if self.is_current():
                return
            self.connection.close()
        raise LedgerBusy(f"{path} is being written without a pause by another process; try again")

    def is_current(self) -> bool:
        """Whether the files are as they were when they were copied."""
        return self._found() == self._state

    def _found(self) -> list[tuple[int, int, int, int] | None]:
        return [_state(file) for file in (self._path, beside(self._path, "wal"))]

    def rest(self) -> None:
        """End the transaction."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def close(self, wait: float = 0) -> None:
        """Close the copy."""
        self.unusable = True
        self.connection.close()
        self.head.close()


def _state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _copied(path: Path) -> sqlite3.Connection:
    """What the file and its log say together, in memory.

    Without a log the file is all there is.  SQLite can share the index of a log (-shm) with those
    who write, if there is one.  Otherwise nobody is at work, and it makes an index of its own:
    without locks, since those that it would take need a file that may be written.
    """
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        if not beside(path, "wal").exists():
            _copy(f"{path.as_uri()}?mode=ro&immutable=1", memory)
            return memory
        if beside(path, "shm").exists():
            with suppress(sqlite3.OperationalError):
                _copy(f"{path.as_uri()}?mode=ro", memory)
                return memory
        _copy(f"{path.as_uri()}?mode=ro&vfs=unix-none", memory, "PRAGMA locking_mode = EXCLUSIVE")
    except BaseException:
        memory.close()
        raise
    return memory


def _copy(uri: str, memory: sqlite3.Connection, *before: str) -> None:
    source = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        for statement in before:
            source.execute(statement)
        source.backup(memory)
    finally:
        source.close()
