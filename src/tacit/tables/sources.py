"""Opening a source with DuckDB: files, DuckDB tables, frames in memory, and Arrow streams.

Nothing about a source is guessed from its values, and no value in it decides whether it can be
read: see ``frames``, ``lines`` and ``parquet``.

Any object that gives its rows as an Arrow stream (``__arrow_c_stream__``) can be opened as it is.
A source that is given by a name or an address is a `SourceKind`: a file that calls `register` and
passes its stream to `Source.keep`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import file_digest
from os.path import isdir, isfile
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any

import duckdb

from tacit.arguments import kind_of
from tacit.errors import BadParameter, EngineFailed
from tacit.tables import arrow_chunks, delimited, frames, parquet
from tacit.tables.codes import UNREADABLE, Type
from tacit.tables.declared import AS_IT_IS, exact_path, quoted, refuse_clashing_names, text
from tacit.tables.engine import withheld
from tacit.tables.lines import Mended
from tacit.tables.postgres import is_postgres, show_postgres
from tacit.tables.spark import is_spark, show_spark
from tacit.tables.spill import LEAST_MEMORY, SpillFolder, spill_folder
from tacit.tables.text_format import AS_USUAL, TextFormat

if TYPE_CHECKING:
    from tacit.tables.workers import Work

_CSV = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_DUCKDB = (".duckdb", ".ddb", ".db")
_SQLITE = b"SQLite format 3\0"
MANY_FILES = """for many files give what DuckDB reads: duckdb.sql("FROM 'visits/*.parquet'")"""
_PATH_HELP = "a file is known by its ending, such as .parquet, .csv or .duckdb"
_KEPT = "kept"
_LOST: list[duckdb.DuckDBPyConnection] = []  # connections of the process that forked this one
CHANGED = "the file has changed since it was opened; open it again"


OPTIMIZERS = frozenset(
    {"expression_rewriter", "unused_columns", "column_lifetime", "cte_inlining", "in_clause"}
)
"""What DuckDB may do to a query: only what follows from the query alone.

All else is off, whatever a new version adds.  Some of it trusts what was noted about many rows (the
least and the greatest value, how many are NULL), and such notes may be wrong, or leave NaN out; and
some could move a computation that may fail out of its TRY.
"""

FileStamps = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RowWindow:
    """Which rows of a source count: those whose code in one column lies between public ends."""

    column: str
    condition: str  # as SQL, on the normal form
    type: Type
    low: int | None  # the least and the greatest code, where they leave anything out that
    high: int | None  # the column's bounds would not change


@dataclass(slots=True)
class Source:
    """A connection on which the view ``source`` shows the raw rows."""

    connection: duckdb.DuckDBPyConnection
    spill: SpillFolder
    memory_limit: int
    name: str = "table"
    columns: dict[str, str] = field(default_factory=dict)  # names and types as the source has them
    typed: bool = True  # False if all columns are text, whose types the schema declares
    untyped: frozenset[str] = frozenset()  # the columns of a typed source that are such text
    hints: dict[str, str] = field(default_factory=dict)  # what would let a column be declared
    stored: bool = False  # in a DuckDB file, whose collation and encoding DuckDB does not check
    files: tuple[Path, ...] = ()
    read_as: str = ""  # the kind of file and, if it has several tables, which one
    sidecar: Path | None = None
    mending: Callable[[Source], object] | None = None
    # How a text file is written, which its schema declares; all other sources have types.
    written: TextFormat = AS_USUAL
    says_how: Callable[[Source], TextFormat] = lambda _: AS_USUAL
    # How a text file is shown with a column of this name that has the lines, for its steward.
    numbered: Callable[[Source, str], Mended] | None = None
    kept: bool = False  # whether the rows of a stream are in a table here
    rows: int | None = None  # how many there are, where a column can be read without the others
    window: RowWindow | None = None  # if the table grows, up to where it is read
    # How to read the rows of some columns, if they are read only when the schema is known: once,
    # unless `by_column`.
    unfetched: Callable[[Collection[str]], None] | None = None
    # How workers make shards of the rows where they are, if there are such workers.
    spread: Callable[[Work], list[dict[str, str]]] | None = None
    at_close: Callable[[], None] = lambda: None
    shown: str = ""  # what the view shows, if it can be shown again
    process: int = field(default_factory=os.getpid)

    def is_typed(self, column: str) -> bool:
        """Whether the source itself says what type a column has."""
        return self.typed and column not in self.untyped

    def stamp(self) -> FileStamps:
        """The times and sizes of the files, which must not change as long as they are read."""
        return tuple(
            (status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino)
            for status in (path.stat() for path in self.files)
        )

    def identity(self) -> list[str | None] | None:
        """How the files are read, and the SHA-256 of each; None if there are no files.

        Two sources with the same identity hold the same rows.
        """
        if not self.files:
            return None
        logs = [path.with_name(f"{path.name}.wal") for path in self.files if self.stored]
        return [self.read_as, *(_digest(path) for path in (*self.files, *logs))]

    def hold(self, ready: frames.Ready) -> None:
        """Make the view show these rows; those of a stream are read now, once."""
        described: dict[str, str] = {}
        if not ready.is_empty:
            if ready.once:
                self.connection.register("stream", ready.frame)
                self.keep_rows("stream")
                self.connection.unregister("stream")
            else:
                self.connection.register("source", ready.frame)
            described = _described(self.connection)
        self.columns = {
            name: ready.types.get(name) or described.get(name, UNREADABLE) for name in ready.names
        }
        self.untyped = ready.untyped

    def pass_on(self, stream: object) -> None:
        """Make the view show the rows of a stream as they come, to one query and never again."""
        self.hold(replace(frames.ready_stream(stream), once=False))

    def keep(self, stream: object) -> None:
        """Make the view show the rows of an object with ``__arrow_c_stream__``, read once."""
        self.hold(frames.ready_stream(stream))

    def keep_rows(self, view: str) -> None:
        """Make the view show the rows of another one, which can be read only once."""
        self.connection.execute(f"CREATE TABLE {_KEPT} AS SELECT * FROM {view}")
        self.connection.execute(f"CREATE VIEW source AS SELECT * FROM {_KEPT}")
        self.kept = True

    def keep_parsed(self) -> None:
        """Parse a text file once, for a steward, who asks many questions of it."""
        self.connection.execute(f"CREATE TABLE {_KEPT} AS SELECT * FROM source")
        self.connection.execute(f"CREATE OR REPLACE VIEW source AS SELECT * FROM {_KEPT}")
        self.kept = True

    @property
    def quickest(self) -> str:
        """What shows the rows of the view, for one query after another.

        A query of a view is planned with all its columns, and one of a table with those it names.
        """
        return _KEPT if self.kept else "source"

    @property
    def by_column(self) -> bool:
        """Whether a column can be read later, and without the others."""
        return self.rows is not None

    def fetch(self, names: Collection[str]) -> None:
        """Make the view show the rows of these columns, and of no others if it is `by_column`."""
        fetch = self.unfetched
        if not self.by_column:
            self.unfetched = None
        if fetch is not None:
            fetch(names)

    def forget(self) -> None:
        """Drop the rows of a stream, once an engine holds them."""
        if self.kept:
            self.connection.execute(f"DROP VIEW source; DROP TABLE {_KEPT}")
            self.kept = False

    def show(self, rows: str) -> None:
        """Make the view show these rows."""
        self.connection.execute(f"CREATE OR REPLACE VIEW source AS SELECT * FROM {rows}")
        self.shown = rows

    def limit_memory(self, memory: int) -> None:
        """Let DuckDB take no more than this from now on; what needs more goes to the disk."""
        self.memory_limit = memory
        self.connection.execute(f"SET memory_limit = {_mebibytes(memory)}")

    def connect_after_fork(self) -> None:
        """Use a connection of our own in a forked process, where the old one has lost its threads.

        The old one is left as it is: closing it would wait for them.
        """
        if self.process != os.getpid():
            self.process = os.getpid()
            _LOST.append(self.connection)
            folder = self.spill.path / f"of-{self.process}"
            folder.mkdir(0o700)
            self.connection = _connection(self.memory_limit, folder)
            self.connection.execute(f"CREATE VIEW source AS SELECT * FROM {self.shown}")

    def mend(self) -> bool:
        """Rewrite a file in which DuckDB found a value that it cannot read.  Works only once."""
        mending, self.mending = self.mending, None
        if mending is None:
            return False
        mending(self)
        return True

    def close(self) -> None:
        """Release the connection and its temporary files."""
        self.at_close()
        self.connection.close()
        self.spill.close()


def _digest(path: Path) -> str | None:
    """The SHA-256 of a file, or None if there is no such file."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source: its name in messages, how it is recognised, and how its rows are shown.

    ``accepts`` may raise an error of its own for something that is meant to be such a source but
    cannot be opened.  ``show`` gets the `Source` to fill, what was accepted, and the name of the
    table in it, if one was given.  Its errors are withheld, unless they are ours.
    """

    called: str
    accepts: Callable[[object], bool]
    show: Callable[[Source, Any, str | None], None]
    has_tables: bool = False


def register(kind: SourceKind) -> None:
    """Let ``tacit.open`` take another kind of source, which is tried before the known ones."""
    _KINDS.insert(0, kind)


def kinds() -> str:
    """What can be opened, in words."""
    return ", ".join(kind.called for kind in _KINDS)


def open_source(
    source: object,
    *,
    table: str | None,
    memory_limit: int,
    folder: str | Path | None = None,
    written: Callable[[Source], TextFormat] | None = None,
    guard: Any = withheld,
) -> Source:
    """Open a source for reading; ``table`` names a table in a source that has several.

    What does not fit into memory goes into a folder of its own under ``folder``.  ``written`` says
    how a text file is written; it is asked when the file's name and sidecar are known.  ``guard``
    says what becomes of the engine's messages: they are withheld, or `told` to a steward.
    """
    kind = next((kind for kind in _KINDS if kind.accepts(source)), None)
    if kind is None:
        raise BadParameter("source", kind_of(source), f"give {kinds()}")
    if table is not None and not kind.has_tables:
        raise BadParameter("table", table, f"{kind.called} holds only one table: leave it out")
    spill = spill_folder(folder)
    opened = Source(_connection(memory_limit, spill.path), spill, memory_limit)
    if written is not None:
        opened.says_how = written
    try:
        guard("opening the table")(kind.show)(opened, source, table)
    except BaseException:
        opened.close()
        raise
    return opened


def worker_source(memory_limit: int) -> Source:
    """A source without rows yet, for a worker beside others: it takes one thread."""
    spill = spill_folder(None)
    opened = Source(_connection(memory_limit, spill.path), spill, memory_limit)
    opened.connection.execute("SET threads = 1")
    return opened


# Files


def _is_file(source: object) -> bool:
    """Whether this is the path of a file; one that cannot be opened is refused."""
    if not isinstance(source, str | Path):
        return False
    path, said = Path(source), str(source)
    if "://" in said:
        raise BadParameter("source", said, f"no such address can be read: give {kinds()}")
    if not isfile(path):  # unlike Path.is_file, it never fails, even if the path is far too long
        if isdir(path):
            raise BadParameter("source", said, f"it is a folder: {MANY_FILES}")
        hint = MANY_FILES if set("*?[") & set(said) else "check its path"
        raise BadParameter("source", said, f"there is no such file: {hint}")
    if _is_sqlite(path):
        hint = "sqlite3 -csv -header FILE 'SELECT * FROM visits' > visits.csv"
        raise BadParameter("source", said, f"it is a SQLite file: write a table as CSV, by {hint}")
    if _ending(path) not in (*_CSV, *_PARQUET, *_DUCKDB):
        raise BadParameter("source", said, f"give {kinds()}; {_PATH_HELP}")
    return True


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # whoever reads it says why


def _ending(path: Path) -> str:
    ending = "".join(path.suffixes[-2:]).lower()
    return ending if ending in _CSV else path.suffix.lower()


def _file(opened: Source, source: str | Path, table: str | None) -> None:
    path = Path(source)
    known = _ending(path)
    if table is not None and known not in _DUCKDB:
        raise BadParameter("table", table, "only a DuckDB file holds several tables: leave it out")
    opened.files = (path,)  # and for Parquet the file itself, whatever has its name later
    opened.name = path.name[: -len(known)]
    opened.read_as = known
    if known in _DUCKDB:
        opened.name = _attached(opened.connection, path, table)
        opened.stored = True
        opened.read_as = f"{known} {opened.name}"
        opened.columns = _described(opened.connection)
    elif known in _PARQUET:
        _parquet(opened, path)
    else:
        opened.sidecar = path.with_name(f"{opened.name}.toml")
        opened.typed = False
        opened.written = opened.says_how(opened)
        delimited.show(opened, path, _CSV[known], compressed=known.endswith(".gz"))
    opened.sidecar = path.with_name(f"{opened.name}.toml")


def _parquet(opened: Source, path: Path) -> None:
    bound = opened.spill.bound(path)
    file = parquet.ParquetFile(bound, path.name)
    refuse_clashing_names(file.names)  # DuckDB would call the second of them pid_1

    copies: list[str] = []

    def show(write: Callable[[Path], None]) -> None:
        handle, name = mkstemp(dir=opened.spill.path)
        os.close(handle)
        write(Path(name))
        copies.append(opened.spill.hidden(Path(name)))
        opened.show(f"read_parquet({exact_path(copies[-1])}, {AS_IT_IS})")
        for earlier in copies[:-1]:
            copies.remove(earlier)
            opened.spill.forget(earlier)

    def fetch(names: Collection[str]) -> None:
        if names:
            show(partial(file.write_columns, names))
        else:  # rows without columns, which Parquet does not have
            opened.show(f"range({file.rows})")

    show(file.write_types)
    opened.columns = (
        _described(opened.connection) | file.kinds | dict.fromkeys(file.unreadable, UNREADABLE)
    )
    opened.connection.execute("DROP VIEW source")  # which has no rows, until some are fetched
    opened.files = (bound,)
    opened.rows = file.rows
    opened.unfetched = fetch


def _attached(connection: duckdb.DuckDBPyConnection, path: Path, table: str | None) -> str:
    connection.execute(f"ATTACH {text(str(path.absolute()))} AS file (READ_ONLY)")
    kinds: dict[str, str] = dict(
        connection.execute(
            "SELECT table_name, table_type FROM information_schema.tables "
            "WHERE table_catalog = 'file' AND table_schema = 'main' ORDER BY table_name"
        ).fetchall()
    )
    found = list(kinds)
    if table is None and len(found) != 1:
        raise BadParameter("table", table, f"name one of its tables: {', '.join(found[:20])}")
    name = found[0] if table is None else table
    if name not in found:
        raise BadParameter("table", table, f"it must be one of {', '.join(found[:20])}")
    if kinds[name] != "BASE TABLE":
        # What it computes may fail on a row, and may mix the rows of different people.
        raise BadParameter("table", name, "it is a view: store its rows as a table")
    connection.execute(f"CREATE VIEW source AS SELECT * FROM file.main.{quoted(name)}")
    return name


def _connection(memory_limit: int, spill: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection without downloads and without a progress bar, which would show sizes."""
    connection = duckdb.connect(
        ":memory:",
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False},
    )
    connection.execute("SET enable_progress_bar = false")
    # Otherwise the values of an object column decide its type, and one row could decide whether the
    # table opens.
    connection.execute("SET pandas_analyze_sample = 0")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(arrow_chunks.SETTINGS)
    connection.execute("SET enable_external_file_cache = false")  # the paths of copies come again
    found = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    others = ", ".join(name for (name,) in found if name not in OPTIMIZERS)
    connection.execute(f"SET disabled_optimizers = {text(others)}")
    connection.execute(f"SET temp_directory = {text(str(spill))}")
    connection.execute(f"SET memory_limit = {_mebibytes(memory_limit)}")
    return connection


def _mebibytes(memory: int) -> str:
    return text(f"{max(memory, LEAST_MEMORY) // 2**20}MiB")


def _described(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    described = connection.execute("DESCRIBE source").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


def unchanged(source: Source, stamp: FileStamps) -> None:
    """Refuse a file that has changed: the promise is about the data as they were opened."""
    if source.stamp() != stamp:
        raise EngineFailed(CHANGED)


_KINDS = [
    SourceKind("a postgresql:// URL", is_postgres, show_postgres, has_tables=True),
    SourceKind("a Parquet, CSV, TSV or DuckDB file", _is_file, _file, has_tables=True),
    SourceKind("a Spark DataFrame", is_spark, show_spark),
    SourceKind(
        "a pandas, polars or Arrow table",
        frames.is_frame,
        lambda opened, frame, _: opened.hold(frames.ready(frame)),
    ),
    SourceKind(
        "anything that has __arrow_c_stream__",
        frames.is_stream,
        lambda opened, stream, _: opened.keep(stream),
    ),
]
