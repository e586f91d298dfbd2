"""The meaning of questions in plain Python, written independently of every engine.

A predicate is a pair of its SQL text and a function from a row (a dict of Python values, as
``read_row`` returns it) to True, False or None.  A term also knows what each person contributes.
"""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from tacit.tables.schema.codes import rank_of_double
from tacit.tables.schema.schema import EACH_ROW, Column

TOML = """
max_rows = 3

[columns.pid]
type = "integer"

[columns.age]
type = "integer"
bounds = [0, 120]
total = [0, 200]

[columns.week]
type = "integer"
keys = {from = 1, to = 4}

[columns.big]
type = "integer"

[columns.huge]
type = "integer"
bounds = [-9223372036854775808, 9223372036854775807]
total = [-4611686018427387904, 4611686018427387904]

[columns.cost]
type = "real"
grid = "0.01"
bounds = [-50, 100]
total = ["-80.5", 150]

[columns.fee]
type = "real"
grid = "0.25"
bounds = [0, 10]
total = [1, 20]

[columns.raw]
type = "real"

[columns.town]
type = "text"
keys = ["Ghent", "Bruges", "Łódź"]

[columns.note]
type = "text"

[columns.smoker]
type = "boolean"

[columns.day]
type = "date"

[columns.at]
type = "timestamp"
"""

COLUMNS = (
    "pid",
    "age",
    "week",
    "big",
    "huge",
    "cost",
    "fee",
    "raw",
    "town",
    "note",
    "smoker",
    "day",
    "at",
)
"""The columns of ``TOML``, in order."""

RawRow = dict[str, object]
GRIDS = {"cost": (Fraction(1, 100), -50, 100), "fee": (Fraction(1, 4), 0, 10)}
TOTALS: dict[str, tuple[Fraction, Fraction]] = {
    "age": (Fraction(0), Fraction(200)),
    "huge": (Fraction(-(2**62)), Fraction(2**62)),
    "cost": (Fraction("-80.5"), Fraction(150)),
    "fee": (Fraction(1), Fraction(20)),
}


def code_of(column: Column, value: object) -> int | str | None:
    """The code of a raw value of the column's type, by the documented rules; NULL is None."""
    if value is None:
        return None
    if column.type == "real":
        assert isinstance(value, float)
        if math.isnan(value) or (math.isinf(value) and column.bounds is None):
            return None
        if column.grid is None:
            return rank_of_double(value)
        low, high = column.range
        steps = on_grid(value, column.grid, low * column.grid, high * column.grid)
        return None if steps is None else int(steps / column.grid)
    found = column.place(value)
    if isinstance(found, str):
        return found
    low, high = column.range
    return min(max(int(found), low), high)


def read_row(raw: RawRow) -> RawRow:
    """A raw row, read by the documented rules."""
    row = dict(raw)
    if isinstance(row["age"], int):
        row["age"] = min(max(row["age"], 0), 120)
    for name, (grid, low, high) in GRIDS.items():
        row[name] = on_grid(raw[name], grid, low, high)
    if isinstance(row["raw"], float) and not math.isfinite(row["raw"]):
        row["raw"] = None
    return row


def on_grid(
    value: object, grid: Fraction, low: Fraction | int, high: Fraction | int
) -> Fraction | None:
    """A value rounded to the grid by two operations on doubles, ties to even, then clamped."""
    if not isinstance(value, float) or math.isnan(value):
        return None
    if math.isinf(value) or abs(value) > 1e9:
        return Fraction(high if value > 0 else low)
    steps = round(value * float(grid.denominator) / float(grid.numerator))
    return min(max(steps * grid, Fraction(low)), Fraction(high))


Truth = bool | None

_COMPARISONS: dict[str, Callable[[Any, Any], object]] = {
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


@dataclass(frozen=True)
class Pred:
    """A predicate: its text and its meaning."""

    sql: str
    test: Callable[[RawRow], Truth]

    def __repr__(self) -> str:
        return f"Pred({self.sql!r})"


def compare(column: str, operator: str, value: object) -> Callable[[RawRow], Truth]:
    """Comparison of a column with a literal."""

    def test(row: RawRow) -> Truth:
        mine = row[column]
        if mine is None or value is None:
            return None
        return order(*comparable(column, mine, value), operator)

    return test


def comparable(column: str, mine: object, value: object) -> tuple[object, object]:
    """Both sides in a type that compares as documented."""
    if column == "raw":
        return float(mine), float(value)  # type: ignore[arg-type]
    if isinstance(mine, int | float | Fraction) and not isinstance(mine, bool):
        return Fraction(mine), Fraction(value)  # type: ignore[call-overload]
    return mine, value


def order(left: object, right: object, operator: str) -> bool:
    """One of the six comparisons."""
    return bool(_COMPARISONS[operator](left, right))


def negation(truth: Truth) -> Truth:
    """SQL's NOT."""
    return None if truth is None else not truth


def conjunction(truths: Iterable[Truth]) -> Truth:
    """SQL's AND."""
    found = list(truths)
    return False if False in found else None if None in found else True


def disjunction(truths: Iterable[Truth]) -> Truth:
    """SQL's OR."""
    found = list(truths)
    return True if True in found else None if None in found else False


def matches(text: str, pattern: str) -> bool:
    """LIKE, by its definition."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches(text[cut:], pattern[1:]) for cut in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and matches(text[1:], pattern[1:])


def literal(value: object) -> str:
    """A Python value as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


@dataclass(frozen=True)
class Summand:
    """A term of a question with its weight, and what one person's rows contribute to it."""

    weight: Fraction
    sql: str
    contribution: Callable[[list[RawRow]], Fraction]

    def __repr__(self) -> str:
        return f"Summand({self.weight} * {self.sql!r})"


def people(weight: Fraction, where: Pred) -> Summand:
    """How many people have such a row."""

    def contribution(rows: list[RawRow]) -> Fraction:
        return Fraction(any(where.test(row) is True for row in rows))

    return Summand(weight, f"count({where.sql})", contribution)


def some_rows(weight: Fraction, where: Pred, most: int = 3) -> Summand:
    """How many such rows there are, counting at most ``most`` of each person."""

    def contribution(rows: list[RawRow]) -> Fraction:
        return Fraction(min(sum(where.test(row) is True for row in rows), most))

    return Summand(weight, f"count(*) filter (where {where.sql})", contribution)


def total(weight: Fraction, column: str, where: Pred) -> Summand:
    """The sum of a column over such rows, each person's part of it within its bounds."""
    low, high = TOTALS[column]

    def contribution(rows: list[RawRow]) -> Fraction:
        values = [row[column] for row in rows if where.test(row) is True]
        known = [Fraction(value) for value in values if value is not None]  # type: ignore[call-overload]
        return min(max(sum(known, Fraction(0)), low), high) if known else Fraction(0)

    return Summand(weight, f"sum({column}) filter (where {where.sql})", contribution)


@dataclass(frozen=True)
class Tested:
    """A condition on all rows of a person together: its text and its meaning."""

    sql: str
    test: Callable[[list[RawRow]], Truth]


def having(where: Pred | None, condition: Tested) -> Summand:
    """How many people have such rows, and the condition holds of all of them together."""

    def contribution(rows: list[RawRow]) -> Fraction:
        some = [row for row in rows if where is None or where.test(row) is True]
        return Fraction(bool(some) and condition.test(some) is True)

    only = "" if where is None else f" where {where.sql}"
    inner = f"select pid from visits{only} group by pid having {condition.sql}"
    return Summand(Fraction(1), f"select count(*) from ({inner})", contribution)


def text_of(parts: Sequence[Summand]) -> str:
    """The question as SQL."""
    written = []
    for part in parts:
        size = abs(part.weight)
        sign = "-" if part.weight < 0 else "+"
        weight = f"{float(size)} * " if size != 1 else ""
        written.append(f"{sign} {weight}{part.sql}")
    return " ".join(written).removeprefix("+ ")


def households(rows: Sequence[RawRow], person: object) -> list[list[RawRow]]:
    """The rows of each person, as `read_row` reads them; rows without a person are left out."""
    read = [read_row(row) for row in rows]
    if person is EACH_ROW:
        return [[row] for row in read]
    found: dict[object, list[RawRow]] = {}
    for row in read:
        if row["pid"] is not None:
            found.setdefault(row["pid"], []).append(row)
    return list(found.values())


def answer(parts: Sequence[Summand], homes: Sequence[list[RawRow]]) -> Fraction:
    """The true answer."""
    return sum(
        (part.weight * part.contribution(rows) for part in parts for rows in homes), Fraction(0)
    )
