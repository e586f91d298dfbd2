"""Shattering and the VC dimension: Def 4.1, Def 4.2, Lemma 4.7.

A class Q of counting questions is a 0/1 matrix: one row for each question, one column for each
point of the universe, 1 where the question counts the point.  Q *shatters* a set S of points if
every T ⊆ S is cut out by some question: f = 1 on T and f = 0 on the rest of S (so |Q| ≥ 2^|S|).
VC-DIM(Q) is the size of the largest shattered set.  Nothing here looks at anybody's data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arguments import iterated
from tacit.book.heartbeat import Heartbeat, Progress
from tacit.book.vc.dimension import Dimension, cutting_questions, warn_unless_exact
from tacit.book.vc.question_matrix import Table, distinct, zero_one
from tacit.book.vc.vc_bits import Columns, pack
from tacit.book.vc.vc_search import deadline, largest_shattered
from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, whole

Question = Callable[[Any], object]


class VcDimension(Dimension):
    """VC-DIM of a 0/1 matrix (Def 4.2), with its witness.

    >>> print(VcDimension(low=1, high=3, points=(7,), questions=(0, 4)))
    VC dimension between 1 and 3 (point 7 shattered)
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self.describe("VC dimension", self.points)


def vc_dimension(
    matrix: ArrayLike, *, seconds: Number | None = None, progress: Progress | None = None
) -> VcDimension:
    """VC-DIM of a class given as questions × points of 0 and 1 (Def 4.2), exactly.

    With a limit of ``seconds`` the search may stop early; the result then holds proved bounds
    ``low ≤ VC-DIM ≤ high`` and a ``NotExact`` warning is given.  The clock is read between steps
    of the search, and on very large matrices a step may take seconds.  ``progress`` is told the
    time now and then.

    A class without points has dimension 0: its questions cut the empty set out of itself.  A
    class without questions is refused: it cuts out nothing, so not even the empty set is
    shattered, and every bound in terms of the dimension would be about nothing.

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
    columns = Columns(pack(table[np.ix_(rows, kinds)]))
    found, high = largest_shattered(columns, len(rows), end, Heartbeat(progress))
    points = sorted(kinds[list(found)].tolist())
    questions = cutting_questions(table[:, points], ~table[:, points])
    result = VcDimension(len(points), high, tuple(points), questions)
    warn_unless_exact(result, "VC dimension", seconds)
    return result


def _without_repetition(table: Table) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The rows and columns that matter.

    Equal questions cut out the same sets.  A constant point is never shattered, and of points
    that are equal or complementary at most one is, whichever it may be.
    """
    rows = distinct(table)
    small = table[rows]
    varied = np.flatnonzero(small.any(axis=0) & ~small.all(axis=0))
    kinds = varied[distinct((small[:, varied] ^ small[0, varied]).T)]
    return rows, kinds


def shatters(questions: ArrayLike | Sequence[Question], points: Iterable[Any]) -> bool:
    """Whether the questions cut out every subset of the points (Def 4.1).

    Either a 0/1 matrix and the columns of the points, or a list of functions and the points
    themselves, which the functions take.  A repeated point counts once.

    >>> shatters([[0, 1], [1, 0]], [0]), shatters([[0, 1], [1, 0]], [0, 1])
    (True, False)
    >>> shatters([lambda age: age < 30, lambda age: age < 60], [40])
    True
    """
    takes = "give a list of points"
    if isinstance(questions, Sequence) and questions and all(map(callable, questions)):
        wanted = list(dict.fromkeys(iterated(points, "points", takes)))
        answers = [[bool(ask(point)) for point in wanted] for ask in questions]  # type: ignore[operator]
        table = np.array(answers, dtype=np.bool_).reshape(len(questions), len(wanted))
    else:
        try:
            whole_table = zero_one(questions)  # type: ignore[arg-type]
        except BadParameter as wrong:  # it speaks of a matrix
            raise BadParameter("questions", wrong.given, wrong.allowed) from None
        columns = sorted(
            {whole(point, "points", at_least=0) for point in iterated(points, "points", takes)}
        )
        if columns and columns[-1] >= whole_table.shape[1]:
            last = whole_table.shape[1] - 1
            has = (
                f"the last point of the matrix is {last}"
                if last >= 0
                else "the matrix has no points"
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
