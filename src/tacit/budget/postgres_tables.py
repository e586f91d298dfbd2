"""The tables of a budget in PostgreSQL: one schema a budget, and views and writes of what is in it.

Texts are stored as their bytes (``bytea``): whatever encoding and collation the database has, they
come back as they were and sort by their code points.  Nothing is compressed, since how well an
answer can be compressed would depend on the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.budget.chain import Entry, damaged, link, readable
from tacit.budget.ledger import (
    LARGEST,
    WHAT_IS_STORED,
    Contents,
    HistoryEnd,
    KeptAnswer,
    Share,
    StreamState,
    TableIdentity,
)
from tacit.budget.postgres_journeys import Journeys, Row, Statement, rows_of
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

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

    from tacit.postgres import Connection

FORMAT = 1
WITH_GROUPS = 2  # as soon as it covers tables of other people; 0.2 refuses it then
_FEW = 20  # tables and shares that are read with the lock

# The columns of each table, "!" where there is always a value.
_TABLES = {
    "head": "one boolean!, format bigint!, number bigint!, hash bytea!",
    "entries": "number bigint!, stream bigint, text bytea!, hash bytea!",
    "tables": "number bigint!, name bytea!",
    "ties": "name bytea!, person bytea!, type bytea, schema bytea",
    "shares": "analyst bytea!, most bytea!, spent bytea!",
    "streams": "id bigint!, name bytea!, source bytea!, analyst bytea, at_most bigint!, "
    "binding bytea!, tops bigint!, lost bigint!, reserved bigint!, status bytea!, "
    "generation bigint!",
    "secrets": "stream bigint!, secret bytea!, checksum bytea!",
    "answers": "number bigint!, key bytea, response bytea, recorded bigint",
}
_GROUPS = {"tables": f"{_TABLES['tables']}, people bytea"}
# Names may be longer than what an index can hold, so they are found by their digests.
_CONSTRAINTS = """
ALTER TABLE head ADD PRIMARY KEY (one), ADD CHECK (one);
ALTER TABLE entries ADD PRIMARY KEY (number);
CREATE INDEX entries_of_stream ON entries (stream, number) WHERE stream IS NOT NULL;
ALTER TABLE tables ADD PRIMARY KEY (number);
CREATE UNIQUE INDEX tables_by_name ON tables (sha256(name));
CREATE UNIQUE INDEX ties_by_name ON ties (sha256(name));
CREATE UNIQUE INDEX shares_by_analyst ON shares (sha256(analyst));
ALTER TABLE streams ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX streams_by_name ON streams (sha256(name));
ALTER TABLE secrets ADD PRIMARY KEY (stream);
ALTER TABLE answers ADD PRIMARY KEY (number);
CREATE UNIQUE INDEX answers_by_key ON answers (sha256(key)) WHERE key IS NOT NULL;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''the history is append-only''; END';
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
"""

_TIES = "SELECT name, person, type, schema FROM ties"
_SHARES = "SELECT analyst, most, spent FROM shares"
_STREAMS = (
    "SELECT id, name, source, analyst, at_most, binding, tops, lost, reserved, status, generation "
    "FROM streams"
)
_ANSWERS = "SELECT number, key, response, recorded FROM answers"
_NAMED = "sha256(name) = sha256(%s)"
# The column is there as soon as a group is named; JSON has a row's columns, whichever there are.
_GROUPED = "name, decode(substr(to_jsonb(tables) ->> 'people', 3), 'hex')"


def _columns_of(tables: Mapping[str, str]) -> list[tuple[str, str, str, bool]]:
    """Every column, as `PostgresReader.columns` finds them."""
    return [
        (table, column, kind.removesuffix("!"), kind.endswith("!"))
        for table, columns in sorted(tables.items())
        for column, _, kind in (one.partition(" ") for one in columns.split(", "))
    ]


def create_tables(connection: Connection) -> None:
    """Everything that a new budget needs, in the schema that the search path names."""
    for table, columns in _TABLES.items():
        connection.execute(f"CREATE TABLE {table} ({columns.replace('!', ' NOT NULL')})".encode())
    for table, column, kind, _ in _columns_of(_TABLES):
        if kind == "bytea":
            alter = f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL"
            connection.execute(alter.encode())
    connection.execute(_CONSTRAINTS.encode())
    number, hashed = HistoryEnd()
    connection.execute(
        b"INSERT INTO head VALUES (true, %s, %s, %s)", (FORMAT, number, hashed.encode())
    )


def _with_texts(rows: list[Row]) -> list[Row]:
    """Bytes are texts, but those of secrets."""
    with readable("a text in the budget is not Unicode"):
        return [
            tuple(value.decode() if isinstance(value, bytes) else value for value in row)
            for row in rows
        ]


def _limit(most: int | None) -> int:
    return LARGEST if most is None else most


class PostgresReader(Uncopyable):
    """One view through a connection that is inside a transaction."""

    def __init__(self, journeys: Journeys) -> None:
        self._journeys = journeys

    def _raw(self, query: str, *values: Any) -> list[Row]:
        """Rows as PostgreSQL has them: bytes are bytes."""
        return self._journeys.rows(query, *values)

    def _rows(self, query: str, *values: Any) -> list[Row]:
        """Rows with their texts."""
        return _with_texts(self._raw(query, *values))

    def tail(self) -> HistoryEnd:
        """As the head has it, which is the only row of its table."""
        with readable("the head of the history cannot be read"):
            ((number, hashed),) = self._rows("SELECT number, hash FROM head")
            return HistoryEnd(whole_of(number), text_of(hashed)) if number else HistoryEnd()

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        """In order; those of one stream are found by an index."""
        only = "AND stream = %s" if stream is not None else ""
        query = (
            "SELECT number, text, hash, stream FROM entries WHERE number > %s "
            f"{only} ORDER BY number LIMIT %s"
        )
        of_stream = [] if stream is None else [stream]
        with readable("a row of the table 'entries' cannot be read"):
            rows = self._rows(query, after, *of_stream, _limit(most))
            return [entry_of(*row) for row in rows]

    def has_entry(self, head: str) -> bool:
        """Whether an entry has this hash."""
        return bool(self._rows("SELECT 1 FROM entries WHERE hash = %s", head))

    def tables(self) -> dict[str, str | None]:
        """In the order they were named."""
        return dict(map(table_of, self._rows(f"SELECT {_GROUPED} FROM tables ORDER BY number")))

    def covers(self, table: str) -> bool:
        """Found by the unique index."""
        return bool(self._rows(f"SELECT 1 FROM tables WHERE {_NAMED}", table))

    def tie(self, table: str) -> TableIdentity | None:
        """Found by the unique index."""
        rows = self._rows(f"{_TIES} WHERE {_NAMED}", table)
        return tie_of(rows[0])[1] if rows else None

    def ties(self) -> dict[str, TableIdentity]:
        """Sorted by name."""
        return dict(map(tie_of, self._rows(f"{_TIES} ORDER BY name")))

    def share(self, analyst: str | None) -> Share | None:
        """One row; the unshared share has an empty name, which no analyst can have."""
        rows = self._rows(f"{_SHARES} WHERE sha256(analyst) = sha256(%s)", analyst or "")
        return share_of(rows[0]) if rows else None

    def shares(self) -> list[Share]:
        """The empty name sorts first."""
        return [share_of(row) for row in self._rows(f"{_SHARES} ORDER BY analyst")]

    def stream(self, name: str) -> StreamState | None:
        """Found by the unique index."""
        rows = self._rows(f"{_STREAMS} WHERE {_NAMED}", name)
        return stream_of(rows[0]) if rows else None

    def streams(self) -> list[StreamState]:
        """In the order they were opened."""
        return [stream_of(row) for row in self._rows(f"{_STREAMS} ORDER BY id")]

    def secret(self, stream: int) -> bytes | None:
        """The only place that reads a secret, and checks that it is the one that was stored."""
        rows = self._raw("SELECT secret, checksum FROM secrets WHERE stream = %s", stream)
        if not rows:
            return None
        secret, sealed = map(bytes, rows[0])
        if sealed != checksum(stream, secret):
            raise damaged(f"the secret state of stream number {stream} was changed")
        return secret

    def secrets(self) -> list[int]:
        """The streams that have one, not the secrets themselves."""
        return [stream for (stream,) in self._rows("SELECT stream FROM secrets ORDER BY stream")]

    def answers(self, *, after: int = 0, most: int | None = None) -> list[KeptAnswer]:
        """In order."""
        query, limit = f"{_ANSWERS} WHERE number > %s ORDER BY number LIMIT %s", _limit(most)
        return [answer_of(row) for row in self._rows(query, after, limit)]

    def answer_under(self, key: str) -> KeptAnswer | None:
        """Found by the unique index."""
        rows = self._rows(f"{_ANSWERS} WHERE sha256(key) = sha256(%s)", key)
        return answer_of(rows[0]) if rows else None

    def stored_and_due(self, due: Contents) -> Iterator[tuple[str, object, object]]:
        """Rows as they are, beside those that would be written now."""
        tables = [(number, *table) for number, table in enumerate(due.tables, 1)]
        sealed = "SELECT number, key, recorded, encode(sha256(response), 'hex') FROM answers"
        stored_and_due = (
            (f"SELECT number, {_GROUPED} FROM tables ORDER BY number", tables),
            (f"{_TIES} ORDER BY name", (row_of_tie(*tie) for tie in sorted(due.ties.items()))),
            (f"{_SHARES} ORDER BY analyst", map(row_of_share, due.shares)),
            (f"{_STREAMS} ORDER BY id", map(row_of_stream, due.streams)),
            ("SELECT stream FROM secrets ORDER BY stream", ((one,) for one in due.with_secret)),
            (f"{sealed} ORDER BY number", due.answers),
        )
        for what, (query, rows) in zip(WHAT_IS_STORED, stored_and_due, strict=True):
            yield what, self._rows(query), list(rows)
        grouped = any(people is not None for _, people in due.tables)
        columns = _columns_of(_TABLES | (_GROUPS if grouped else {}))
        format_due = [(WITH_GROUPS if grouped else FORMAT,)]
        yield "its format", self._rows("SELECT format FROM head"), format_due
        yield "its format", self.columns(), columns
        last = "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
        yield "the end of its history", [tuple(self.tail())], self._rows(last) or [HistoryEnd()]

    def columns(self) -> list[tuple[Any, ...]]:
        """Every column of every table, as the catalogue has them."""
        return self._rows(
            "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), "
            "a.attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' "
            'AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname COLLATE "C", a.attnum'
        )


class Locked(NamedTuple):
    """What a writer knows as soon as the head is locked, without another journey to the server.

    ``tables``, ``ties`` and ``shares`` are None if there are many.
    """

    tail: HistoryEnd
    there: str | None  # the hash of the entry that was the last one seen before
    forgets: tuple[str, str]  # fsync and full_page_writes
    tables: set[str] | None = None
    ties: dict[str, TableIdentity] | None = None
    shares: dict[str | None, Share] | None = None


NOTHING_YET = Locked(HistoryEnd(), None, ("on", "on"))
"""Of a budget that is being created."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LOCK = (
    "SELECT number, hash, current_setting('fsync'), current_setting('full_page_writes'), "
    "(SELECT e.hash FROM entries e WHERE e.number = %s) FROM head FOR UPDATE OF head"
)


def lock_head(journeys: Journeys, seen: HistoryEnd) -> Locked:
    """Begin a write: wait for those before us, and read what nearly every write needs.

    READ COMMITTED: each statement sees what was committed before it began, and all but the lock
    itself begin when it is ours.  That one gets the row as the last writer left it.
    """
    few = (f"{query} LIMIT {_FEW + 1}" for query in ("SELECT name FROM tables", _TIES, _SHARES))
    begin, lock = (_BEGIN, ()), (_LOCK, (seen.number,))
    results = journeys.together([begin, lock, *((query, ()) for query in few)])[1:]
    head, tables, ties, shares = (_with_texts(rows_of(result)) for result in results)
    if len(head) != 1:
        raise damaged("the head of the history has vanished")
    number, hashed, fsync, full_page_writes, there = head[0]
    with readable("a row of the table 'tables' cannot be read"):
        names = {text_of(name) for (name,) in tables}
    by_analyst = {share.analyst: share for share in map(share_of, shares)}
    return Locked(
        HistoryEnd(number, hashed),
        there,
        (fsync, full_page_writes),
        names if len(tables) <= _FEW else None,
        dict(map(tie_of, ties)) if len(ties) <= _FEW else None,
        by_analyst if len(shares) <= _FEW else None,
    )


class PostgresWriter(PostgresReader):
    """The same, while the head is locked; ``seen`` is the end of the history seen before.

    What is written goes to the server with the next question, or with COMMIT.
    """

    def __init__(self, journeys: Journeys, locked: Locked, seen: HistoryEnd) -> None:
        super().__init__(journeys)
        self._locked = locked
        self._tail = locked.tail
        self._waiting: list[Statement] = []
        self.seen = seen

    def _write(self, statement: str, *values: Any) -> None:
        self._waiting.append((statement, values))

    def _raw(self, query: str, *values: Any) -> list[Row]:
        """Rows, after what was written before."""
        return rows_of(self._send((query, values)))

    def commit(self) -> bool:
        """End well: whether all of it is on the server's disk now, or none."""
        return self._send(("COMMIT", ())).command_status == b"COMMIT"

    def _send(self, last: Statement) -> PGresult:
        written, self._waiting = self._waiting, []
        return self._journeys.together([*written, last])[-1]

    def tail(self) -> HistoryEnd:
        """Nobody else can change it meanwhile."""
        return self._tail

    def covers(self, table: str) -> bool:
        """Known since the lock, unless there are many."""
        known = self._locked.tables
        return super().covers(table) if known is None else table in known

    def tie(self, table: str) -> TableIdentity | None:
        """Known since the lock, unless there are many."""
        known = self._locked.ties
        return super().tie(table) if known is None else known.get(table)

    def share(self, analyst: str | None) -> Share | None:
        """Known since the lock, unless there are many."""
        known = self._locked.shares
        return super().share(analyst) if known is None else known.get(analyst)

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        """Linked to the last entry, which must continue what was seen before."""
        if self._tail != self.seen:
            self._check_goes_on()
        entry = link(*self._tail, kind, fields, stream)
        self._write(
            "WITH added AS (INSERT INTO entries (number, text, hash, stream) "
            "VALUES (%s, %s, %s, %s)) UPDATE head SET number = %s, hash = %s",
            *(entry.number, entry.text, entry.hash, entry.stream, entry.number, entry.hash),
        )
        self._tail = self.seen = HistoryEnd(entry.number, entry.hash)
        return entry

    def _check_goes_on(self) -> None:
        """Others may have written since; but what was seen must still be there."""
        number, seen = self.seen
        if number and self._locked.there != seen:
            raise LedgerDamaged(
                f"entry {number} of the history is not what it was when this process saw it: an "
                "old copy was put back, the server lost what it had confirmed, or the tables were "
                "edited; use the newest copy"
            )

    def add_table(self, table: str, people: str | None = None) -> None:
        """Added at the end.  With the first group of other people comes the column for it."""
        if self._locked.tables is not None:
            self._locked.tables.add(table)
        columns, given = "number, name", [table]
        if people is not None:
            # A journey each: a statement is prepared before the ones beside it are run.
            self._rows("ALTER TABLE tables ADD COLUMN IF NOT EXISTS people bytea")
            self._rows("ALTER TABLE tables ALTER COLUMN people SET STORAGE EXTERNAL")
            self._write(f"UPDATE head SET format = {WITH_GROUPS}")
            columns, given = f"{columns}, people", [table, people]
        number = "SELECT coalesce(max(number), 0) + 1 FROM tables"
        places = ", ".join(["%s"] * len(given))
        self._write(f"INSERT INTO tables ({columns}) VALUES (({number}), {places})", *given)

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        """Written as a whole row."""
        if self._locked.ties is not None:
            self._locked.ties[table] = identity
        self._write(
            "INSERT INTO ties (name, person, type, schema) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (sha256(name)) DO UPDATE SET person = excluded.person, "
            "type = excluded.type, schema = excluded.schema",
            *row_of_tie(table, identity),
        )

    def put_share(self, share: Share) -> None:
        """Totals are kept, not summed up again."""
        if self._locked.shares is not None:
            self._locked.shares[share.analyst] = share
        self._write(
            "INSERT INTO shares (analyst, most, spent) VALUES (%s, %s, %s) ON CONFLICT "
            "(sha256(analyst)) DO UPDATE SET most = excluded.most, spent = excluded.spent",
            *row_of_share(share),
        )

    def next_stream(self) -> int:
        """Streams are never removed, so this number was never used."""
        ((last,),) = self._rows("SELECT coalesce(max(id), 0) FROM streams")
        return int(last) + 1

    def put_stream(self, state: StreamState) -> None:
        """Written as a whole row; the caller has compared it first."""
        self._write(
            "INSERT INTO streams (id, name, source, analyst, at_most, binding, tops, lost, "
            f"reserved, status, generation) VALUES ({', '.join(['%s'] * 11)}) "
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name, source = excluded.source, "
            "analyst = excluded.analyst, at_most = excluded.at_most, binding = excluded.binding, "
            "tops = excluded.tops, lost = excluded.lost, reserved = excluded.reserved, "
            "status = excluded.status, generation = excluded.generation",
            *row_of_stream(state),
        )

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        """With its checksum.  A deleted one stays in the server's files until they are vacuumed."""
        if secret is None:
            self._write("DELETE FROM secrets WHERE stream = %s", stream)
        else:
            self._write(
                "INSERT INTO secrets (stream, secret, checksum) VALUES (%s, %s, %s) ON CONFLICT "
                "(stream) DO UPDATE SET secret = excluded.secret, checksum = excluded.checksum",
                *(stream, secret, checksum(stream, secret)),
            )

    def put_answer(self, answer: KeptAnswer) -> None:
        """Added under its key, which is never given up; later it gets its response."""
        self._write(
            "INSERT INTO answers (number, key, response, recorded) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (number) DO UPDATE SET response = excluded.response, "
            "recorded = excluded.recorded",
            *(answer.number, answer.key, answer.response, answer.recorded),
        )
