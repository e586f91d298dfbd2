"""Theorems 3.24, 3.26 and 3.28: α, ε, β, k or c from the other four.

=========  =====================  ======================================================
theorem    algorithm              α, for questions of sensitivity 1
=========  =====================  ======================================================
3.24       AboveThreshold         8 (ln k + ln(2/β))/ε; sharper (4 ln k + 6 ln(2/β))/ε (E9)
3.26       Sparse, δ = 0          8c (ln k + ln(2c/β))/ε (E10)
3.26       Sparse, δ > 0          (ln k + ln(2c/β)) √(512 c ln(1/δ))/ε
3.28       NumericSparse, δ = 0   9c (ln k + ln(4c/β))/ε
3.28       NumericSparse, δ > 0   s · max{ln k + ln(4c/β), √8 ln(2c/β)} (E7),
                                  s = √(c ln(2/δ)) (√512 + 1)/ε
=========  =====================  ======================================================

Each says: if at most c − 1 questions *before the last* have f ≥ T − α (E8; `accuracy.covered`
tells), a run is accurate to α except with probability β.  With δ > 0 the algorithms are known to
be private within E3's range only, and outside it a theorem is refused.

α, ε and β are rounded up, k and c down, so that what is said stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit import certified
from tacit.arguments import flag
from tacit.book.precision import clauses
from tacit.errors import BadParameter, ConditionNotMet
from tacit.privacy import Number, as_given, positive, probability, show, small_probability, whole

_THEOREMS = {
    "3.24": clauses.above_threshold,
    "3.24, sharper": clauses.above_threshold_sharper,
    "3.26": clauses.sparse,
    "3.28": clauses.numeric_sparse,
}
_NOUGHT = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """k questions, at most c above: accurate to α, in units of Δ, except with probability β."""

    theorem: str
    alpha: Fraction
    beta: Fraction
    epsilon: Fraction
    delta: Fraction
    questions: int  # k
    at_most: int  # c

    def __str__(self) -> str:
        return (
            f"Theorem {self.theorem}: {self.questions} questions, at most {self.at_most} above, "
            f"(ε = {show(self.epsilon)}, δ = {show(self.delta)}): "
            f"accurate to α = {show(self.alpha)} except with probability β = {show(self.beta)}"
        )


def above_threshold(
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    epsilon: Number | None = None,
    questions: int | None = None,
    sharper: bool = False,
) -> Guarantee:
    """Theorem 3.24, solved for the one that is left out.  ``sharper`` takes E9's constants.

    >>> round(float(above_threshold(beta=0.05, epsilon=1, questions=1000).alpha), 4)
    84.7731
    >>> above_threshold(alpha=85, beta=0.05, epsilon=1).questions
    1028
    """
    theorem = "3.24, sharper" if flag(sharper, "sharper") else "3.24"
    return _solve(theorem, alpha, beta, epsilon, questions, 1, delta=0)


def sparse(
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    epsilon: Number | None = None,
    questions: int | None = None,
    at_most: int | None = None,
    delta: Number = 0,
) -> Guarantee:
    """Theorem 3.26, solved for the one that is left out.

    >>> round(float(sparse(alpha=1000, beta=0.05, questions=1000, at_most=10).epsilon), 4)
    1.0319
    """
    return _solve("3.26", alpha, beta, epsilon, questions, at_most, delta)


def numeric_sparse(
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    epsilon: Number | None = None,
    questions: int | None = None,
    at_most: int | None = None,
    delta: Number = 0,
) -> Guarantee:
    """Theorem 3.28 with E7, solved for the one that is left out."""
    return _solve("3.28", alpha, beta, epsilon, questions, at_most, delta)


def _solve(
    theorem: str,
    alpha: Number | None,
    beta: Number | None,
    epsilon: Number | None,
    questions: int | None,
    at_most: int | None,
    delta: Number,
) -> Guarantee:
    names = ("alpha", "beta", "epsilon", "questions", "at_most")
    asked = (alpha, beta, epsilon, questions, at_most)
    missing = [name for name, value in zip(names, asked, strict=True) if value is None]
    if len(missing) != 1:
        all_given = "nothing; alpha, beta, epsilon, questions and at_most were all given"
        raise BadParameter("left out", ", ".join(missing) or all_given, "leave out exactly one")
    small = small_probability(delta, "delta")
    if small and not Fraction("1e-300") <= small <= Fraction("0.999"):
        raise BadParameter("delta", as_given(small), "it must be 0, or between 1e-300 and 0.999")
    # What is left out reads as 0 until it is solved for.
    a = _NOUGHT if alpha is None else positive(alpha, "alpha")
    b = _NOUGHT if beta is None else probability(beta, "beta")
    e = _NOUGHT if epsilon is None else positive(epsilon, "epsilon")
    k = 0 if questions is None else whole(questions, "questions")
    c = 0 if at_most is None else whole(at_most, "at_most")
    if at_most is None:
        c = _most_tops(theorem, a * e, b, k, small)
    parts = _THEOREMS[theorem](c, small)
    if alpha is None:
        a = certified.round_up(max(part.product(b, k) for part in parts) / e)
    elif epsilon is None:
        e = certified.round_up(max(part.product(b, k) for part in parts) / a)
    elif beta is None:
        b = certified.round_up(max(part.beta(a * e, k) for part in parts))
    elif questions is None:
        enough = [part.questions(a * e, b) for part in parts]
        k = min(most for most in enough if most is not None)
    if b >= 1 or k < 1 or c < 1:
        raise ConditionNotMet(
            f"Theorem {theorem} does not reach α = {show(a)} with ε = {show(e)} for any "
            f"{missing[0]}; allow a larger alpha, epsilon or beta, or fewer questions"
        )
    clauses.refuse_outside(c, e, small, numeric=theorem == "3.28")
    return Guarantee(
        theorem=theorem, alpha=a, beta=b, epsilon=e, delta=small, questions=k, at_most=c
    )


def _most_tops(theorem: str, product: Fraction, beta: Fraction, k: int, delta: Fraction) -> int:
    """The largest c for which αε is enough, 0 if there is none: what is asked grows with c."""

    def enough(c: int) -> bool:
        return all(part.product(beta, k) <= product for part in _THEOREMS[theorem](c, delta))

    high = 1
    while enough(high):
        high *= 2
    low = high // 2  # enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low
