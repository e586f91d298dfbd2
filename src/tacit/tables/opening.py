"""Opening a table: reading its schema, checking it, and choosing an engine for its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from tacit.arguments import kind_of
from tacit.errors import BadParameter, EngineFailed
from tacit.failures import withheld
from tacit.numbers import as_given
from tacit.tables.encoded.fetching import (
    CodeSource,
    at_once,
    code_bytes,
    read_coded,
    read_columns,
)
from tacit.tables.encoded.growing import (
    GROWS_BY_HELP,
    appended,
    growing_column,
    label_place,
    window_of,
    written,
)
from tacit.tables.encoded.on_demand import ColumnsOnDemand
from tacit.tables.encoded.shard_sets import (
    MADE_BEFOREHAND,
    SHARDS_HELP,
    Binding,
    binding,
    cut_into_parts,
    find,
    finish,
    is_folder,
    new_set,
    noted_source,
    shards_folder,
    stamped,
    write,
)
from tacit.tables.encoded.shards import Shard
from tacit.tables.encoded.workers import MOST_ROWS, Work
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.engine.engine import Engine, Guarded, is_engine
from tacit.tables.language.prepared import checked_label
from tacit.tables.schema.schema import PERSON_HELP, Column, EachRow, Person, Schema
from tacit.tables.sources.declaring import SCHEMA_HELP, Declaring, given_schema
from tacit.tables.sources.frames import is_frame
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.normal_form import (
    bound_to,
    check_columns,
    code_ends,
    normal_form,
    raw_columns,
    raw_names,
)
from tacit.tables.sources.source import CHANGED, RowWindow, Source
from tacit.tables.sources.spark import is_spark
from tacit.tables.sources.spill import (
    FOLDER_HELP,
    LEAST_MEMORY,
    LIMIT_HELP,
    SPILL_HELP,
    table_limit,
)

FEWEST_BITMAPS = 16
"""If fewer bitmaps than this fit into memory beside the columns, the codes go to the disk."""


BYTES_WHILE_READ = 24
"""What a row takes for a moment while a column is read, or while people are placed."""

BYTES_OF_ROW = 64
"""What a row takes while its slot is found, beside 8 bytes a column."""

SHARDS_IN_MEMORY = 4
"""How many times over a shard that is being made must fit into memory."""

MOST_SHARDS = 256


@dataclass(frozen=True, slots=True)
class Storage:
    """How much memory a table may take, and where it goes if that is not enough."""

    memory: int
    shards: Path | None  # the steward's folder for its shards
    spill: Path | None  # a folder that goes when the table is open; None if it must not be used

    @property
    def folder(self) -> Path:
        """Where shards are written."""
        folder = self.shards or self.spill
        if folder is None:
            raise BadParameter(
                "spill",
                False,
                "the table does not fit into memory_limit, and must not be written to the disk: "
                "raise the limit, name a folder for its shards, or leave spill=False out",
            )
        return folder


def load(
    source: object,
    *,
    person: Person | None = None,
    name: str | None = None,
    schema: Schema | str | Path | None = None,
    table: str | None = None,
    memory_limit: int | str | None = None,
    spill_folder: str | Path | None = None,
    spill: bool = True,
    shards: str | Path | None = None,
    as_of: str | None = None,
    grows_by: str | None = None,
) -> Engine:
    """Open a table, or check an engine from another package.

    ``source`` is a Parquet, CSV, TSV or DuckDB file (``table`` names the table in it), a pandas,
    polars or Arrow table, a Spark DataFrame, or anything else that gives its rows as an Arrow
    stream (``__arrow_c_stream__``), which is read once.  ``person`` is the column that says whose
    row it is, or ``EACH_ROW``; it has no default.  ``name`` is what FROM calls the table; by
    default it is the file's name without its ending.  ``schema`` is a Schema, TOML text or the path
    of a TOML file; by default it is the file ``<name>.toml`` beside the data or, if there is none
    and the source has types, these types alone.  ``memory_limit`` is a number of bytes, or text
    such as "2GB", for the whole process; by default a quarter of the machine's memory.
    ``spill_folder`` is where a table goes that does not fit, as files that have no name once it is
    open; by default the folder that TACIT_SPILL_FOLDER names, or the system's for temporary files.
    With ``spill=False`` such a table is refused.  ``shards`` is a folder for the table's codes, in
    the clear: a file that is opened again with the same schema and ``as_of`` is not read again.
    ``grows_by`` is a column of dates, times or numbers: then only the rows up to ``as_of`` in it
    are read.  If ``source`` is a folder, it holds shards that `make_shards` made, under this very
    name, person, schema and label.

    An engine brings its own schema, and with it ``person`` and ``name``: give nothing else.

    Privacy: names and types are checked, values never are.
    """
    if not is_frame(source) and not is_spark(source) and is_engine(source):
        kept = memory_limit, spill_folder, None if spill else spill, shards
        return _own_engine(source, (person, name, schema, table, *kept, grows_by))
    check_kinds(person=person, schema=schema, name=name, table=table, grows_by=grows_by)
    check_kinds(memory_limit=memory_limit, spill_folder=spill_folder, spill=spill, shards=shards)
    assert person is not None
    limit, label = table_limit(memory_limit), checked_label(as_of)
    if is_folder(source):
        _leave_out(table=table, shards=shards, spill_folder=spill_folder)
        declared = given_schema(schema, name, person)
        return _made_beforehand(str(source), declared, limit, label, grows_by)
    folder = None if shards is None else shards_folder(shards)
    declaring = Declaring(schema, name, person)
    opened = open_source(
        source, table=table, memory_limit=limit, folder=spill_folder, written=declaring.written
    )
    try:
        declared = bound_to(opened, declaring.schema(opened))
        _limit_rows(opened, declared, grows_by, None, label)
        storage = Storage(limit, folder, opened.spill.path if spill else None)
        return _engine(opened, declared, partial(_read, opened, declared, storage, label))
    except BaseException:
        opened.close()
        raise


_KINDS: dict[str, tuple[Any, str]] = {
    "person": (str | EachRow, PERSON_HELP),
    "schema": (Schema | str | Path | None, SCHEMA_HELP),
    "name": (str | None, "give the table's name as text"),
    "table": (str | None, "name a table of a DuckDB file or of PostgreSQL"),
    "memory_limit": (int | float | str | None, LIMIT_HELP),
    "spill_folder": (str | Path | None, FOLDER_HELP),
    "spill": (bool, SPILL_HELP),
    "shards": (str | Path | None, SHARDS_HELP),
    "grows_by": (str | None, GROWS_BY_HELP),
}


def check_kinds(**given: object) -> None:
    """Refuse a parameter of another kind."""
    for parameter, value in given.items():
        kinds, allowed = _KINDS[parameter]
        if not isinstance(value, kinds):
            raise BadParameter(parameter, kind_of(value), allowed)


def _limit_rows(
    source: Source, schema: Schema, grows_by: str | None, after: str | None, until: str | None
) -> None:
    """Let only the rows after one label and up to another count, if the table grows."""
    if grows_by is not None:
        source.window = _window(schema, grows_by, after, until)


def _window(schema: Schema, grows_by: str, after: str | None, until: str | None) -> RowWindow:
    column = growing_column(schema, grows_by)
    label_place(column, until)
    assert until is not None
    return window_of(column, after, until)


def load_more(
    engine: Engine,
    source: object,
    *,
    grows_by: str,
    after: str,
    until: str,
    table: str | None = None,
    memory_limit: int | str | None = None,
    spill_folder: str | Path | None = None,
    spill: bool = True,
    shards: str | Path | None = None,
) -> Engine:
    """An engine for the rows of another, which stays as it is, and the rows between two labels.

    Privacy: which rows are in it follows from public labels and from each row alone.
    """
    limit, schema = table_limit(memory_limit), engine.schema
    folder = None if shards is None else shards_folder(shards)
    opened = open_source(
        source,
        table=table,
        memory_limit=limit,
        folder=spill_folder,
        written=lambda _: schema.written,
    )
    try:
        _limit_rows(opened, schema, grows_by, after, until)
        storage = Storage(limit, folder, opened.spill.path if spill else None)
        return _engine(opened, schema, partial(_more, engine, opened, storage))
    finally:
        opened.close()


def _more(engine: Engine, source: Source, storage: Storage) -> Engine:
    """Join the rows of a source to those of an engine, in memory or on the disk."""
    schema, limit = engine.schema, storage.memory
    assert isinstance(engine, BitmapEngine)
    held = engine.held()
    most = max(limit, LEAST_MEMORY) // _while_made(1, schema)
    if source.has_workers and storage.shards is not None:
        for piece in _spread(source, schema, limit, storage.shards):
            held = written(schema, held, piece, most, storage.shards)
        return BitmapEngine(schema, held, limit=limit)
    there = sum(int(np.bitwise_count(shard.layout.filled).sum()) for shard in held)
    stamp = source.stamp()
    source.fetch(raw_names(source, schema.columns))
    rows = count_rows(source, schema)
    if storage.shards is None and _fits(rows + there, source, schema, limit):
        new = reduce(partial(appended, schema), [shard.rows for shard in held])
        shard = Shard.of(schema, appended(schema, new, read_all(source, schema, rows).rows))
        source.refuse_changed(stamp)
        return BitmapEngine(schema, [shard], limit=max(limit - shard.nbytes, 0))
    folder = storage.folder
    scratch = Path(mkdtemp(dir=source.spill.path)) / "parts"
    for piece in cut_up(source, schema, rows, _parts(rows, source, schema, limit), scratch):
        held = written(schema, held, piece, most, folder)
    source.refuse_changed(stamp)
    return BitmapEngine(schema, held, limit=limit)


def _own_engine(engine: object, given: Sequence[object]) -> Engine:
    """An engine that the caller made, guarded unless it is one of ours."""
    if any(value is not None for value in given):
        raise BadParameter(
            "source",
            kind_of(engine),
            "an engine has its own schema: give nothing else with it, neither "
            "person, name, schema, table, memory_limit, spill_folder, spill, shards nor grows_by",
        )
    if isinstance(engine, BitmapEngine):
        return engine
    return Guarded(engine)


@withheld("loading the table")
def _engine(source: Source, schema: Schema, read: Callable[[], Engine]) -> Engine:
    check_columns(source, schema)
    return source.reading(read)


def _read(source: Source, schema: Schema, storage: Storage, as_of: str | None) -> Engine:
    """Column by column, where a source can be read so and its rows stay as they are."""
    rows = source.rows if storage.shards is None and source.window is None else None
    if rows is not None and _fits(rows, source, schema, storage.memory):
        return hold_on_demand(source, schema, storage.memory, rows)
    return _sharded(source, schema, storage, as_of)


def _fits(rows: int, source: Source, schema: Schema, limit: int) -> bool:
    """Whether the codes of so many rows fit, with some bitmaps and while a column is read."""
    reading = rows * BYTES_WHILE_READ
    return _bytes_of(rows, source, schema) + reading + FEWEST_BITMAPS * rows // 8 <= limit


def _bytes_of(rows: int, source: Source, schema: Schema) -> int:
    """What the codes of so many rows take at most; how long texts are is not looked at."""
    ends = code_ends(source, schema)
    widths = [code_bytes(ends.get(column.name, (0, rows))) for column in schema.columns]
    return rows * sum(widths)


# Shards


def _sharded(source: Source, schema: Schema, storage: Storage, as_of: str | None) -> Engine:
    """The shards of this very source that lie in their folder, or new ones.

    Without anything to bind them to, what fits into memory stays there.
    """
    stamp, stamps, identity, bound = source.stamp(), None, None, None
    if storage.shards is not None:
        stamps = None if source.stored else stamped(source.files)
        identity = noted_source(storage.shards, source.read_as, stamps) if stamps else None
        identity = identity or source.identity()
        bound = None if identity is None else binding(schema, identity, as_of, source.window)
    shards = None if bound is None or storage.shards is None else find(storage.shards, bound)
    if source.has_workers and storage.shards is not None:
        shards = _spread(source, schema, storage.memory, storage.shards)
    if shards is None:
        source.fetch(raw_names(source, schema.columns))
        rows = count_rows(source, schema)
        if bound is None and _fits(rows, source, schema, storage.memory):
            return hold(source, schema, storage.memory, rows)
        parts = _parts(rows, source, schema, storage.memory)

        def made(scratch: Path) -> Iterator[Shard]:
            yield from cut_up(source, schema, rows, parts, scratch)
            source.refuse_changed(stamp)  # before the manifest says that it is this source
            if bound is None:
                return
            if source.identity() != identity or (stamps and stamped(source.files) != stamps):
                raise EngineFailed(CHANGED)

        with new_set(storage.folder) as path:
            shards = write(path, made(path / "parts"), bound, stamps)
    source.close()
    return BitmapEngine(schema, shards, limit=storage.memory)


def _spread(
    source: Source, schema: Schema, limit: int, folder: Path, bound: Binding | None = None
) -> list[Shard]:
    """Shards that workers make of the rows, where they are."""
    with new_set(folder) as path:
        most = max(limit, LEAST_MEMORY) // _while_made(1, schema)
        work = Work(schema, source.window, path, most_rows=min(max(most, 1), MOST_ROWS))
        return finish(path, source.spread(work), bound)


# Shards that are made beforehand, by whoever may read the source


def make_shards(
    source: object,
    *,
    person: Person,
    name: str,
    schema: Schema | str | Path,
    shards: str | Path,
    as_of: str,
    grows_by: str | None = None,
    memory_limit: int | str | None = None,
) -> None:
    """Let Spark make the shards of a table, which are then opened by their folder.

    They are bound to the name, the person, the schema and the label.
    """
    limit, label, folder = table_limit(memory_limit), checked_label(as_of), shards_folder(shards)
    if not is_spark(source):
        raise BadParameter("source", kind_of(source), "give a Spark DataFrame")
    declared = given_schema(schema, name, person)
    opened = open_source(source, table=None, memory_limit=limit)
    try:
        if grows_by is not None:
            opened.window = _window(declared, grows_by, None, label)
        bound = binding(declared, MADE_BEFOREHAND, label, opened.window)
        if find(folder, bound) is not None:
            raise BadParameter("as_of", label, f"there are such shards of {name}: give a new label")
        withheld("making the shards")(_made_now)(opened, declared, limit, folder, bound)
    finally:
        opened.close()


def _made_now(source: Source, schema: Schema, limit: int, folder: Path, bound: Binding) -> None:
    check_columns(source, schema)
    _spread(source, schema, limit, folder, bound)


def _made_beforehand(
    folder: str, schema: Schema, limit: int, as_of: str | None, grows_by: str | None
) -> Engine:
    window = None if grows_by is None else _window(schema, grows_by, None, as_of)
    bound = binding(schema, MADE_BEFOREHAND, as_of, window)
    found = find(Path(folder), bound)
    if found is None:
        made = ", ".join(f"{package} {number}" for package, number in bound["made by"].items())
        raise BadParameter(
            "source",
            folder,
            f"this folder has no shards of {schema.name} for this person, schema, as_of and "
            f"grows_by that {made} made for you: `tacit shards make` makes them",
        )
    return BitmapEngine(schema, found, limit=limit)


def _leave_out(**given: object) -> None:
    for parameter, value in given.items():
        if value is not None:
            raise BadParameter(parameter, as_given(value), "shards need none: leave it out")


def _while_made(rows: int, schema: Schema) -> int:
    """The memory that a shard of so many rows takes while it is made, several times over."""
    return rows * (8 * len(schema.columns) + BYTES_OF_ROW) * SHARDS_IN_MEMORY


def _parts(rows: int, source: Source, schema: Schema, limit: int) -> int:
    """Into how many shards to cut a table, so that memory holds several while they are made."""
    if _fits(rows, source, schema, limit):
        return 1
    needed = _while_made(rows, schema)
    return min(max(-(-needed // max(limit, LEAST_MEMORY)), 2), MOST_SHARDS)


def cut_up(source: Source, schema: Schema, rows: int, parts: int, scratch: Path) -> Iterator[Shard]:
    """The people of a source in so many parts; a part without anybody is left out."""
    if parts == 1 or not rows:
        yield read_all(source, schema, rows)
        return
    form = normal_form(source, schema, _names(schema.columns))
    for columns, count in cut_into_parts(source.connection, schema, form, parts, scratch):
        yield read_coded(source.connection, schema, columns, count)


def count_rows(source: Source, schema: Schema) -> int:
    """How many rows the normal form has.  Privacy: this is secret."""
    query = f"SELECT count(*) FROM ({normal_form(source, schema, ())})"
    ((rows,),) = source.connection.execute(query).fetchall()
    return int(rows)


def hold(source: Source, schema: Schema, limit: int, rows: int | None = None) -> BitmapEngine:
    """Read all columns into memory, in one scan of the source unless there are very many."""
    shard = read_all(source, schema, count_rows(source, schema) if rows is None else rows)
    left = max(limit - shard.nbytes, 0)
    return BitmapEngine(schema, [shard], limit=left, release=source.close)


def hold_on_demand(source: Source, schema: Schema, limit: int, rows: int) -> BitmapEngine:
    """Read a column when a question first names it."""
    left = max(limit - _bytes_of(rows, source, schema), 0)
    reading = max(rows * BYTES_WHILE_READ, left // 2)  # what is left is shared with bitmaps
    source.limit_memory(reading)
    columns = ColumnsOnDemand(source, schema, rows)
    left = max(left - reading, 0)
    shard = Shard(columns.layout, columns)
    return BitmapEngine(schema, [shard], limit=left, release=source.close)


def read_all(source: Source, schema: Schema, rows: int) -> Shard:
    """All people of a source as one shard, in memory."""
    run, raw = source.connection.execute, "source"
    if len(schema.columns) > at_once(rows):
        run(f"CREATE OR REPLACE TABLE raw AS SELECT {raw_columns(source, schema)} FROM source")
        raw = "raw"
    form = partial(normal_form, source, schema, rows=raw)
    given = CodeSource(
        source.connection, lambda block: form(_names(block)), code_ends(source, schema)
    )
    columns = read_columns(given, schema, rows)
    run("DROP TABLE IF EXISTS raw")
    source.forget()
    return Shard.from_rows(schema, columns)


def _names(columns: Iterable[Column]) -> set[str]:
    return {column.name for column in columns}
