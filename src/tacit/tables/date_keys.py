"""Parts of dates as the keys of a GROUP BY, over a declared range.

``EXTRACT(month FROM day)`` has its twelve values, whatever is declared.  ``date_trunc('month',
day)`` and years have those from the first to the last that the column can hold, by its declared
bounds or keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date

import numpy as np
from numpy.typing import NDArray

from tacit.tables.codes import Code, Unfit
from tacit.tables.functions import (
    DAY,
    EPOCH,
    HOUR,
    PARTS,
    UNITS,
    Function,
    day_of,
    first_code,
    keeps_order,
    of_function,
    part_of,
    part_of_codes,
    truncated,
    unit_start,
)
from tacit.tables.question import Predicate, Range
from tacit.tables.schema import Column, Schema

Integers = NDArray[np.int64]
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class DateKey(Column):
    """A key that is a part of a date or timestamp: a column of what a function gives for it."""

    function: Function | None = None

    @property
    def _gives(self) -> Function:
        assert self.function is not None
        return self.function

    @property
    def of(self) -> str:
        """The column of the table."""
        return self._gives.column.name

    def holds(self, code: Code) -> Predicate:
        """That a row is in the cell of this value."""
        return of_function(self._gives, Range(self.of, code, code))

    def places(self, codes: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """The place among the cells of each code of the table's column, and whether it has one."""
        function, cells = self._gives, self.keys or ()
        if not keeps_order(function.name):
            parts = part_of_codes(function.name, function.column.type, codes)
            return parts - int(cells[0]), np.ones(len(codes), np.bool_)
        starts = np.array([first_code(function, int(cell)) for cell in cells], np.int64)
        end = first_code(function, int(cells[-1]) + 1)
        inside = (codes >= starts[0]) & (codes < end)
        return np.searchsorted(starts, codes, side="right") - 1, inside

    def as_json(self) -> dict[str, str]:
        """Its name, its column and its function; `date_key_from_json` is the inverse."""
        return {"name": self.name, "of": self.of, "function": self._gives.name}


def date_key(function: Function, name: str | None, most: int) -> DateKey:
    """The key that a function of dates is; raises Unfit if its cells are not declared.

    More than ``most`` cells are refused before they are listed.
    """
    column, gives = function.column, function.gives
    if column.type not in ("date", "timestamp"):
        raise Unfit("the function is not one of dates")
    called = f"{column.name}_{function.name.removeprefix('trunc ')}" if name is None else name
    if not keeps_order(function.name):
        least, last = PARTS[function.name]
        keys: tuple[int, ...] = tuple(range(least, last + 1))
    else:
        low, high = _ends(column)
        if _about(function, low, high) > most:
            raise Unfit(f"it would have more than {most} cells")
        keys = tuple(_values(function, low, high))
    declared = {each.name: getattr(gives, each.name) for each in fields(gives) if each.init}
    return DateKey(**{**declared, "name": called, "keys": keys}, function=function)


def _ends(column: Column) -> tuple[int, int]:
    """The first and the last code that are declared."""
    if column.bounds is not None:
        return column.bounds
    if column.keys is not None:
        codes = [int(code) for code in column.keys]
        return min(codes), max(codes)
    raise Unfit("its range is not declared")


def _about(function: Function, low: int, high: int) -> int:
    """How many cells there are at least, as far as that may be too many."""
    unit = HOUR if function.name == "trunc hour" else DAY * 31
    steps = DAY if function.column.type == "date" else 1
    if function.name in ("date", "trunc day"):
        unit = DAY
    return (high - low) * steps // unit


def _values(function: Function, low: int, high: int) -> Iterator[int]:
    """What the function gives for codes from the first to the last, each value once."""
    timed, unit = function.column.type == "timestamp", function.name.removeprefix("trunc ")
    if unit == "hour":
        yield from range(low // HOUR * HOUR, high + 1, HOUR)
        return
    first, last = (low // DAY, high // DAY) if timed else (low, high)
    if function.name == "year":
        years = [date.fromordinal(day + EPOCH).year for day in (first, last)]
        yield from range(years[0], years[1] + 1)
        return
    day = _floor("day" if unit == "date" else unit, first)
    while day <= last:
        yield day * DAY if timed and unit != "date" else day
        day = unit_start("day" if unit == "date" else unit, day + 1)


def _floor(unit: str, day: int) -> int:
    """The last day, up to this one, on which a unit began."""
    if unit == "day":
        return day
    if unit == "week":
        return day - (day + 3) % 7
    at, months = date.fromordinal(day + EPOCH), _MONTHS[unit]
    return at.replace(month=(at.month - 1) // months * months + 1, day=1).toordinal() - EPOCH


def source_of(key: Column) -> str:
    """The column of the table that a key is about."""
    return key.of if isinstance(key, DateKey) else key.name


def cell_predicate(key: Column, code: Code) -> Predicate:
    """That a row is in the cell of this value of a key."""
    return key.holds(code) if isinstance(key, DateKey) else Range(key.name, code, code)


# As they are kept ---------------------------------------------------------------------------------


def key_as_json(key: Column) -> str | dict[str, str]:
    """A column by its name, or a part of a date."""
    return key.as_json() if isinstance(key, DateKey) else key.name


def key_from_json(kept: object, schema: Schema, most: int) -> Column:
    """The inverse of `key_as_json`; anything else raises one of many kinds of errors."""
    if isinstance(kept, str):
        return schema.column(kept)
    if not isinstance(kept, dict) or not isinstance(kept["name"], str):
        raise TypeError
    column, (kind, _, unit) = schema.column(kept["of"]), kept["function"].partition(" ")
    if kind == "date":
        function = day_of(column)
    else:
        function = truncated(unit, column) if kind == "trunc" else part_of(kind, column)
    timed = column.type == "timestamp"
    known = timed if kind == "date" or "hour" in (kind, unit) else unit in ("", *UNITS)
    try:
        if known:
            return date_key(function, kept["name"], most)
    except Unfit:
        pass
    raise ValueError
