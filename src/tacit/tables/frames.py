"""Data in memory, and Arrow streams, made ready for DuckDB: frames, Arrow tables, any Arrow stream.

What a column becomes depends on its type, which is public, and never on a value in it.  In every
column only what DuckDB reads without fail is left: instants become the whole numbers they are
stored as, Python objects become texts, by ``str``, texts that are not Unicode become NULL, and what
cannot be declared stays away.

A frame or table is in memory and looked through first, so that a column without such values is read
as it is.  A stream comes batch by batch, once; there the type alone decides what a column becomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arguments import kind_of
from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables.codes import DAY_INSTANTS, INSTANTS, TEXT_BYTES, UNREADABLE
from tacit.tables.declared import refuse_twins

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame LazyFrame", "pyarrow": "Table"}
_MOST_DIGITS = 38


@dataclass(slots=True)
class Ready:
    """Rows that DuckDB can read whatever is in them, and what it does not know about them."""

    frame: Any
    names: list[str]
    types: dict[str, str]  # of our own; the others are DuckDB's
    untyped: frozenset[str] = frozenset()  # any Python value may have stood there
    once: bool = False  # a stream: whoever reads it keeps what it needs

    @property
    def is_empty(self) -> bool:
        """Whether no column is left that DuckDB could read."""
        return len(self.types) == len(self.names) and set(self.types.values()) == {UNREADABLE}


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

    refuse_twins(table.column_names)
    columns, types = {}, {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name], kind = ready_column(column)
        if kind is not None:
            types[name] = kind
    kept = {name: column for name, column in columns.items() if column is not None}
    return Ready(pyarrow.table(kept), table.column_names, types)


def ready_column(column: Any) -> tuple[Any, str | None]:
    """A column that DuckDB reads without fail, and what it holds if DuckDB cannot know."""
    from pyarrow import types

    kind = column.type
    coded = types.is_dictionary(kind)
    if _is_text(kind.value_type if coded else kind):
        return ready_text(column)
    if coded:
        return ready_column(column.cast(kind.value_type))
    if _is_decimal(kind):
        return _narrow_decimal(column), None
    target, own = ready_type(kind)
    if target is None:
        return None, own
    return (column if target == kind else column.cast(target)), own


def ready_text(column: Any) -> tuple[Any, str | None]:
    """Text as it is if all of it is Unicode: nobody else looks.  Else its bytes."""
    import pyarrow

    if _column_is_unicode(column):
        return column, None
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    bare = [chunk.cast(pyarrow.large_binary()) for chunk in column.chunks]
    return pyarrow.chunked_array(bare, pyarrow.large_binary()), TEXT_BYTES


def _narrow_decimal(column: Any) -> Any:
    """A decimal as it is if no value has more digits than the type; else with room for them.

    DuckDB would take what happens to stand in its memory for such a value.
    """
    import pyarrow
    from pyarrow import compute

    kind = column.type
    ends = compute.min_max(column).values()
    known = [end.as_py() for end in ends if end.is_valid]
    if any(abs(end.scaleb(kind.scale)) >= 10**kind.precision for end in known):
        return column.cast(pyarrow.decimal128(_MOST_DIGITS, kind.scale), safe=False)
    return column


# Arrow streams


def is_stream(source: object) -> bool:
    """Whether this gives its rows as an Arrow stream, by Arrow's PyCapsule interface."""
    return hasattr(source, "__arrow_c_stream__")


def ready_stream(source: object) -> Ready:
    """The batches of a stream, each made ready when its turn comes."""
    reader = _opened(source)
    refuse_twins(reader.schema.names)
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

        problem = "its Arrow stream is not one of rows that have columns"
        return pyarrow.RecordBatchReader.from_stream(source)
    except Exception:  # whatever the source says may quote its data
        pass
    raise BadParameter("source", kind_of(source), problem)


def ready_type(kind: Any) -> tuple[Any, str | None]:
    """What a column of this type is cast to, and what it holds if DuckDB cannot know.

    None if it cannot be read at all.
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
    if _is_decimal(kind):  # with room for values that have more digits than the type
        return pyarrow.decimal128(_MOST_DIGITS, kind.scale), None
    number = types.is_integer(kind) or types.is_floating(kind)
    uuid = str(kind) in ("uuid", "extension<arrow.uuid>")
    if number or uuid or _is_text(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return kind, None
    return (kind, None) if types.is_null(kind) else (None, UNREADABLE)


def _as(column: Any, target: Any) -> Any:
    """A column of a batch as the type that `ready_type` says."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type != target:
        column = column.cast(target, safe=not _is_decimal(target))
    return (
        _without_bad_text(column) if _is_text(target) and not _column_is_unicode(column) else column
    )


def _without_bad_text(column: Any) -> Any:
    """Texts that are not Unicode become NULL."""
    import pyarrow

    return pyarrow.array(map(_decoded, column.cast(pyarrow.large_binary())), column.type)


def _decoded(value: Any) -> str | None:
    try:
        return None if not value.is_valid else value.as_py().decode()
    except UnicodeDecodeError:
        return None


def _column_is_unicode(column: Any) -> bool:
    """Whether all texts of a column are: Arrow itself does not look when it reads them."""
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


# polars.  A lazy frame is computed here, once: what it computes is its owner's own program, and
# must not fail at somebody's question.


def _polars(frame: Any) -> Ready:
    import polars

    schema = frame.collect_schema()
    refuse_twins(schema)
    for name, dtype in schema.items():
        if dtype == polars.Object:
            raise SchemaMismatch(
                f"column {name!r} holds Python objects: cast it to a type, or drop it"
            )
    computed = frame.collect() if isinstance(frame, polars.LazyFrame) else frame
    return ready_table(computed.to_arrow())


# pandas


def _pandas(frame: Any) -> Ready:
    import pandas

    names = [str(label) for label in frame.columns]
    refuse_twins(names)
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
    return (series.array, None) if str(dtype).startswith(masked) else (None, UNREADABLE)


def _numpy_column(values: Any) -> tuple[Any, str | None]:
    dtype = values.dtype
    if dtype.kind == "M":
        return values.view(np.int64), f"{INSTANTS}({np.datetime_data(dtype)[0]})"
    if dtype.kind == "O":
        return texts(values), None
    return (values, None) if dtype.kind in "biuf" and dtype.itemsize <= 8 else (None, UNREADABLE)


def _strings(array: Any) -> tuple[Any, str | None]:
    """Text of pandas' own: held by Arrow, or as Python's strings."""
    import pandas

    if array.dtype.storage != "pyarrow":
        return texts(np.asarray(array, dtype=object)), None
    column, kind = ready_text(_as_arrow(array))
    return (array if kind is None else pandas.arrays.ArrowExtensionArray(column)), kind


def _as_arrow(array: Any) -> Any:
    import pyarrow

    found = array.__arrow_array__()
    return pyarrow.chunked_array([found]) if isinstance(found, pyarrow.Array) else found


def _categories(array: Any) -> tuple[Any, str | None]:
    """Each row's category.  Whether somebody has none must not change the type of the column."""
    import pandas

    codes = np.asarray(array.codes)
    values, kind = _pandas_column(pandas.Series(array.categories))
    if values is None or kind == TEXT_BYTES:
        return None, UNREADABLE
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and len(values):
        return _numbers(values[codes], codes < 0, kind)
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

    if kind is not None:  # instants; the least number stands for one that is missing
        return np.where(missing, np.iinfo(np.int64).min, values), kind
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    holder: Any = {"b": BooleanArray, "f": FloatingArray}.get(values.dtype.kind, IntegerArray)
    return holder(values, missing), None


def texts(values: Any) -> Any:
    """Python objects as texts, or None for what is missing or cannot be written as one."""
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
    except Exception:  # Python writes no integers of thousands of digits; objects may do anything
        return None
    return None if found in ("NaT", "<NA>") else found


def _all_unicode(written: list[str | None]) -> bool:
    return _text_is_unicode("".join(filter(None, written)))


def _text_is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
