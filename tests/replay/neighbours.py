"""Small tables that differ in one person, with values that are hard on readers; and sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
from tests.replay.runs import Opener, Row

import tacit
from tacit.analyst.table import Table

SCHEMA = """
max_rows = 2
max_cells = 2
[columns.pid]
type = "{person}"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Ypres"]
[columns.age]
type = "integer"
bounds = [0, 8]
[columns.cost]
type = "real"
grid = "0.5"
bounds = [-2, 5]
total = [-3, 6]
[columns.smoker]
type = "boolean"
[columns.day]
type = "date"
bounds = ["2026-01-01", "2026-01-07"]
"""

_VALUES: dict[str, Sequence[Any]] = {
    "town": ["Bruges", "Ghent", "Ypres", "Ghent", "Elsewhere", "", None],
    "age": [0, 1, 4, 8, 8, -3, 2**40, None],
    "cost": [0.0, 1.5, 5.0, -2.0, -0.0, 0.3, 1e300, nan, inf, -inf, None],
    "smoker": [True, True, False, None],
    "day": [date(2026, 1, 3), date(2026, 1, 7), date(1, 1, 1), date(9999, 12, 31), None],
}
_ARROW = pa.schema(
    [
        ("pid", pa.int64()),
        ("town", pa.string()),
        ("age", pa.int64()),
        ("cost", pa.float64()),
        ("smoker", pa.bool_()),
        ("day", pa.date32()),
    ]
)


def neighbours(random: Random, each_row: bool = False) -> tuple[list[Row], list[Row]]:
    """Two tables, one of which has a person more, in either order.

    That person's rows lie anywhere between the others', whose order is the same in both.  Some
    tables have nobody else, some have rows that are nobody's, and in some the others are alike.
    """
    people = random.sample(range(100), random.randint(1, 7))
    others = _alike(random) if random.random() < 0.3 else _VALUES
    rows = [row for pid in people[1:] for row in _rows_of(random, pid, others, each_row)]
    if random.random() < 0.3 and not each_row:
        rows += _rows_of(random, None, _VALUES, one=True)
    random.shuffle(rows)
    more = list(rows)
    for row in _rows_of(random, people[0], _VALUES, each_row):
        more.insert(random.randint(0, len(more)), row)
    return (rows, more) if random.random() < 0.5 else (more, rows)


def _alike(random: Random) -> dict[str, Sequence[Any]]:
    """One or two values in each column, so that one more person changes the ends of some."""
    return {
        name: random.sample(list(values), random.choice([1, 2])) for name, values in _VALUES.items()
    }


def _rows_of(
    random: Random, pid: int | None, values: Mapping[str, Sequence[Any]], one: bool
) -> list[Row]:
    """A person's rows; often the same value in all, so that totals are reached."""
    count = 1 if one else random.choice([1, 1, 2, 3, 6])
    rows = [{name: random.choice(some) for name, some in values.items()} for _ in range(count)]
    if random.random() < 0.4:
        rows = [rows[0]] * count
    return [{"pid": pid, **row} for row in rows]


# Sources and engines --------------------------------------------------------------------------


def _as_text(rows: Sequence[Row]) -> list[Row]:
    """People as text, numbered otherwise than they are sorted."""
    return [{**row, "pid": None if row["pid"] is None else f"p{row['pid']}"} for row in rows]


def _arrow(rows: Sequence[Row], *, text: bool = False) -> pa.Table:
    if not text:
        return pa.Table.from_pylist(list(rows), schema=_ARROW)
    return pa.Table.from_pylist(_as_text(rows), schema=_ARROW.set(0, pa.field("pid", pa.string())))


def _open(source: Any, *, person: Any = "pid", type_of: str = "integer", **options: Any) -> Table:
    schema = SCHEMA.format(person=type_of)
    return tacit.open(source, person=person, name="visits", schema=schema, people=9, **options)


def _opener(open_it: Callable[[Sequence[Row], Path], Table]) -> Opener:
    @contextmanager
    def opened(rows: Sequence[Row], folder: Path) -> Iterator[Table]:
        with open_it(rows, folder) as table:
            yield table

    return opened


def _csv(rows: Sequence[Row], folder: Path) -> Table:
    pd.DataFrame(list(rows), columns=_ARROW.names).to_csv(folder / "visits.csv", index=False)
    return _open(folder / "visits.csv")


def _parquet(rows: Sequence[Row], folder: Path) -> Table:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(rows, text=True), folder / "visits.parquet")
    return _open(folder / "visits.parquet", type_of="text")


def _shards(rows: Sequence[Row], folder: Path) -> Table:
    import pyarrow.parquet as pq

    pq.write_table(_arrow(rows), folder / "visits.parquet")
    (folder / "shards").mkdir()
    return _open(folder / "visits.parquet", shards=folder / "shards", memory_limit=1)


SOURCES = {
    "arrow": _opener(lambda rows, _: _open(_arrow(rows))),
    "text people": _opener(lambda rows, _: _open(_arrow(rows, text=True), type_of="text")),
    "csv": _opener(_csv),
    "parquet": _opener(_parquet),
    "spilled": _opener(lambda rows, _: _open(_arrow(rows), memory_limit=1)),
    "shards": _opener(_shards),
}
EVERY_ROW = _opener(lambda rows, _: _open(_arrow(rows), person=tacit.EACH_ROW))
