"""Shattering and the VC dimension: Definitions 4.1 and 4.2, and Lemma 4.7.

A class Q of counting questions is a 0/1 matrix with one row for each question and one column for
each point of the universe, with a 1 where the question counts the point.  Q *shatters* a set S of
points if every T ⊆ S is cut out by some question: f = 1 on T and f = 0 on the rest of S (so
|Q| ≥ 2^|S|).  VC-DIM(Q) is the size of the largest shattered set.  Nothing here looks at data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arguments import iterated
from tacit.errors import BadParameter, NotExact
from tacit.numbers import Number, as_given, exact, positive, show, whole
from tacit.numerics.shattered_sets import BitColumns, largest_shattered, pack
from tacit.support import Heartbeat, Progress

__all__ = [
    "FatShatteringDimension",
    "VcDimension",
    "fat_shattering_dimension",
    "shatters",
    "vc_bound",
    "vc_dimension",
]

ZeroOne = NDArray[np.bool_]
QuestionMatrix = ArrayLike | Sequence[Sequence[Number]]  # exact numbers, too
PointQuestion = Callable[[Any], object]
_LONGEST = Fraction(10**9)  # seconds: thirty years, and within a float's range


# Counting questions: Definitions 4.1 and 4.2, and Lemma 4.7.


def shatters(questions: QuestionMatrix | Sequence[PointQuestion], points: Iterable[Any]) -> bool:
    """Whether the questions cut out every subset of the points (Definition 4.1).

    Give either a 0/1 matrix and the columns of the points, or a list of functions and the points
    that they are applied to.  A repeated point counts once.

    >>> shatters([[0, 1], [1, 0]], [0]), shatters([[0, 1], [1, 0]], [0, 1])
    (True, False)
    >>> shatters([lambda age: age < 30, lambda age: age < 60], [40])
    True
    """
    takes = "give a list of points"
    if isinstance(questions, Sequence) and questions and all(map(callable, questions)):
        chosen = list(dict.fromkeys(iterated(points, "points", takes)))
        answers = [[bool(ask(point)) for point in chosen] for ask in questions]  # type: ignore[operator]
        table = np.array(answers, dtype=np.bool_).reshape(len(questions), len(chosen))
    else:
        try:
            whole_table = zero_one(questions)  # type: ignore[arg-type]
        except BadParameter as wrong:  # it names the parameter `matrix`
            raise BadParameter("questions", wrong.given, wrong.allowed) from None
        columns = sorted(
            {whole(point, "points", at_least=0) for point in iterated(points, "points", takes)}
        )
        if columns and columns[-1] >= whole_table.shape[1]:
            last = whole_table.shape[1] - 1
            has = (
                f"the last column of the matrix is {last}"
                if last >= 0
                else "the matrix has no columns"
            )
            raise BadParameter("points", as_given(columns[-1]), has)
        table = whole_table[:, columns]
    # Lemma 4.7 first: 2^|S| may be astronomically large.
    return vc_bound(len(table)) >= table.shape[1] and len(distinct(table)) == 1 << table.shape[1]


def vc_bound(questions: Number) -> int:
    """Lemma 4.7: VC-DIM(Q) ≤ log₂|Q|, rounded down since the dimension is a whole number.

    >>> vc_bound(1), vc_bound(1000), vc_bound(1024)
    (0, 9, 10)
    """
    return whole(questions, "questions").bit_length() - 1


@dataclass(frozen=True, slots=True)
class Dimension:
    """Bounds on the size of the largest shattered set, and a shattered set of size ``low``.

    ``points`` are columns of the matrix.  ``questions`` holds one row of the matrix for each subset
    of them: ``questions[b]`` cuts out exactly those ``points[i]`` for which bit i of b is 1.
    """

    low: int
    high: int
    points: tuple[int, ...]
    questions: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether the search was completed: no set larger than ``points`` is shattered."""
        return self.low == self.high

    @property
    def dimension(self) -> int | None:
        """The dimension if it is known exactly; otherwise None, see ``low`` and ``high``."""
        return self.low if self.exact else None

    def cutting(self, subset: Iterable[int]) -> int:
        """The question that cuts out exactly this subset of ``points``."""
        takes = f"choose from the points {self.points}"
        chosen = list(iterated(subset, "subset", takes))
        if not all(point in self.points for point in chosen):
            raise BadParameter("subset", as_given(chosen), takes)
        return self.questions[sum(1 << i for i, p in enumerate(self.points) if p in chosen)]

    def describe(self, name: str, witness: Iterable[object]) -> str:
        """One line for people."""
        size = str(self.low) if self.exact else f"between {self.low} and {self.high}"
        shown = ", ".join(map(str, witness))
        points = "points" if self.low > 1 else "point"
        return f"{name} {size} ({points} {shown} shattered)" if shown else f"{name} {size}"


class VcDimension(Dimension):
    """VC-DIM of a 0/1 matrix (Definition 4.2), with a witness.

    >>> print(VcDimension(low=1, high=3, points=(7,), questions=(0, 4)))
    VC dimension between 1 and 3 (point 7 shattered)
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self.describe("VC dimension", self.points)


def vc_dimension(
    matrix: QuestionMatrix, *, seconds: Number | None = None, progress: Progress | None = None
) -> VcDimension:
    """VC-DIM of a class given as a 0/1 matrix, questions × points (Definition 4.2), exactly.

    With a limit of ``seconds`` the search may stop early.  Then the result holds proved bounds
    ``low ≤ VC-DIM ≤ high``, and there is a ``NotExact`` warning.  The clock is read between steps
    of the search, which may take seconds each on very large matrices.  ``progress`` is called with
    the elapsed seconds from time to time.

    A class without points has dimension 0: its questions cut out the empty set.  A class without
    questions is refused: it does not even shatter the empty set, so that bounds in terms of its
    dimension would mean nothing.

    >>> prefixes = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> intervals = [*prefixes, [0, 1, 0], [0, 1, 1], [0, 0, 1]]
    >>> vc_dimension(prefixes).dimension
    1
    >>> print(vc_dimension(intervals))
    VC dimension 2 (points 0, 1 shattered)
    """
    end = deadline(seconds)
    table = zero_one(matrix)
    rows, kinds = _without_repetition(table)
    columns = BitColumns(pack(table[np.ix_(rows, kinds)]))
    shattered, high = largest_shattered(columns, len(rows), end, Heartbeat(progress))
    points = sorted(kinds[list(shattered)].tolist())
    questions = cutting_questions(table[:, points], ~table[:, points])
    result = VcDimension(len(points), high, tuple(points), questions)
    warn_unless_exact(result, "VC dimension", seconds)
    return result


def _without_repetition(table: ZeroOne) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The rows and columns that matter.

    Equal questions cut out the same sets.  A constant column is never in a shattered set, and of
    columns that are equal or complementary at most one is, whichever is taken.
    """
    rows = distinct(table)
    small = table[rows]
    varied = np.flatnonzero(small.any(axis=0) & ~small.all(axis=0))
    kinds = varied[distinct((small[:, varied] ^ small[0, varied]).T)]
    return rows, kinds


# Linear (real-valued) questions: the fat-shattering dimension.
#
# A set S of points is γ-shattered by a class of functions into [0, 1] if there are levels r_s such
# that for every T ⊆ S some f has f(s) ≥ r_s + γ on T and f(s) ≤ r_s − γ on the rest of S (Kearns &
# Schapire 1994; Alon, Ben-David, Cesa-Bianchi & Haussler 1997).  The margin is on both sides, so
# that the values at s differ by at least 2γ.  For a 0/1 matrix and γ ≤ 1/2 this is shattering.
#
# `tacit.book.fat_shattering_size` computes from it how many rows answer such questions.


@dataclass(frozen=True, slots=True)
class FatShatteringDimension(Dimension):
    """The size of the largest γ-shattered set; ``levels[i]`` is the level of ``points[i]``.

    ``questions[b]`` is at least γ above the levels of the points whose bit in b is 1, and at least
    γ below the levels of the others.
    """

    gamma: Fraction
    levels: tuple[Fraction, ...]

    def __str__(self) -> str:
        witness = [
            f"{point} at {show(level)}"
            for point, level in zip(self.points, self.levels, strict=True)
        ]
        return self.describe(f"fat-shattering dimension at γ = {show(self.gamma)}:", witness)


def fat_shattering_dimension(
    matrix: QuestionMatrix,
    gamma: Number,
    *,
    seconds: Number | None = None,
    progress: Progress | None = None,
) -> FatShatteringDimension:
    """The fat-shattering dimension of a matrix (questions × points) of rationals in [0, 1].

    ``seconds`` and ``progress`` are as for ``vc_dimension``.

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
    columns = BitColumns(pack(above[:, kinds]), pack(below[:, kinds]))
    shattered, high = largest_shattered(columns, len(small), end, Heartbeat(progress))
    chosen = sorted((levels[i] for i in kinds[list(shattered)].tolist()), key=lambda at: at.point)
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


@dataclass(frozen=True)
class _Level:
    """A point and a level: rows of rank ≥ high are above it, rows of rank ≤ low below it."""

    point: int
    low: int
    high: int


def _levels(ranks: NDArray[np.intp], values: list[Fraction], margin: Fraction) -> list[_Level]:
    """All levels worth trying: finitely many, since only which values they separate matters.

    A level can be raised until the least value above it is exactly γ away without losing a row
    above or below it, so one level for each value is enough.  Of several levels with the same rows
    below, the lowest has all the rows above that the others have.
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


# What both dimensions share: a time limit, a witness, and a warning if the search stopped early.


def deadline(seconds: Number | None) -> float | None:
    """The time by which a search that starts now must end."""
    if seconds is None:
        return None
    return monotonic() + float(min(positive(seconds, "seconds"), _LONGEST))


def cutting_questions(above: ZeroOne, below: ZeroOne) -> tuple[int, ...]:
    """The first row that realises each pattern of the columns, with patterns in binary order.

    This is also the final check of a search: every pattern must be realised by some row.
    """
    points = above.shape[1]
    decided = np.flatnonzero((above | below).all(axis=1))
    patterns = above[decided] @ (1 << np.arange(points, dtype=np.int64))
    present, first = np.unique(patterns, return_index=True)
    if len(present) != 1 << points:
        raise AssertionError("the search named a set that is not shattered")
    return tuple(decided[first].tolist())


def warn_unless_exact(result: Dimension, name: str, seconds: object) -> None:
    """Bounds are never presented as the dimension."""
    if not result.exact:
        warnings.warn(
            f"the {name} is known only to lie between {result.low} and {result.high}: the search "
            f"stopped after {seconds} s; give more seconds, or None to let it finish",
            NotExact,
            stacklevel=3,
        )


# Reading a class of questions as a matrix, questions × points, and dropping duplicates.


def zero_one(matrix: QuestionMatrix) -> ZeroOne:
    """A matrix of 0 and 1, or of False and True; anything else is refused."""
    table = _two_dimensional(matrix)
    if table.dtype == np.bool_ or not table.size:
        return table.astype(np.bool_)
    if table.dtype.kind not in "iufO":
        raise BadParameter("matrix", "a table without numbers", "every entry must be 0 or 1")
    ones = np.asarray(table == 1, dtype=np.bool_)
    zeros = np.asarray(table == 0, dtype=np.bool_)
    _refuse(~(ones | zeros), "every entry must be 0 or 1")
    return ones


def rational(matrix: QuestionMatrix) -> tuple[NDArray[np.intp], list[Fraction]]:
    """A matrix of rationals in [0, 1] as ranks into the sorted list of its distinct values.

    Floats are read by their shortest decimal, as everywhere in Tacit.
    """
    table = _two_dimensional(matrix)
    if table.dtype.kind in "biuf" and table.dtype.itemsize <= 8:
        # As floats the entries keep their order, and distinct ones have distinct decimals.
        numbers = table.astype(np.float64)
        _refuse(~((numbers >= 0) & (numbers <= 1)), "every entry must lie in [0, 1]")  # no NaN
        different, ranks = np.unique(numbers, return_inverse=True)
        return ranks.reshape(table.shape), [exact(value, "matrix") for value in different.tolist()]
    values = np.empty(table.shape, dtype=object)
    for place in np.ndindex(table.shape):
        values[place] = _entry(table[place])
    _refuse(values == None, "every entry must be a number in [0, 1]")  # noqa: E711 (an array)
    order = sorted(set(values.flat))
    rank = {value: index for index, value in enumerate(order)}
    ranks = np.array([rank[value] for value in values.flat], dtype=np.intp)
    return ranks.reshape(table.shape), order


def distinct(table: NDArray[np.bool_ | np.intp]) -> NDArray[np.intp]:
    """The first of all equal rows, in order."""
    if not table.shape[1]:
        return np.arange(min(len(table), 1))
    small = np.packbits(table, axis=1) if table.dtype == np.bool_ else table
    return np.sort(np.unique(small, axis=0, return_index=True)[1])


def _two_dimensional(matrix: QuestionMatrix) -> NDArray[Any]:
    allowed = "give a list of rows of equal length, one row for each question"
    try:
        table = np.asarray(matrix)
    except (ValueError, TypeError):  # rows of unequal length
        raise BadParameter("matrix", "an uneven table", allowed) from None
    if table.ndim and not len(table):
        raise BadParameter(
            "matrix", "a class without questions", "give at least one row, that is, one question"
        )
    if table.ndim != 2:
        raise BadParameter("matrix", f"an array of {table.ndim} dimensions", allowed)
    return table


def _entry(value: object) -> Fraction | None:
    try:
        number = exact(value, "matrix")
    except BadParameter:
        return None
    return number if 0 <= number <= 1 else None


def _refuse(bad: ZeroOne, allowed: str) -> None:
    """Refuse the matrix, naming the place of the first bad entry, but never the entry itself."""
    if bad.any():
        question, point = np.argwhere(bad)[0].tolist()
        raise BadParameter("matrix", f"entry (question {question}, point {point})", allowed)
