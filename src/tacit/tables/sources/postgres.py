"""A table in PostgreSQL: read once, in one transaction that only reads, by a role that only may.

The SELECT list is written from the catalogue's types, so that no value can make it fail: dates and
times that are infinite become NULL and others are clamped, numerics come as text, text comes as
bytes.  Only declared columns are read.  Rows come as Arrow batches through ADBC, a batch at a time.

A view is a program of its owner: it must not fail on a row, and not mix the rows of people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tacit.errors import BadParameter, EngineFailed, TacitError
from tacit.postgres import URL, CannotConnect, PostgresAddress
from tacit.tables.schema.codes import NUMERIC, TEXT_BYTES, UNREADABLE, is_unreadable, literal
from tacit.tables.schema.declarations import folded, quoted, refuse_clashing_names
from tacit.tables.sources.lines import LONGEST_FIELD
from tacit.tables.sources.source import Source

if TYPE_CHECKING:
    from collections.abc import Collection

    from duckdb import DuckDBPyConnection

    from tacit.tables.sources.source import RowWindow

_P = ParamSpec("_P")
_R = TypeVar("_R")

CONNECT_SECONDS = 30.0
_STREAM = "from_postgres"
_FIRST, _LAST = "0001-01-01", "9999-12-31"

# What a type of PostgreSQL becomes: its name here, and how a value is read without fail.
_PLAIN = {
    "bool": ("BOOLEAN", "{}"),
    "int2": ("SMALLINT", "{}"),
    "int4": ("INTEGER", "{}"),
    "int8": ("BIGINT", "{}"),
    "oid": ("BIGINT", "{}::int8"),
    "float4": ("FLOAT", "{}"),
    "float8": ("DOUBLE", "{}"),
    "money": (NUMERIC, "{}::numeric::text"),
    "date": (
        "DATE",
        "CASE WHEN isfinite({0}) THEN "
        f"least(greatest({{0}}, date '{_FIRST}'), date '{_LAST}') END",
    ),
    **{
        name: (
            kind,
            "CASE WHEN isfinite({0}) THEN "
            f"least(greatest({{0}}, {name} '{_FIRST} 00:00:00{zone}'), "
            f"{name} '{_LAST} 23:59:59.999999{zone}') END",
        )
        for name, kind, zone in (
            ("timestamp", "TIMESTAMP", ""),
            ("timestamptz", "TIMESTAMP WITH TIME ZONE", "+00"),
        )
    },
}
# What a view may have in the place of a column whose type cannot be declared.
_MADE_PLAIN = {
    **dict.fromkeys(("json", "jsonb"), "{} ->> 'key'"),
    **dict.fromkeys(("inet", "cidr"), "host({})"),
    **dict.fromkeys(("interval", "time", "timetz"), "extract(epoch FROM {})"),
    "array": "cardinality({})",
}
_TEXTS = ("text", "varchar", "bpchar", "name", "char", "uuid")

# Python's name for an encoding of a server.
_CODECS = {
    "SQL_ASCII": "utf-8",
    "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10",
    "LATIN7": "iso8859-13",
    "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15",
    **{f"LATIN{n}": f"iso8859-{n}" for n in range(1, 5)},
    **{f"ISO_8859_{n}": f"iso8859-{n}" for n in range(5, 9)},
    **{f"WIN{n}": f"cp{n}" for n in (866, 874, *range(1250, 1259))},
    "LATIN10": "iso8859-16",
    "KOI8R": "koi8_r",
    "KOI8U": "koi8_u",
    "EUC_JP": "euc_jp",
    "EUC_KR": "euc_kr",
    "EUC_CN": "gb2312",
}


class PostgresSource(Source):
    """A table in PostgreSQL."""

    called = "a postgresql:// URL"
    has_tables = True
    _session: Session | None = None

    @classmethod
    def accepts(cls, given: object) -> bool:
        """Whether this is a URL of PostgreSQL, or a connection of psycopg."""
        if isinstance(given, str):
            return URL.match(given) is not None
        return type(given).__module__.partition(".")[0] == "psycopg" and hasattr(given, "pgconn")

    def show(self, given: Any, table: str | None) -> None:
        """Find the table and the types of its columns; rows are read when the schema is known."""
        address = PostgresAddress(given, "source") if isinstance(given, str) else _same(given)
        if address.fragment:
            allowed = "leave the # out, and name the table by table="
            raise BadParameter("source", address.place, allowed)
        self._session = session = Session(address, self.connection)
        session.begin()
        self._relation = session.find(table)
        refuse_writers(session, self._relation)
        columns = session.columns(self._relation)
        self.hints = {folded(column.name): column.hint for column in columns if column.hint}
        self._granted = [column for column in columns if column.granted]
        refuse_clashing_names([column.name for column in self._granted])
        self.name = self._relation.name
        self.columns = {column.name: column.kind for column in self._granted}

    def fetch(self, names: Collection[str]) -> None:
        """Read the rows of these columns, once."""
        if self._session is not None:
            chosen = [column for column in self._granted if column.name in names]
            try:
                self._session.fetch(self._relation, chosen, self)
            finally:
                self._end()

    def close(self) -> None:
        """End the session, too."""
        self._end()
        super().close()

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _same(connection: Any) -> PostgresAddress:
    """The database of a connection, to which another one is made."""
    try:
        return PostgresAddress.of(connection)
    except Exception:  # its words may hold anything
        raise BadParameter("source", "a connection", "it must be open") from None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view, by its schema and name."""

    schema: str
    name: str

    @property
    def sql(self) -> str:
        """Its name in SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A column: its type as Tacit names it, how it is read, and whether its text is decoded."""

    name: str
    kind: str
    expression: str = "NULL"  # of the quoted name
    codec: str | None = None
    granted: bool = True
    hint: str = ""  # why it cannot be declared, and what to do


# What ended a query, in the classes 08, 53 and 57 of SQLSTATE: ADBC hands on no code, only what the
# server or libpq said.  Of that only the beginning is compared, and with whole phrases: a message
# that quotes a value begins with words of its own.  What is told is written here.
_SAID = re.compile(
    r"\[libpq\] (?:[^\n:']*(?:'(?s:.*?)')?: )?(?:(?:ERROR|FATAL|PANIC|WARNING):  )?(?=(.*))"
)
_LOST = "the connection to PostgreSQL was lost: try again"
_FAILURES = {
    "canceling statement due to statement timeout": (
        "statement_timeout of PostgreSQL ended it: raise that for this role"
    ),
    "canceling statement due to user request": "somebody cancelled it in PostgreSQL: try again",
    r"could not [a-z ]+( \d+ of)?( temporary)? file\b.*: No space left on device": (
        "the disk of PostgreSQL is full: make room there, and try again"
    ),
    'temporary file size exceeds "temp_file_limit"': (
        "temp_file_limit of PostgreSQL ended it: raise that for this role"
    ),
    "out of (shared )?memory": (
        "PostgreSQL is out of memory: try again when less is running there"
    ),
    "terminating connection because of crash of another server process": (
        "PostgreSQL crashed or was killed: try again when it is back"
    ),
    "terminating connection due to administrator command": (
        "PostgreSQL ended the connection or is stopping: try again"
    ),
    "(server closed the connection|connection to server|could not receive data|SSL SYSCALL)": _LOST,
}


def kind_of_failure(said: str) -> str | None:
    """In our own words, if the server's are those of a failure that says nothing of any value."""
    words = _SAID.search(said)
    if words is None:
        return None
    return next((why for known, why in _FAILURES.items() if re.match(known, words[1])), None)


def failures_named(work: Callable[Concatenate[Session, _P], _R]) -> Any:
    """Say what kind of failure it was, where that says nothing about any value."""

    @wraps(work)
    def guarded(session: Session, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return work(session, *args, **kwargs)
        except TacitError:
            raise
        except Exception as error:
            known = kind_of_failure(str(error))
            if known is None:
                raise
        raise EngineFailed(f"reading from {session.place} failed: {known}")

    return guarded


class Session:
    """One connection, for one reading of one table."""

    def __init__(self, address: PostgresAddress, reader: DuckDBPyConnection) -> None:
        self.place = address.place
        self._reader = reader
        try:
            address.connect(wait=CONNECT_SECONDS).close()  # its messages are the better ones
        except CannotConnect as failure:
            raise EngineFailed(f"{self.place} cannot be reached: {failure.said}") from None
        try:
            import adbc_driver_postgresql  # type: ignore[import-untyped]
            from adbc_driver_manager import AdbcConnection
        except ImportError:
            advice = "pip install 'tacit[postgres]'"
            raise BadParameter("source", self.place, "it needs more packages", advice) from None
        self._database = self._begun(adbc_driver_postgresql.connect, address.conninfo)
        self._connection = self._begun(AdbcConnection, self._database)
        self._encoding = ""

    @failures_named
    def _begun(self, begin: Callable[[Any], Any], given: Any) -> Any:
        """What ADBC connects with; it reads the catalogue at once."""
        return begin(given)

    def close(self) -> None:
        """End it; ending it again does no harm."""
        with suppress(Exception):
            self._connection.close()
            self._database.close()

    # Statements -------------------------------------------------------------------------------

    @failures_named
    def run(self, statement: str) -> None:
        """Run a statement that gives nothing."""
        from adbc_driver_manager import AdbcStatement

        with AdbcStatement(self._connection) as prepared:
            prepared.set_sql_query(statement)
            prepared.execute_update()

    @failures_named
    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The few rows of a query."""
        with self._shown(query):
            found: list[tuple[Any, ...]] = self._reader.execute(f"FROM {_STREAM}").fetchall()
        return found

    @contextmanager
    def _shown(self, query: str) -> Iterator[Any]:
        """A query whose rows DuckDB sees, once, for as long as this is entered."""
        from adbc_driver_manager import AdbcStatement

        with AdbcStatement(self._connection) as statement:
            statement.set_sql_query(query)
            stream, _ = statement.execute_query()
            self._reader.register(_STREAM, stream)
            try:
                yield stream
            finally:
                self._reader.unregister(_STREAM)

    def begin(self) -> None:
        """One snapshot from here on, and nothing of what the role or database may have set."""
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self.run("SET LOCAL search_path = pg_catalog")
        self.run("SET LOCAL TimeZone = 'UTC'")
        self.run("SET LOCAL standard_conforming_strings = on")
        ((self._encoding,),) = self.rows("SELECT getdatabaseencoding()::text")

    # The catalogue ----------------------------------------------------------------------------

    def find(self, table: str | None) -> Relation:
        """The table of this name that the role may read: ``visits``, or ``clinic.visits``."""
        if table is not None and "\0" in table:
            raise BadParameter("table", repr(table), "no table can have this name")
        found = [Relation(schema, name) for schema, name in self.rows(_READABLE)]
        if table is None:
            fitting = found
        else:
            fitting = [each for each in found if table in (each.name, str(each))]
        if len(fitting) == 1:
            return fitting[0]
        listed = ", ".join(str(each) for each in (fitting or found)[:20])
        if fitting:
            raise BadParameter("table", table, f"name one of its tables: {listed}")
        missing = f"this role may read {listed or 'no table'}"
        grant = f"; if it is there, its owner runs: GRANT SELECT ON {table} TO {self.role}"
        raise BadParameter("table", table, missing + (grant if table is not None else ""))

    @property
    def role(self) -> str:
        """Who reads, as SQL writes the name."""
        ((role,),) = self.rows("SELECT quote_ident(current_user)")
        return str(role)

    def columns(self, relation: Relation) -> list[RemoteColumn]:
        """The columns, in order, each as its type says, or with what the role lacks to read it."""
        found = self.rows(_COLUMNS.format(_text(relation.schema), _text(relation.name)))
        if all(granted for *_, granted in found):
            return [self._column(*row) for *row, _ in found]
        grant = f"GRANT SELECT ({{}}) ON {relation.sql} TO {self.role}"
        refused = f"this role may not read: its owner runs {grant}"
        return [
            self._column(name, *how)
            if granted
            else RemoteColumn(name, UNREADABLE, granted=False, hint=refused.format(quoted(name)))
            for name, *how, granted in found
        ]

    def _column(
        self, name: str, type_: str, built_in: bool, enum: bool, modifier: int
    ) -> RemoteColumn:
        if built_in and type_ in _PLAIN:
            return RemoteColumn(name, *_PLAIN[type_])
        if built_in and type_ == "numeric":
            return RemoteColumn(name, _numeric(modifier), "{}::text")
        if not enum and not (built_in and type_ in _TEXTS):
            shown = "array" if type_.startswith("_") else type_
            plain = _MADE_PLAIN.get(shown, "{}::text").format(quoted(name))
            hint = f"{shown}: open a view that has {plain} AS {quoted(name)} in its place"
            return RemoteColumn(name, f"{UNREADABLE}({shown})", hint=hint)
        short = f"CASE WHEN octet_length({{0}}::text) <= {LONGEST_FIELD} THEN {{0}}::text END"
        if self._encoding == "UTF8":
            # Bytes, because nothing else would notice if the text were not Unicode after all.
            return RemoteColumn(name, TEXT_BYTES, f"textsend({short})")
        codec = _CODECS.get(self._encoding)
        if codec is None:
            return RemoteColumn(name, UNREADABLE)
        # The server would fail on a character that Unicode does not have.
        raw = f"convert_to({short}, {_text(self._encoding)})"
        return RemoteColumn(name, TEXT_BYTES, raw, None if codec == "utf-8" else codec)

    # Rows -------------------------------------------------------------------------------------

    @failures_named
    def fetch(self, relation: Relation, columns: list[RemoteColumn], source: Source) -> None:
        """Read some columns of all rows, or of those in the window, into the source's table."""
        read = [column for column in columns if not is_unreadable(column.kind)]
        listed = ", ".join(
            f"{column.expression.format(quoted(column.name))} AS {quoted(column.name)}"
            for column in read
        )
        query = f"SELECT {listed or 'true AS there'} FROM {relation.sql}"
        with self._shown(query + _where(source.window, read)) as stream:
            codecs = {column.name: column.codec for column in read if column.codec is not None}
            if codecs:
                self._reader.unregister(_STREAM)
                self._reader.register(_STREAM, _decoded(stream, codecs))
            source.keep_rows(_STREAM)
        expected = {column.name: _SENT_AS.get(_head(column), column.kind) for column in read}
        if read and source.described() != expected:  # somebody altered the table in between
            raise EngineFailed(f"the columns of {relation} have changed: open it again")


def _head(column: RemoteColumn) -> str:
    return column.kind.partition("(")[0]


_SENT_AS = {NUMERIC: "VARCHAR", TEXT_BYTES: "BLOB"}


def _where(window: RowWindow | None, columns: list[RemoteColumn]) -> str:
    """What the server can leave out already; the normal form decides, and this leaves out less."""
    column = next((each for each in columns if window and each.name == window.column), None)
    if window is None or column is None:
        return ""
    whole = column.kind in ("SMALLINT", "INTEGER", "BIGINT")
    type_ = "timestamp" if column.kind.startswith("TIMESTAMP") else column.kind.lower()
    if window.type not in ("integer", "date", "timestamp") or not (whole or type_ == window.type):
        return ""
    ends = [
        f"{quoted(column.name)} {sign} {literal(window.type, None, end)}"
        for sign, end in ((">=", window.low), ("<=", window.high))
        if end is not None
    ]
    return f" WHERE {' AND '.join(ends)}" if ends else ""


def _decoded(stream: Any, codecs: dict[str, str]) -> Any:
    """The batches of a stream with some columns turned into UTF-8; what cannot be read is NULL."""
    try:
        import pyarrow
    except ImportError:
        raise BadParameter(
            "source",
            "'postgresql://...'",
            "its server's encoding is not UTF8, and reading that needs pyarrow: "
            "pip install 'tacit[frames]'",
        ) from None
    reader = pyarrow.RecordBatchReader.from_stream(stream)

    def batches() -> Iterator[Any]:
        for batch in reader:
            arrays = [
                pyarrow.array([_utf8(value, codecs[name]) for value in array.to_pylist()], kind)
                if name in codecs
                else array
                for name, array, kind in zip(
                    reader.schema.names, batch.columns, reader.schema.types, strict=True
                )
            ]
            yield pyarrow.record_batch(arrays, schema=reader.schema)

    return pyarrow.RecordBatchReader.from_batches(reader.schema, batches())


def _utf8(value: bytes | None, codec: str) -> bytes | None:
    try:
        return None if value is None else value.decode(codec).encode()
    except UnicodeError:
        return None


def _numeric(modifier: int) -> str:
    """The name of a numeric type, with its digits and scale if it has them."""
    if modifier < 4:
        return NUMERIC
    digits, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    return f"{NUMERIC}({digits},{scale})" if scale >= 0 else NUMERIC


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


# Who may only read


def refuse_writers(session: Session, relation: Relation) -> None:
    """Refuse a role that may do more than read; the message says how to make one that may not."""
    ((role, powers),) = session.rows(_ROLE)
    found = [f"is {powers}"] if powers else []
    found += [f"may write to {name}" for (name,) in session.rows(_WRITABLE)]
    found += [f"may create tables in {name}" for (name,) in session.rows(_CREATABLE)]
    if found:
        raise BadParameter(
            "source",
            session.place,
            f"the role {role} {found[0]}: connect as one that may only read; this makes one:\n"
            "    CREATE ROLE tacit_reader LOGIN;\n"
            f"    GRANT USAGE ON SCHEMA {quoted(relation.schema)} TO tacit_reader;\n"
            f"    GRANT SELECT ON {relation.sql} TO tacit_reader;",
        )


_OURS = (  # schemas that are not the system's
    "nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_(toast|temp_|toast_)'"
)
_READABLE = f"""
SELECT nspname::text, relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS} AND has_schema_privilege(n.oid, 'USAGE')
AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY 1, 2
"""
_COLUMNS = """
WITH RECURSIVE typed(number, name, type, modifier, granted) AS (
    SELECT attnum, attname, atttypid, atttypmod, has_column_privilege(c.oid, attnum, 'SELECT')
    FROM pg_attribute
    JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace
    WHERE nspname = {} AND relname = {} AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT number, name, typbasetype, typtypmod, granted FROM typed JOIN pg_type ON oid = type
    WHERE typtype = 'd'
)
SELECT name::text, typname::text, typnamespace = 'pg_catalog'::regnamespace, typtype = 'e',
    modifier, granted
FROM typed JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY number
"""
# Whoever may become another role (SET ROLE) may do what that one may.
_ROLES = "FROM pg_roles r WHERE pg_has_role(r.oid, 'MEMBER')"
_ROLE = f"""
SELECT quote_ident(current_user), CASE
    WHEN EXISTS (SELECT {_ROLES} AND rolsuper) THEN 'a superuser'
    WHEN EXISTS (SELECT {_ROLES} AND (rolcreaterole OR rolcreatedb OR rolreplication))
    THEN 'an administrator'
    WHEN EXISTS (SELECT {_ROLES} AND rolname IN ('pg_write_all_data', 'pg_write_server_files',
        'pg_execute_server_program', 'pg_maintain')) THEN 'a member of a role that writes' END
"""
_WRITABLE = f"""
SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {_OURS} AND EXISTS (SELECT {_ROLES} AND (
    relowner = r.oid OR CASE WHEN relkind = 'S'
    THEN has_sequence_privilege(r.oid, c.oid, 'USAGE, UPDATE')
    ELSE has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
        OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE') END))
ORDER BY 1 LIMIT 1
"""
_CREATABLE = f"""
SELECT 'the schema ' || quote_ident(nspname) FROM pg_namespace n
WHERE {_OURS} AND EXISTS (SELECT {_ROLES} AND has_schema_privilege(r.oid, n.oid, 'CREATE'))
UNION ALL SELECT 'the database'
WHERE EXISTS (SELECT {_ROLES} AND has_database_privilege(r.oid, current_database(), 'CREATE'))
LIMIT 1
"""
