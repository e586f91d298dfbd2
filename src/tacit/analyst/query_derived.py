"""Columns of a query's result that are computed from what was measured with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from tacit.analyst.query_measured import Interval, QueryColumn, name_of
from tacit.numbers import Number, exact, probability
from tacit.numerics import certified

_ONE, _ZERO = Fraction(1), Fraction(0)


class Derived:
    """A column that is computed from others, which were measured: ``factor`` times something.

    Each kind says how one cell follows from what was measured there (`_value`), and between what it
    lies if that lies between such numbers (`_between`).
    """

    __slots__ = ()

    name: str
    factor: Fraction

    tag: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]

    @property
    def measured(self) -> tuple[QueryColumn, ...]:
        """What was measured for it, with noise."""
        return tuple(getattr(self, part) for part in self.parts)

    def _value(self, *parts: Fraction) -> Fraction:
        raise NotImplementedError

    def _between(self, *parts: Interval) -> Interval:
        raise NotImplementedError

    @property
    def max_rows(self) -> int | None:
        """How many rows of a person count in a cell; None if no rows are counted."""
        return max((each.max_rows or 0 for each in self.measured), default=0) or None

    @property
    def values(self) -> list[Fraction]:
        """What it is in each cell."""
        cells = zip(*(each.values for each in self.measured), strict=True)
        return [self.factor * self._value(*parts) for parts in cells]

    def intervals(self, beta: Number = "1/20") -> list[Interval]:
        """In which interval each lies by itself, if there is one, except with probability β.

        Accuracy: each of the k numbers that were measured is within its own error but with
        probability β/k, by the exact law of its noise.  Then what is asked is one of those that
        these errors allow; if they allow none, nothing was there, and nothing is claimed.  What
        is told lies in it, too, though a count that says nothing may stand for another value.
        """
        each = probability(beta, "beta") / len(self.measured)
        cells = zip(*(column.intervals(each) for column in self.measured), strict=True)
        ends = [[self.factor * end for end in self._between(*parts)] for parts in cells]
        told = zip(self.values, ends, strict=True)
        return [(min(value, *pair), max(value, *pair)) for value, pair in told]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """How far each may be off by itself, except with probability β."""
        pairs = zip(self.values, self.intervals(beta), strict=True)
        return [max(value - low, high - value, _ZERO) for value, (low, high) in pairs]

    def _more(self) -> dict[str, Any]:
        """What else it is made with, in plain JSON; the tag stands for its kind."""
        return {self.tag: True}

    @classmethod
    def _read_more(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of `_more`."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        factor = {} if self.factor == 1 else {"factor": str(self.factor)}
        measured = {each.name: each.as_json() for each in self.measured}
        return {"name": self.name, **self._more(), **factor, **measured}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        factor = exact(fields.get("factor", 1), "factor")
        if factor == 0:
            raise ValueError
        made: dict[str, Any] = {part: QueryColumn.from_json(fields[part]) for part in cls.parts}
        made |= {"name": name_of(fields), "factor": factor, **cls._read_more(fields)}
        return cls(**made)


def _quotients(above: Interval, below: Interval) -> Interval:
    """Between what the quotients of two numbers lie, the second of which is positive."""
    (low, high), (least, most) = above, below
    return low / (least if low < 0 else most), high / (least if high > 0 else most)


def _counted(below: Interval, at_least: Fraction = _ONE) -> Interval:
    """Between what a count lies that is not nothing."""
    return max(below[0], at_least), max(below[1], at_least)


def _within(value: Fraction, bounds: Interval) -> Fraction:
    return min(max(value, bounds[0]), bounds[1])


@dataclass(frozen=True, slots=True)
class MeanColumn(Derived):
    """The mean of some values in every cell, from a noisy count and a noisy sum.

    The sum is that of the values' distances from the middle of the bounds, in half steps.
    """

    tag: ClassVar[str] = "mean of"
    parts: ClassVar[tuple[str, ...]] = ("count", "total")

    name: str
    count: QueryColumn
    total: QueryColumn
    bounds: Interval
    factor: Fraction = _ONE

    @property
    def _middle(self) -> Fraction:
        return sum(self.bounds, _ZERO) / 2

    def _value(self, *parts: Fraction) -> Fraction:
        """Within the bounds; the middle where the count says nothing."""
        count, total = parts
        mean = self._middle + (total / count if count >= 1 else _ZERO)
        return _within(mean, self.bounds)

    def _between(self, *parts: Interval) -> Interval:
        """Within the bounds; all of them if there may be no value at all."""
        count, total = parts
        if count[1] < 1:
            return self.bounds
        low, high = _quotients(total, _counted(count))
        return _within(self._middle + low, self.bounds), _within(self._middle + high, self.bounds)

    def _more(self) -> dict[str, Any]:
        return {self.tag: [str(end) for end in self.bounds]}

    @classmethod
    def _read_more(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {"bounds": _bounds(fields[cls.tag])}


def _bounds(ends: Any) -> Interval:
    low, high = (exact(end, "bounds") for end in ends)
    if low >= high:
        raise ValueError
    return low, high


@dataclass(frozen=True, slots=True)
class ShareColumn(Derived):
    """Which share of a count is also counted by something narrower, in every cell.

    What is inside and the rest are disjoint, so that both have noise for the whole ε.
    """

    tag: ClassVar[str] = "share"
    parts: ClassVar[tuple[str, ...]] = ("inside", "rest")

    name: str
    inside: QueryColumn
    rest: QueryColumn
    factor: Fraction = _ONE

    def _value(self, *parts: Fraction) -> Fraction:
        """Between 0 and 1; a half where the counts say nothing."""
        inside, rest = (max(part, _ZERO) for part in parts)
        return inside / (inside + rest) if inside + rest else Fraction(1, 2)

    def _between(self, *parts: Interval) -> Interval:
        """It grows with what is inside and falls with the rest, neither of which is negative."""
        (few, many), (least, most) = [[max(end, _ZERO) for end in part] for part in parts]
        low = few / (few + most) if few else _ZERO
        return low, many / (many + least) if least else _ONE


@dataclass(frozen=True, slots=True)
class RatioColumn(Derived):
    """One noisy number divided by another, which is not negative, in every cell."""

    tag: ClassVar[str] = "ratio"
    parts: ClassVar[tuple[str, ...]] = ("above", "below")

    name: str
    above: QueryColumn
    below: QueryColumn
    factor: Fraction = _ONE

    def _value(self, *parts: Fraction) -> Fraction:
        """As if there were at least one step below the line."""
        above, below = parts
        return above / max(below, self.below.grid)

    def _between(self, *parts: Interval) -> Interval:
        """Where there is a ratio, at least one step stands below the line."""
        above, below = parts
        return _quotients(above, _counted(below, self.below.grid))


@dataclass(frozen=True, slots=True)
class SpreadColumn(Derived):
    """The variance of some values in every cell, or its root, from three noisy numbers.

    With y a value's distance from the middle of the bounds and h half their width, these are how
    many values there are, Σ y, and Σ (y² − h²/2).  The variance is the mean of y² less the square
    of that of y; that of a sample is n/(n − 1) times as much.
    """

    tag: ClassVar[str] = "spread of"
    parts: ClassVar[tuple[str, ...]] = ("count", "total", "squares")

    name: str
    count: QueryColumn
    total: QueryColumn
    squares: QueryColumn
    bounds: Interval
    sample: bool
    root: bool
    factor: Fraction = _ONE

    @property
    def _most(self) -> Fraction:
        """The largest variance of values within the bounds: h²."""
        return ((self.bounds[1] - self.bounds[0]) / 2) ** 2

    def _value(self, *parts: Fraction) -> Fraction:
        """Half the largest there can be where the count says nothing."""
        count, total, squares = parts
        found = self._most / 2
        if count >= 1 + self.sample:
            found = squares / count + self._most / 2 - (total / count) ** 2
            found = _within(found, (_ZERO, self._most)) * self._as_sample(count)
        return _rooted(found) if self.root else found

    def _as_sample(self, count: Fraction) -> Fraction:
        return count / (count - 1) if self.sample else _ONE

    def _between(self, *parts: Interval) -> Interval:
        """With t = 1/n it is A·t − B·t² + h²/2, a curve that opens downwards: A from Σ, B from S².

        It is least at an end of t, with the least A and the largest B, and largest with the largest
        A and the least B, at t = A/(2B) if that is allowed, or else at an end.
        """
        count, total, squares = parts
        low, high = _ZERO, self._most
        fewest = _ONE + self.sample
        least, most = _counted(count, fewest)
        if count[1] >= fewest:
            ends = (1 / most, 1 / least)
            nearest = _ZERO if total[0] <= 0 <= total[1] else min(map(abs, total))
            furthest = max(map(abs, total))
            tops = [*ends]
            if nearest:
                tops.append(_within(squares[1] / (2 * nearest**2), ends))
            low += max(_ZERO, min(squares[0] * t - (furthest * t) ** 2 for t in ends) + high / 2)
            high = min(high, max(squares[1] * t - (nearest * t) ** 2 for t in tops) + high / 2)
            low, high = min(low, self._most), max(high, _ZERO)
        low, high = low * self._as_sample(most), high * self._as_sample(least)
        return (certified.sqrt(low)[0], certified.sqrt(high)[1]) if self.root else (low, high)

    def _more(self) -> dict[str, Any]:
        bounds = [str(end) for end in self.bounds]
        return {self.tag: bounds, "sample": self.sample, "root": self.root}

    @classmethod
    def _read_more(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        kind = {part: fields[part] for part in ("sample", "root")}
        if not all(isinstance(each, bool) for each in kind.values()):
            raise TypeError
        return {"bounds": _bounds(fields[cls.tag]), **kind}


def _rooted(value: Fraction) -> Fraction:
    """The root of a number, as near as anybody can tell."""
    return sum(certified.sqrt(value), _ZERO) / 2
