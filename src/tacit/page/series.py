"""What was released, as numbers by their keys, each with what is known of its error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import singledispatch
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from tacit.analyst.binned import BinnedColumn
from tacit.analyst.histogram import Histogram
from tacit.analyst.query_columns import QuantileColumn, StreamColumn
from tacit.analyst.query_derived import Derived
from tacit.analyst.query_result import QueryResult, with_error
from tacit.analyst.question_class import Ordered
from tacit.analyst.ranges import Ranges
from tacit.analyst.release import Release
from tacit.analyst.synthetic import Synthetic
from tacit.analyst.tabular import plain_value
from tacit.analyst.top import Top
from tacit.book.laplace import Estimate
from tacit.numbers import four_digits_up, show, spaced

_ALL = "± at 95 %, all of them together"
_RANKS = "± in ranks at 95 % each: so many values may lie between it and the true one"


class ToldNumber(NamedTuple):
    """A number as people read it, and where it and the ends of its error lie on an axis.

    What is off by so many ranks has no ends: nobody can tell how far away those lie.
    """

    words: str
    at: float
    ends: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers with their errors, by one or more keys."""

    title: str
    names: tuple[str, ...]
    keys: Sequence[tuple[Any, ...]]
    numbers: Sequence[ToldNumber]
    error: str = ""  # in words; by default, that each is within its own
    curve: bool = False  # whether it is one however few there are
    axis: tuple[float, float] | None = None  # where it begins and ends, unless at 0
    covers: str = ""  # how much of each person the errors are about, in words

    @property
    def ordered(self) -> bool:
        """Whether its one key has an order."""
        first = self.keys[0][0]
        return isinstance(first, int | float | date) and not isinstance(first, bool)


def key_in_words(value: Any) -> str:
    """A key as people read it.

    >>> key_in_words(True), key_in_words(datetime(2026, 11, 3, 9, 30)), key_in_words("Ghent")
    ('true', '2026-11-03 09:30', 'Ghent')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes")
    return str(value)


@singledispatch
def series_of(released: Any) -> Iterable[Series]:
    """The numbers of what was released, the most telling ones first; none if there are none."""
    return ()


@series_of.register
def _(released: Estimate) -> Iterable[Series]:
    numbers = _within([released.value], [released.error()])
    yield Series("", (), [()], numbers, covers=released.covers)


@series_of.register
def _(released: Histogram) -> Iterable[Series]:
    names = tuple(column.name for column in released.columns)
    keys = _plain_keys(released.columns, released.cells)
    counts = [Fraction(count) for count in released.counts.tolist()]
    numbers = _within(counts, [released.error()] * len(counts))
    yield Series("How many in each cell", names, keys, numbers, covers=released.covers)


@series_of.register
def _(released: QueryResult) -> Iterable[Series]:
    names = released.keys.names
    keys = _plain_keys([key.gives for key in released.keys], released.cells)
    if not keys:  # HAVING has told no cell
        return
    if released.places is not None:
        names, keys = _in_order(names, keys, ranked=released.having is None)
    for column in released.columns:
        if isinstance(column, QuantileColumn):
            numbers, ranks, axis = _ranked(column), _RANKS, _axis(column)
        else:
            numbers, ranks, axis = _measured(column), "", None
        yield Series(column.name, names, keys, numbers, ranks, axis=axis, covers=released.covers)


def _measured(column: Any) -> list[ToldNumber]:
    """What is divided by a count, or told by HAVING, is off by more on one side than the other."""
    plain = _within(column.values, column.errors())
    if not isinstance(column, Derived | StreamColumn):
        return plain
    ends = [(float(low), float(high)) for low, high in column.intervals()]
    return [told._replace(ends=both) for told, both in zip(plain, ends, strict=True)]


def _ranked(column: QuantileColumn) -> list[ToldNumber]:
    pairs = zip(column.values, column.errors(), strict=True)
    return [
        ToldNumber(f"{with_error(value, off)} ranks", _place(value), None) for value, off in pairs
    ]


def _axis(column: QuantileColumn) -> tuple[float, float] | None:
    """Dates have no 0 to begin at: their axis is what the schema declares."""
    domain = column.column.domain
    if not domain or isinstance(column.values[0], Fraction):
        return None
    first, last = (plain_value(column.column, code) for code in (domain[0], domain[-1]))
    return _place(first), _place(last)


def _place(value: Fraction | date) -> float:
    """Where a number, a day or a moment lies."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, datetime):
        since = value - datetime.min.replace(tzinfo=value.tzinfo)
        return since.total_seconds()
    return float(value.toordinal())


@series_of.register
def _(released: Ranges) -> Iterable[Series]:
    (name, values), (_, counts), *_ = released.to_dict().items()
    error = released.worst_error()
    words = f"all of it within {spaced(error)} (95 %)"
    numbers = _within([Fraction(count) for count in counts], [error] * len(counts))
    keys = [(value,) for value in values]
    title, covers = f"How many up to each {name}", released.covers
    yield Series(title, (name,), keys, numbers, words, curve=True, covers=covers)


@series_of.register
def _(released: Top) -> Iterable[Series]:
    if released.counts is None:
        return
    columns = released.keys
    ordered, keys = _in_order(list(columns), list(zip(*columns.values(), strict=True)))
    values = [count.value for count in released.counts]
    numbers = _within(values, [count.error() for count in released.counts])
    covers = released.covers
    yield Series("The largest, in the order of draw", ordered, keys, numbers, covers=covers)


@series_of.register
def _(released: Release) -> Iterable[Series]:
    promised = released.guarantee()
    error = Fraction(0) if promised is None else promised
    words = "no promise without people" if promised is None else f"± {show(error)} (95 %)"
    if not isinstance(released.asked, Ordered):
        asked = [(text,) for text in released.asked]
        numbers = _parts([released.answer(text) for (text,) in asked], error)
        covers = released.covers
        yield Series("The part of people", ("question",), asked, numbers, _ALL, covers=covers)
        return
    ((name, values),) = released.to_dict().items()
    reached = {value: Fraction(at, len(values)) for at, value in enumerate(sorted(values), 1)}
    keys = [(value,) for value in reached]
    numbers = _parts(list(reached.values()), error)
    title, covers = f"The part of people up to each {name}", released.covers
    yield Series(title, (name,), keys, numbers, words, curve=True, covers=covers)


@series_of.register
def _(released: Synthetic) -> Iterable[Series]:
    columns = released.to_dict()
    each = Fraction(released.people, len(released))
    for place, report in enumerate(released.report):
        if len(report.columns) != 1:
            continue
        binned = released.plan.columns[released.measured[place].columns[0]]
        if binned.starts is None:
            firsts = [plain_value(binned.column, code) for code in binned.column.domain or ()]
        else:
            firsts = [plain_value(binned.column, code) for code in binned.starts]
        found = _counted(columns[binned.name], firsts, cut=binned.starts is not None)
        values = [Fraction(round(count * each)) for count in found]
        keys = [(first,) for first in _bins(binned) or firsts]
        numbers = _within(values, [Fraction(ceil(report.within()))] * len(values))
        title, covers = f"{binned.name} of the invented rows", released.covers
        yield Series(title, (binned.name,), keys, numbers, _ALL, covers=covers)


def _within(values: Sequence[Fraction], errors: Sequence[Fraction]) -> list[ToldNumber]:
    """Numbers that are off by no more than so much, in both directions."""
    return [
        ToldNumber(
            with_error(value, error), float(value), (float(value - error), float(value + error))
        )
        for value, error in zip(values, errors, strict=True)
    ]


def _parts(values: Sequence[Fraction], error: Fraction) -> list[ToldNumber]:
    """Parts of all people, which lie between 0 and 1."""
    off = four_digits_up(error)
    return [
        ToldNumber(
            f"{show(value)} ± {off}",
            float(value),
            (float(max(value - error, Fraction(0))), float(min(value + error, Fraction(1)))),
        )
        for value in values
    ]


def _in_order(
    names: Sequence[str], keys: Sequence[tuple[Any, ...]], *, ranked: bool = True
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """One key for each cell that is told, with its place if they were drawn in that order."""
    told = [", ".join(map(key_in_words, key)) for key in keys]
    places = [f"{place}. " if ranked else "" for place in range(1, len(told) + 1)]
    pairs = zip(places, told, strict=True)
    return (", ".join(names),), [(f"{place}{words}",) for place, words in pairs]


def _bins(binned: BinnedColumn) -> list[str]:
    """Bins from their first to their last values; none where each value is one."""
    if binned.starts is None:
        return []
    lasts = [*(start - 1 for start in binned.starts[1:]), binned.column.range[1]]
    ends = zip(binned.starts, lasts, strict=True)
    words = ([key_in_words(plain_value(binned.column, code)) for code in both] for both in ends)
    return [first if first == last else f"{first} to {last}" for first, last in words]


def _counted(values: Sequence[Any], firsts: Sequence[Any], *, cut: bool) -> list[int]:
    """How many values each bin has, or each key."""
    if cut:
        at = np.searchsorted(np.array(firsts), np.array(values), side="right") - 1
        found: list[int] = np.bincount(at, minlength=len(firsts)).tolist()
        return found
    places = {first: place for place, first in enumerate(firsts)}
    counts = [0] * len(firsts)
    for value in values:
        counts[places[value]] += 1
    return counts


def _plain_keys(columns: Sequence[Any], cells: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        tuple(plain_value(column, code) for column, code in zip(columns, cell, strict=True))
        for cell in cells
    ]
