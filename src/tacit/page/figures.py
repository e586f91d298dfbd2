"""What was released, as figures: bars with error bars, a heat map, a curve with its band.

All of it was paid for and is public; a figure decides nothing, so floats will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import singledispatch
from itertools import product
from math import ceil, floor
from typing import Any, Literal

import numpy as np

from tacit.analyst.histogram import Histogram
from tacit.analyst.query_result import QueryResult, with_error
from tacit.analyst.question_class import Ordered
from tacit.analyst.ranges import Ranges
from tacit.analyst.release import Release
from tacit.analyst.synthetic import Synthetic
from tacit.analyst.tabular import plain_value
from tacit.analyst.top import Top
from tacit.book.laplace import Estimate
from tacit.numbers import show, spaced
from tacit.page.pictures import across, path, round_steps, tick, upwards

_MOST_BARS = 60  # more are drawn as a curve
_MOST_POINTS = 320  # of a curve
_MOST_ACROSS, _MOST_DOWN = 24, 60  # of a heat map
_MOST_FIGURES = 6
_WIDTH = 1000  # of a bar, in the units of its picture
_HEATS = 4
_EACH, _ALL = "± at 95 % each", "± at 95 %, all of them together"


@dataclass(frozen=True, slots=True)
class Bar:
    """One number: how it is called and written, and from where to where it and its error reach."""

    label: str
    number: str
    start: float
    width: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bars:
    """Numbers side by side, each with its error bar."""

    title: str
    name: str  # of what the bars are called by
    bars: tuple[Bar, ...]
    error: str
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Numbers of two keys, one down and one across; how strong each cell is, from 0 to 4."""

    title: str
    down: str
    across: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    error: str  # of each cell
    kind: Literal["heat"] = "heat"


@dataclass(frozen=True, slots=True)
class BandedCurve:
    """Numbers in an order, too many for bars, with the band in which the truth lies."""

    title: str
    words: str  # for whoever does not see it
    line: str
    band: str
    heights: tuple[tuple[float, str], ...]
    places: tuple[tuple[float, str], ...]
    error: str
    kind: Literal["curve"] = "curve"


@dataclass(frozen=True, slots=True)
class OneNumber:
    """A single number with its error."""

    title: str
    number: str
    kind: Literal["number"] = "number"


Figure = Bars | HeatMap | BandedCurve | OneNumber


@dataclass(frozen=True, slots=True)
class _Series:
    """Numbers with their errors, by one or more keys."""

    title: str
    names: tuple[str, ...]
    keys: Sequence[tuple[Any, ...]]
    values: Sequence[Fraction]
    errors: Sequence[Fraction]
    error: str = ""  # in words; by default, that each is within its own
    curve: bool = False  # whether it is one however few there are

    @property
    def ordered(self) -> bool:
        """Whether its one key has an order."""
        first = self.keys[0][0]
        return isinstance(first, int | float | date) and not isinstance(first, bool)


def figures(released: Any) -> list[Figure]:
    """The pictures of what was released, the most telling ones first; none if there are none."""
    return [_drawn(series) for series in _series(released)][:_MOST_FIGURES]


@singledispatch
def _series(released: Any) -> Iterable[_Series]:
    return ()


@_series.register
def _(released: Estimate) -> Iterable[_Series]:
    yield _Series("", (), [()], [released.value], [released.error()])


@_series.register
def _(released: Histogram) -> Iterable[_Series]:
    names = tuple(column.name for column in released.columns)
    if len(names) > 2:
        return
    keys = _plain_keys(released.columns, released.cells)
    counts = [Fraction(count) for count in released.counts.tolist()]
    each = [released.error()] * len(counts)
    yield _Series("How many in each cell", names, keys, counts, each)


@_series.register
def _(released: QueryResult) -> Iterable[_Series]:
    names = tuple(key.name for key in released.keys)
    if len(names) > 2:
        return
    keys = _plain_keys(released.keys, released.cells)
    for column in released.columns:
        yield _Series(column.name, names, keys, column.values, column.errors())


@_series.register
def _(released: Ranges) -> Iterable[_Series]:
    (name, values), (_, counts) = released.to_dict().items()
    error = released.worst_error()
    words = f"all of it within {spaced(error)} (95 %)"
    numbers = [Fraction(count) for count in counts]
    keys = [(value,) for value in values]
    errors = [error] * len(keys)
    yield _Series(f"How many up to each {name}", (name,), keys, numbers, errors, words, curve=True)


@_series.register
def _(released: Top) -> Iterable[_Series]:
    if released.counts is None:
        return
    columns = released.to_dict()
    *names, _ = columns
    named = list(columns.values())[:-1]
    labels = [", ".join(map(_label, cell)) for cell in zip(*named, strict=True)]
    keys = [(f"{place}. {label}",) for place, label in enumerate(labels, 1)]
    values = [count.value for count in released.counts]
    errors = [count.error() for count in released.counts]
    yield _Series("The largest, in the order of draw", (", ".join(names),), keys, values, errors)


@_series.register
def _(released: Release) -> Iterable[_Series]:
    promised = released.guarantee()
    error = Fraction(0) if promised is None else promised
    words = "no promise without people" if promised is None else f"± {show(error)} (95 %)"
    if not isinstance(released.asked, Ordered):
        asked = [(text,) for text in released.asked]
        parts = [released.answer(text) for (text,) in asked]
        yield _Series("The part of people", ("question",), asked, parts, [error] * len(parts), _ALL)
        return
    ((name, values),) = released.to_dict().items()
    reached = {value: Fraction(at, len(values)) for at, value in enumerate(sorted(values), 1)}
    keys = [(value,) for value in reached]
    title = f"The part of people up to each {name}"
    yield _Series(
        title, (name,), keys, list(reached.values()), [error] * len(keys), words, curve=True
    )


@_series.register
def _(released: Synthetic) -> Iterable[_Series]:
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
        keys = [(first,) for first in firsts]
        title = f"{binned.name} of the invented rows"
        within = [Fraction(ceil(report.within()))] * len(values)
        yield _Series(title, (binned.name,), keys, values, within, _ALL)


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


# From series to figures ---------------------------------------------------------------------------


def _drawn(series: _Series) -> Figure:
    if not series.names:
        return OneNumber(series.title, with_error(series.values[0], series.errors[0]))
    if len(series.names) == 2:
        return _heat_map(series)
    if series.ordered and (series.curve or len(series.keys) > _MOST_BARS):
        return _curve(series)
    return _bars(series)


def _label(value: Any) -> str:
    """A key as people read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes")
    return str(value)


def _bars(series: _Series) -> Bars:
    lows = [float(value - error) for value, error in _pairs(series)]
    highs = [float(value + error) for value, error in _pairs(series)]
    least, most = min(0.0, *lows[:_MOST_BARS]), max(0.0, *highs[:_MOST_BARS])
    span = (most - least) or 1.0

    def at(number: float) -> float:
        return round((number - least) / span * _WIDTH, 1)

    bars = []
    rows = zip(series.keys, _pairs(series), lows, highs, strict=True)
    for key, (value, error), low, high in list(rows)[:_MOST_BARS]:
        ends = sorted((at(0.0), at(float(value))))
        number = with_error(value, error)
        start, width = ends[0], round(ends[1] - ends[0], 1)
        bars.append(Bar(_label(key[0]), number, start, width, at(low), at(high)))
    return Bars(series.title, series.names[0], tuple(bars), series.error or _EACH)


def _pairs(series: _Series) -> list[tuple[Fraction, Fraction]]:
    return list(zip(series.values, series.errors, strict=True))


def _heat_map(series: _Series) -> HeatMap | Bars:
    down = list(dict.fromkeys(key[0] for key in series.keys))
    heads = list(dict.fromkeys(key[1] for key in series.keys))
    found = dict(zip(series.keys, _pairs(series), strict=True))
    if len(heads) > len(down) <= _MOST_ACROSS:  # the longer one down, so that it can be read
        down, heads = heads, down
        found = {(two, one): number for (one, two), number in found.items()}
        names = (series.names[1], series.names[0])
    else:
        names = (series.names[0], series.names[1])
    down, heads = down[:_MOST_DOWN], heads[:_MOST_ACROSS]
    values = [float(found[cell][0]) for cell in product(down, heads)]
    least, most = min(values), max(values)
    same = len(set(series.errors)) == 1

    def cell(place: tuple[Any, Any]) -> tuple[str, int]:
        value, error = found[place]
        part = (float(value) - least) / (most - least) if most > least else 1.0
        return with_error(value, error).partition(" ±")[0], floor(part * _HEATS * 0.999 + 0.5)

    lines = tuple((_label(one), tuple(cell((one, two)) for two in heads)) for one in down)
    widest = max(series.errors)
    error = with_error(Fraction(0), widest).partition("± ")[2]
    said = f"each ± {error} (95 %)" if same else f"each ± {error} at most (95 %)"
    shown = tuple(map(_label, heads))
    return HeatMap(series.title, names[0], names[1], shown, lines, said)


def _curve(series: _Series) -> BandedCurve:
    every = max(1, ceil(len(series.keys) / _MOST_POINTS))
    last = len(series.keys) - 1
    kept = sorted({*range(0, last + 1, every), last})
    values = [float(series.values[place]) for place in kept]
    errors = [float(series.errors[place]) for place in kept]
    highs = [value + error for value, error in zip(values, errors, strict=True)]
    lows = [max(0.0, value - error) for value, error in zip(values, errors, strict=True)]
    if min(values) < 0:
        lows = [value - error for value, error in zip(values, errors, strict=True)]
    ticks = round_steps(min(0.0, *lows), max(highs))
    x, y = across(0, len(series.keys)), upwards(ticks[0], ticks[-1])

    def stairs(numbers: Sequence[float]) -> list[tuple[float, float]]:
        ends = [*kept[1:], len(series.keys)]
        return [
            (x(place), y(number))
            for start, end, number in zip(kept, ends, numbers, strict=True)
            for place in (start, end)
        ]

    band = path(stairs(highs) + stairs(lows)[::-1]) + "Z"
    places = [round(last * part / 4) for part in range(5)]
    labels = tuple(
        (x(place + 0.5), _label(series.keys[place][0])) for place in dict.fromkeys(places)
    )
    said = series.error or f"each ± {spaced(max(series.errors))} (95 %)"
    first, final = (_label(series.keys[place][0]) for place in (0, last))
    words = f"{series.title}, from {first} to {final}; {said}"
    heights = tuple((y(height), tick(height)) for height in ticks)
    return BandedCurve(
        title=series.title,
        words=words,
        line=path(stairs(values)),
        band=band,
        heights=heights,
        places=labels,
        error=said,
    )
