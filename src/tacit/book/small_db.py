"""SmallDB: a small database that answers a whole class of questions, exactly drawn.

Section 4.1 of the book.  Over all databases y of m rows, SmallDB draws y by the exponential
mechanism with score −max_{f∈Q} |f(x) − f(y)|.  Here the score is kept in counts,

    S(x, y) = max_{f∈Q} |n·f(x) − n·f(y)|,    y with probability ∝ e^(−ε·S(x, y)/2),

over a range that ignores the data, in which rows that all questions treat alike are one.  Adding
a row z to x changes n·f(x) − n·f(y) by f(z) − f(y), which lies in [−1, 1]: S moves by at most 1,
whether a row is added, removed or replaced, and the number n of rows stays secret.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from tacit.book.heartbeat import Heartbeat, Progress
from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, positive, whole

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Integers = npt.NDArray[np.int64]

MOST_ROWS = 10**5
_MOST_ROWS_PER_PERSON = 10**6
_LEAST_EPSILON, _LARGEST_EPSILON = Fraction(1, 10**12), Fraction(10**12)


class SampledClass(Protocol):
    """A class Q of questions for which the exponential mechanism can be sampled.

    To add a structured class, offer these two; ``level_search`` does the rest for a class whose
    candidates can be counted by slack, and ``level_counts`` for a range that can be listed.
    """

    def check(self, x: npt.NDArray[np.generic]) -> Integers:
        """The data in the form `draw` wants, or an error that carries no value of it."""

    def draw(
        self, x: Integers, *, rows: int, rate: Fraction, coins: Coins, heartbeat: Heartbeat
    ) -> Integers:
        """A database y of `rows` rows, with probability ∝ e^(−rate·S(x, y))."""


def small_db(
    x: npt.NDArray[np.generic],
    questions: SampledClass,
    *,
    rows: int,
    epsilon: Number,
    coins: Coins,
    rows_per_person: int = 1,
    progress: Progress | None = None,
) -> Integers:
    """SmallDB(x, Q, ε, α), for a given number m of rows.

    Privacy: (epsilon, 0) for one person's rows added or removed, at most `rows_per_person` of
    them: they move the score by at most that many, and so it is divided by it (Theorem 3.10).
    Accuracy: with probability 1 − β the error is at most α_m + 2r/(εn)·(ln(candidates) +
    ln(1/β)), where m rows can come within α_m, and r is `rows_per_person`.
    """
    size, rate = check_parameters(rows=rows, epsilon=epsilon, rows_per_person=rows_per_person)
    return questions.draw(
        questions.check(np.asarray(x)),
        rows=size,
        rate=rate,
        coins=coins,
        heartbeat=Heartbeat(progress),
    )


def check_parameters(
    *, rows: int, epsilon: Number, rows_per_person: int = 1
) -> tuple[int, Fraction]:
    """The number of rows, and the rate ε/(2r); whatever passes here, the samplers can draw."""
    size = whole(rows, "rows")
    people_rows = whole(rows_per_person, "rows_per_person")
    budget = positive(epsilon, "epsilon")
    if size > MOST_ROWS:
        raise BadParameter("rows", size, f"a small database has at most {MOST_ROWS} rows")
    if people_rows > _MOST_ROWS_PER_PERSON:
        raise BadParameter("rows_per_person", people_rows, f"at most {_MOST_ROWS_PER_PERSON}")
    if not _LEAST_EPSILON <= budget <= _LARGEST_EPSILON:
        raise BadParameter("epsilon", as_given(budget), "SmallDB takes 1e-12 to 1e12")
    return size, budget / (2 * people_rows)
