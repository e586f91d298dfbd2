"""pandas and polars frames, made ready for DuckDB: in every column only what it reads without fail.

What a column becomes depends on its dtype, which is public, and never on a value in it.  Instants
become the whole numbers they are stored as; objects become texts, by ``str``; texts that are not
Unicode become NULL; what cannot be declared stays away.  A lazy frame is computed here, once: what
it computes is its owner's own program, and must not fail at somebody's question.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.errors import SchemaMismatch
from tacit.tables import arrow
from tacit.tables.arrow import Ready
from tacit.tables.codes import INSTANTS, TEXT_BYTES, UNREADABLE
from tacit.tables.declared import refuse_twins

FRAMES = {"pandas": "DataFrame", "polars": "DataFrame LazyFrame", "pyarrow": "Table"}


def is_frame(source: object) -> bool:
    """Whether this is a table in memory that can be opened."""
    family = type(source).__module__.partition(".")[0]
    return type(source).__name__ in FRAMES.get(family, "").split()


def ready(frame: Any) -> Ready:
    """Make a frame ready for DuckDB."""
    family = type(frame).__module__.partition(".")[0]
    make = {"pandas": _pandas, "polars": _polars, "pyarrow": arrow.ready_table}[family]
    return make(frame)


# polars


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
    return arrow.ready_table(computed.to_arrow())


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
        column, kind = arrow.ready_column(_as_arrow(series.array))
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
    column, kind = arrow.ready_text(_as_arrow(array))
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
        written = [None if text is None or not _is_unicode(text) else text for text in written]
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
    return _is_unicode("".join(filter(None, written)))


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
