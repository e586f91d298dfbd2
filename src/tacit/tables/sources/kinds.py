"""Opening a source: the kinds there are, and which of them takes what was given.

Any object that gives its rows as an Arrow stream (``__arrow_c_stream__``) can be opened as it is.
A source that is given by a name or an address is a kind of its own: a subclass of `ArrowSource`
(or of `Source`), which a file of its own passes to `register`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from os.path import isdir, isfile
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import duckdb

from tacit.arguments import kind_of
from tacit.errors import BadParameter
from tacit.failures import withheld
from tacit.tables.schema.codes import UNREADABLE
from tacit.tables.schema.declarations import (
    AS_IT_IS,
    exact_path,
    quoted,
    refuse_clashing_names,
    text,
)
from tacit.tables.schema.text_format import AS_USUAL, TextFormat
from tacit.tables.sources.delimited import DelimitedSource
from tacit.tables.sources.frames import ArrowSource, FrameSource
from tacit.tables.sources.parquet import ParquetFile
from tacit.tables.sources.postgres import PostgresSource
from tacit.tables.sources.source import FileSource, Source, connected, digest, is_sqlite
from tacit.tables.sources.spark import SparkSource

MANY_FILES = """for many files give what DuckDB reads: duckdb.sql("FROM 'visits/*.parquet'")"""
_PATH_HELP = "a file is known by its ending, such as .parquet, .csv or .duckdb"
_LOST: list[duckdb.DuckDBPyConnection] = []  # connections of the process that forked this one


class ParquetSource(FileSource):
    """A Parquet file, of which DuckDB is shown copies of the columns that are being read."""

    called = "a Parquet file"
    endings = (".parquet", ".pq")

    def show_file(self, path: Path, table: str | None) -> None:
        """Find the columns; the file is this very one, whatever has its name later."""
        bound = self.spill.bound(path)
        self._file = ParquetFile(bound, path.name)
        self._process = os.getpid()
        self._copy: str | None = None
        refuse_clashing_names(self._file.names)  # DuckDB would call the second of them pid_1
        self._show_copy(self._file.write_types)
        unreadable = dict.fromkeys(self._file.unreadable, UNREADABLE)
        self.columns = self.described() | self._file.kinds | unreadable
        self.connection.execute("DROP VIEW source")  # which has no rows, until some are fetched
        self.files = (bound,)
        self.rows = self._file.rows

    def fetch(self, names: Collection[str]) -> None:
        """Show the rows of these columns, and of no others."""
        self._connect_after_fork()
        if names:
            self._show_copy(partial(self._file.write_columns, names))
        else:  # rows without columns, which Parquet does not have
            self.show_rows(f"range({self.rows})")

    def _show_copy(self, write: Callable[[Path], None]) -> None:
        handle, name = mkstemp(dir=self.spill.path)
        os.close(handle)
        write(Path(name))
        earlier, self._copy = self._copy, self.spill.hidden(Path(name))
        self.show_rows(f"read_parquet({exact_path(self._copy)}, {AS_IT_IS})")
        if earlier is not None:
            self.spill.forget(earlier)

    def _connect_after_fork(self) -> None:
        """Use a connection of our own in a forked process, where the old one has lost its threads.

        The old one is left as it is: closing it would wait for them.
        """
        if self._process != os.getpid():
            self._process = os.getpid()
            _LOST.append(self.connection)
            folder = self.spill.path / f"of-{self._process}"
            folder.mkdir(0o700)
            self.connection = connected(self.memory_limit, folder)


class DuckDBSource(FileSource):
    """A table in a DuckDB file."""

    called = "a DuckDB file"
    endings = (".duckdb", ".ddb", ".db")
    has_tables = True
    stored = True

    def show_file(self, path: Path, table: str | None) -> None:
        """Find the table, and its columns."""
        run = self.connection.execute
        run(f"ATTACH {text(str(path.absolute()))} AS file (READ_ONLY)")
        kinds: dict[str, str] = dict(
            run(
                "SELECT table_name, table_type FROM information_schema.tables "
                "WHERE table_catalog = 'file' AND table_schema = 'main' ORDER BY table_name"
            ).fetchall()
        )
        found = list(kinds)
        if table is None and len(found) != 1:
            raise BadParameter("table", table, f"name one of its tables: {', '.join(found[:20])}")
        self.name = found[0] if table is None else table
        if self.name not in found:
            raise BadParameter("table", table, f"it must be one of {', '.join(found[:20])}")
        if kinds[self.name] != "BASE TABLE":
            # What it computes may fail on a row, and may mix the rows of different people.
            raise BadParameter("table", self.name, "it is a view: store its rows as a table")
        self.show_rows(f"file.main.{quoted(self.name)}")
        self.read_as = f"{self.read_as} {self.name}"
        self.columns = self.described()

    def identity(self) -> list[str | None] | None:
        """What is not in the file yet is in the log beside it."""
        logs = [path.with_name(f"{path.name}.wal") for path in self.files]
        return [self.read_as, *map(digest, (*self.files, *logs))]


_KINDS: list[type[Source]] = [
    PostgresSource,
    ParquetSource,
    DelimitedSource,
    DuckDBSource,
    SparkSource,
    FrameSource,
    ArrowSource,
]


def register(kind: type[Source]) -> None:
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
    written: Callable[[Source], TextFormat] = lambda _: AS_USUAL,
    guard: Any = withheld,
) -> Source:
    """Open a source for reading; ``table`` names a table in a source that has several.

    What does not fit into memory goes into a folder of its own under ``folder``.  ``written`` says
    how a text file is written; it is asked when the file's name and sidecar are known.  ``guard``
    says what becomes of the engine's messages: they are `withheld`, or `passed_on` to a steward.
    """
    kind = next((kind for kind in _KINDS if kind.accepts(source)), None)
    if kind is None:
        raise _refusal(source)
    if table is not None and not (kind.has_tables or issubclass(kind, FileSource)):
        raise BadParameter("table", table, f"{kind.called} holds only one table: leave it out")
    opened = kind(memory_limit, folder)

    def show() -> None:
        opened.show(source, table)
        opened.describe(written)

    try:
        guard("opening the table")(show)()
    except BaseException:
        opened.close()
        raise
    return opened


def _refusal(source: object) -> BadParameter:
    """Why something cannot be opened."""
    if not isinstance(source, str | Path):
        return BadParameter("source", kind_of(source), f"give {kinds()}")
    path, said = Path(source), str(source)
    if "://" in said:
        return BadParameter("source", said, f"no such address can be read: give {kinds()}")
    if isdir(path):
        return BadParameter("source", said, f"it is a folder: {MANY_FILES}")
    if not isfile(path):
        hint = MANY_FILES if set("*?[") & set(said) else "check its path"
        return BadParameter("source", said, f"there is no such file: {hint}")
    if is_sqlite(path):
        hint = "sqlite3 -csv -header FILE 'SELECT * FROM visits' > visits.csv"
        return BadParameter("source", said, f"it is a SQLite file: write a table as CSV, by {hint}")
    return BadParameter("source", said, f"give {kinds()}; {_PATH_HELP}")
