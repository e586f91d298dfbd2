"""The ledger in PostgreSQL: one schema of a database, which many processes and machines may use.

``postgresql://host/database#name`` is the budget ``name``.  A write locks the row of ``head``
first and is READ COMMITTED, so that it sees all that was committed before the lock was its own.
When it has ended, it is on the server's disk.

A hold of a stream is an advisory lock of a connection, which ends with the process.  The server
can end that connection, too, while the holder lives; then somebody else may take over.  No promise
rests on the hold: docs/explanation/when-a-connection-ends.md has the proof.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from psycopg import Error
from psycopg.pq import TransactionStatus

from tacit.budget.chain import damaged
from tacit.budget.ledger import WAIT_SECONDS, Fill, HistoryEnd, shortened
from tacit.budget.postgres_journeys import Journeys
from tacit.budget.postgres_sessions import (
    Holds,
    PostgresHold,
    close_here,
    connected,
    forget_in_child,
    forgets,
    quoted,
    translated,
)
from tacit.budget.postgres_tables import (
    FORMAT,
    NOTHING_YET,
    WITH_GROUPS,
    PostgresReader,
    PostgresWriter,
    create_tables,
    lock_head,
)
from tacit.budget.turns import Alone, Given, LetGoIfDropped, Line, tell_of_forks
from tacit.errors import (
    BadParameter,
    BudgetError,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
)
from tacit.postgres import PostgresAddress
from tacit.support import Uncopyable

if TYPE_CHECKING:
    from tacit.postgres import Connection

_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_-]{0,62}")


def _address(url: str) -> PostgresAddress:
    """The database, and the schema that the fragment names."""
    address = PostgresAddress(url, "path")
    if not _NAME.fullmatch(address.fragment):
        raise BadParameter(
            "path",
            "'postgresql://...'",
            "it must end in # and the budget's name: a small letter, then small letters, digits, "
            "_ and -, at most 63 in all; a name cannot begin with pg_",
            "write postgresql://host/database#clinic",
        )
    return address


class PostgresLedger(Uncopyable):
    """A budget in a schema of a PostgreSQL database."""

    def __init__(self, address: PostgresAddress, *, wait: float = WAIT_SECONDS) -> None:
        self.address = address
        self.wait = wait
        self.seen = HistoryEnd()
        self.line = Line()
        self._holds = Holds(address, wait)
        self._engine = "PostgreSQL"
        self._connection: Connection | None = None
        self._journeys: Journeys | None = None
        self._forgotten: finalize[Any, Any] | None = None
        self._pid = os.getpid()
        self._blocked_for_fork: list[tuple[Line, object | None]] = []
        self._closed = False
        _OPEN.add(self)

    @property
    def place(self) -> str:
        """The URL without a password."""
        return self.address.place

    @property
    def engine(self) -> str:
        """The PostgreSQL that is at work, or was."""
        return self._engine

    @classmethod
    def create(cls, address: str, fill: Fill, *, wait: float = WAIT_SECONDS) -> PostgresLedger:
        """A new schema with what ``fill`` writes, in one transaction.

        A schema that somebody has made for it is used, if there is nothing in it.
        """
        ledger = cls(_address(address), wait=wait)
        try:
            ledger._fill(fill)
        finally:
            ledger.close()
        return cls.open(address, wait=wait)

    # Blocks that are closed after an interrupt have frames of their own, which have ended by then.

    def _fill(self, fill: Fill) -> None:
        with LetGoIfDropped(PostgresCreating(self, "create")) as writer:
            fill(writer)

    def _look(self, head: str | None) -> None:
        with LetGoIfDropped(PostgresChecking(self, head)) as tail:
            self.seen = tail

    @classmethod
    def open(
        cls, address: str, *, wait: float = WAIT_SECONDS, head: str | None = None
    ) -> PostgresLedger:
        """Connect and check what is there.  Nothing is changed; the history is not read."""
        ledger = cls(_address(address), wait=wait)
        try:
            ledger._look(head)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def reading(self) -> AbstractContextManager[PostgresReader]:
        """A consistent view; it does not wait for others who write."""
        return LetGoIfDropped(PostgresReading(self, "read"))

    def writing(self, what: str) -> AbstractContextManager[PostgresWriter]:
        """All or nothing, and on the server's disk when the block ends."""
        return LetGoIfDropped(PostgresWriting(self, what))

    def hold(self, stream: int) -> PostgresHold | None:
        """One holder a stream, by a lock that the server drops with the connection."""
        self._refuse_if_unusable()
        return self._holds.take(stream)

    def check(self) -> None:
        """What is there is a budget, its head is its last entry, and its history is protected."""
        with LetGoIfDropped(PostgresChecking(self, None)) as tail:
            assert self._connection is not None
            ((last, there, protected),) = self._connection.execute(
                "SELECT (SELECT max(number) FROM entries), (SELECT count(*) FROM entries), "
                "(SELECT count(*) FROM pg_trigger WHERE tgrelid = 'entries'::regclass "
                "AND tgname = 'entries_stay' AND tgenabled = 'O')"
            ).fetchall()
        if (last or 0, there) != (tail.number, tail.number):
            raise damaged(f"{self.place}: entries of its history are missing")
        if not protected:
            raise damaged(f"{self.place}: its history is no longer append-only")

    def close(self) -> None:
        """Close the connections.  Streams that are held are then held no longer."""
        with LetGoIfDropped(ClosingConnection(self, "close")):
            self._closed = True
            if self._pid == os.getpid():
                self._holds.disconnect()
                if self._connection is not None:
                    self.discard(self._connection)

    def connection(self) -> Connection:
        """What is open, or opened now."""
        self._refuse_if_unusable()
        if self._connection is not None and self._connection.closed:
            self.discard(self._connection)
        if self._connection is None:
            connection = connected(self.address, self.wait)
            # Not __del__: among garbage, the connection might be finalised before its ledger.
            self._forgotten = finalize(self, close_here, connection, os.getpid())
            self._forgotten.atexit = False  # leases still have to leave then
            self._journeys = Journeys(connection)
            self._connection = connection
            self._engine = f"PostgreSQL {connection.info.parameter_status('server_version')}"
        return self._connection

    def journeys(self) -> Journeys:
        """The same connection, for statements that go together."""
        connection = self.connection()
        assert self._journeys is not None
        assert self._journeys.connection is connection
        return self._journeys

    def _refuse_if_unusable(self) -> None:
        if self._pid != os.getpid():
            raise LedgerUnwritable(
                f"{self.place} was in use when this process was forked; open the budget after "
                "the fork"
            )
        if self._closed:
            raise BudgetError(f"{self.place} was closed; Budget.open opens it again")

    def discard(self, connection: Connection) -> None:
        """Close one connection for good; whatever was half done in it is gone."""
        connection.close()
        if self._connection is connection:
            self._connection = None
            if self._forgotten is not None:
                self._forgotten.detach()

    # A connection belongs to one process: a forked child forgets it, and makes its own.

    def before_fork(self) -> None:
        """Wait for what is in progress, so that no half-made connection is copied."""
        lines = (self.line, self._holds.line)
        self._blocked_for_fork = [(line, line.block(self.wait)) for line in lines]

    def after_fork_in_parent(self) -> None:
        """Let other threads go on."""
        for line, place in self._blocked_for_fork:
            line.unblock(place)

    def after_fork_in_child(self) -> None:
        """Go on with connections of our own; if one was in use after all, refuse for good."""
        self.line = Line()
        self._holds.forget_in_child()
        if self._connection is not None and self._pid == os.getppid():
            forget_in_child(self._connection)
            self._connection = None
        if all(place is not None for _, place in self._blocked_for_fork):
            self._pid = os.getpid()


_OPEN: WeakSet[PostgresLedger] = WeakSet()
tell_of_forks(_OPEN)


# What is done with it, by one thread at a time ----------------------------------------------------


class PostgresUse(Alone[Given]):
    """One use of the connection; PostgreSQL's errors become ours."""

    def __init__(self, ledger: PostgresLedger, what: str) -> None:
        super().__init__(ledger.line, ledger.wait)
        self.ledger = ledger
        self.what = what
        self.connection: Connection | None = None
        self.committing = False
        self.broken = False

    def where(self) -> str:
        """The budget."""
        return self.ledger.place

    def begin(self) -> Given:
        """Begin; a connection that ended while nobody used it is made again."""
        self.broken = True  # until it has begun: whoever is interrupted trusts nothing
        given = self._begun()
        self.broken = False
        return given

    def _begun(self) -> Given:
        try:
            return self.start()
        except Error as error:
            if self.connection is None or not self.connection.closed:
                raise self._failed(error) from None
        self.ledger.discard(self.connection)
        try:
            return self.start()
        except Error as error:
            raise self._failed(error) from None

    @abstractmethod
    def start(self) -> Given:
        """Begin; what is raised is translated.  Nothing is changed yet."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        inside = isinstance(error, Error)
        self.broken = self.broken or (kind is not None and not issubclass(kind, Exception))
        super().__exit__(kind, error, trace)
        if inside:
            raise self._failed(error) from None

    def let_go(self, *, unseen: bool) -> None:
        """Roll back; close, if the connection cannot be trusted."""
        connection = self.connection
        if connection is None:
            return
        if not (unseen or self.broken or self.ledger._pid != os.getpid()):
            status = connection.info.transaction_status
            if status == TransactionStatus.IDLE:
                return
            self.broken = True
            if status != TransactionStatus.ACTIVE:
                with suppress(Error):
                    connection.execute("ROLLBACK", prepare=False)
                    return
        self.ledger.discard(connection)  # start afresh: nothing half done survives

    def _failed(self, error: Error) -> BudgetError:
        lost = self.connection is None or self.connection.closed
        return translated(
            error,
            self.ledger.place,
            self.what,
            self.ledger.wait,
            unknown=self.committing and lost,
        )


class PostgresReading(PostgresUse[PostgresReader]):
    """A view; nobody is kept waiting by it."""

    def start(self) -> PostgresReader:
        """Begin to read: what is there at the first question is there until the end."""
        self.connection = self.ledger.connection()
        self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", prepare=False)
        return PostgresReader(self.ledger.journeys())


class PostgresWriting(PostgresUse[PostgresWriter]):
    """A write: the head is locked first, and read in the same step."""

    def start(self) -> PostgresWriter:
        """Lock the head.  Whether the server may forget is asked each time: it can be changed."""
        journeys = self.ledger.journeys()
        self.connection = journeys.connection
        locked = lock_head(journeys, self.ledger.seen)
        if (forgetful := forgets(*locked.forgets)) is not None:
            raise LedgerUnwritable(
                f"{self.ledger.place} is no place for a budget any more: {forgetful}; nothing was "
                f"done ({self.what})"
            )
        self.writer = PostgresWriter(journeys, locked, self.ledger.seen)
        return self.writer

    def finish(self) -> None:
        """Commit; from here on it is on the disk, whatever happens."""
        if self.ledger._pid != os.getpid():
            raise LedgerUnwritable(f"{self.ledger.place}: this process was forked in a transaction")
        self.committing = self.broken = True
        try:
            done = self.writer.commit()
        except Error as error:
            raise self._failed(error) from None
        if not done:  # a statement had failed, and PostgreSQL rolls back without a word
            raise LedgerUnwritable(
                f"{self.ledger.place} could not be written ({self.what}); nothing was changed"
            )
        self.ledger.seen = self.writer.seen
        self.broken = False


class PostgresCreating(PostgresWriting):
    """A new schema, complete or not there at all."""

    def start(self) -> PostgresWriter:
        """Make the tables; whoever creates one of the same name meanwhile waits."""
        ledger, schema = self.ledger, self.ledger.address.fragment
        connection = self.connection = ledger.connection()
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", prepare=False)
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [schema])
        there = connection.execute(
            "SELECT count(c.oid) FROM pg_namespace n LEFT JOIN pg_class c "
            "ON c.relnamespace = n.oid WHERE n.nspname = %s GROUP BY n.oid",
            [schema],
        ).fetchall()
        if not there:
            connection.execute(f"CREATE SCHEMA {quoted(schema)}".encode())
        elif there != [(0,)]:
            raise LedgerExists(
                f"{ledger.place} exists and is never overwritten",
                advice="Budget.open opens a budget",
            )
        create_tables(connection)
        self.writer = PostgresWriter(ledger.journeys(), NOTHING_YET, HistoryEnd())
        return self.writer


class PostgresChecking(PostgresUse[HistoryEnd]):
    """What is there: a budget of this format, which contains a head that was noted elsewhere."""

    def __init__(self, ledger: PostgresLedger, head: str | None) -> None:
        super().__init__(ledger, "open")
        self.head = head

    def start(self) -> HistoryEnd:
        """The end of the history."""
        ledger = self.ledger
        connection = self.connection = ledger.connection()
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", prepare=False)
        ((there,),) = connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL", [f"{quoted(ledger.address.fragment)}.head"]
        ).fetchall()
        if not there:
            raise LedgerMissing(
                f"{ledger.place}: there is no such budget", advice="Budget.create makes one"
            )
        formats = connection.execute("SELECT format FROM head").fetchall()
        if formats not in ([(FORMAT,)], [(WITH_GROUPS,)]):
            raise LedgerDamaged(
                f"{ledger.place} is not a budget that this Tacit knows; it was left as it is: use "
                "the Tacit that wrote it"
            )
        reader = PostgresReader(ledger.journeys())
        if self.head is not None and not reader.has_entry(self.head):
            raise LedgerDamaged(
                f"the head {shortened(self.head, 100)} that was noted is not in the history of "
                f"{ledger.place}: its end was cut off, it was rewritten, or an old copy was put "
                "back"
            )
        return reader.tail()


class ClosingConnection(PostgresUse[None]):
    """While no other thread is at work."""

    def start(self) -> None:
        """Begin; nothing is opened for it."""
