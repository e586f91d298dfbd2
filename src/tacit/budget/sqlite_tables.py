"""The tables of a budget file, and how rows become values and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tacit.budget.amounts import Amount
from tacit.budget.chain import Entry, link
from tacit.budget.ledger import Pot, StreamState, Tail
from tacit.errors import LedgerDamaged

APPLICATION = 0x54616369  # "Taci": what the file says it is
VERSION = 1

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, stream INTEGER, text TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX entries_of_stream ON entries (stream) WHERE stream IS NOT NULL;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TABLE tables (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE pots (
    analyst TEXT PRIMARY KEY, most TEXT NOT NULL, spent TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE streams (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, source TEXT NOT NULL, analyst TEXT,
    at_most INTEGER NOT NULL, binding TEXT NOT NULL, tops INTEGER NOT NULL, lost INTEGER NOT NULL,
    reserved INTEGER NOT NULL, status TEXT NOT NULL, generation INTEGER NOT NULL
);
CREATE TABLE secrets (stream INTEGER PRIMARY KEY, secret BLOB NOT NULL);
"""


class SqliteReader:
    """One view through a connection that is inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    def tail(self) -> Tail:
        """The last row, by the primary key: as quick at the millionth entry as at the first."""
        row = self._execute(
            "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
        ).fetchone()
        return Tail(*row) if row else Tail()

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        """In order; a stream's own by their index."""
        only = "AND stream = :stream" if stream is not None else ""
        rows = self._execute(
            "SELECT number, text, hash, stream FROM entries WHERE number > :after "
            f"{only} ORDER BY number LIMIT :most",
            {"after": after, "stream": stream, "most": -1 if most is None else most},
        )
        return [Entry(*row) for row in rows]

    def tables(self) -> list[str]:
        """In the order they were named."""
        return [name for (name,) in self._execute("SELECT name FROM tables ORDER BY number")]

    def covers(self, table: str) -> bool:
        """By the unique index."""
        found = self._execute("SELECT 1 FROM tables WHERE name = ?", (table,)).fetchone()
        return found is not None

    def pot(self, analyst: str | None) -> Pot | None:
        """One row; the unshared pot has an empty name, which no analyst can have."""
        row = self._execute(
            "SELECT analyst, most, spent FROM pots WHERE analyst = ?", (analyst or "",)
        ).fetchone()
        return _pot(row) if row else None

    def pots(self) -> list[Pot]:
        """The empty name sorts first."""
        rows = self._execute("SELECT analyst, most, spent FROM pots ORDER BY analyst")
        return [_pot(row) for row in rows]

    def stream(self, name: str) -> StreamState | None:
        """By the unique index."""
        row = self._execute(f"{_STREAMS} WHERE name = ?", (name,)).fetchone()
        return _stream(row) if row else None

    def streams(self) -> list[StreamState]:
        """In the order they were opened."""
        return [_stream(row) for row in self._execute(f"{_STREAMS} ORDER BY id")]

    def secret(self, stream: int) -> bytes | None:
        """The only place that reads a secret."""
        row = self._execute("SELECT secret FROM secrets WHERE stream = ?", (stream,)).fetchone()
        return bytes(row[0]) if row else None

    def secrets(self) -> list[int]:
        """Who has one, not what it is."""
        return [stream for (stream,) in self._execute("SELECT stream FROM secrets ORDER BY stream")]


_STREAMS = (
    "SELECT id, name, source, analyst, at_most, binding, tops, lost, reserved, status, generation "
    "FROM streams"
)


class SqliteWriter(SqliteReader):
    """The same, inside a write transaction.  ``seen`` is the end of the history seen before."""

    def __init__(self, connection: sqlite3.Connection, seen: Tail | None = None) -> None:
        super().__init__(connection)
        self.seen = seen or Tail()

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        """Linked to the last entry, which must continue what was seen before."""
        tail = self.tail()
        if tail != self.seen:
            self._check_goes_on()
        entry = link(*tail, kind, fields, stream)
        self._execute(
            "INSERT INTO entries (number, text, hash, stream) VALUES (?, ?, ?, ?)",
            (entry.number, entry.text, entry.hash, entry.stream),
        )
        self.seen = Tail(entry.number, entry.hash)
        return entry

    def _check_goes_on(self) -> None:
        """Others may have written since; but what was seen must still be there."""
        number, seen = self.seen
        row = self._execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
        if number and (row is None or row[0] != seen):
            raise LedgerDamaged(
                f"entry {number} of the history is not what it was when this process saw it: an "
                "old copy was put back or the file was edited; use the newest copy"
            )

    def add_table(self, table: str) -> None:
        """At the end."""
        self._execute("INSERT INTO tables (name) VALUES (?)", (table,))

    def put_pot(self, pot: Pot) -> None:
        """Totals are kept, not summed up again."""
        self._execute(
            "INSERT OR REPLACE INTO pots (analyst, most, spent) VALUES (?, ?, ?)",
            (pot.analyst or "", pot.limit.as_text(), pot.spent.as_text()),
        )

    def next_stream(self) -> int:
        """Streams are never removed, so this number was never used."""
        ((last,),) = self._execute("SELECT max(id) FROM streams").fetchall()
        return (last or 0) + 1

    def put_stream(self, state: StreamState) -> None:
        """The whole row; the caller has compared it first."""
        row = (
            *(state.id, state.name, state.table, state.analyst, state.at_most),
            json.dumps(dict(state.binding), sort_keys=True),
            *(state.tops, state.lost, int(state.reserved), state.status, state.generation),
        )
        self._execute(f"INSERT OR REPLACE INTO streams VALUES ({', '.join('?' * len(row))})", row)

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        """A deleted one is overwritten on the disk (secure_delete)."""
        if secret is None:
            self._execute("DELETE FROM secrets WHERE stream = ?", (stream,))
        else:
            self._execute("INSERT OR REPLACE INTO secrets VALUES (?, ?)", (stream, secret))


def _pot(row: tuple[str, str, str]) -> Pot:
    analyst, most, spent = row
    with _readable("pots"):
        return Pot(analyst or None, Amount.from_text(most), Amount.from_text(spent))


def _stream(row: tuple[Any, ...]) -> StreamState:
    number, name, table, analyst, at_most, binding, tops, lost, reserved, status, generation = row
    with _readable("streams"):
        return StreamState(
            *(number, name, table, analyst, at_most, dict(json.loads(binding))),
            *(tops, lost, bool(reserved), status, generation),
        )


@contextmanager
def _readable(table: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, AttributeError, ArithmeticError):
        raise LedgerDamaged(
            f"a row of the table '{table}' cannot be read: the budget file is damaged"
        ) from None
