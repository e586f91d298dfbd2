"""Numbers as figures: bars with error bars, a heat map, a curve with its band.

All of it was paid for and is public; a figure decides nothing, so floats will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, floor
from typing import Any, Literal

from tacit.page.pictures import across, path, round_steps, tick, upwards
from tacit.page.rendering import number
from tacit.page.series import Series, ToldNumber, key_in_words, series_of

_MOST_BARS = 60  # more are drawn as a curve
_MOST_POINTS = 320  # of a curve
_MOST_ACROSS, _MOST_DOWN = 24, 60  # of a heat map
_MOST_FIGURES = 6
_WIDTH = 1000  # of a bar, in the units of its picture
_MARK = 12  # the width of what has a place and no length
HEATS = 4  # how strong a cell may be
_EACH = "± at 95 % each"


@dataclass(frozen=True, slots=True)
class Bar:
    """One number: how it is called and written, and from where to where it and its error reach."""

    label: str
    number: str
    start: float
    width: float
    error: tuple[float, float] | None


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
    error: str  # what its error covers, if that may be less than all
    kind: Literal["number"] = "number"


Figure = Bars | HeatMap | BandedCurve | OneNumber


def figures(released: Any) -> list[Figure]:
    """The pictures of what was released, the most telling ones first; none if there are none."""
    return [_and_covers(_drawn(series), series) for series in series_of(released)][:_MOST_FIGURES]


def _and_covers(figure: Figure, series: Series) -> Figure:
    """The same, and what its errors cover, beside them."""
    said = "; ".join(filter(None, (figure.error, series.covers)))
    return replace(figure, error=said)


def _drawn(series: Series) -> Figure:
    if not series.names:
        return OneNumber(series.title, series.numbers[0].words, "")
    if len(series.names) == 2:
        return _heat_map(series)
    if len(series.names) == 1 and series.ordered and _is_curve(series):
        return _curve(series)
    return _bars(series)


def _is_curve(series: Series) -> bool:
    known = all(told.ends is not None for told in series.numbers)
    return series.curve or (known and len(series.keys) > _MOST_BARS)


def _first(drawn: int, there_are: int, what: str) -> str:
    """That not all of it is drawn, in words."""
    if drawn >= there_are:
        return ""
    return f"; only the first {drawn} of {number(there_are)} {what} are drawn"


def _bars(series: Series) -> Bars:
    shown = series.numbers[:_MOST_BARS]
    reached = [end for told in shown for end in (told.at, *(told.ends or ()))]
    least, most = series.axis or (min(0.0, *reached), max(0.0, *reached))
    span = (most - least) or 1.0

    def at(number: float) -> float:
        return round((number - least) / span * _WIDTH, 1)

    def bar(key: tuple[Any, ...], told: ToldNumber) -> Bar:
        start, end = sorted((at(0.0), at(told.at)))
        if series.axis is not None:
            start = min(at(told.at), _WIDTH - _MARK)
            end = start + _MARK
        error = None if told.ends is None else (at(told.ends[0]), at(told.ends[1]))
        label = ", ".join(map(key_in_words, key))
        return Bar(label, told.words, start, round(end - start, 1), error)

    bars = tuple(bar(key, told) for key, told in zip(series.keys, shown, strict=False))
    said = (series.error or _EACH) + _first(len(bars), len(series.keys), "cells")
    return Bars(series.title, ", ".join(series.names), bars, said)


def _heat_map(series: Series) -> HeatMap:
    down = list(dict.fromkeys(key[0] for key in series.keys))
    heads = list(dict.fromkeys(key[1] for key in series.keys))
    found = dict(zip(series.keys, series.numbers, strict=True))
    if len(heads) > len(down) <= _MOST_ACROSS:  # the longer one down, so that it can be read
        down, heads = heads, down
        found = {(two, one): number for (one, two), number in found.items()}
        names = (series.names[1], series.names[0])
    else:
        names = (series.names[0], series.names[1])
    cut = _first(_MOST_DOWN, len(down), f"values of {names[0]}")
    cut += _first(_MOST_ACROSS, len(heads), f"values of {names[1]}")
    down, heads = down[:_MOST_DOWN], heads[:_MOST_ACROSS]
    values = [found[cell].at for cell in product(down, heads)]
    least, most = min(values), max(values)

    def cell(place: tuple[Any, Any]) -> tuple[str, int]:
        told = found[place]
        part = (told.at - least) / (most - least) if most > least else 1.0
        return told.words.partition(" ±")[0], floor(part * HEATS * 0.999 + 0.5)

    lines = tuple((key_in_words(one), tuple(cell((one, two)) for two in heads)) for one in down)
    shown = tuple(map(key_in_words, heads))
    return HeatMap(series.title, names[0], names[1], shown, lines, _off_by(series) + cut)


def _off_by(series: Series) -> str:
    """How far each cell of a heat map may be off, in words."""

    def reach(told: ToldNumber) -> float:
        return 0.0 if told.ends is None else max(told.at - told.ends[0], told.ends[1] - told.at)

    widest = max(series.numbers, key=reach)
    error = widest.words.partition("± ")[2]
    same = len({told.words.partition("± ")[2] for told in series.numbers}) == 1
    return f"each ± {error} (95 %)" if same else f"each ± {error} at most (95 %)"


def _curve(series: Series) -> BandedCurve:
    every = max(1, ceil(len(series.keys) / _MOST_POINTS))
    last = len(series.keys) - 1
    kept = sorted({*range(0, last + 1, every), last})
    values = [series.numbers[place].at for place in kept]
    ends = [
        series.numbers[place].ends or (value, value)
        for place, value in zip(kept, values, strict=True)
    ]
    highs = [high for _, high in ends]
    lows = [low for low, _ in ends]
    if min(values) >= 0:
        lows = [max(0.0, low) for low in lows]
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
        (x(place + 0.5), key_in_words(series.keys[place][0])) for place in dict.fromkeys(places)
    )
    said = series.error or _off_by(series)
    first, final = (key_in_words(series.keys[place][0]) for place in (0, last))
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
