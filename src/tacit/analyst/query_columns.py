"""The columns of a query's result: what was measured with noise, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.analyst.tabular import plain_value
from tacit.book.laplace import Estimate, error_steps
from tacit.book.quantile import QuantileMechanism
from tacit.numbers import Number, exact, positive, probability, spaced
from tacit.numerics import certified
from tacit.privacy import Privacy
from tacit.tables.codes import NUMBERS
from tacit.tables.schema import Column, Schema, row_bound

Interval = tuple[Fraction, Fraction]
_ONE, _ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """An aggregate of every cell, with noise: whole numbers of steps of its grid."""

    name: str
    privacy: Privacy
    grid: Fraction
    noise_scale: Fraction  # in steps
    steps: tuple[int, ...]
    max_rows: int | None = None
    """How many rows of a person count in a cell; None if no rows are counted."""
    max_keys: int | None = None
    """For how many distinct keys a person counts; None if keys are not what is counted."""

    @property
    def values(self) -> list[Fraction]:
        """The noisy values, cell by cell."""
        return [steps * self.grid for steps in self.steps]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """How far each of the values may be off by itself, except with probability β."""
        return [error_steps(self.noise_scale, beta) * self.grid] * len(self.steps)

    def ranges(self, beta: Fraction) -> list[Interval]:
        """Between what each true value lies by itself, except with probability β."""
        off = error_steps(self.noise_scale, beta) * self.grid
        return [(value - off, value + off) for value in self.values]

    @property
    def estimates(self) -> list[Estimate]:
        """The noisy values, each with its error bar."""
        return [
            Estimate(
                value=value, noise_scale=self.noise_scale, privacy=self.privacy, grid=self.grid
            )
            for value in self.values
        ]

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        keys = {} if self.max_keys is None else {"max_keys": self.max_keys}
        return {
            "name": self.name,
            "epsilon": str(self.privacy.epsilon),
            "grid": str(self.grid),
            "noise_scale": str(self.noise_scale),
            "steps": list(self.steps),
            "max_rows": self.max_rows,
            **keys,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> QueryColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        if not isinstance(fields["name"], str):
            raise TypeError
        if not all(type(steps) is int for steps in fields["steps"]):
            raise TypeError
        keys = fields.get("max_keys")
        return cls(
            fields["name"],
            Privacy(fields["epsilon"]),
            positive(fields["grid"], "grid"),
            positive(fields["noise_scale"], "noise_scale"),
            tuple(fields["steps"]),
            max_rows=None if fields["max_rows"] is None else row_bound(fields["max_rows"]),
            max_keys=None if keys is None else row_bound(keys, "max_keys"),
        )


class Derived:
    """A column that is computed from others, which were measured: ``factor`` times something.

    Each kind says how one cell follows from what was measured there (`_value`), and between what it
    lies if that lies between such numbers (`_between`).
    """

    __slots__ = ()

    name: str
    factor: Fraction

    @property
    def measured(self) -> tuple[QueryColumn, ...]:
        """What was measured for it, with noise."""
        raise NotImplementedError

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
        these errors allow; if they allow none, nothing was there, and nothing is claimed.
        """
        each = probability(beta, "beta") / len(self.measured)
        cells = zip(*(column.ranges(each) for column in self.measured), strict=True)
        found = [[self.factor * end for end in self._between(*parts)] for parts in cells]
        return [(min(ends), max(ends)) for ends in found]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """How far each may be off by itself, except with probability β."""
        pairs = zip(self.values, self.intervals(beta), strict=True)
        return [max(value - low, high - value, _ZERO) for value, (low, high) in pairs]

    def _tagged(self, tag: str, what: object) -> dict[str, Any]:
        """Its name, what kind it is, its factor if it has one, and what was measured."""
        factor = {} if self.factor == 1 else {"factor": str(self.factor)}
        measured = {each.name: each.as_json() for each in self.measured}
        return {"name": self.name, tag: what, **factor, **measured}


def _read(fields: Mapping[str, Any], *parts: str) -> tuple[str, Fraction, list[QueryColumn]]:
    """The inverse of `Derived._tagged`."""
    if not isinstance(fields["name"], str):
        raise TypeError
    factor = exact(fields.get("factor", 1), "factor")
    if factor == 0:
        raise ValueError
    return fields["name"], factor, [QueryColumn.from_json(fields[part]) for part in parts]


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

    name: str
    count: QueryColumn
    total: QueryColumn
    bounds: Interval
    factor: Fraction = _ONE

    @property
    def measured(self) -> tuple[QueryColumn, ...]:
        """How many there are, and the sum of their distances from the middle."""
        return (self.count, self.total)

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

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        return self._tagged("mean of", [str(end) for end in self.bounds])

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> MeanColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        name, factor, (count, total) = _read(fields, "count", "total")
        return cls(name, count, total, _bounds(fields["mean of"]), factor)


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

    name: str
    inside: QueryColumn
    rest: QueryColumn
    factor: Fraction = _ONE

    @property
    def measured(self) -> tuple[QueryColumn, ...]:
        """What is inside, and the rest."""
        return (self.inside, self.rest)

    def _value(self, *parts: Fraction) -> Fraction:
        """Between 0 and 1; a half where the counts say nothing."""
        inside, rest = (max(part, _ZERO) for part in parts)
        return inside / (inside + rest) if inside + rest else Fraction(1, 2)

    def _between(self, *parts: Interval) -> Interval:
        """It grows with what is inside and falls with the rest, neither of which is negative."""
        (few, many), (least, most) = [[max(end, _ZERO) for end in part] for part in parts]
        low = few / (few + most) if few else _ZERO
        return low, many / (many + least) if least else _ONE

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        return self._tagged("share", True)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ShareColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        name, factor, (inside, rest) = _read(fields, "inside", "rest")
        return cls(name, inside, rest, factor)


@dataclass(frozen=True, slots=True)
class RatioColumn(Derived):
    """One noisy number divided by another, which is not negative, in every cell."""

    name: str
    above: QueryColumn
    below: QueryColumn
    factor: Fraction = _ONE

    @property
    def measured(self) -> tuple[QueryColumn, ...]:
        """What stands above the line, and below."""
        return (self.above, self.below)

    def _value(self, *parts: Fraction) -> Fraction:
        """As if there were at least one step below the line."""
        above, below = parts
        return above / max(below, self.below.grid)

    def _between(self, *parts: Interval) -> Interval:
        """Where there is a ratio, at least one step stands below the line."""
        above, below = parts
        return _quotients(above, _counted(below, self.below.grid))

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        return self._tagged("ratio", True)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> RatioColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        name, factor, (above, below) = _read(fields, "above", "below")
        return cls(name, above, below, factor)


@dataclass(frozen=True, slots=True)
class SpreadColumn(Derived):
    """The variance of some values in every cell, or its root, from three noisy numbers.

    With y a value's distance from the middle of the bounds and h half their width, these are how
    many values there are, Σ y, and Σ (y² − h²/2).  The variance is the mean of y² less the square
    of that of y; that of a sample is n/(n − 1) times as much.
    """

    name: str
    count: QueryColumn
    total: QueryColumn
    squares: QueryColumn
    bounds: Interval
    sample: bool
    root: bool
    factor: Fraction = _ONE

    @property
    def measured(self) -> tuple[QueryColumn, ...]:
        """How many values there are, the sum of y, and that of y² − h²/2."""
        return (self.count, self.total, self.squares)

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

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        kind = {"sample": self.sample, "root": self.root}
        return {**self._tagged("spread of", [str(end) for end in self.bounds]), **kind}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> SpreadColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        name, factor, (count, total, squares) = _read(fields, "count", "total", "squares")
        kind = {part: fields[part] for part in ("sample", "root")}
        if not all(isinstance(each, bool) for each in kind.values()):
            raise TypeError
        bounds = _bounds(fields["spread of"])
        return cls(name, count, total, squares, bounds, **kind, factor=factor)


def _rooted(value: Fraction) -> Fraction:
    """The root of a number, as near as anybody can tell."""
    return sum(certified.sqrt(value), _ZERO) / 2


@dataclass(frozen=True, slots=True)
class QuantileColumn:
    """A quantile of a column in every cell: one of its declared values.

    How far each is off is known in ranks, and not in values: so many values may lie between it and
    the true quantile.
    """

    name: str
    column: Column
    mechanism: QuantileMechanism
    codes: tuple[int, ...]
    max_rows: int | None = None

    @property
    def values(self) -> list[Any]:
        """What was drawn, cell by cell: numbers, exactly, or dates."""
        if self.column.type in NUMBERS:
            return [code * self.column.step for code in self.codes]
        return [plain_value(self.column, code) for code in self.codes]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """By how many ranks each may be off by itself, except with probability β."""
        return [Fraction(self.mechanism.error(beta))] * len(self.codes)

    @property
    def said(self) -> str:
        """What stands in the place of the least or the greatest value, in words."""
        kind = {-1: "least", 0: "", 1: "greatest"}[self.mechanism.end]
        if not kind:
            return ""
        rank = self.mechanism.rank
        return f"; {self.name}: the {spaced(Fraction(rank))}th {kind} value, not the {kind}"

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        return {
            "name": self.name,
            "quantile of": self.column.name,
            "share": str(self.mechanism.share),
            "end": self.mechanism.end,
            "epsilon": str(self.mechanism.epsilon),
            "max_rows": self.max_rows,
            "codes": list(self.codes),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], schema: Schema) -> QuantileColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        column, codes = schema.column(fields["quantile of"]), tuple(fields["codes"])
        if not isinstance(fields["name"], str) or column.domain is None:
            raise ValueError
        if not all(type(code) is int and code in column.domain for code in codes):
            raise ValueError
        rows = None if fields["max_rows"] is None else row_bound(fields["max_rows"])
        drawn = QuantileMechanism(
            fields["share"],
            column.domain_size or 0,
            epsilon=fields["epsilon"],
            max_rows=rows or 1,
            end=fields["end"],
        )
        return cls(fields["name"], column, drawn, codes, rows)


AnyColumn = QueryColumn | MeanColumn | ShareColumn | RatioColumn | SpreadColumn | QuantileColumn

_TAGS: dict[str, type[MeanColumn | ShareColumn | RatioColumn | SpreadColumn]] = {
    "mean of": MeanColumn,
    "share": ShareColumn,
    "ratio": RatioColumn,
    "spread of": SpreadColumn,
}


def column_from_json(fields: Mapping[str, Any], schema: Schema) -> AnyColumn:
    """A column as its own `as_json` wrote it; other JSON raises one of many kinds of errors."""
    if "quantile of" in fields:
        return QuantileColumn.from_json(fields, schema)
    for tag, kind in _TAGS.items():
        if tag in fields:
            return kind.from_json(fields)
    return QueryColumn.from_json(fields)


def lengths_of(column: AnyColumn) -> set[int]:
    """How many cells what was measured or drawn for a column has; one number, if all is well."""
    if isinstance(column, QuantileColumn):
        return {len(column.codes)}
    parts = column.measured if isinstance(column, Derived) else (column,)
    return {len(part.steps) for part in parts}
