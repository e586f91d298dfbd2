"""Private multiplicative weights (section 4.2): every question gets a number, and only errors cost.

A public distribution over the universe, the *model*, starts uniform and answers every question.
NumericSparse watches how far it is off, on either side.  While both come out ⊥ the model's answer
is told, at no cost; on ⊤ the measured answer is told and the model learns from it (Hardt and
Rothblum 2010).  All questions are linear: f gives each element of the universe a number in [0, 1],
and the answer is n·f(x), the sum over the people.

Two things are written out that make the proofs hold on a grid.  The second side is asked only after
⊥ on the first, since each ⊤ pays for one update.  And the threshold is one step above 2α, so that
what was measured lies strictly on the right side of the model's answer.

From a uniform start the model is poor for long.  What to use on a table is `watched_model`: the
same idea with a better start, exact one-sided noise and no ε for values (`tacit.book.watching`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import flag, iterated, kind_of
from tacit.book import accuracy
from tacit.book.answer import Answer
from tacit.book.coins import Coins
from tacit.book.sparse_vector import numeric_sparse
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import Number, as_given, exact, positive, show, whole
from tacit.numerics import certified

__all__ = ["ModelAnswer", "least_alpha", "most_updates", "multiplicative_weights", "updated"]

Weights = NDArray[np.float64]

_FINEST = 10**6  # α is looked for among the multiples of 1/10⁶


def updated(model: Weights, question: Sequence[Number], answer: float, *, rate: Number) -> Weights:
    """MW, the update rule: less weight where the model's answer was too large because of it.

    ``answer`` is a share, such as was measured.  All of it is public: floats may be used.

    >>> updated(np.array([0.5, 0.5]), [1, 0], 0.9, rate=1).round(3).tolist()
    [0.731, 0.269]
    """
    f = np.array([float(exact(value, "question")) for value in question])
    r = f if answer < float(model @ f) else 1 - f
    weights = np.exp(-float(positive(rate, "rate")) * r) * model
    shares: Weights = weights / weights.sum()
    return shares


def most_updates(universe: int, alpha: Number, *, sharper: bool = False) -> int:
    """How often a model can be more than α off and learn from it: at most 4 ln|X|/α² times.

    Accuracy: Theorem 4.10 (E17 in `tacit.errata`).  Each update, by an answer on the right side and
    with rate η = α/2, lowers the relative entropy of the true distribution to the model by at least
    ηα − η² = α²/4, and it begins with ln|X| at most.  With ``sharper`` the rate is 4α: by
    Hoeffding's lemma it falls by ηα − η²/8 = 2α² each time, so that ln|X|/(2α²) updates suffice.

    >>> most_updates(1000, "1/10"), most_updates(1000, "1/10", sharper=True)
    (2763, 345)
    """
    size, error = whole(universe, "universe"), _share(alpha)
    factor = Fraction(1, 2) if flag(sharper, "sharper") else Fraction(4)
    return max(floor(factor * certified.ln(Fraction(size))[1] / error**2), 1)


def least_alpha(
    *,
    universe: int,
    people: int,
    questions: int,
    epsilon: Number,
    beta: Number,
    delta: Number = 0,
    sharper: bool = False,
) -> Fraction:
    """The least α for which all answers are within 3α, except with probability β; rounded up.

    Accuracy: Theorem 3.28 for NumericSparse with 2k questions and c = `most_updates` must give an
    error of at most α·n people.  With δ = 0 that is 9c (ln(2k) + ln(4c/β))/ε ≤ αn, so that α ≥
    36 ln|X| (ln k + ln(32 ln|X|/(α²β)))/(εα²n): Theorem 4.14, and 4.15 with δ > 0, but for E21 and
    E22 in `tacit.errata`.  On a grid the answers are within 3αn and a step.

    >>> float(least_alpha(universe=16, people=10**6, questions=100, epsilon=1, beta="1/20"))
    0.117742
    """
    n, k = whole(people, "people"), whole(questions, "questions")

    def suffices(millionths: int) -> bool:
        share = Fraction(millionths, _FINEST)
        updates = most_updates(universe, share, sharper=sharper)
        guarantee = accuracy.numeric_sparse(
            beta=beta, epsilon=epsilon, questions=2 * k, at_most=updates, delta=delta
        )
        return guarantee.alpha <= share * n

    if not suffices(_FINEST):
        raise ConditionNotMet(
            f"with {n} people and ε = {show(positive(epsilon, 'epsilon'))}, Theorem 3.28 "
            "promises nothing for any α up to 1",
            advice="there must be more people, or a larger epsilon",
        )
    return Fraction(bisect_left(range(1, _FINEST), True, key=suffices) + 1, _FINEST)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One answer, in people: of the model, measured, or of a model that is no longer watched."""

    value: Fraction
    source: Literal["model", "measured", "unwatched"]


def multiplicative_weights(
    x: NDArray[np.int64],
    questions: Iterable[Sequence[Number]],
    *,
    people: int,
    alpha: Number,
    epsilon: Number,
    delta: Number = 0,
    grid: Number = 1,
    sharper: bool = False,
    coins: Coins | None = None,
) -> Iterator[ModelAnswer]:
    """Online multiplicative weights via NumericSparse, for the histogram x of a universe.

    ``people`` is n, a public number; the true one is not used.  Questions may depend on the answers
    so far; their values are multiples of ``grid``.

    Privacy: (ε, δ), as NumericSparse (Theorem 3.27): one person changes n·f(x) by at most 1, and
    the model is made of what was told.
    Accuracy: within 3αn and a step of the grid for all questions, if α is at least `least_alpha`
    and n is the true number of people.
    """
    histogram, n, step = _histogram(x), whole(people, "people"), positive(grid, "grid")
    error, stream = _share(alpha), iterated(questions, "questions", "give a list of questions")
    rate = 4 * error if flag(sharper, "sharper") else error / 2
    compared: list[Fraction] = []  # what NumericSparse is asked next
    told = numeric_sparse(
        iter(compared.pop, None),
        threshold=(2 * ceil(error * n / step) + 1) * step,
        at_most=most_updates(len(histogram), error, sharper=sharper),
        epsilon=epsilon,
        delta=delta,
        grid=step,
        coins=coins,
    )

    def asked(difference: Fraction) -> Answer | None:
        """⊥ or ⊤; None once it has halted."""
        compared[:] = [difference]
        return next(told, None)

    def online() -> Iterator[ModelAnswer]:
        model: Weights = np.full(len(histogram), 1 / len(histogram))
        for question in stream:
            f = _values(question, len(histogram), step)
            truth = sum((value * count for value, count in zip(f, histogram, strict=True)), _ZERO)
            guess = round(Fraction(float(model @ np.array(f, float)) * n) / step) * step
            side, answer = 1, asked(truth - guess)
            if answer is not None and not answer.above:
                side, answer = -1, asked(guess - truth)
            if answer is None:
                yield ModelAnswer(guess, "unwatched")
            elif answer.value is None:
                yield ModelAnswer(guess, "model")
            else:
                measured = guess + side * answer.value
                model = updated(model, f, float(measured / n), rate=rate)
                yield ModelAnswer(measured, "measured")

    return online()


_ZERO = Fraction(0)


def _share(alpha: Number) -> Fraction:
    share = positive(alpha, "alpha")
    if share > 1:
        raise BadParameter("alpha", as_given(alpha), "it must be a share of the people, at most 1")
    return share


def _histogram(x: NDArray[np.int64]) -> list[int]:
    counts = x if isinstance(x, np.ndarray) else np.array([])
    if counts.ndim != 1 or not counts.size or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise BadParameter("x", "(withheld)", "give a histogram: integers, none below 0")
    listed: list[int] = counts.tolist()
    return listed


def _values(question: Sequence[Number], universe: int, grid: Fraction) -> list[Fraction]:
    """A question's values: in [0, 1], on the grid, one for each element of the universe."""
    takes = f"give {universe} numbers from 0 to 1, multiples of the grid, {show(grid)}"
    if not isinstance(question, Sequence | np.ndarray) or len(question) != universe:
        raise BadParameter("questions", kind_of(question), takes)
    values = [exact(value, "questions") for value in question]
    for value in values:
        if not 0 <= value <= 1 or (value / grid).denominator != 1:
            raise BadParameter("questions", as_given(value), takes)
    return values
