"""Which event to count: chosen on training samples, so that nothing here needs a proof.

Cells are ordered by how much likelier they are on one side, and a candidate is a beginning of
that order.  Order and beginning are chosen on different samples.  The likelihood ratio of a rare
event is known badly, and of hundreds of rare events one always looks much better than it is;
so what is seen is shrunk towards no difference, the more the less certain it is.  How far depends
on how large losses are for this mechanism, which the common events show.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter
from tacit.numerics.clopper_pearson import RELIABLY, slack
from tacit.numerics.scaled import logarithm, strict

Floats = NDArray[np.float64]
OutcomeRows = NDArray[Any]
"""Outcomes as rows of numbers."""

_MOST_VALUES = 256  # more distinct ones than this are grouped by quantiles
_MOST_CELLS = 2048
_LEAST_IN_CELL = 40
_CERTAIN = 3.0  # deviations below what is seen
_MODEST = 1.5
_DOUBT = 2.0  # deviations that a suspicion may be below its best rival and still be preferred


# Events: sets of cells ----------------------------------------------------------------------------
#
# Outcomes are sorted into cells: single values where there are few, quantiles where there are many,
# column by column.


@dataclass(frozen=True, slots=True)
class OutcomeReader:
    """Turns what a mechanism returns into rows of numbers."""

    codes: dict[Hashable, int] | None = None  # for outcomes that are not numbers

    @classmethod
    def learn(cls, *samples: Any) -> OutcomeReader:
        """Numbers are taken as they are; anything else is numbered in order of appearance."""
        if all(_numeric(outcomes) is not None for outcomes in samples):
            return cls()
        codes: dict[Hashable, int] = {}
        for outcome in chain(*samples):
            if len(codes) >= _MOST_CELLS:
                break
            codes.setdefault(_hashable(outcome), len(codes))
        return cls(codes)

    def rows(self, outcomes: Any) -> OutcomeRows:
        """One row an outcome; −1 for an outcome never seen in training."""
        if self.codes is not None:
            numbers = [self.codes.get(_hashable(outcome), -1) for outcome in outcomes]
            return np.array(numbers, dtype=np.int64)[:, None]
        table = _numeric(outcomes)
        if table is None:
            raise BadParameter(
                "mechanism",
                "one that returns numbers at first and other things later",
                "all its outcomes must be of one kind",
            )
        return table

    def words(self, column: int, low: Any, high: Any) -> str:
        """The outcomes with low ≤ x < high in words; None means no limit."""
        if self.codes is not None:
            first = -1 if low is None else low
            end = len(self.codes) if high is None else high
            names = [str(outcome) for outcome, code in self.codes.items() if first <= code < end]
            return ", ".join(names[:3]) + ", …" * (len(names) > 3) or "an outcome without a code"
        name = f"x{column}"
        if low is None and high is None:
            return ""
        if low is None:
            return f"{name} < {_short(high)}"
        if high is None:
            return f"{name} ≥ {_short(low)}"
        if isinstance(low, int) and high == low + 1:
            return f"{name} = {low}"
        return f"{_short(low)} ≤ {name} < {_short(high)}"


def _short(number: Any) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


def _numeric(outcomes: Any) -> OutcomeRows | None:
    try:
        table = np.asarray(outcomes)
    except ValueError:  # rows of different lengths
        return None
    if table.dtype.kind not in "biuf" or table.ndim not in (1, 2):
        return None
    return table[:, None] if table.ndim == 1 else table


def _hashable(outcome: Any) -> Hashable:
    as_tuple = tuple(outcome.tolist()) if isinstance(outcome, np.ndarray) else outcome
    try:
        hash(as_tuple)
    except TypeError:
        raise BadParameter(
            "mechanism",
            f"outcomes of type {type(outcome).__name__}",
            "an outcome is a number, a row of numbers as long as the others, or anything hashable, "
            "such as a tuple",
        ) from None
    return as_tuple


@dataclass(frozen=True, slots=True)
class Cells:
    """A tree of cuts: by the first column, then within each part by the next."""

    cuts: OutcomeRows
    inner: tuple[Cells, ...] = ()
    first: tuple[int, ...] = ()  # the number of the first cell of every part
    count: int = 0

    @classmethod
    def around(cls, values: OutcomeRows) -> Cells:
        """Every one of these whole numbers in a cell of its own, and what lies between."""
        cuts = np.unique(np.concatenate([values, values + 1]))
        return cls(cuts, count=len(cuts) + 1)

    @classmethod
    def learn(cls, rows: OutcomeRows, most: int = _MOST_CELLS) -> Cells:
        """Cells for these rows, no more than ``most``."""
        column = rows[:, 0]
        values = np.unique(column)
        if len(values) > min(_MOST_VALUES, most):
            places = (_levels(len(column), most) * (len(column) - 1)).astype(np.int64)
            values = np.unique(np.sort(column)[places])
        cuts = values[1:]
        if rows.shape[1] == 1:
            return cls(cuts, count=max(len(values), 1))
        parts = np.searchsorted(cuts, column, side="right")
        inner = []
        for part in range(len(values)):
            members = rows[parts == part, 1:]
            share = max(most * len(members) // max(len(rows), 1), 1)
            inner.append(cls.learn(members, min(share, max(len(members) // _LEAST_IN_CELL, 1))))
        first = np.cumsum([0, *(cell.count for cell in inner)])
        return cls(cuts, tuple(inner), tuple(first[:-1].tolist()), int(first[-1]))

    def of(self, rows: OutcomeRows) -> NDArray[np.int64]:
        """The cell of every row."""
        parts = np.searchsorted(self.cuts, rows[:, 0], side="right")
        if not self.inner:
            return parts
        cells = np.empty(len(rows), dtype=np.int64)
        for part in np.unique(parts):
            members = parts == part
            cells[members] = self.first[part] + self.inner[part].of(rows[members, 1:])
        return cells

    def describe(self, first: int, last: int, reader: OutcomeReader, column: int = 0) -> str:
        """The cells first..last in words; they lie in one part of the tree."""
        part, part_to = first, last
        if self.inner:
            part = part_to = int(np.searchsorted(self.first, first, "right")) - 1
        low = self.cuts[part - 1].item() if part else None
        high = self.cuts[part_to].item() if part_to < len(self.cuts) else None
        words = reader.words(column, low, high)
        if self.inner:
            start = self.first[part]
            inner = self.inner[part].describe(first - start, last - start, reader, column + 1)
            words = " and ".join(part for part in (words, inner) if part)
        return words

    def part_of(self, cell: int) -> tuple[int, ...]:
        """The path to the part of the tree in which a cell is a leaf."""
        if not self.inner:
            return ()
        part = int(np.searchsorted(self.first, cell, "right")) - 1
        return (part, *self.inner[part].part_of(cell - self.first[part]))


def _levels(size: int, most: int) -> NDArray[np.float64]:
    """Even quantiles, and ever finer ones towards both ends, where losses hide."""
    even = np.linspace(0, 1, max(min(_MOST_VALUES, most) // 2, 2))[:-1]
    tail = np.geomspace(min(_LEAST_IN_CELL / max(size, 1), 0.5), 0.5, 16)
    return np.unique(np.concatenate([even, tail, 1 - tail]))


@dataclass(frozen=True, slots=True)
class Event:
    """A set of cells that is likelier on one side."""

    reader: OutcomeReader = field(repr=False)
    cells: Cells = field(repr=False)
    members: NDArray[np.bool_] = field(repr=False)
    swapped: bool  # likelier on the neighbour
    promise: float = field(repr=False)  # the bound that training lets one hope for
    rates: tuple[float, float] = field(repr=False)  # how often it came in training: where likelier,
    # and where not

    def count(self, outcomes: Any) -> int:
        """How many outcomes lie in the event."""
        return int(self.members[self.cells.of(self.reader.rows(outcomes))].sum())

    def __str__(self) -> str:
        runs = self._runs()
        words = [self.cells.describe(*run, self.reader) or "anything" for run in runs[:3]]
        more = f" or {len(runs) - 3} more such" if len(runs) > 3 else ""
        return " or ".join(words) + more

    def _runs(self) -> list[tuple[int, int]]:
        """Neighbouring cells taken together, for the description."""
        runs: list[tuple[int, int]] = []
        for cell in np.flatnonzero(self.members).tolist():
            joins = runs and runs[-1][1] == cell - 1
            if joins and self.cells.part_of(runs[-1][0]) == self.cells.part_of(cell):
                runs[-1] = (runs[-1][0], cell)
            else:
                runs.append((cell, cell))
        return runs


# Choosing one -------------------------------------------------------------------------------------


class Suspicion(NamedTuple):
    """Outcomes that are believed to tell a pair apart, by theory: numbers in the first column."""

    outcomes: Sequence[int]
    swapped: bool  # they are likelier on the neighbour


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Events that grow cell by cell, and what training says about each."""

    reader: OutcomeReader
    cells: Cells
    order: NDArray[np.int64]
    swapped: bool
    rates: tuple[Floats, Floats]  # where they are likelier, and where not
    size: int  # training runs on each side
    delta: float

    @property
    def loss(self) -> Floats:
        """ln((p − δ)/p′) as seen."""
        p, other = self.rates
        return logarithm(np.maximum(p - self.delta, 0)) - np.log(other)

    def slack(self, runs: int, deviations: float = 1.0) -> Floats:
        """So many deviations of that logarithm, if it comes from so many runs."""
        return slack(*self.rates, self.delta, runs, deviations)

    def event(self, place: int, promise: float) -> Event:
        members = np.zeros(self.cells.count, dtype=np.bool_)
        members[self.order[: place + 1]] = True
        rates = float(self.rates[0][place]), float(self.rates[1][place])
        return Event(self.reader, self.cells, members, self.swapped, promise, rates)


def learn(
    ordering: tuple[Any, Any],
    choosing: tuple[Any, Any],
    *,
    delta: float,
    runs: int,
    suspicion: Suspicion | None = None,
) -> Event:
    """The event with the best prospects if it is confirmed on ``runs`` runs on each side."""
    reader = OutcomeReader.learn(*ordering)
    first = [reader.rows(outcomes) for outcomes in ordering]
    second = [reader.rows(outcomes) for outcomes in choosing]
    found: list[_Candidates] = []
    # First by the first column alone, which needs fewer samples, then by all.
    for width in sorted({1, first[0].shape[1]}):
        cells = Cells.learn(np.concatenate([rows[:, :width] for rows in first]))
        found.extend(_candidates(reader, cells, first, second, delta))
    best = _most_promising(found, runs)
    if suspicion is None or reader.codes is not None:
        return best
    suspected, doubt = _suspected(reader, suspicion, [first, second], delta, runs)
    return suspected if suspected.promise + _DOUBT * doubt > best.promise else best


def _candidates(
    reader: OutcomeReader,
    cells: Cells,
    first: list[OutcomeRows],
    second: list[OutcomeRows],
    delta: float,
) -> Iterator[_Candidates]:
    """All beginnings of every order of the cells, in both directions; never all cells."""
    order_counts = [np.bincount(cells.of(rows), minlength=cells.count) for rows in first]
    counts = [np.bincount(cells.of(rows), minlength=cells.count) for rows in second]
    size = min(len(second[0]), len(second[1]))
    for swapped in (False, True):
        here, there = (1, 0) if swapped else (0, 1)
        for order in _orders(order_counts[here], order_counts[there]):
            part = order[:-1] if len(order) > 1 else order
            one, other = (_rate(np.cumsum(counts[side][part]), size) for side in (here, there))
            yield _Candidates(
                reader=reader,
                cells=cells,
                order=part,
                swapped=swapped,
                rates=(one, other),
                size=size,
                delta=delta,
            )


def _orders(
    here: NDArray[np.int64], there: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Likeliest here first, as far as one can be sure of it; and from either end."""
    one, other = here + 0.5, there + 0.5
    sure = np.log(one / other) - 1.5 * np.sqrt(1 / one + 1 / other)
    upwards = np.arange(len(here))
    return np.argsort(-sure, kind="stable"), upwards, upwards[::-1]


@strict
def _most_promising(found: list[_Candidates], runs: int) -> Event:
    usual = _usual_loss(found)
    best: tuple[float, int, _Candidates] | None = None
    for candidates in found:
        seen, off = candidates.loss, candidates.slack(candidates.size)
        # A normal prior of deviation ``usual``: what is seen is shrunk by this factor.
        trust = usual**2 / (usual**2 + off**2)
        hoped = np.where(np.isfinite(seen), seen, 0) * trust - _MODEST * off * np.sqrt(trust)
        promises = hoped - candidates.slack(runs, RELIABLY)
        place = int(promises.argmax())
        if best is None or promises[place] > best[0]:
            best = float(promises[place]), place, candidates
    assert best is not None
    return best[2].event(best[1], best[0])


def _usual_loss(found: list[_Candidates]) -> float:
    """How large losses are here: that of the most significant event, or what is certain."""
    significant = certain = (0.0, 0.0)
    for candidates in found:
        seen, off = candidates.loss, candidates.slack(candidates.size)
        clear, least = seen / off, seen - candidates.slack(candidates.size, _CERTAIN)
        significant = max(significant, (float(clear.max()), float(seen[clear.argmax()])))
        certain = max(certain, (float(least.max()), 0.0))
    return max(significant[1], certain[0], 1e-9)


@strict
def _suspected(
    reader: OutcomeReader,
    suspicion: Suspicion,
    samples: list[list[OutcomeRows]],
    delta: float,
    runs: int,
) -> tuple[Event, float]:
    """The suspected event with what it promises, and how uncertain that is.

    It was not chosen because it looked good, so nothing is taken off for luck, and all training
    samples count.
    """
    values = np.array(suspicion.outcomes, dtype=np.int64)
    cells = Cells.around(values)
    members = np.zeros(cells.count, dtype=np.bool_)
    members[cells.of(values[:, None])] = True
    size = sum(len(part[0]) for part in samples)
    here, there = (
        _rate(sum(int(members[cells.of(part[side][:, :1])].sum()) for part in samples), size)
        for side in ((1, 0) if suspicion.swapped else (0, 1))
    )
    one = _Candidates(
        reader=reader,
        cells=cells,
        order=np.zeros(1, np.int64),
        swapped=False,
        rates=(here, there),
        size=size,
        delta=delta,
    )
    promise = float(one.loss[0] - one.slack(runs, RELIABLY)[0])
    rates = float(here[0]), float(there[0])
    event = Event(reader, cells, members, suspicion.swapped, promise, rates)
    return event, float(one.slack(size)[0])


def _rate(hits: Any, size: int) -> Floats:
    """A probability from counts, never 0 nor 1."""
    return np.minimum((np.atleast_1d(hits) + 0.5) / (size + 1), 1 - 0.25 / size)
