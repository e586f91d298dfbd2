"""A budget file for the threads of a server: writes that meet become one transaction.

A disk takes its time for each commit, however little was written.  So while one thread commits,
others line up, and the next commit is for all of them: the first in the line begins a transaction,
each of the others writes its part of it in its turn, and none goes on before all of it is on the
disk.  A part that is refused takes back only itself; if the disk refuses, all have failed.
Whoever reads has a connection for that, sees what is on the disk, and waits for no commit.

It is for threads that no interrupt reaches, which are all but a program's main thread.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import deque
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

from tacit.budget.addresses import ledger_at
from tacit.budget.budget import Budget
from tacit.budget.chain import damaged
from tacit.budget.ledger import WAIT_SECONDS
from tacit.budget.sqlite import SqliteLedger
from tacit.budget.sqlite_files import translated, unwritable
from tacit.budget.sqlite_tables import SqliteReader, SqliteWriter
from tacit.budget.sqlite_uses import Writing
from tacit.budget.turns import busy
from tacit.errors import BudgetError, LedgerBusy

_MOST_TOGETHER = 64


def open_for_threads(address: str) -> Budget:
    """Open a budget for the threads of one process, which commit to a file together."""
    kind, place = ledger_at(address)
    return Budget(TogetherLedger.open(place)) if kind is SqliteLedger else Budget.open(address)


class TogetherLedger(SqliteLedger):
    """A budget file whose writes are committed together where they meet."""

    def __init__(self, path: Path, *, wait: float = WAIT_SECONDS) -> None:
        super().__init__(path, wait=wait)
        self.inside: set[int] = set()  # the threads that are in the middle of a transaction
        self.reading_in_turn = Lock()
        self.reads: sqlite3.Connection | None = None
        self._lining_up = Lock()
        self._waiting: deque[_Part] = deque()
        self._begun = False

    def reading(self) -> AbstractContextManager[SqliteReader]:
        """What is on the disk; it waits for nobody who writes."""
        return _View(self)

    def writing(self, what: str) -> AbstractContextManager[SqliteWriter]:
        """A transaction, or a part of one: on the disk when the block ends."""
        return _Part(self, what)

    def is_writing(self) -> bool:
        """Whether this thread is in the middle of a transaction."""
        return get_ident() in self.inside or super().is_writing()

    def close(self) -> None:
        """Close the file."""
        with self.reading_in_turn:
            reads, self.reads = self.reads, None
            if reads is not None:
                with suppress(sqlite3.Error):
                    reads.close()
        super().close()

    def line_up(self, part: _Part) -> None:
        """The first begins a transaction; the others wait until they are called."""
        with self._lining_up:
            part.first = not self._begun
            self._begun = True
            if not part.first:
                self._waiting.append(part)

    def give_up(self, part: _Part) -> bool:
        """Leave the line; False if it was called at this very moment."""
        with self._lining_up:
            if part in self._waiting:
                self._waiting.remove(part)
                return True
            return False

    def next_part(self) -> _Part | None:
        """Who writes the next part of the transaction; None if nobody waits."""
        with self._lining_up:
            return self._waiting.popleft() if self._waiting else None

    def over(self) -> None:
        """The transaction has ended: the next in the line begins another."""
        with self._lining_up:
            following = self._waiting.popleft() if self._waiting else None
            self._begun = following is not None
        if following is not None:
            following.first = True
            following.bell.release()


def _nested(ledger: TogetherLedger) -> LedgerBusy:
    return LedgerBusy(
        f"{ledger.place} is in the middle of a transaction of this very thread; end that first"
    )


class _Part:
    """What one thread writes; the first of a transaction also begins and ends it."""

    def __init__(self, ledger: TogetherLedger, what: str) -> None:
        self.bell = Lock()  # released by whoever this thread waits for
        self.bell.acquire()
        self.first = False
        self.writer: SqliteWriter | None = None
        self.before: _Part | None = None  # the first, which waits while another writes
        self.failure: BaseException | None = None  # of the commit
        self.broken = False  # the disk, or SQLite, refused something
        self._ledger = ledger
        self._what = what
        self._use: Writing | None = None
        self._part: AbstractContextManager[SqliteWriter] | None = None

    def __enter__(self) -> SqliteWriter:
        ledger = self._ledger
        if get_ident() in ledger.inside:
            raise _nested(ledger)
        ledger.refuse_if_gone()
        ledger.line_up(self)
        if not self.first and not self.bell.acquire(timeout=ledger.wait):
            if ledger.give_up(self):
                raise busy(ledger.place, ledger.wait)
            self.bell.acquire()
        if self.first:
            self._use = Writing(ledger, self._what)
            self._use.place = sys._getframe(1)  # the block's own: see `turns`
            try:
                writer = self._use.__enter__()
            except BaseException:
                ledger.over()
                raise
        else:
            writer = self._begin_part()
        self.writer = writer
        ledger.inside.add(get_ident())
        return writer

    def _begin_part(self) -> SqliteWriter:
        assert self.writer is not None
        assert self.before is not None
        try:
            self._part = self.writer.part()
            return self._part.__enter__()
        except BaseException as error:
            self.broken = True
            self.before.bell.release()
            if isinstance(error, sqlite3.Error):
                raise self._translated(error) from None
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._ledger.inside.discard(get_ident())
        if self._part is not None:
            self._end_part(kind, error, trace)
            return
        assert self._use is not None
        others: list[_Part] = []
        try:
            try:
                if kind is None:
                    self._let_others_write(others)
            except BaseException as failure:
                self._use.__exit__(type(failure), failure, failure.__traceback__)
                raise
            self._use.__exit__(kind, error, trace)
        except BaseException as failure:
            for other in others:
                other.failure = failure
            raise
        finally:
            for other in others:
                other.bell.release()
            self._ledger.over()

    def _let_others_write(self, others: list[_Part]) -> None:
        """Whoever waits, one after another; a commit takes longer than what each of them writes."""
        while len(others) < _MOST_TOGETHER and (other := self._ledger.next_part()) is not None:
            other.before, other.writer = self, self.writer
            others.append(other)
            other.bell.release()
            self.bell.acquire()
            if other.broken:
                why = "another write of the same transaction failed"
                raise unwritable(self._ledger.path, self._what, why)

    def _end_part(self, kind: Any, error: Any, trace: Any) -> None:
        """End a part; if it is well, wait until it is on the disk."""
        assert self._part is not None
        assert self.before is not None
        try:
            self.broken = isinstance(error, sqlite3.Error)
            self._part.__exit__(kind, error, trace)
        except sqlite3.Error as failure:
            self.broken = True
            raise self._translated(failure) from None
        except BaseException:
            self.broken = True
            raise
        finally:
            self.before.bell.release()
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):
            raise self._translated(error) from None
        if kind is None:
            self.bell.acquire()
            if self.failure is not None:
                raise self._failed()

    def _failed(self) -> BudgetError:
        """An error of its own: two threads must not raise one object."""
        found = self.failure
        if isinstance(found, BudgetError):
            return type(found)(found.fact, advice=found.advice)
        return unwritable(self._ledger.path, self._what, "the commit failed")

    def _translated(self, error: sqlite3.Error | UnicodeDecodeError) -> BudgetError:
        return _ours(self._ledger, self._what, error)


class _View:
    """A view, by one thread at a time."""

    def __init__(self, ledger: TogetherLedger) -> None:
        self._ledger = ledger

    def __enter__(self) -> SqliteReader:
        ledger = self._ledger
        if ledger.is_writing():
            raise _nested(ledger)
        if not ledger.reading_in_turn.acquire(timeout=ledger.wait):
            raise busy(ledger.place, ledger.wait)
        try:
            ledger.refuse_if_gone()
            if ledger.reads is None:
                ledger.reads = _connect(ledger)
            ledger.reads.execute("BEGIN")
            reader = SqliteReader(ledger.reads)
        except BaseException as error:
            self._leave()
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                raise _ours(ledger, "read", error) from None
            raise
        ledger.inside.add(get_ident())
        return reader

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._ledger.inside.discard(get_ident())
        self._leave()
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):
            raise _ours(self._ledger, "read", error) from None

    def _leave(self) -> None:
        try:
            reads = self._ledger.reads
            if reads is not None and reads.in_transaction:
                with suppress(sqlite3.Error):
                    reads.execute("ROLLBACK")
        finally:
            self._ledger.reading_in_turn.release()


def _connect(ledger: TogetherLedger) -> sqlite3.Connection:
    """A connection that can change nothing, and so never folds a log that others may have begun."""
    return sqlite3.connect(
        f"{ledger.path.as_uri()}?mode=ro",
        uri=True,
        timeout=ledger.wait,
        isolation_level=None,
        check_same_thread=False,
    )


def _ours(
    ledger: TogetherLedger, what: str, error: sqlite3.Error | UnicodeDecodeError
) -> BudgetError:
    if isinstance(error, UnicodeDecodeError):
        return damaged(f"{ledger.path} cannot be read ({what})")
    return translated(error, ledger.path, what, ledger.wait)
