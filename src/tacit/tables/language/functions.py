"""Functions of a column that a comparison may be about: of text, and of dates and timestamps.

All of them are total.  Of a date or timestamp, ``year`` and ``date_trunc`` keep the order, so a
comparison with them is one with the column itself, and is written so.  The others stay in the tree,
as `Computed`, and are computed on codes: here in Python and numpy, in ``duckdb.py`` in SQL.

The names of functions are part of stored question keys, and never change.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.language.templates import OPERATORS, flattened, whole_range
from tacit.tables.language.tree import (
    Among,
    And,
    Computed,
    IsTrue,
    Like,
    Not,
    Or,
    Predicate,
    Range,
)
from tacit.tables.schema.codes import WIDEST, Code, Type, Unfit
from tacit.tables.schema.schema import Column
from tacit.tables.schema.zones import DAY

Days = NDArray[np.int64]

LONGEST_TEXT = 2**20  # code points; a longer text is NULL
HOUR = 3600 * 10**6
LETTERS = string.ascii_lowercase, string.ascii_uppercase

EPOCH = 719_163  # the ordinal of 1970-01-01
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_LAST_DAY = WIDEST["date"][1]

# Case is that of A to Z alone.  Unicode's tables grow, and databases disagree about them.
_TO_UPPER, _TO_LOWER = str.maketrans(*LETTERS), str.maketrans(*LETTERS[::-1])


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a column: its name, with a number if it has one, and what it gives."""

    name: str
    column: Column
    gives: Column
    """A column of the same name that holds what the function gives: how values are read."""


def text_function(name: str, column: Column) -> Function:
    """``upper``, ``lower``, ``length``, ``left 3`` or ``right 3`` of a text column."""
    if name == "length":
        return Function(name, column, Column(column.name, "integer", bounds=(0, LONGEST_TEXT)))
    return Function(name, column, Column(column.name, "text"))


# Parts of dates, and the numbers that they may be.
DATE_PARTS: dict[str, tuple[int, int]] = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
}
UNITS = ("year", "quarter", "month", "week", "day", "hour")


def part_of_date(name: str, column: Column) -> Function:
    """``extract(part from column)``."""
    return Function(name, column, Column(column.name, "integer", bounds=DATE_PARTS[name]))


def truncated(unit: str, column: Column) -> Function:
    """``date_trunc(unit, column)``."""
    return Function(f"trunc {unit}", column, Column(column.name, column.type, zone=column.zone))


def day_of(column: Column) -> Function:
    """``cast(column as date)`` of a timestamp."""
    return Function("date", column, Column(column.name, "date"))


# Predicates


def of_function(function: Function, tree: Predicate) -> Predicate:
    """A predicate about what a function gives, as one about the column."""
    match tree:
        case Range() | Among() | Like():
            return _leaf(function, tree)
        case Not(part):
            return Not(of_function(function, part))
        case IsTrue(part):
            return IsTrue(of_function(function, part))
        case And(parts) | Or(parts):
            return flattened(type(tree), [of_function(function, part) for part in parts])
    return tree  # a constant, or IS NULL: a function is NULL just where its column is


def _leaf(function: Function, tree: Range | Among | Like) -> Predicate:
    if isinstance(tree, Among) and not tree.values:
        return tree
    if isinstance(tree, Like) or not keeps_order(function.name):
        return Computed(function.name, tree)
    ranges = [(tree.low, tree.high)] if isinstance(tree, Range) else [(v, v) for v in tree.values]
    return flattened(Or, [_range(function, low, high) for low, high in ranges])


def keeps_order(name: str) -> bool:
    """Whether a function of dates keeps their order, so that each value is an interval of codes."""
    return name in ("year", "date") or name.startswith("trunc ")


def _range(function: Function, low: Code | None, high: Code | None) -> Predicate:
    """The codes of the column for which the function lies between low and high."""
    first = None if low is None else first_code(function, int(low))
    last = None if high is None else first_code(function, int(high) + 1) - 1
    return whole_range(function.column, first, last)


def first_code(function: Function, value: int) -> int:
    """The least code of the column for which the function is at least this."""
    timed = function.column.type == "timestamp"
    if function.name == "date":
        return value * DAY
    if function.name == "trunc hour":
        return -(-value // HOUR) * HOUR
    if function.name == "year":
        day = date(value, 1, 1).toordinal() - EPOCH if value <= 9999 else _LAST_DAY + 1
    else:
        day = unit_start(function.name.removeprefix("trunc "), -(-value // DAY) if timed else value)
    return day * DAY if timed else day


def unit_start(unit: str, day: int) -> int:
    """The first day, from this one on, on which a unit begins."""
    if unit == "day" or day > _LAST_DAY:
        return day
    if unit == "week":
        return day + (-day - 3) % 7
    months = _MONTHS[unit]
    at = date.fromordinal(day + EPOCH)
    month = at.year * 12 + at.month - 1 + (at.day > 1)
    year, month = divmod(-(-month // months) * months, 12)
    return date(year, month + 1, 1).toordinal() - EPOCH if year <= 9999 else _LAST_DAY + 1


def values_between(function: Function, low: int, high: int) -> Sequence[int]:
    """What a function that keeps the order gives for codes from low to high, each value once."""
    timed, unit = function.column.type == "timestamp", function.name.removeprefix("trunc ")
    if unit == "hour":
        return range(low // HOUR * HOUR, high + 1, HOUR)
    first, last = (low // DAY, high // DAY) if timed else (low, high)
    scale = DAY if timed and unit != "date" else 1
    if unit in ("day", "date"):
        return range(first * scale, last * scale + 1, scale)
    if unit == "week":
        return range((first - (first + 3) % 7) * scale, last * scale + 1, 7 * scale)
    ends: Any = np.array([first, last], "datetime64[D]").astype("datetime64[M]").astype(np.int64)
    start, end = ends.tolist()  # months since 1970
    if function.name == "year":
        return range(1970 + start // 12, 1971 + end // 12)
    size = _MONTHS[unit]
    months: Any = np.arange(start // size * size, end + 1, size).astype("datetime64[M]")
    return tuple((months.astype("datetime64[D]").astype(np.int64) * scale).tolist())


def ilike(column: Column, values: Sequence[object]) -> Predicate:
    """``column ILIKE pattern``: LIKE of both in lower case, of A to Z alone; raises Unfit."""
    lower, (pattern,) = text_function("lower", _text(column)), values
    folded = pattern.translate(_TO_LOWER) if isinstance(pattern, str) else pattern
    return of_function(lower, OPERATORS["like"](lower.gives, [folded]))


def begins_or_ends(side: str, column: Column, values: Sequence[object]) -> Predicate:
    """``starts_with(column, value)`` or ``ends_with``, by the side; raises Unfit."""
    (value,) = values
    size = len(value) if isinstance(value, str) else 0
    function = text_function(f"{side} {size}", _text(column))
    return of_function(function, OPERATORS["="](function.gives, [value]))


def _text(column: Column) -> Column:
    if column.type != "text":
        raise Unfit("the function needs a text column")
    return column


# What functions give, in codes


def gives_text(name: str) -> Callable[[str], Code]:
    """A function of text."""
    if name == "upper":
        return lambda word: word.translate(_TO_UPPER)
    if name == "lower":
        return lambda word: word.translate(_TO_LOWER)
    if name == "length":
        return len
    side, _, number = name.partition(" ")
    size = int(number)
    if side == "left":
        return lambda word: word[:size]
    assert side == "right"
    return lambda word: word[max(len(word) - size, 0) :]


def part_of_codes(name: str, type_: Type, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A part of dates or timestamps."""
    if name == "hour":
        return codes // HOUR % 24
    days = codes // DAY if type_ == "timestamp" else codes
    if name == "isodow":
        return (days + 3) % 7 + 1
    if name == "dow":
        return (days + 4) % 7
    if name == "week":  # that of the week's Thursday, counted in its own year
        thursdays = days - (days + 3) % 7 + 3
        return (thursdays - _starts(thursdays, "Y")) // 7 + 1
    if name == "day":
        return days - _starts(days, "M") + 1
    months: Any = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    found: NDArray[np.int64] = months % 12 + 1
    return found if name == "month" else (found + 2) // 3


def _starts(days: Days, unit: str) -> Days:
    """The first day of the month or year of each day."""
    dates: Any = days.astype("datetime64[D]").astype(f"datetime64[{unit}]")
    first: Days = dates.astype("datetime64[D]").astype(np.int64)
    return first


def holds_of(tree: Computed, type_: Type) -> Callable[[Any], bool]:
    """Whether a computed predicate is TRUE of a code that is not NULL."""
    test = _test(tree.atom)
    if type_ == "text":
        function = gives_text(tree.function)
        return lambda word: test(function(word))
    return lambda code: test(int(part_of_codes(tree.function, type_, np.array([code]))[0]))


def _test(atom: Range | Among | Like) -> Callable[[Any], bool]:
    if isinstance(atom, Like):
        return like(atom.pattern)
    if isinstance(atom, Among):
        return frozenset(atom.values).__contains__
    low, high = atom.low, atom.high
    return lambda value: (low is None or value >= low) and (high is None or value <= high)


def parts_that_hold(tree: Computed) -> list[int]:
    """The numbers of a part of dates for which a computed predicate is TRUE."""
    test, (least, most) = _test(tree.atom), DATE_PARTS[tree.function]
    return [number for number in range(least, most + 1) if test(number)]


def like(pattern: str) -> Callable[[str], bool]:
    """A test for a LIKE pattern; each piece of the pattern takes time linear in the text."""
    pieces = pattern.split("%")
    tests = [re.compile(re.escape(piece).replace("_", "."), re.DOTALL) for piece in pieces]
    sizes = [len(piece) for piece in pieces]
    if len(pieces) == 1:
        return lambda word: tests[0].fullmatch(word) is not None

    def matches(word: str) -> bool:
        if len(word) < sizes[0] + sizes[-1]:
            return False
        if not tests[0].match(word) or not tests[-1].match(word, len(word) - sizes[-1]):
            return False
        position, end = sizes[0], len(word) - sizes[-1]
        for test in tests[1:-1]:  # the leftmost match leaves most room for the rest
            found = test.search(word, position, end)
            if found is None:
                return False
            position = found.end()
        return True

    return matches
