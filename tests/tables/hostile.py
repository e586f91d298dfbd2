"""Values that somebody's row may hold and that readers stumble over, for every kind of column.

Every column has values that all sources can hold, and hostile ones.  A table is made of the rows
of some people, and of one more person whose value is ordinary, hostile, or not there at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

MOST = 2**63 - 1
LONG = 2**21 + 2**16
"""Bytes: longer than DuckDB's longest line of a CSV file."""

Make = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of column: how to make one from values, values that read, and values that may not."""

    name: str
    make: Make
    plain: tuple[Any, Any, Any]
    hostile: tuple[Any, ...]


def _arrow(kind: pa.DataType) -> Make:
    return lambda values: pa.array(values, kind)


def _viewed(stored: pa.DataType, kind: pa.DataType) -> Make:
    """From what is stored, so that nothing checks it."""
    return lambda values: pa.array(values, stored).view(kind)


def _raw_decimal(digits: int, scale: int) -> Make:
    def make(values: list[Any]) -> pa.Array:
        stored = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
        known = sum((value is not None) << place for place, value in enumerate(values))
        buffers = [pa.py_buffer(bytes([known])), pa.py_buffer(stored)]
        return pa.Array.from_buffers(pa.decimal128(digits, scale), len(values), buffers)

    return make


def _dictionary(values: list[Any]) -> pa.Array:
    words = pa.array([value for value in values if value is not None], pa.binary()).view(
        pa.string()
    )
    places, place = [], 0
    for value in values:
        places.append(None if value is None else place)
        place += value is not None
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), words)


_BYTES = (b"a", b"b", b"caf\xc3\xa9")
_BAD_BYTES = (
    b"\xff\xfe",
    b"caf\xe9",
    b"\xed\xa0\x80",  # a surrogate
    b"\xf4\x90\x80\x80",  # beyond Unicode
    b"\xc3",
    b"a\0b",
    b"",
    b"x" * LONG,
    None,
)
_WHOLE = (MOST - 1, 10**17, -MOST - 1, MOST, -MOST, MOST // 1000, 10**13, 10**12, 0, None)
_FLOATS = (float("nan"), float("inf"), -float("inf"), 1e300, -1e300, -0.0, 5e-324, 2.0**63, None)

_RAW_DECIMALS = (2**127 - 1, -(2**127), 10**38, -(10**38), 2**63, 2**64 + 5, 10**20, None)

ARROW = [
    Kind("string", _viewed(pa.binary(), pa.string()), _BYTES, _BAD_BYTES),
    Kind("large_string", _viewed(pa.large_binary(), pa.large_string()), _BYTES, _BAD_BYTES),
    Kind("dictionary", _dictionary, _BYTES, _BAD_BYTES),
    *(
        Kind(
            f"timestamp-{unit}-{zone}",
            _viewed(pa.int64(), pa.timestamp(unit, zone)),
            (0, 1, 2),
            _WHOLE,
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Asia/Kathmandu")
    ),
    Kind(
        "date32",
        _viewed(pa.int32(), pa.date32()),
        (0, 1, 2),
        (2**31 - 1, -(2**31), -(2**31) + 1, 10**7, None),
    ),
    Kind("date64", _viewed(pa.int64(), pa.date64()), (0, 86_400_000, 172_800_000), _WHOLE),
    Kind("int8", _arrow(pa.int8()), (1, 2, 3), (-128, 127, None)),
    Kind("uint64", _arrow(pa.uint64()), (1, 2, 3), (2**64 - 1, 2**63, None)),
    Kind("int64", _arrow(pa.int64()), (1, 2, 3), (MOST, -MOST - 1, None)),
    Kind("float64", _arrow(pa.float64()), (1.0, 2.5, 3.0), _FLOATS),
    Kind(
        "float32", _arrow(pa.float32()), (1.0, 2.5, 3.0), (float("nan"), float("inf"), 3e38, None)
    ),
    Kind(
        "decimal",
        _arrow(pa.decimal128(38, 2)),
        (Decimal("1"), Decimal("2.50"), Decimal("3")),
        (Decimal("9" * 36 + ".99"), Decimal("-" + "9" * 36), None),
    ),
    Kind(
        "decimal38",
        _arrow(pa.decimal128(38, 0)),
        (Decimal(1), Decimal(2), Decimal(3)),
        (Decimal("9" * 38), Decimal("-" + "9" * 38), None),
    ),
    Kind(
        "decimal0",
        _arrow(pa.decimal128(38, 38)),
        (Decimal(0), Decimal("0.5"), Decimal("0.25")),
        (Decimal("0." + "9" * 38), None),
    ),
    Kind(
        "decimal9",
        _arrow(pa.decimal128(9, 2)),
        (Decimal(1), Decimal("2.50"), Decimal(3)),
        (Decimal("9999999.99"), None),
    ),
    Kind(
        "decimal256",
        _arrow(pa.decimal256(60, 2)),
        (Decimal(1), Decimal(2), Decimal(3)),
        (Decimal("9" * 50), None),
    ),
    *(
        Kind(f"raw-{n}-{scale}", _raw_decimal(n, scale), (1, 2, 300), _RAW_DECIMALS)
        for n, scale in ((38, 2), (38, 0), (38, 38), (20, 2), (10, 2), (4, 2))
    ),
    Kind("bool", _arrow(pa.bool_()), (True, False, True), (None,)),
    Kind("null", _arrow(pa.null()), (None, None, None), (None,)),
    Kind("binary", _arrow(pa.binary()), _BYTES, _BAD_BYTES),
    Kind("time", _viewed(pa.int64(), pa.time64("us")), (0, 1, 2), (MOST, -1, None)),
    Kind("duration", _viewed(pa.int64(), pa.duration("s")), (0, 1, 2), (MOST, -MOST - 1, None)),
    Kind("list", _arrow(pa.list_(pa.string())), (["a"], [], ["b"]), ([None], ["x" * 1000], None)),
    Kind(
        "struct",
        _arrow(pa.struct([("a", pa.int64())])),
        ({"a": 1}, {"a": 2}, {"a": 3}),
        ({"a": None}, None),
    ),
    Kind(
        "half",
        lambda values: pa.array(
            [None if v is None else np.float16(v) for v in values], pa.float16()
        ),
        (1.0, 2.5, 3.0),
        (float("nan"), float("inf"), None),
    ),
]


class Rude:
    """An object that cannot be written."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


OBJECTS: tuple[Any, ...] = (
    "\ud800",
    10**5000,
    Rude(),
    "a\udfffb",
    "a\0b",
    "",
    "x" * LONG,
    10**40,
    -(10**40),
    b"\xff",
    float("nan"),
    float("inf"),
    pd.NaT,
    pd.NA,
    None,
    Decimal("sNaN"),
    Decimal("1E+999999"),
    datetime.max,
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=45, seconds=7))),
    date.min,
    date.max,
    np.datetime64(MOST, "s"),
    np.datetime64("NaT"),
    pd.Timestamp("2026-01-01", tz="Europe/Brussels"),
    time(1, 2),
    timedelta(days=10**8),
    [1, 2],
    {"a": 1},
    {1, 2},
    np.array([1, 2]),
    1j,
    object,
    True,
    "9" * 5000,
    "1e400",
    "-1e400",
    "99999-01-01",
    "2026-02-30",
    "0000-00-00",
    "2026-01-01 25:00:00",
    "2026-01-01 00:00:00+99:99",
    "9999-12-31 23:59:59.999999-23:59",
    "0000-01-01 00:00:00+23:59",
    "infinity",
    "NaN",
    "0x10",
    "٣",
)


def _objects(values: list[Any]) -> pd.Series:
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return pd.Series(made, dtype=object)


def _python_strings(values: list[Any]) -> pd.Series:
    return pd.Series(_objects(values).to_numpy(), dtype=pd.StringDtype("python"))


def _categorical(values: list[Any]) -> pd.Series:
    present = list(dict.fromkeys(value for value in values if value is not None))
    places = [-1 if value is None else present.index(value) for value in values]
    return pd.Series(pd.Categorical.from_codes(places, categories=pd.Index(present, dtype=object)))


def _numbers_by_category(values: list[Any]) -> pd.Series:
    return pd.Series(pd.Categorical(values))


def _instants(unit: str, zone: str | None) -> Make:
    def make(values: list[Any]) -> pd.Series:
        least = -MOST - 1
        stored = np.array([least if value is None else value for value in values], dtype=np.int64)
        made = pd.Series(stored.view(f"M8[{unit}]"))
        return made.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else made

    return make


_STRINGS = ("\ud800", "a\0b", "", "x" * LONG, None)
PANDAS = [
    Kind("object", _objects, ("1", "2", "x"), OBJECTS),
    Kind("object-numbers", _objects, (1, 2.5, Decimal(3)), OBJECTS),
    Kind("strings", _python_strings, ("a", "b", "c"), _STRINGS),
    Kind("categories", _categorical, ("a", "b", "c"), (*_STRINGS, 1, 1.5, "1")),
    Kind("number-categories", _numbers_by_category, (1, 2, 3), (None, 7)),
    Kind("truth-categories", _numbers_by_category, (True, False, True), (None,)),
    Kind("float-categories", _numbers_by_category, (1.5, 2.5, 3.5), (None, 1e300)),
    *(
        Kind(
            f"M8-{unit}-{zone}",
            _instants(unit, zone),
            (0, 1, 2),
            tuple(value for value in _WHOLE if value != -MOST - 1),
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC")
    ),
    Kind("Int64", lambda values: pd.Series(values, dtype="Int64"), (1, 2, 3), (None, MOST)),
    Kind(
        "boolean", lambda values: pd.Series(values, dtype="boolean"), (True, False, True), (None,)
    ),
    Kind(
        "float16",
        lambda values: pd.Series(np.array(values, np.float16)),
        (1, 2, 3),
        (float("nan"), float("inf")),
    ),
    Kind("complex", lambda values: pd.Series(np.array(values, complex)), (1, 2, 3), (1j,)),
    Kind(
        "timedelta",
        lambda values: pd.Series(np.array(values, np.int64).view("m8[ns]")),
        (1, 2, 3),
        (MOST,),
    ),
]

CSV_FIELDS: tuple[bytes, ...] = (
    b"",
    b'""',
    b'"',
    b'"x',
    b'x"',
    b'"x"y',
    b'"x""',
    b'"x\ny"',
    b'"x\r\ny"',
    b"x\ry",
    b"a\0b",
    b"\xff",
    b'"\xff"',
    b"1,2",
    b"1,2,3",
    b",",
    b"\n",
    b' "x"',
    b'"x" ',
    b"'",
    b"\\",
    b'\\"',
    b"#",
    b"9" * 5000,
    b"x" * LONG,
    b'"' + b"x" * LONG + b'"',
    b"1e999",
    b"2026-02-30",
    b"0000-00-00",
    b"inf",
)


Columns = dict[str, Any]
"""By name, what was made of the values of people 1, 2, 3, and perhaps of 9."""


def columns(kinds: list[Kind], person: str, most: int) -> Columns:
    """A column for every hostile value of every kind, at most so many of a kind.

    Person 9 has that value, or an ``ordinary`` one in its place, or is ``absent``.
    """
    return {
        f"{kind.name}-{number}": kind.make([*kind.plain, *_of(kind, value, person)])
        for kind in kinds
        for number, value in enumerate(kind.hostile[:most])
    }


def _of(kind: Kind, value: object, person: str) -> list[object]:
    return {"absent": [], "ordinary": [kind.plain[0]], "hostile": [value]}[person]


def _people(made: Columns) -> list[int]:
    return [1, 2, 3, 9][: len(next(iter(made.values())))]


def _table(made: Columns) -> pa.Table:
    return pa.table({"pid": _people(made), **made})


def as_arrow(made: Columns, folder: Path) -> object:
    """An Arrow table."""
    return _table(made)


class Stream:
    """Rows that come in batches, each when it is asked for, by Arrow's interface alone."""

    def __init__(self, table: pa.Table, rows: int = 2) -> None:
        self._table = table
        self._rows = rows
        self.read = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._table.to_batches(max_chunksize=self._rows):
            self.read += 1
            yield batch

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._table.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)


def as_stream(made: Columns, folder: Path) -> object:
    """An object of unknown type that gives an Arrow stream."""
    return Stream(_table(made))


def as_parquet(made: Columns, folder: Path) -> object:
    """A Parquet file of two row groups, as far as Parquet can hold this."""
    path = folder / "t.parquet"
    able = {name: column for name, column in made.items() if _can(pq.write_table, column, folder)}
    pq.write_table(_table(able), path, row_group_size=2)
    return path


def _can(write: Callable[..., object], column: pa.Array, folder: Path) -> bool:
    try:
        write(pa.table({"x": column}), folder / "tried")
    except (pa.ArrowException, NotImplementedError, duckdb.Error):
        return False
    return True


def as_pandas_arrow(made: Columns, folder: Path) -> object:
    """A pandas frame of columns that Arrow holds."""
    extended = pd.arrays.ArrowExtensionArray
    return pd.DataFrame(
        {
            "pid": _people(made),
            **{name: extended(pa.chunked_array([column])) for name, column in made.items()},
        }
    )


def as_polars(made: Columns, folder: Path) -> object:
    """A polars frame; polars takes no text that is not UTF-8."""
    table = _table(
        {
            name: column
            for name, column in made.items()
            if column.type
            not in (pa.string(), pa.large_string(), pa.float16(), pa.decimal256(60, 2))
            and not pa.types.is_dictionary(column.type)
        }
    )
    return pl.from_arrow(table)


def as_duckdb(made: Columns, folder: Path) -> object:
    """A DuckDB file, as far as DuckDB reads Arrow."""
    path = folder / "t.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        able = {}
        for name, column in made.items():
            try:
                connection.register("tried", pa.table({"x": column}))
                connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM tried")
            except duckdb.Error:
                continue
            able[name] = column
        connection.register("arrow", _table(able))
        connection.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM arrow")
    return path


def as_pandas(made: Columns, folder: Path) -> object:
    """A pandas frame."""
    return pd.DataFrame({"pid": _people(made), **made})


SOURCES: dict[str, tuple[list[Kind], Callable[[Columns, Path], object]]] = {
    "arrow": (ARROW, as_arrow),
    "stream": (ARROW, as_stream),
    "parquet": (ARROW, as_parquet),
    "pandas-arrow": (ARROW, as_pandas_arrow),
    "polars": (ARROW, as_polars),
    "duckdb": (ARROW, as_duckdb),
    "pandas": (PANDAS, as_pandas),
}
