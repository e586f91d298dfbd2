"""The ledger in one SQLite file, durable before any call returns.

Write-ahead log and ``synchronous=FULL``: when a transaction has ended, it is on the disk.  The
file, its log and its shared memory can be read by their owner only, since they hold secrets.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from weakref import WeakSet, finalize

from tacit.budget.damage import damaged
from tacit.budget.holds import FileHold
from tacit.budget.ledger import Reached, Tail, nobody_watches
from tacit.budget.sqlite_tables import SqliteReader, SqliteWriter
from tacit.budget.sqlite_versions import APPLICATION, SCHEMA, VERSION
from tacit.errors import (
    BudgetError,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
)
from tacit.uncopyable import Uncopyable

WAIT_SECONDS = 10.0


class SqliteLedger(Uncopyable):
    """A budget file."""

    def __init__(self, path: Path, *, wait: float = WAIT_SECONDS) -> None:
        self.path = path
        self.wait = wait
        self.reached: Reached = nobody_watches
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._seen = Tail()
        self._pid = os.getpid()
        self._locked_for_fork = False
        self._closed = False
        _OPEN.add(self)

    @property
    def place(self) -> str:
        """The file's path."""
        return str(self.path)

    @classmethod
    def create(cls, path: Path, fill: Callable[[SqliteWriter], None]) -> None:
        """A new file with what ``fill`` writes; it appears complete or not at all.

        It is made under another name and then linked to its own, which fails if that exists.
        """
        if os.path.lexists(path):
            raise _exists(path)
        draft = path.with_name(f".{path.name}.{token_hex(8)}.new")
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with closing(_connect(draft, WAIT_SECONDS)) as connection:
                connection.executescript(f"BEGIN;{SCHEMA}")
                fill(SqliteWriter(connection))
                connection.execute("COMMIT")
                connection.execute("PRAGMA journal_mode = WAL")
            os.link(draft, path)
            _sync_folder(path.parent)
        except FileExistsError:
            raise _exists(path) from None
        except sqlite3.Error as error:
            raise _translated(error, path, "create", WAIT_SECONDS) from None
        except OSError as error:
            raise LedgerUnwritable(f"{path} could not be created: {error.strerror}") from None
        finally:
            for leftover in _family(draft):
                with suppress(OSError):
                    leftover.unlink()

    def open(self) -> None:
        """Check what the file is.  Nothing in it is changed, and the history is not read."""
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
        with self.reading() as reader:
            self._seen = reader.tail()

    @contextmanager
    def reading(self) -> Iterator[SqliteReader]:
        """A consistent view; it does not wait for writers."""
        with self._alone("read") as connection, _transaction(connection, "BEGIN"):
            yield SqliteReader(connection)

    @contextmanager
    def writing(self, what: str) -> Iterator[SqliteWriter]:
        """All or nothing, and on the disk when the block ends."""
        with self._alone(what) as connection:
            self._same_file()
            with _transaction(connection, "BEGIN IMMEDIATE"):
                self.reached(f"{what}: begun")
                writer = SqliteWriter(connection, self._seen)
                yield writer
                self.reached(f"{what}: written")
            self._seen = writer.seen
            self.reached(f"{what}: committed")

    def hold(self, stream: int) -> FileHold | None:
        """One holder a stream, by a lock file beside the budget."""
        try:
            return FileHold.take(self.path.with_name(f"{self.path.name}-held-{stream}"))
        except OSError as error:
            raise LedgerUnwritable(
                f"no lock file can be made beside {self.path}: {error.strerror}"
            ) from None

    def check(self) -> None:
        """SQLite's own check of every page."""
        with self._alone("check") as connection:
            ((found, *_), *_) = connection.execute("PRAGMA integrity_check(1)").fetchall()
        if found != "ok":
            raise LedgerDamaged(f"{self.path} is damaged: SQLite's own check fails")

    def close(self) -> None:
        """Close the file; the log is folded into it if nobody else has it open."""
        with self._lock:
            self._closed = True
            if self._pid == os.getpid():
                self._disconnect()

    @contextmanager
    def _alone(self, what: str) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; SQLite's errors become ours."""
        if self._pid != os.getpid():
            raise LedgerUnwritable(
                f"{self.path} was in use when this process was forked; open the budget after "
                "the fork"
            )
        if self._owner == threading.get_ident():  # a finaliser, or a callback: do not wait for us
            raise LedgerBusy(f"{self.path} is in the middle of a transaction of this very thread")
        if not self._lock.acquire(timeout=self.wait):
            raise _busy(self.path, self.wait)
        self._owner = threading.get_ident()
        try:
            if self._closed:
                raise BudgetError(f"{self.path} was closed; Budget.open opens it again")
            yield self._connection or self._connect()
        except sqlite3.Error as error:
            self._disconnect()  # start afresh: nothing half done survives in the connection
            raise _translated(error, self.path, what, self.wait) from None
        except UnicodeDecodeError:  # SQLite's own words, which quote a damaged schema
            self._disconnect()
            raise damaged(f"{self.path} cannot be read ({what})") from None
        finally:
            self._owner = None
            self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        connection = _connect(self.path, self.wait)
        try:
            _check_kind(connection, self.path)
            _keep_private(self.path)
            _use_log(connection, self.path)
            self._identity = self._identity or _identity(self.path)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        # Not __del__: among garbage, the connection might be finalised before its ledger.
        self._forgotten = finalize(self, _close_here, connection, os.getpid())
        self._forgotten.atexit = False  # leases still have to leave then
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._forgotten.detach()
            with suppress(sqlite3.Error):
                connection.close()

    def _same_file(self) -> None:
        """A file that was moved away or replaced would take charges with it into oblivion."""
        if _identity(self.path) != self._identity:
            raise LedgerDamaged(
                f"{self.path} was moved, removed or replaced while it was open; put back the "
                "newest copy and open it again"
            )

    # SQLite's locks belong to a process and its idea of them would be copied by a fork, wrongly.
    # So no connection crosses one: it is closed before, and both sides connect again later.

    def before_fork(self) -> None:
        """Wait for the transaction in progress and close the connection."""
        self._locked_for_fork = self._lock.acquire(timeout=self.wait)
        if self._locked_for_fork and self._pid == os.getpid():
            self._disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._locked_for_fork:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Go on with a connection of our own; if one was in use after all, refuse for good."""
        self._lock, self._owner = threading.Lock(), None
        if self._connection is None:
            self._pid = os.getpid()
        else:  # closing it here would disturb the parent's transaction: keep it to the end
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))


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


def _close_here(connection: sqlite3.Connection, process: int) -> None:
    """What a ledger that was dropped leaves open, unless it belongs to another process."""
    if process == os.getpid():
        with suppress(sqlite3.Error):
            connection.close()


def _connect(path: Path, wait: float) -> sqlite3.Connection:
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
    except BaseException:  # it is no database
        connection.close()
        raise
    return connection


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Before anything is set, so that somebody else's database is not touched.

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


def _family(path: Path) -> list[Path]:
    """The file and what SQLite keeps beside it."""
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))]


def _keep_private(path: Path) -> None:
    """Mode 0600, whatever the umask was or somebody changed."""
    for file in _family(path):
        with suppress(FileNotFoundError):
            if stat.S_IMODE(file.stat().st_mode) & 0o077:
                try:
                    file.chmod(0o600)
                except PermissionError:
                    raise LedgerUnwritable(
                        f"{file} can be read by others and holds secrets; its owner must "
                        "chmod 600 it"
                    ) from None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    try:
        connection.execute(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


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
        return _busy(path, wait)
    if code in _UNWRITABLE:
        return LedgerUnwritable(
            f"{path} could not be written ({what}: {error}); nothing was released. Make room or "
            "give write access, then open it again"
        )
    return LedgerDamaged(
        f"{path} is not a sound budget file ({what}: {error}); it was left as it is. Use a copy "
        "only if it is the newest: an older one forgets what was spent"
    )


def _busy(path: Path, wait: float) -> LedgerBusy:
    return LedgerBusy(
        f"{path} stayed locked by another process or thread for {wait:g} seconds; nothing was "
        "spent. Try again"
    )


def _exists(path: Path) -> LedgerExists:
    return LedgerExists(
        f"{path} exists and is never overwritten", advice="Budget.open opens a budget"
    )


def _sync_folder(folder: Path) -> None:
    """The new name itself must survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
