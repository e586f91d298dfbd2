"""Public rows as a Parquet file, written by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

_CASTS = {datetime: "TIMESTAMP", date: "DATE"}  # numpy's own are not all read


def parquet_file(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """The bytes of a file with these columns, of plain Python values of one type each."""
    registered, selected = {}, []
    for place, (name, values) in enumerate(columns.items()):
        cast = _CASTS.get(type(values[0])) if len(values) else None
        registered[f"c{place}"] = _held(values, as_text=cast is not None)
        found = f"c{place}" if cast is None else f"CAST(c{place} AS {cast})"
        quoted = name.replace('"', '""')
        selected.append(f'{found} AS "{quoted}"')
    with TemporaryDirectory() as folder, duckdb.connect(":memory:") as connection:
        path = Path(folder) / "rows.parquet"
        connection.register("public_rows", registered)
        rows = connection.sql(f"SELECT {', '.join(selected)} FROM public_rows")
        rows.write_parquet(str(path))
        return path.read_bytes()


def _held(values: Sequence[Any], *, as_text: bool) -> NDArray[Any]:
    """As DuckDB reads it: numbers and booleans as they are, all else as text."""
    if as_text or any(isinstance(value, str) for value in values[:1]):
        return np.array([str(value) for value in values], dtype=object)
    held = np.array(values)
    return held if held.dtype.kind in "bif" else held.astype(np.float64)
