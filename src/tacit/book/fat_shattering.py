"""Fat-shattering: the complexity of real-valued (linear) questions.

A set S of points is γ-shattered by a class of functions into [0, 1] if there are levels r_s such
that for every T ⊆ S some f has f(s) ≥ r_s + γ on T and f(s) ≤ r_s − γ on the rest of S (Kearns &
Schapire 1994; Alon, Ben-David, Cesa-Bianchi & Haussler 1997).  The margin is on either side, so
the values at s differ by at least 2γ, and for a 0/1 matrix and γ ≤ 1/2 this is plain shattering.

The fat-shattering dimension is reported, no more: no size of a small database is computed from
it, since the theorems that use it are known only up to constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.book.heartbeat import Heartbeat, Progress
from tacit.book.vc.dimension import Dimension, cutting_questions, warn_unless_exact
from tacit.book.vc.question_matrix import distinct, rational
from tacit.book.vc.vc_bits import Columns, pack
from tacit.book.vc.vc_search import deadline, largest_shattered
from tacit.privacy import Number, positive, show


@dataclass(frozen=True, slots=True)
class FatShatteringDimension(Dimension):
    """The size of the largest γ-shattered set; ``levels[i]`` is the level of ``points[i]``.

    ``questions[b]`` is at least γ above the levels of the points whose bit of b is 1, and at
    least γ below the levels of the others.
    """

    gamma: Fraction
    levels: tuple[Fraction, ...]

    def __str__(self) -> str:
        witness = [
            f"{point} at {show(level)}"
            for point, level in zip(self.points, self.levels, strict=True)
        ]
        return self.describe(f"fat-shattering dimension at γ = {show(self.gamma)}:", witness)


@dataclass(frozen=True)
class _Level:
    """A point and a level: rows of rank ≥ high are above it, rows of rank ≤ low below."""

    point: int
    low: int
    high: int


def fat_shattering_dimension(
    matrix: ArrayLike,
    gamma: Number,
    *,
    seconds: Number | None = None,
    progress: Progress | None = None,
) -> FatShatteringDimension:
    """The fat-shattering dimension of questions × points of rationals in [0, 1], exactly.

    With a limit of ``seconds`` the result may hold proved bounds instead, with a ``NotExact``
    warning, as for ``vc_dimension``; ``progress`` is told the time now and then.

    >>> print(fat_shattering_dimension([[0, "1/2"], [1, "3/4"], [0, 1], [1, 1]], "1/8"))
    fat-shattering dimension at γ = 0.125: 2 (points 0 at 0.5, 1 at 0.875 shattered)
    """
    end = deadline(seconds)
    margin = positive(gamma, "gamma")
    ranks, values = rational(matrix)
    small = ranks[distinct(ranks)]
    levels = _levels(small, values, margin)
    above, below = _sides(small, levels)
    kinds = distinct(np.concatenate([above, below]).T)
    columns = Columns(pack(above[:, kinds]), pack(below[:, kinds]))
    found, high = largest_shattered(columns, len(small), end, Heartbeat(progress))
    chosen = sorted((levels[i] for i in kinds[list(found)].tolist()), key=lambda at: at.point)
    result = FatShatteringDimension(
        low=len(chosen),
        high=min(high, len({level.point for level in levels})),
        points=tuple(level.point for level in chosen),
        questions=cutting_questions(*_sides(ranks, chosen)),
        gamma=margin,
        levels=tuple((values[level.low] + values[level.high]) / 2 for level in chosen),
    )
    warn_unless_exact(result, "fat-shattering dimension", seconds)
    return result


def _levels(ranks: NDArray[np.intp], values: list[Fraction], margin: Fraction) -> list[_Level]:
    """All levels worth trying: finitely many, since rows only see which values they separate.

    A level can be raised until the least value above it is exactly γ away without losing a row
    above or below, so one level for each value is enough; and of several that have the same
    rows below, the lowest has all the rows above that the others have.
    """
    reach = _reach(values, 2 * margin)
    levels = []
    for point in range(ranks.shape[1]):
        present = np.unique(ranks[:, point])
        # lower[j]: how many of the present values are at most the j-th minus 2γ.
        lower = np.searchsorted(present, reach[present])
        first = np.flatnonzero(np.diff(lower, prepend=0) > 0)
        levels += [_Level(point, int(present[lower[j] - 1]), int(present[j])) for j in first]
    return levels


def _reach(values: list[Fraction], gap: Fraction) -> NDArray[np.intp]:
    """For each value, how many of the sorted values are at most that value minus the gap."""
    reach, below = np.empty(len(values), dtype=np.intp), 0
    for index, value in enumerate(values):
        while values[below] <= value - gap:  # ends at the latest at the value itself
            below += 1
        reach[index] = below
    return reach


def _sides(
    ranks: NDArray[np.intp], levels: list[_Level]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are above and which below each level."""
    points = np.array([level.point for level in levels], dtype=np.intp)
    low = np.array([level.low for level in levels], dtype=np.intp)
    high = np.array([level.high for level in levels], dtype=np.intp)
    return ranks[:, points] >= high, ranks[:, points] <= low
