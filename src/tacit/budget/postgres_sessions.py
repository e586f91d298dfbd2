"""Connections to a PostgreSQL server that may keep a budget, and the streams that they hold."""

from __future__ import annotations

import hashlib
import math
import os
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING
from weakref import finalize

from psycopg import Error, errors
from psycopg.pq import ExecStatus

from tacit.budget.chain import damaged
from tacit.budget.memory import MemoryHold
from tacit.budget.turns import Alone, LetGoIfDropped, Line, busy
from tacit.errors import BudgetError, LedgerUnwritable
from tacit.postgres import CannotConnect, PostgresAddress
from tacit.support import Uncopyable

if TYPE_CHECKING:
    from tacit.postgres import Connection

_OLDEST = 13
_LOOKED_AT = (
    *("fsync", "full_page_writes", "synchronous_commit", "log_statement"),
    *("log_min_duration_statement", "log_min_duration_sample", "log_transaction_sample_rate"),
    *("log_parameter_max_length", "pgaudit.log_parameter"),
)
_GRACE_SECONDS = 0.25  # for the server to notice that a holder was killed


# Connecting ---------------------------------------------------------------------------------------


def connected(address: PostgresAddress, wait: float) -> Connection:
    """A connection that a budget can rely on; refused, if the server does not keep what it says."""
    try:
        connection = address.connect(wait=wait)
    except CannotConnect as failed:
        raise LedgerUnwritable(f"{address.place} cannot be reached: {failed.said}") from None
    try:
        _check(connection, address.place)
        _set_up(connection, address.fragment, wait)
    except Error as error:
        connection.close()
        raise translated(error, address.place, "connect", wait) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: Connection, place: str) -> None:
    """Refuse a server that may forget, that is only a copy, or that would log a secret."""
    ((process, copy),) = connection.execute(
        "SELECT pg_backend_pid(), pg_is_in_recovery()"
    ).fetchall()
    asked = "SELECT name, current_setting(name, true) FROM unnest(%s::text[]) AS name"
    settings: dict[str, str] = dict(connection.execute(asked, [list(_LOOKED_AT)]).fetchall())
    if connection.info.server_version < _OLDEST * 10_000:
        raise _refused(place, f"it is older than PostgreSQL {_OLDEST}", "use a newer server")
    if process != connection.info.backend_pid:
        raise _refused(
            place,
            "a connection pooler stands between: its locks would belong to nobody",
            "give the address of the server itself",
        )
    if copy:
        raise _refused(place, "it is a replica", "give the address of the primary server")
    if (forgetful := forgets(*(settings[name] for name in _LOOKED_AT[:2]))) is not None:
        raise _refused(place, forgetful, "set it to on")
    if settings["synchronous_commit"] == "off":
        raise _refused(
            place,
            "synchronous_commit is off: the server says that a charge is on its disk before it is",
            "set it to on, at least for this role: ALTER ROLE ... SET synchronous_commit = on",
        )
    if _logs_values(settings) and not _stops_logging(connection):
        raise _refused(
            place,
            "it writes the values of statements to its log, and a stream's secret is one of them",
            "have an administrator say: ALTER ROLE ... SET log_parameter_max_length = 0, and "
            "pgaudit.log_parameter = off where pgaudit is used",
        )


def forgets(fsync: str, full_page_writes: str) -> str | None:
    """Why a power cut could make the server forget what it has confirmed."""
    named = {"fsync": fsync, "full_page_writes": full_page_writes}
    off = [name for name, value in named.items() if value != "on"]
    return f"{off[0]} is off: after a power cut it may forget what was spent" if off else None


def _logs_values(settings: dict[str, str]) -> bool:
    """Whether what is sent with a statement, such as a secret, may enter the server's log."""
    if settings["pgaudit.log_parameter"] == "on":
        return True
    logs = (
        settings["log_statement"] in ("mod", "all")
        or settings["log_min_duration_statement"] != "-1"
        or settings["log_min_duration_sample"] != "-1"
        or settings["log_transaction_sample_rate"] != "0"
    )
    return logs and settings["log_parameter_max_length"] != "0"


def _stops_logging(connection: Connection) -> bool:
    """Superusers, and whoever they allow it, can stop it for themselves."""
    try:
        connection.execute("SET log_parameter_max_length = 0")
        audits = connection.execute("SELECT current_setting('pgaudit.log_parameter', true)")
    except errors.InsufficientPrivilege:
        return False
    return audits.fetchall() != [("on",)]


def _set_up(connection: Connection, schema: str, wait: float) -> None:
    """Pin what a reloaded configuration could change, and name the schema."""
    wanted = {
        "search_path": quoted(schema),
        "lock_timeout": str(max(1, math.ceil(wait * 1000))),
        "statement_timeout": "0",
        "log_parameter_max_length_on_error": "0",
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
    }
    connection.execute(
        "SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), false)"
    )
    pairs = "unnest(%s::text[], %s::text[]) AS _(name, value)"
    connection.execute(
        f"SELECT set_config(name, value, false) FROM {pairs}".encode(),
        [list(wanted), list(wanted.values())],
    )


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _refused(place: str, why: str, advice: str) -> LedgerUnwritable:
    return LedgerUnwritable(
        f"{place} is no place for a budget: {why}; nothing was done", advice=advice
    )


def close_here(connection: Connection, process: int) -> None:
    """Close what was dropped, unless it belongs to the process that this one was forked from."""
    if process == os.getpid():
        connection.close()


def forget_in_child(connection: Connection) -> None:
    """In a forked child our copy of the socket must neither speak nor live.

    Libpq's goodbye would end the parent's session; a copy that stays open would keep a lock alive
    when the parent is dead.
    """
    null = os.open(os.devnull, os.O_RDWR)
    with suppress(Error, OSError):
        os.dup2(null, connection.pgconn.socket)
    os.close(null)
    connection.close()


# Errors: PostgreSQL's own words are left out, since they may quote a value ------------------------

_NOT_OURS = (errors.UndefinedTable, errors.UndefinedColumn, errors.IntegrityError, errors.DataError)


def translated(
    error: Error, place: str, what: str, wait: float, *, unknown: bool = False
) -> BudgetError:
    """An error of PostgreSQL as one of ours."""
    if unknown:
        return LedgerUnwritable(
            f"the connection to {place} ended while this was being committed ({what}): it may be "
            "on record or not",
            advice="look at budget.history before it is done again; under a retry key it can be "
            "asked for again as it was",
        )
    if isinstance(error, errors.LockNotAvailable):
        return busy(place, wait)
    if isinstance(error, _NOT_OURS):
        return damaged(f"{place} does not hold what a budget holds ({what})")
    if isinstance(error, errors.InsufficientPrivilege):
        return LedgerUnwritable(
            f"this role may not do that at {place} ({what}); nothing was changed",
            advice="have its owner grant it, or connect as another role",
        )
    name = f"{type(error).__name__} {error.sqlstate}" if error.sqlstate else "the connection ended"
    return LedgerUnwritable(
        f"{place} could not be used ({what}): {name}; nothing was changed", advice="try again"
    )


# Holding streams ----------------------------------------------------------------------------------


class Holds(Uncopyable):
    """The streams that a ledger's leases hold, by locks of one connection.

    The statements go straight to libpq, which an interrupt cannot stop halfway.  A lock that was
    lost with its connection is taken again with the next, unless somebody else has it by then.
    """

    def __init__(self, address: PostgresAddress, wait: float) -> None:
        self.address = address
        self.wait = wait
        self.line = Line()
        self.held: dict[int, object] = {}
        self.locked: set[int] = set()
        self.let_go: list[int] = []  # by us, while the server may still keep the lock
        self.connection: Connection | None = None

    def take(self, stream: int) -> PostgresHold | None:
        """Take hold of a stream, or None if somebody has it."""
        hold = PostgresHold(self, stream)
        if not hold.take():
            return None
        deadline = monotonic() + _GRACE_SECONDS
        pause = 0.005
        while True:
            with LetGoIfDropped(_Locking(self)) as locking:
                if locking.lock(stream):
                    return hold
            if monotonic() + pause > deadline:
                break
            sleep(pause)
            pause *= 2
        hold.release()
        return None

    def unlock(self, stream: int) -> None:
        """Let go, at once or, inside the work of this very thread, when that is done."""
        self.let_go.append(stream)
        if self.connection is not None and not self.line.is_mine():
            with suppress(BudgetError), LetGoIfDropped(_Locking(self, connect=False)):
                pass

    def opened(self) -> Connection:
        """A connection; where one was lost, its locks are taken again if they are free."""
        if self.connection is None or self.connection.closed:
            self.disconnect()
            connection = connected(self.address, self.wait)
            self.forgotten = finalize(self, close_here, connection, os.getpid())
            self.forgotten.atexit = False  # leases still have to leave then
            self.connection = connection
            for stream in list(self.held):
                if self.ask("pg_try_advisory_lock", stream):
                    self.locked.add(stream)
        return self.connection

    def ask(self, function: str, stream: int) -> bool | None:
        """What a function says of a stream's lock; None if the connection has ended."""
        connection = self.connection
        if connection is None or connection.closed:
            return None
        command = f"SELECT {function}({_lock_of(self.address.fragment, stream)})"
        result = connection.pgconn.exec_(command.encode())
        if result.status != ExecStatus.TUPLES_OK:
            return None
        return result.get_value(0, 0) == b"t"

    def disconnect(self) -> None:
        """End the connection, and with it every lock."""
        if self.connection is not None:
            self.connection.close()
            self.forgotten.detach()
        self.connection = None
        self.locked.clear()
        self.let_go.clear()

    def forget_in_child(self) -> None:
        """A forked child holds nothing."""
        if self.connection is not None:
            forget_in_child(self.connection)
            self.forgotten.detach()
        self.__init__(self.address, self.wait)  # type: ignore[misc]


def _lock_of(schema: str, stream: int) -> int:
    """The number of a stream's lock; a database has one space of them for all its programs."""
    named = hashlib.sha256(f"tacit: stream {stream} of {schema}".encode()).digest()
    return int.from_bytes(named[:8], "big", signed=True)


class _Locking(Alone["_Locking"]):
    """One use of the connection that holds streams."""

    def __init__(self, holds: Holds, *, connect: bool = True) -> None:
        super().__init__(holds.line, holds.wait)
        self._holds = holds
        self._connect = connect

    def where(self) -> str:
        """The budget."""
        return self._holds.address.place

    def begin(self) -> _Locking:
        """Connect, and do first what was left to do."""
        if self._connect:
            self._holds.opened()
        self.finish()
        return self

    def lock(self, stream: int) -> bool:
        """Whether the lock is ours; a connection that has ended is made again once."""
        holds = self._holds
        for _ in range(2):
            if stream in holds.locked:
                return True
            got = holds.ask("pg_try_advisory_lock", stream)
            if got is not None:
                if got:
                    holds.locked.add(stream)
                return got
            holds.opened()
        raise LedgerUnwritable(f"the connection to {self.where()} ended; nothing was done")

    def finish(self) -> None:
        """Unlock what was let go meanwhile, unless somebody here has taken it again."""
        holds = self._holds
        while holds.let_go:
            stream = holds.let_go.pop()
            if stream not in holds.held:
                holds.locked.discard(stream)
                holds.ask("pg_advisory_unlock", stream)


class PostgresHold(MemoryHold):
    """A stream's place among those that this process holds, and its lock."""

    def __init__(self, holds: Holds, stream: int) -> None:
        self._holds = holds
        self._pid = os.getpid()
        super().__init__(holds.held, stream)

    def release(self) -> None:
        """Give up both; in a forked copy, neither is ours."""
        if self._pid == os.getpid() and self._held.get(self._stream) is self._key:
            super().release()
            self._holds.unlock(self._stream)
