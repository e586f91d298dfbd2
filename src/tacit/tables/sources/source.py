"""What every source is: raw rows, which DuckDB shows as ``source``, and what is known about them.

There is a class for each kind of source.  It says which objects it ``accepts``, finds the columns
in ``show``, and makes their rows visible, at the latest in ``fetch``.  Nothing about a source is
guessed from its values, and no value in it decides whether it can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import file_digest
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import duckdb

from tacit.errors import BadParameter, EngineFailed
from tacit.tables.schema.codes import Type
from tacit.tables.schema.declarations import text
from tacit.tables.schema.text_format import AS_USUAL, TextFormat
from tacit.tables.sources import arrow_chunks
from tacit.tables.sources.spill import LEAST_MEMORY, spill_folder

if TYPE_CHECKING:
    from tacit.tables.encoded.shard_sets import Entry
    from tacit.tables.encoded.workers import Work
    from tacit.tables.sources.lines import Mended

_R = TypeVar("_R")

CHANGED = "the file has changed since it was opened; open it again"
_SQLITE = b"SQLite format 3\0"

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


class Source:
    """Rows from somewhere, which the table or view ``source`` of a connection shows as they are."""

    called: ClassVar[str]
    """The kind of source, in messages."""
    has_tables: ClassVar[bool] = False
    """Whether the steward may name one of several tables."""
    typed: ClassVar[bool] = True
    """False if all columns are text, whose types the schema declares."""
    stored: ClassVar[bool] = False
    """Whether DuckDB stores it, which does not check the collation and encoding of its files."""
    has_workers: ClassVar[bool] = False
    """Whether there are workers that can make shards of the rows where they are."""

    def __init__(self, memory_limit: int, folder: str | Path | None = None) -> None:
        self.memory_limit = memory_limit
        self.spill = spill_folder(folder)
        self.connection = connected(memory_limit, self.spill.path)
        self.name = "table"
        self.columns: dict[str, str] = {}  # names and types as the source has them
        self.untyped: frozenset[str] = frozenset()  # columns of a typed source that are any text
        self.hints: dict[str, str] = {}  # what would let a column be declared
        self.files: tuple[Path, ...] = ()
        self.read_as = ""  # the kind of file and, if it has several tables, which one
        self.sidecar: Path | None = None  # where its schema would lie
        self.written = AS_USUAL  # of a text file, as its schema declares
        self.window: RowWindow | None = None  # if the table grows, up to where it is read
        self.rows: int | None = None  # how many, where a column can be read without the others
        self._kept = False  # whether ``source`` is a table, and no view

    # What a kind of source does

    @classmethod
    def accepts(cls, given: object) -> bool:
        """Whether this is such a source.

        It may raise an error for something that is meant to be one but cannot be opened.
        """
        raise NotImplementedError

    def show(self, given: Any, table: str | None) -> None:
        """Find the columns of what was accepted.  Errors are withheld, unless they are ours.

        ``table`` is the name of one in it, if the steward gave one.
        """
        raise NotImplementedError

    def describe(self, how: Callable[[Source], TextFormat]) -> None:
        """Ask how a text file is written, once its name and sidecar are known."""

    def fetch(self, names: Collection[str]) -> None:
        """Show the rows of these columns, if they are read only when the schema is known."""

    def forget(self) -> None:
        """Drop rows that are kept here, once an engine holds them."""
        if self._kept:
            self.connection.execute("DROP TABLE source")
            self._kept = False

    def spread(self, work: Work) -> list[Entry]:
        """Let workers make shards of the rows, if there are any workers."""
        raise NotImplementedError

    def with_lines(self, line: str) -> Mended | None:
        """Show the records of a text file with a column of their lines; None if it is no such file.

        Privacy: for its steward alone.
        """
        return None

    def reading(self, read: Callable[[], _R]) -> _R:
        """Read the rows that are shown."""
        return read()

    def close(self) -> None:
        """Release the connection and its temporary files."""
        self.connection.close()
        self.spill.close()

    # What is known about it

    def is_typed(self, column: str) -> bool:
        """Whether the source itself says what type a column has."""
        return self.typed and column not in self.untyped

    def described(self) -> dict[str, str]:
        """The columns that are shown, with the types that DuckDB gives them."""
        rows = self.connection.execute("DESCRIBE source").fetchall()
        return {str(row[0]): str(row[1]) for row in rows}

    def stamp(self) -> FileStamps:
        """The times and sizes of the files, which must not change as long as they are read."""
        return tuple(
            (status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino)
            for status in (path.stat() for path in self.files)
        )

    def refuse_changed(self, stamp: FileStamps) -> None:
        """Refuse a file that has changed: the promise is about the data as they were opened."""
        if self.stamp() != stamp:
            raise EngineFailed(CHANGED)

    def identity(self) -> list[str | None] | None:
        """How the files are read, and the SHA-256 of each; None if there are no files.

        Two sources with the same identity hold the same rows.
        """
        return [self.read_as, *map(digest, self.files)] if self.files else None

    # For the kinds

    def show_rows(self, rows: str) -> None:
        """Make a view that shows these rows."""
        self.connection.execute(f"CREATE OR REPLACE VIEW source AS SELECT * FROM {rows}")

    def keep_rows(self, rows: str) -> None:
        """Make a table of these rows: a query of it is planned with the columns that it names."""
        self.connection.execute(f"CREATE TABLE source AS SELECT * FROM {rows}")
        self._kept = True

    def limit_memory(self, memory: int) -> None:
        """Let DuckDB take no more than this from now on; what needs more goes to the disk."""
        self.memory_limit = memory
        self.connection.execute(f"SET memory_limit = {_mebibytes(memory)}")


class FileSource(Source):
    """A file, whose name says of which kind it is."""

    endings: ClassVar[tuple[str, ...]]

    @classmethod
    def accepts(cls, given: object) -> bool:
        """Whether this is the path of a file with such an ending."""
        return (
            isinstance(given, str | Path)
            and "://" not in str(given)  # which is an address
            and cls.ending(Path(given)) is not None
            and isfile(given)  # unlike Path.is_file, it never fails, even if the path is too long
            and not is_sqlite(Path(given))
        )

    @classmethod
    def ending(cls, path: Path) -> str | None:
        """Which of the endings a file has."""
        known = path.stem and (path.suffix.lower(), "".join(path.suffixes[-2:]).lower())
        return next((ending for ending in cls.endings if ending in known), None)

    def show(self, given: Any, table: str | None) -> None:
        """Find the columns of a file."""
        if table is not None and not self.has_tables:
            allowed = "only a DuckDB file holds several tables: leave it out"
            raise BadParameter("table", table, allowed)
        path, ending = Path(given), self.ending(Path(given))
        assert ending is not None
        self.files, self.read_as = (path,), ending
        self.name = path.name[: -len(ending)]
        self.show_file(path, table)
        self.sidecar = path.with_name(f"{self.name}.toml")

    def show_file(self, path: Path, table: str | None) -> None:
        """The same, when its name is known."""
        raise NotImplementedError


def is_sqlite(path: Path) -> bool:
    """Whether this is a file of SQLite, which may have the ending of another database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # whoever reads it says why


def digest(path: Path) -> str | None:
    """The SHA-256 of a file, or None if there is no such file."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def connected(memory_limit: int, spill: Path) -> duckdb.DuckDBPyConnection:
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
