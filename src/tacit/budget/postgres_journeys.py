"""Journeys to a PostgreSQL server: several statements there, all their results back.

A write locks out everybody else from its first statement to its last, so what it costs them is
mostly the journeys in between.  Statements that need nothing from each other's results go
together (libpq's pipeline mode); if one fails, the server skips those after it, COMMIT too.  Each
is prepared at its first use, and then neither parsed nor planned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

from psycopg import OperationalError
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.waiting import Ready, Wait

from tacit.budget.chain import damaged
from tacit.support import Uncopyable

if TYPE_CHECKING:
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult

    from tacit.postgres import Connection

Statement = tuple[str, Sequence[Any]]
"""SQL with %s for each value, and the values: None, whole numbers, texts and bytes."""

Row = tuple[Any, ...]


def _whole(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


# By the number of its type: boolean, bytea, bigint, integer and text.
_READ: dict[int, Callable[[bytes], Any]] = {
    16: lambda value: value != b"\0",
    17: bytes,
    20: _whole,
    23: _whole,
    25: lambda value: value.decode("utf-8"),
}


class Journeys(Uncopyable):
    """A connection, and the statements that were prepared in it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._prepared: dict[str, bytes] = {}
        self._names = count(1)

    def rows(self, query: str, *values: Any) -> list[Row]:
        """The rows of one query."""
        return rows_of(self.together([(query, values)])[0])

    def together(self, statements: Sequence[Statement]) -> list[PGresult]:
        """A result for each; if one fails, its error is raised and the later ones are not run.

        After anything else that is raised, the connection must not be used any more.
        """
        pgconn = self.connection.pgconn
        new = list(dict.fromkeys(sql for sql, _ in statements if sql not in self._prepared))
        pgconn.enter_pipeline_mode()
        for sql in new:
            name = self._prepared[sql] = b"tacit_%d" % next(self._names)
            pgconn.send_prepare(name, _numbered(sql))
        for sql, values in statements:
            _send(pgconn, self._prepared[sql], values)
        pgconn.pipeline_sync()
        results = self.connection.wait(_results(pgconn))
        if any(result.status == ExecStatus.FATAL_ERROR for result in results[: len(new)]):
            for sql in new:  # prepared or not, they get other names next time
                del self._prepared[sql]
        pgconn.exit_pipeline_mode()
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
        return results[len(new) :]


@lru_cache(maxsize=256)
def _numbered(sql: str) -> bytes:
    """As the server wants it: $1, $2 and so on."""
    first, *rest = sql.split("%s")
    return "".join((first, *(f"${n}{part}" for n, part in enumerate(rest, 1)))).encode()


def _send(pgconn: PGconn, name: bytes, values: Sequence[Any]) -> None:
    sent = [_sent(value) for value in values]
    formats = [Format.TEXT if isinstance(value, int) else Format.BINARY for value in values]
    pgconn.send_query_prepared(name, sent, formats, Format.BINARY)


def _sent(value: Any) -> bytes | None:
    if isinstance(value, int):
        return b"%d" % value
    return value.encode() if isinstance(value, str) else value


def _results(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """All results up to the end of the journey; waiting is left to psycopg."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    results: list[PGresult] = []
    nothing = False  # one None ends each statement's results
    while True:
        while pgconn.is_busy():
            if (yield Wait.R):
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is not None and result.status == ExecStatus.PIPELINE_SYNC:
            return results
        if result is not None:
            results.append(result)
        if pgconn.status != ConnStatus.OK or (nothing and result is None):
            raise OperationalError("the connection ended")
        nothing = result is None


def rows_of(result: PGresult) -> list[Row]:
    """The rows that a query gave, as Python's values; bytes stay bytes."""
    readers = [_reader(result.ftype(column)) for column in range(result.nfields)]
    return [tuple(_values(result, row, readers)) for row in range(result.ntuples)]


def _values(result: PGresult, row: int, readers: Sequence[Callable[[bytes], Any]]) -> Iterator[Any]:
    for column, read in enumerate(readers):
        value = result.get_value(row, column)
        yield None if value is None else read(value)


def _reader(kind: int) -> Callable[[bytes], Any]:
    if kind not in _READ:
        raise damaged("a column of the budget has another type than it had")
    return _READ[kind]
