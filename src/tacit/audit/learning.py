"""Which event to count: chosen on training samples, so that nothing here needs a proof.

Cells are ordered by how much likelier they are on one side, and a candidate is a beginning of
that order.  Order and beginning are chosen on different samples.  The likelihood ratio of a rare
event is known badly, and of hundreds of rare events one always looks much better than it is;
so what is seen is shrunk towards no difference, the more the less certain it is.  How far depends
on how large losses are here at all, which the common events tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.audit.events import Cells, Event, Reader, Table
from tacit.audit.ratio import RELIABLY, slack
from tacit.audit.strict import logarithm, strict

Floats = NDArray[np.float64]

_CERTAIN = 3.0  # deviations below what is seen
_MODEST = 1.5
_DOUBT = 2.0  # deviations that a suspicion may be below its best rival and still be preferred


class Suspicion(NamedTuple):
    """Outcomes that are believed to tell a pair apart, by theory: numbers in the first column."""

    outcomes: Sequence[int]
    swapped: bool  # they are likelier on the neighbour


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Events that grow cell by cell, and what training says about each."""

    reader: Reader
    cells: Cells
    order: NDArray[np.int64]
    swapped: bool
    rates: tuple[Floats, Floats]  # where they are likelier, and where not
    size: int  # training runs a side
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
    """The event with the best prospects if it is confirmed on ``runs`` runs a side."""
    reader = Reader.learn(*ordering)
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
    reader: Reader, cells: Cells, first: list[Table], second: list[Table], delta: float
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
            yield _Candidates(reader, cells, part, swapped, (one, other), size, delta)


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
    reader: Reader, suspicion: Suspicion, samples: list[list[Table]], delta: float, runs: int
) -> tuple[Event, float]:
    """The suspected event with what it promises, and how uncertain that is.

    It was not chosen because it looked good, so nothing is taken off for luck, and all training
    samples tell about it.
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
    one = _Candidates(reader, cells, np.zeros(1, np.int64), False, (here, there), size, delta)
    promise = float(one.loss[0] - one.slack(runs, RELIABLY)[0])
    rates = float(here[0]), float(there[0])
    event = Event(reader, cells, members, suspicion.swapped, promise, rates)
    return event, float(one.slack(size)[0])


def _rate(hits: Any, size: int) -> Floats:
    """A probability from counts, never 0 nor 1."""
    return np.minimum((np.atleast_1d(hits) + 0.5) / (size + 1), 1 - 0.25 / size)
