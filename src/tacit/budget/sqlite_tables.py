"""The tables of a budget file: its versions, and views and writes of what is in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

from tacit.budget.chain import Entry, damaged, digest, link, readable
from tacit.budget.ledger import (
    WHAT_IS_STORED,
    Contents,
    HistoryEnd,
    KeptAnswer,
    Share,
    StreamState,
    TableIdentity,
)
from tacit.budget.rows import (
    answer_of,
    checksum,
    entry_of,
    row_of_share,
    row_of_stream,
    row_of_tie,
    share_of,
    stream_of,
    table_of,
    text_of,
    tie_of,
    whole_of,
)
from tacit.errors import LedgerDamaged
from tacit.support import Uncopyable

APPLICATION = 0x54616369  # "Taci": what the file says it is

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = 1;
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


_TIES = "SELECT name, person, type, schema FROM ties"
_SHARES = "SELECT analyst, most, spent FROM pots"
_STREAMS = (
    "SELECT id, name, source, analyst, at_most, binding, tops, lost, reserved, status, generation "
    "FROM streams"
)
_ANSWERS = "SELECT number, key, response, recorded FROM answers"


# The versions of a budget file, and how an older one is brought up to date ------------------------
#
# A file begins as version 1, as 0.1 wrote it, and every later version is a step from the one
# before; a new file takes all steps at once.  An older file is opened and read as it is.  The
# first write to it takes the steps that it lacks, in the same transaction: both or neither.
#
# To change the format, add a step; never change one that was released.  A step is written in SQL,
# since what a writer writes is of the newest version.


def _checksums_and_ties(writer: SqliteWriter) -> None:
    """Version 2: a checksum beside each secret, and whose rows each table holds that is used."""
    secrets = [(stream, writer.secret(stream)) for stream in writer.secrets()]
    writer.execute("ALTER TABLE secrets ADD COLUMN checksum BLOB")
    writer.execute(
        "CREATE TABLE ties (name TEXT PRIMARY KEY, person TEXT NOT NULL, type TEXT, schema TEXT) "
        "WITHOUT ROWID"
    )
    for stream, secret in secrets:
        sealed = checksum(stream, secret or b"")
        writer.execute("UPDATE secrets SET checksum = ? WHERE stream = ?", (sealed, stream))


def _kept_answers(writer: SqliteWriter) -> None:
    """Version 3: what was told, and under which key it was asked."""
    writer.execute(
        "CREATE TABLE answers (number INTEGER PRIMARY KEY, key TEXT UNIQUE, response TEXT, "
        "recorded INTEGER)"
    )


def _groups_of_people(writer: SqliteWriter) -> None:
    """Version 4: which tables are about the same people; those of older files all are."""
    writer.execute("ALTER TABLE tables ADD COLUMN people TEXT")


STEPS: tuple[Callable[[SqliteWriter], None], ...] = (
    _checksums_and_ties,
    _kept_answers,
    _groups_of_people,
)
VERSION = 1 + len(STEPS)


# Reading and writing ------------------------------------------------------------------------------


class SqliteReader(Uncopyable):
    """One view through a connection that is inside a transaction."""

    def __init__(self, connection: sqlite3.Connection, version: int | None = None) -> None:
        connection.text_factory = _text
        self.execute = connection.execute
        self.version = self._read_version() if version is None else version

    def _read_version(self) -> int:
        version: int
        ((version,),) = self.execute("PRAGMA user_version").fetchall()
        if not 1 <= version <= VERSION:  # it was another when the file was opened
            raise LedgerDamaged(
                f"the budget file has become one of version {version}, and this Tacit knows "
                f"versions 1 to {VERSION}: use the newer Tacit that changed it from now on"
            )
        return version

    def _rows(self, query: str, values: Mapping[str, object] | None = None) -> list[Any]:
        """All rows, before any is understood.

        A row that makes no sense raises, and the error's traceback would keep a cursor that is
        still open; with it the connection would go on seeing the file as it was then.
        """
        return self.execute(query, values or {}).fetchall()

    def tail(self) -> HistoryEnd:
        """The last row, by the primary key: as quick at the millionth entry as at the first."""
        row = self.execute(
            "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return HistoryEnd()
        with readable("the last entry of the history cannot be read"):
            return HistoryEnd(whole_of(row[0]), text_of(row[1]))

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        """In order; those of one stream are found by an index."""
        only = "AND stream = :stream" if stream is not None else ""
        query = (
            "SELECT number, text, hash, stream FROM entries WHERE number > :after "
            f"{only} ORDER BY number LIMIT :most"
        )
        limits = {"after": after, "stream": stream, "most": -1 if most is None else most}
        with readable("a row of the table 'entries' cannot be read"):
            return [entry_of(*row) for row in self._rows(query, limits)]

    def tables(self) -> dict[str, str | None]:
        """In the order they were named."""
        people = "people" if self.version >= 4 else "NULL"
        return dict(map(table_of, self._rows(f"SELECT name, {people} FROM tables ORDER BY number")))

    def covers(self, table: str) -> bool:
        """Found by the unique index."""
        found = self.execute("SELECT 1 FROM tables WHERE name = ?", (table,)).fetchone()
        return found is not None

    def tie(self, table: str) -> TableIdentity | None:
        """Found by the primary key."""
        if self.version < 2:
            return None
        row = self.execute(f"{_TIES} WHERE name = ?", (table,)).fetchone()
        return tie_of(row)[1] if row else None

    def ties(self) -> dict[str, TableIdentity]:
        """Sorted by name."""
        rows = self._rows(f"{_TIES} ORDER BY name") if self.version >= 2 else ()
        return dict(map(tie_of, rows))

    def share(self, analyst: str | None) -> Share | None:
        """One row; the unshared share has an empty name, which no analyst can have."""
        row = self.execute(f"{_SHARES} WHERE analyst = ?", (analyst or "",)).fetchone()
        return share_of(row) if row else None

    def shares(self) -> list[Share]:
        """The empty name sorts first."""
        return [share_of(row) for row in self._rows(f"{_SHARES} ORDER BY analyst")]

    def stream(self, name: str) -> StreamState | None:
        """Found by the unique index."""
        row = self.execute(f"{_STREAMS} WHERE name = ?", (name,)).fetchone()
        return stream_of(row) if row else None

    def streams(self) -> list[StreamState]:
        """In the order they were opened."""
        return [stream_of(row) for row in self._rows(f"{_STREAMS} ORDER BY id")]

    def secret(self, stream: int) -> bytes | None:
        """The only place that reads a secret, and checks that it is the one that was stored."""
        column = "checksum" if self.version >= 2 else "NULL"
        row = self.execute(
            f"SELECT CAST(secret AS BLOB), typeof(secret), {column} FROM secrets WHERE stream = ?",
            (stream,),
        ).fetchone()
        if row is None:
            return None
        secret, kind, sealed = row
        if kind != "blob" or (self.version >= 2 and sealed != checksum(stream, secret)):
            raise damaged(f"the secret state of stream number {stream} was changed")
        return bytes(secret)

    def secrets(self) -> list[int]:
        """The streams that have one, not the secrets themselves."""
        return [stream for (stream,) in self._rows("SELECT stream FROM secrets ORDER BY stream")]

    def answers(self, *, after: int = 0, most: int | None = None) -> list[KeptAnswer]:
        """In order."""
        if self.version < 3:
            return []
        limits = {"after": after, "most": -1 if most is None else most}
        rows = self._rows(f"{_ANSWERS} WHERE number > :after ORDER BY number LIMIT :most", limits)
        return [answer_of(row) for row in rows]

    def answer_under(self, key: str) -> KeptAnswer | None:
        """Found by the unique index."""
        if self.version < 3:
            return None
        row = self.execute(f"{_ANSWERS} WHERE key = ?", (key,)).fetchone()
        return answer_of(row) if row else None

    def stored_and_due(self, due: Contents) -> Iterator[tuple[str, object, object]]:
        """Rows as they are, beside those that would be written now."""
        ties = f"{_TIES} ORDER BY name" if self.version >= 2 else "SELECT 1 WHERE false"
        people = "people" if self.version >= 4 else "NULL"
        tables = [(number, *table) for number, table in enumerate(due.tables, 1)]
        stored_and_due = (
            (f"SELECT number, name, {people} FROM tables ORDER BY number", tables),
            (ties, (row_of_tie(*tie) for tie in sorted(due.ties.items()))),
            (f"{_SHARES} ORDER BY analyst", map(row_of_share, due.shares)),
            (f"{_STREAMS} ORDER BY id", map(row_of_stream, due.streams)),
            ("SELECT stream FROM secrets ORDER BY stream", ((one,) for one in due.with_secret)),
        )
        for what, (query, rows) in zip(WHAT_IS_STORED[:-1], stored_and_due, strict=True):
            yield what, self.execute(query).fetchall(), list(rows)
        yield WHAT_IS_STORED[-1], self._sealed_answers(), list(due.answers)
        columns = _columns_of(self.version)
        yield "its format", _columns(self.execute, {name for name, *_ in columns}), columns

    def _sealed_answers(self) -> list[Any]:
        """One at a time, since they can be large; only text is what was stored."""
        if self.version < 3:
            return []
        query = "SELECT number, key, recorded, response FROM answers ORDER BY number"
        sealed = []
        with closing(self.execute(query)) as rows:
            for number, key, recorded, response in rows:
                text = isinstance(response, str)
                sealed.append((number, key, recorded, digest(response) if text else response))
        return sealed


class Remembered:
    """What a connection read or wrote last, which holds until another connection commits.

    SQLite counts those commits (``PRAGMA data_version``).  Whoever writes takes it, and gives it
    back with the commit: if anything fails on the way, all of it is read again.
    """

    __slots__ = ("count", "covered", "end", "shares", "version")

    def __init__(self, count: int) -> None:
        self.count = count
        self.version: int | None = None
        self.end: HistoryEnd | None = None
        self.covered: set[str] = set()
        self.shares: dict[str | None, Share] = {}


class SqliteWriter(SqliteReader):
    """The same, inside a write transaction: nobody else can write meanwhile.

    ``seen`` is the end of the history seen before, ``before`` what is remembered of the last write.
    ``cursor`` is one to use again and again: making one takes longer than what it is made for.
    ``upgrade`` comes before the first write.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        seen: HistoryEnd | None = None,
        before: Remembered | None = None,
        cursor: sqlite3.Cursor | None = None,
    ) -> None:
        self._write = (cursor or connection.cursor()).execute
        ((count,),) = self._write("PRAGMA data_version").fetchall()
        current = before is not None and before.count == count
        self.remembered = before if before is not None and current else Remembered(count)
        super().__init__(connection, self.remembered.version)
        self.remembered.version = self.version
        self.seen = seen or HistoryEnd()

    def tail(self) -> HistoryEnd:
        """Read once, since only this writer can move it."""
        if self.remembered.end is None:
            self.remembered.end = super().tail()
        return self.remembered.end

    def covers(self, table: str) -> bool:
        """Tables are never removed."""
        if table not in self.remembered.covered:
            if not super().covers(table):
                return False
            self.remembered.covered.add(table)
        return True

    def share(self, analyst: str | None) -> Share | None:
        """Read once, or as it was written."""
        known = self.remembered.shares.get(analyst)
        if known is None and (known := super().share(analyst)) is not None:
            self.remembered.shares[analyst] = known
        return known

    def upgrade(self, to: int = VERSION) -> SqliteWriter:
        """Bring an older file up to date, inside the transaction of the first write to it."""
        for version in range(self.version, to):
            STEPS[version - 1](self)
            self.version = self.remembered.version = version + 1
            self.execute(f"PRAGMA user_version = {self.version}")
        return self

    @contextmanager
    def part(self) -> Iterator[SqliteWriter]:
        """A part of the transaction: if the block fails, what it wrote is taken back alone."""
        before = self.seen
        self.execute("SAVEPOINT part")
        try:
            yield self
        except BaseException:
            self.execute("ROLLBACK TO part")
            self.execute("RELEASE part")
            self.seen, self.remembered = before, Remembered(self.remembered.count)
            raise
        self.execute("RELEASE part")

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        """Linked to the last entry, which must continue what was seen before."""
        end = self.tail()
        if end != self.seen:
            self._check_goes_on()
        entry = link(*end, kind, fields, stream)
        self._write(
            "INSERT INTO entries (number, text, hash, stream) VALUES (?, ?, ?, ?)",
            (entry.number, entry.text, entry.hash, entry.stream),
        )
        self.remembered.end = self.seen = HistoryEnd(entry.number, entry.hash)
        return entry

    def _check_goes_on(self) -> None:
        """Others may have written since; but what was seen must still be there."""
        number, seen = self.seen
        row = self.execute("SELECT hash FROM entries WHERE number = ?", (number,)).fetchone()
        if number and (row is None or row[0] != seen):
            raise LedgerDamaged(
                f"entry {number} of the history is not what it was when this process saw it: an "
                "old copy was put back or the file was edited; use the newest copy"
            )

    def add_table(self, table: str, people: str | None = None) -> None:
        """Added at the end."""
        self.execute("INSERT INTO tables (name, people) VALUES (?, ?)", (table, people))

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        """Written as a whole row."""
        row = row_of_tie(table, identity)
        self.execute("INSERT OR REPLACE INTO ties VALUES (?, ?, ?, ?)", row)

    def put_share(self, share: Share) -> None:
        """Totals are kept, not summed up again."""
        before = self.remembered.shares.get(share.analyst)
        if before is not None and before.limit is share.limit:  # by far most often
            row = (share.spent.as_text(), share.analyst or "")
            self._write("UPDATE pots SET spent = ? WHERE analyst = ?", row)
        else:
            row = row_of_share(share)
            self.execute("INSERT OR REPLACE INTO pots (analyst, most, spent) VALUES (?, ?, ?)", row)
        self.remembered.shares[share.analyst] = share

    def next_stream(self) -> int:
        """Streams are never removed, so this number was never used."""
        ((last,),) = self.execute("SELECT max(id) FROM streams").fetchall()
        with readable("a row of the table 'streams' cannot be read"):
            return 1 if last is None else whole_of(last) + 1

    def put_stream(self, state: StreamState) -> None:
        """Written as a whole row; the caller has compared it first."""
        row = row_of_stream(state)
        self.execute(f"INSERT OR REPLACE INTO streams VALUES ({', '.join('?' * len(row))})", row)

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        """With its checksum.  A deleted one is overwritten on the disk (secure_delete)."""
        if secret is None:
            self.execute("DELETE FROM secrets WHERE stream = ?", (stream,))
        else:
            row = (stream, secret, checksum(stream, secret))
            self.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?, ?)", row)

    def put_answer(self, answer: KeptAnswer) -> None:
        """Added under its key, which is never given up; later it gets its response."""
        row = (answer.number, answer.key, answer.response, answer.recorded)
        self.execute(
            "INSERT INTO answers (number, key, response, recorded) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (number) DO UPDATE SET response = excluded.response, "
            "recorded = excluded.recorded",
            row,
        )


# What SQLite itself says --------------------------------------------------------------------------


def _text(raw: bytes) -> str:
    """A text as SQLite gives it.  Its own error would quote what cannot be read."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    raise damaged("a text in the budget file is not Unicode")


def _columns(execute: Callable[[str], sqlite3.Cursor], tables: set[str] | None = None) -> list[Any]:
    """Every column of every table, or of some: what makes a file one of its version."""
    rows = execute(
        'SELECT m.name, i.cid, i.name, i.type, i."notnull", i.pk '
        "FROM sqlite_schema m, pragma_table_info(m.name) i WHERE m.type = 'table' "
        "ORDER BY m.name, i.cid"
    )
    return [row for row in rows if tables is None or row[0] in tables]


@lru_cache
def _columns_of(version: int) -> list[Any]:
    """Every column of a new file of this version."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        SqliteWriter(connection).upgrade(version)
        return _columns(connection.execute)
