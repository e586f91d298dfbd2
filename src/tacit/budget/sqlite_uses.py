"""What is done with a budget file, by one thread at a time: reading, writing, checking."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from tacit.budget.chain import damaged
from tacit.budget.head_file import Torn, check_contains, is_kept, keep_from_now_on, missing, signed
from tacit.budget.ledger import HistoryEnd, shortened
from tacit.budget.sqlite_files import Opened, Snapshot, translated, unwritable
from tacit.budget.sqlite_tables import VERSION, SqliteReader, SqliteWriter
from tacit.budget.turns import Alone, Given, busy
from tacit.errors import BudgetError, LedgerDamaged, LedgerUnwritable

if TYPE_CHECKING:
    from tacit.budget.sqlite import SqliteLedger

# SQLite quotes a damaged schema in its own words, which then may not be valid text.
_TRANSLATED = (sqlite3.Error, OSError, UnicodeDecodeError)
_INSIDE = (sqlite3.Error, UnicodeDecodeError)
_FOLDED_EVERY = 256  # entries; about as many pages as SQLite would wait for


class Use(Alone[Given]):
    """One use of the connection; SQLite's errors, and the system's, become ours."""

    def __init__(self, ledger: SqliteLedger, what: str) -> None:
        super().__init__(ledger.line, ledger.wait)
        self.ledger = ledger
        self.what = what
        self.opened: Opened | Snapshot | None = None
        self.broken = False

    def where(self) -> str:
        """The file."""
        return self.ledger.place

    def begin(self) -> Given:
        """Begin, with our errors."""
        try:
            return self.start()
        except _TRANSLATED as error:
            raise self._failed(error) from None

    @abstractmethod
    def start(self) -> Given:
        """Begin; what is raised is translated."""

    def finish(self) -> None:
        """End, with our errors."""
        try:
            self.end()
        except _TRANSLATED as error:
            raise self._failed(error) from None

    def end(self) -> None:
        """End well; what is raised is translated."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        inside = isinstance(error, _INSIDE)
        self.broken = self.broken or inside
        super().__exit__(kind, error, trace)
        if inside:
            raise self._failed(error) from None

    def let_go(self, *, unseen: bool) -> None:
        """Roll back and unlock; close, if the connection cannot be trusted."""
        opened = self.opened
        if opened is None:
            return
        if not (unseen or self.broken or opened.unusable):
            try:
                opened.rest()
                return
            except (sqlite3.Error, OSError):
                pass
        self.ledger.discard(opened)  # start afresh: nothing half done survives

    def _failed(self, error: sqlite3.Error | OSError | UnicodeDecodeError) -> BudgetError:
        self.broken = True
        if isinstance(error, BudgetError):
            return error
        if isinstance(error, UnicodeDecodeError):
            return damaged(f"{self.ledger.path} cannot be read ({self.what})")
        if isinstance(error, OSError):
            return unwritable(self.ledger.path, self.what, error.strerror)
        return translated(error, self.ledger.path, self.what, self.ledger.wait)


class Reading(Use[SqliteReader]):
    """A view; nobody else is locked out."""

    def start(self) -> SqliteReader:
        """Begin to read; nobody is kept waiting by it."""
        self.opened = self.ledger.connection()
        self.opened.connection.execute("BEGIN")
        return SqliteReader(self.opened.connection)


class Writing(Use[SqliteWriter]):
    """A write: in our turn, on the same files, after what is noted; then its end is noted."""

    def start(self) -> SqliteWriter:
        """Begin to write.  The order matters: our turn, SQLite's lock, the files, the head."""
        ledger = self.ledger
        opened = self.opened = ledger.connection(to_write=True)
        if isinstance(opened, Snapshot):
            raise LedgerUnwritable(
                f"{ledger.path} may not be written here, so nothing can be charged ({self.what}); "
                "it can be shown and verified. Give write access to the file and its folder"
            )
        if not opened.line.take(ledger.wait):
            raise busy(ledger.place, ledger.wait)
        opened.cursor.execute("BEGIN IMMEDIATE")
        opened.check_same_files()
        before, opened.remembered = opened.remembered, None
        self.writer = SqliteWriter(opened.connection, ledger.seen, before, opened.cursor)
        self.noted = self._noted(opened, self.writer.tail())
        return self.writer if self.writer.version == VERSION else self.writer.upgrade()

    def _noted(self, opened: Opened, end: HistoryEnd) -> HistoryEnd:
        """The head that is noted, which the history must contain; mostly it is its end."""
        connection, path = opened.connection, self.ledger.path
        opened.kept = opened.kept or is_kept(connection)
        try:
            noted = opened.head.read()
        except Torn:
            noted = None
            if opened.kept:
                raise missing(path, torn=True) from None
        if noted is not None:
            if noted != end:
                check_contains(connection, noted, path)
        elif opened.kept:
            raise missing(path, torn=False)
        if not opened.kept:
            noted = end
            opened.head.begin(noted)  # before the commit: it must not be missed if we are killed
            keep_from_now_on(connection)
        assert noted is not None
        return noted

    def end(self) -> None:
        """Commit first, then note the head, then return; now and then the log is folded."""
        opened, end = self.opened, self.writer.seen
        assert isinstance(opened, Opened)
        # Signed while what hashed the entry is at hand: the disk takes its time, and caches forget.
        said = signed(end) if end != self.ledger.seen else None
        self.commit(opened)
        if said is not None:
            opened.head.write(end, said)
            if end.number // _FOLDED_EVERY > self.noted.number // _FOLDED_EVERY:
                opened.fold()

    def commit(self, opened: Opened) -> None:
        """Commit; from here on it is on the disk, whatever happens."""
        opened.cursor.execute("COMMIT")
        opened.remembered = self.writer.remembered
        self.ledger.seen = self.writer.seen
        opened.kept = True


class Checking(Use[HistoryEnd]):
    """Compare the history with the head file, or with a head that was noted elsewhere."""

    def __init__(self, ledger: SqliteLedger, head: str | None) -> None:
        super().__init__(ledger, "open")
        self.head = head

    def start(self) -> HistoryEnd:
        """The end of the history, which contains what is noted."""
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

    def _read_head(self, opened: Opened | Snapshot) -> tuple[HistoryEnd | None, bool]:
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


class Quiet(Use[None]):
    """While no other process writes, opens or sweeps."""

    def start(self) -> None:
        """Wait for our turn."""
        opened = self.opened = self.ledger.connection()
        if isinstance(opened, Opened) and not opened.line.take(self.ledger.wait):
            raise busy(self.ledger.place, self.ledger.wait)


class ClosingFile(Use[None]):
    """While no other thread is at work."""

    def start(self) -> None:
        """Begin; nothing is opened for it."""
