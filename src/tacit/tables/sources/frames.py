"""pandas and polars frames, Arrow tables and any Arrow stream, made ready for DuckDB.

The type of a column, which is public, decides how it is read, and no value in it does.  Each column
is turned into something that DuckDB reads without fail: instants become the whole numbers they are
stored as, Python objects become text by ``str``, text that is not Unicode becomes NULL, and columns
of a type that cannot be declared are left out.

A frame or table is in memory, and a stream is read once, batch by batch.  A column of text is
checked first, so that one that is Unicode is not copied; what a text means does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.arguments import kind_of
from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables.schema.codes import DAY_INSTANTS, INSTANTS, UNREADABLE, is_unreadable
from tacit.tables.schema.declarations import refuse_clashing_names
from tacit.tables.sources.source import Source

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame LazyFrame", "pyarrow": "Table"}
_MOST_DIGITS = 38


@dataclass(slots=True)
class Ready:
    """Rows that DuckDB can read whatever their values are, and what it cannot know about them."""

    frame: Any
    names: list[str]
    types: dict[str, str]  # types with names of our own (see `codes`); the others are DuckDB's
    untyped: frozenset[str] = frozenset()  # columns that held Python objects of any kind
    once: bool = False  # a stream, which can be read only once

    @property
    def is_empty(self) -> bool:
        """Whether there is no column that DuckDB could read."""
        return len(self.types) == len(self.names) and all(map(is_unreadable, self.types.values()))


class ArrowSource(Source):
    """Anything that gives its rows as an Arrow stream, once."""

    called = "anything that has __arrow_c_stream__"

    @classmethod
    def accepts(cls, given: object) -> bool:
        """Whether it has an Arrow stream."""
        return is_stream(given)

    def show(self, given: Any, table: str | None) -> None:
        """Keep the rows of the stream."""
        self.keep(given)

    def keep(self, stream: object) -> None:
        """Show the rows of an object with ``__arrow_c_stream__``, which is read now, once."""
        self.hold(ready_stream(stream))

    def pass_on(self, stream: object) -> None:
        """Show the rows of a stream as they come, to one query and never again."""
        self.hold(replace(ready_stream(stream), once=False))

    def hold(self, ready: Ready) -> None:
        """Show these rows; those of a stream are read now."""
        described: dict[str, str] = {}
        if not ready.is_empty:
            if ready.once:
                self.connection.register("stream", ready.frame)
                self.keep_rows("stream")
                self.connection.unregister("stream")
            else:
                self.connection.register("source", ready.frame)
            described = self.described()
        self.columns = {
            name: ready.types.get(name) or described.get(name, UNREADABLE) for name in ready.names
        }
        self.untyped = ready.untyped


class FrameSource(ArrowSource):
    """A table in memory."""

    called = "a pandas, polars or Arrow table"

    @classmethod
    def accepts(cls, given: object) -> bool:
        """Whether it is such a table."""
        return is_frame(given)

    def show(self, given: Any, table: str | None) -> None:
        """Show its rows where they are."""
        self.hold(ready(given))


def is_frame(source: object) -> bool:
    """Whether this is a table in memory that can be opened."""
    family = type(source).__module__.partition(".")[0]
    return type(source).__name__ in FRAMES.get(family, "").split()


def ready(frame: Any) -> Ready:
    """Make a frame ready for DuckDB."""
    family = type(frame).__module__.partition(".")[0]
    make = {"pandas": _pandas, "polars": _polars, "pyarrow": ready_table}[family]
    return make(frame)


# Arrow tables


def ready_table(table: Any) -> Ready:
    """An Arrow table, column by column, without a copy where none is needed."""
    import pyarrow

    refuse_clashing_names(table.column_names)
    columns, types = {}, {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name], kind = ready_column(column)
        if kind is not None:
            types[name] = kind
    kept = {name: column for name, column in columns.items() if column is not None}
    return Ready(pyarrow.table(kept), table.column_names, types)


def ready_column(column: Any) -> tuple[Any, str | None]:
    """A column that DuckDB reads without fail, and its type if DuckDB cannot know that."""
    from pyarrow import types

    kind = column.type
    coded = types.is_dictionary(kind)
    if _is_text(kind.value_type if coded else kind):
        return _ready_text(column), None
    if coded:
        return ready_column(column.cast(kind.value_type))
    target, own = ready_type(kind)
    if target is None or column.type == target:
        return (None if target is None else column), own
    return column.cast(target, safe=not _is_decimal(target)), own


def _ready_text(column: Any) -> Any:
    """Text; what is not Unicode, which nothing else checks, is NULL."""
    import pyarrow

    if _column_is_unicode(column):
        return column
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pyarrow.chunked_array(map(_without_bad_text, column.chunks), column.type)


# Arrow streams


def is_stream(source: object) -> bool:
    """Whether this gives its rows as an Arrow stream, by Arrow's PyCapsule interface."""
    return hasattr(source, "__arrow_c_stream__")


def ready_stream(source: object) -> Ready:
    """The batches of a stream, each converted when it is read."""
    reader = _opened(source)
    refuse_clashing_names(reader.schema.names)
    import pyarrow

    targets, types = {}, {}
    for field in reader.schema:
        targets[field.name], own = ready_type(field.type)
        if own is not None:
            types[field.name] = own
    kept = {name: target for name, target in targets.items() if target is not None}
    schema = pyarrow.schema(list(kept.items()))

    def batches() -> Iterator[Any]:
        for batch in reader:
            columns = [_as(batch.column(name), target) for name, target in kept.items()]
            yield pyarrow.record_batch(columns, schema=schema)

    frame = pyarrow.RecordBatchReader.from_batches(schema, batches())
    return Ready(frame, reader.schema.names, types, once=True)


def _opened(source: object) -> Any:
    problem = "reading an Arrow stream needs pyarrow: pip install 'tacit[frames]'"
    try:
        import pyarrow

        problem = "its Arrow stream must consist of rows with named columns"
        return pyarrow.RecordBatchReader.from_stream(source)
    except Exception:  # its message may quote the data
        pass
    raise BadParameter("source", kind_of(source), problem)


def ready_type(kind: Any) -> tuple[Any, str | None]:
    """What a column of this type is cast to, or None if it cannot be read at all.

    With it comes the name of its type, if DuckDB cannot know that.
    """
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(kind):
        return ready_type(kind.value_type)
    if types.is_float16(kind):
        return pyarrow.float32(), None
    if types.is_timestamp(kind):
        return pyarrow.int64(), f"{INSTANTS}({kind.unit})"
    if types.is_date64(kind):
        return pyarrow.int64(), f"{DAY_INSTANTS}(ms)"
    if _is_decimal(kind):  # DuckDB would read a value with more digits than its type as anything
        return pyarrow.decimal128(_MOST_DIGITS, kind.scale), None
    number = types.is_integer(kind) or types.is_floating(kind)
    uuid = str(kind) in ("uuid", "extension<arrow.uuid>")
    if number or uuid or _is_text(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return kind, None
    return (kind, None) if types.is_null(kind) else (None, f"{UNREADABLE}({kind})")


def _as(column: Any, target: Any) -> Any:
    """A column of a batch, cast to the type that `ready_type` gave."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type != target:
        column = column.cast(target, safe=not _is_decimal(target))
    return (
        _without_bad_text(column) if _is_text(target) and not _column_is_unicode(column) else column
    )


def _without_bad_text(column: Any) -> Any:
    """The column with NULL in place of text that is not Unicode."""
    import pyarrow

    return pyarrow.array(map(_decoded, column.cast(pyarrow.large_binary())), column.type)


def _decoded(value: Any) -> str | None:
    try:
        return None if not value.is_valid else value.as_py().decode()
    except UnicodeDecodeError:
        return None


def _column_is_unicode(column: Any) -> bool:
    """Whether all text of a column is Unicode, which Arrow does not check when it reads."""
    import pyarrow

    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_decimal(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_decimal(kind) and kind.bit_width <= 128)


# polars.  A lazy frame is computed here, once: it is a program of its owner, and must not fail in
# the middle of somebody's question.


def _polars(frame: Any) -> Ready:
    import polars

    schema = frame.collect_schema()
    refuse_clashing_names(schema)
    for name, dtype in schema.items():
        if dtype == polars.Object:
            raise SchemaMismatch(
                f"column {name!r} holds Python objects: cast it to a type of polars, or drop it"
            )
    computed = frame.collect() if isinstance(frame, polars.LazyFrame) else frame
    return ready_table(computed.to_arrow())


# pandas


def _pandas(frame: Any) -> Ready:
    import pandas

    names = [str(label) for label in frame.columns]
    refuse_clashing_names(names)
    columns, types, untyped = {}, {}, set()
    for place, name in enumerate(names):
        series = frame.iloc[:, place]
        column, kind = _pandas_column(series)
        if column is not None:
            columns[name] = column
        if kind is not None:
            types[name] = kind
        if str(series.dtype) == "object":
            untyped.add(name)
    index = pandas.RangeIndex(len(frame))
    made = pandas.DataFrame(columns, index=index, copy=False)
    return Ready(made, names, types, frozenset(untyped))


def _pandas_column(series: Any) -> tuple[Any, str | None]:
    import pandas

    dtype = series.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        return _categories(series.array)
    if isinstance(dtype, pandas.ArrowDtype):
        column, kind = ready_column(_as_arrow(series.array))
        return (None if column is None else pandas.arrays.ArrowExtensionArray(column)), kind
    if isinstance(dtype, pandas.DatetimeTZDtype):
        series = series.dt.tz_convert(None)
        dtype = series.dtype
    if isinstance(dtype, pandas.StringDtype):
        return _strings(series.array)
    if isinstance(dtype, np.dtype):
        return _numpy_column(series.to_numpy())
    masked = ("Int", "UInt", "Float", "boolean")
    if str(dtype).startswith(masked):
        return series.array, None
    return None, f"{UNREADABLE}({dtype})"


def _numpy_column(values: Any) -> tuple[Any, str | None]:
    dtype = values.dtype
    if dtype.kind == "M":
        return values.view(np.int64), f"{INSTANTS}({np.datetime_data(dtype)[0]})"
    if dtype.kind == "O":
        return texts(values), None
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return values, None
    return None, f"{UNREADABLE}({dtype})"


def _strings(array: Any) -> tuple[Any, str | None]:
    """A text column of pandas' own type, held by Arrow or as Python strings."""
    import pandas

    if array.dtype.storage != "pyarrow":
        return texts(np.asarray(array, dtype=object)), None
    return pandas.arrays.ArrowExtensionArray(_ready_text(_as_arrow(array))), None


def _as_arrow(array: Any) -> Any:
    import pyarrow

    found = array.__arrow_array__()
    return pyarrow.chunked_array([found]) if isinstance(found, pyarrow.Array) else found


def _categories(array: Any) -> tuple[Any, str | None]:
    """The category of each row.  One row without a category must not change the column's type."""
    import pandas

    codes = np.asarray(array.codes)
    values, kind = _pandas_column(pandas.Series(array.categories))
    if values is None:
        return None, UNREADABLE
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _numbers(np.append(values, values.dtype.type(0))[codes], codes < 0, kind)
    written = texts(np.asarray(values, dtype=object))
    unique = sorted({word for word in written if word is not None})
    if not unique:
        return np.full(len(codes), None, dtype=object), None
    place = {word: number for number, word in enumerate(unique)}
    renumbered = np.array([place.get(word, -1) for word in written] + [-1])  # -1 stays -1
    return pandas.Categorical.from_codes(
        renumbered[codes], categories=pandas.Index(unique, dtype=object)
    ), None


def _numbers(values: Any, missing: Any, kind: str | None) -> tuple[Any, str | None]:
    from pandas.arrays import BooleanArray, FloatingArray, IntegerArray

    if kind is not None:  # instants, where the least number stands for a missing one
        return np.where(missing, np.iinfo(np.int64).min, values), kind
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    holder: Any = {"b": BooleanArray, "f": FloatingArray}.get(values.dtype.kind, IntegerArray)
    return holder(values, missing), None


def texts(values: Any) -> Any:
    """Python objects as text; None for those that are missing or have no text."""
    written = [value if type(value) is str else _text(value) for value in values]
    if not _all_unicode(written):
        written = [None if text is None or not _text_is_unicode(text) else text for text in written]
    found = np.empty(len(written), dtype=object)
    found[:] = written
    return found


def _text(value: object) -> str | None:
    if value is None or (isinstance(value, float | np.floating) and value != value):
        return None
    try:
        found = str.__str__(str(value))
    except Exception:  # str fails for integers of thousands of digits, and may do anything
        return None
    return None if found in ("NaT", "<NA>") else found


def _all_unicode(written: list[str | None]) -> bool:
    return _text_is_unicode("".join(filter(None, written)))


def _text_is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
