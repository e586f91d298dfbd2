"""Opening a source with DuckDB: files, DuckDB tables, and frames in memory.

Nothing about a source is guessed from its values.  CSV is read by fixed rules (a header line,
commas or tabs, double quotes), and a file that breaks them is not opened at all: a stray quote
could otherwise make one person's row swallow another's.
"""

from __future__ import annotations

import csv
import glob
import gzip
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

import duckdb

from tacit.errors import BadParameter, EngineFailed, SchemaMismatch
from tacit.tables.engine import withheld

_CSV = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_DUCKDB = (".duckdb", ".ddb", ".db")
_FRAMES = {"pandas": "DataFrame", "polars": "DataFrame LazyFrame", "pyarrow": "Table"}
_AS_IT_IS = "hive_partitioning = false"  # a folder named p=7 says nothing about a column p
_KNOWN = (
    "a Parquet, CSV, TSV or DuckDB file, or a pandas, polars or Arrow table",
    "give the path of an existing file with its usual ending",
)


Scratch = Callable[[], object]
"""Removes a connection's folder of temporary files; by itself if nobody else has done so."""


@dataclass(slots=True)
class Source:
    """A connection on which the view ``source`` shows the raw rows."""

    connection: duckdb.DuckDBPyConnection
    scratch: Scratch
    name: str
    columns: dict[str, str]  # as the source spells and types them
    typed: bool  # False if everything is text that the schema must read
    untyped: frozenset[str] = frozenset()  # of a typed source, the columns that are such text
    collated: bool = False
    files: tuple[Path, ...] = ()
    sidecar: Path | None = None

    def is_typed(self, column: str) -> bool:
        """Whether the source itself says what type a column has."""
        return self.typed and column not in self.untyped

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """What must stay as it is while the files are being read."""
        return tuple(
            (status.st_mtime_ns, status.st_size) for status in (path.stat() for path in self.files)
        )

    def close(self) -> None:
        """Release the connection and its temporary files."""
        self.connection.close()
        self.scratch()


def quoted(name: str) -> str:
    """A name for DuckDB, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text literal for DuckDB."""
    return "'" + value.replace("'", "''") + "'"


def open_source(source: object, *, table: str | None, memory_limit: int) -> Source:
    """Open a source for reading; ``table`` names the table inside a DuckDB file."""
    if isinstance(source, str | Path):
        return _file(Path(source), table, memory_limit)
    family = type(source).__module__.partition(".")[0]
    if type(source).__name__ not in _FRAMES.get(family, "").split():
        raise BadParameter("source", type(source).__name__, f"{_KNOWN[0]} can be opened")
    return _frame(source, family, memory_limit)


@withheld("opening the table")
def _frame(frame: Any, family: str, memory_limit: int) -> Source:
    if family == "polars":
        _refuse_objects(frame.collect_schema())
    connection, scratch = _connect(memory_limit)
    connection.register("source", frame)
    columns = _described(connection)
    untyped = frozenset[str]()
    if family == "pandas":  # object: any Python value may stand there, so it is read as text
        dtypes = zip(columns, frame.dtypes, strict=True)
        untyped = frozenset(name for name, dtype in dtypes if str(dtype) == "object")
    return Source(connection, scratch, "table", columns, typed=True, untyped=untyped)


def _refuse_objects(dtypes: Mapping[str, object]) -> None:
    for name, dtype in dtypes.items():
        if str(dtype) == "Object":
            raise SchemaMismatch(
                f"column {name!r} holds Python objects: cast it to a type, or drop it"
            )


def _file(path: Path, table: str | None, memory_limit: int) -> Source:
    ending = "".join(path.suffixes[-2:]).lower()
    known = ending if ending in _CSV else path.suffix.lower()
    if not isfile(path):  # unlike Path.is_file, total: a path may be far too long
        raise BadParameter("source", str(path), f"there is no such file; {_KNOWN[1]}")
    if known not in (*_CSV, *_PARQUET, *_DUCKDB):
        raise BadParameter("source", str(path), f"{_KNOWN[0]} can be opened; {_KNOWN[1]}")
    if table is not None and known not in _DUCKDB:
        raise BadParameter("table", table, "only a DuckDB file holds several tables")
    opened = _open_file(path, known, table, memory_limit)
    opened.files = (path,)
    return opened


@withheld("opening the file")
def _open_file(path: Path, known: str, table: str | None, memory_limit: int) -> Source:
    connection, scratch = _connect(memory_limit)
    stem = path.name[: -len(known)]
    sidecar = path.with_name(f"{stem}.toml")
    exact = text(glob.escape(str(path.absolute())))  # a name with [ or * is not a pattern
    if known in _DUCKDB:
        name = _attached(connection, path, table)
        sidecar = path.with_name(f"{name}.toml")
        columns = _described(connection)
        return Source(
            connection, scratch, name, columns, typed=True, collated=True, sidecar=sidecar
        )
    if known in _PARQUET:
        connection.execute(
            f"CREATE VIEW source AS SELECT * FROM read_parquet({exact}, {_AS_IT_IS})"
        )
        return Source(
            connection, scratch, stem, _described(connection), typed=True, sidecar=sidecar
        )
    compression = "gzip" if known.endswith(".gz") else "none"
    header = _header(path, _CSV[known], compression)
    declared = ", ".join(f"{text(name)}: 'VARCHAR'" for name in header)
    connection.execute(
        f"CREATE VIEW source AS SELECT * FROM read_csv({exact}, columns = {{{declared}}}, "
        f"delim = {text(_CSV[known])}, quote = '\"', escape = '\"', header = true, "
        "auto_detect = false, strict_mode = true, nullstr = '', "
        f"compression = '{compression}', {_AS_IT_IS})"
    )
    columns = dict.fromkeys(header, "VARCHAR")
    return Source(connection, scratch, stem, columns, typed=False, sidecar=sidecar)


def _header(path: Path, delimiter: str, compression: str) -> list[str]:
    """The names in the first line; names are public."""
    opener: Any = gzip.open if compression == "gzip" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
    folded = [name.casefold() for name in names]
    if not names or "" in folded or len(set(folded)) != len(folded):
        raise SchemaMismatch(
            f"{path.name} needs a header line with a name of its own for every column"
        )
    return names


def _attached(connection: duckdb.DuckDBPyConnection, path: Path, table: str | None) -> str:
    connection.execute(f"ATTACH {text(str(path.absolute()))} AS file (READ_ONLY)")
    found = [
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = 'file' "
            "AND table_schema = 'main' ORDER BY table_name"
        ).fetchall()
    ]
    if table is None and len(found) != 1:
        raise BadParameter("table", table, f"name one of the tables: {', '.join(found[:20])}")
    name = found[0] if table is None else table
    if name not in found:
        raise BadParameter("table", table, f"the file has these tables: {', '.join(found[:20])}")
    connection.execute(f"CREATE VIEW source AS SELECT * FROM file.main.{quoted(name)}")
    return name


def _connect(memory_limit: int) -> tuple[duckdb.DuckDBPyConnection, Scratch]:
    """A DuckDB of our own: no progress bar (it would show the size), no downloads."""
    connection = duckdb.connect(
        ":memory:",
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False},
    )
    folder = tempfile.mkdtemp(prefix="tacit-")  # readable by its owner only
    scratch = weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    connection.execute("SET enable_progress_bar = false")
    # Otherwise the values of an object column decide its type, and one person's row may decide
    # whether the table opens.
    connection.execute("SET pandas_analyze_sample = 0")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET temp_directory = {text(folder)}")
    connection.execute(f"SET memory_limit = '{max(memory_limit, 2**27) // 2**20}MiB'")
    return connection, scratch


def _described(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    described = connection.execute("DESCRIBE source").fetchall()
    return {str(row[0]): str(row[1]) for row in described}


def unchanged(source: Source, stamp: tuple[tuple[int, int], ...]) -> None:
    """A promise about a table is a promise about one table: it must not change under us."""
    if source.stamp() != stamp:
        raise EngineFailed("the file has changed since it was opened; open it again")
