"""Accuracy: Theorems 3.24, 3.26 and 3.28, and Definitions 3.9 and 3.10.

Each theorem is a function that is solved for any one of its parameters.  The two definitions decide
whether a run was accurate; they look at true values, so they are for tests, for demonstrations on
invented data and for choosing parameters, never for answering questions.  `tacit.book.half_gap`
computes the accuracy of a recipe where the theorems only bound it.  E3 and E7 to E10 are explained
in `tacit.errata`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.arguments import flag, instance, iterated
from tacit.book.answer import Answer
from tacit.book.recipes import refuse_unproved
from tacit.errors import BadParameter, ConditionNotMet
from tacit.numbers import (
    Number,
    as_given,
    exact,
    positive,
    probability,
    show,
    small_probability,
    whole,
)
from tacit.numerics import certified
from tacit.numerics.certified import Bounds
from tacit.numerics.searching import least_above
from tacit.privacy import Privacy

__all__ = [
    "Guarantee",
    "Verdict",
    "above_threshold",
    "accurate",
    "covered",
    "least_alphas",
    "numeric_sparse",
    "numerically_accurate",
    "sparse",
]

_LARGEST_LOG = 1000  # a β is stated down to e^(−1000), a k up to e^1000
_ZERO = Fraction(0)
_ONE = (Fraction(1), Fraction(1))
_ROOT_512 = certified.sqrt(Fraction(512))


# Theorems 3.24, 3.26 and 3.28: α, ε, β, k or c from the other four.
#
# =========  =====================  ======================================================
# theorem    algorithm              α, for questions of sensitivity 1
# =========  =====================  ======================================================
# 3.24       AboveThreshold         8 (ln k + ln(2/β))/ε; sharper (4 ln k + 6 ln(2/β))/ε (E9)
# 3.26       Sparse, δ = 0          8c (ln k + ln(2c/β))/ε (E10)
# 3.26       Sparse, δ > 0          (ln k + ln(2c/β)) √(512 c ln(1/δ))/ε
# 3.28       NumericSparse, δ = 0   9c (ln k + ln(4c/β))/ε
# 3.28       NumericSparse, δ > 0   s · max{ln k + ln(4c/β), √8 ln(2c/β)} (E7),
#                                   s = √(c ln(2/δ)) (√512 + 1)/ε
# =========  =====================  ======================================================
#
# Each says: if at most c − 1 questions *before the last* have f ≥ T − α (E8, checked by `covered`),
# then a run is accurate to α, except with probability β.  With δ > 0 the algorithms are proved
# private in the range of E3 only, and outside it a theorem is refused.
#
# α, ε and β are rounded up, k and c down, so that the statement stays true.


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """k questions, at most c of them ⊤: accurate to α (in units of Δ) except with probability β."""

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
    """Theorem 3.24, solved for the parameter left out.  ``sharper`` uses the constants of E9.

    >>> round(float(above_threshold(beta=0.05, epsilon=1, questions=1000).alpha), 4)
    84.7731
    >>> above_threshold(alpha=85, beta=0.05, epsilon=1).questions
    1028
    """
    theorem = "3.24, sharper" if flag(sharper, "sharper") else "3.24"
    return _solve(
        theorem,
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
        questions=questions,
        at_most=1,
        delta=0,
    )


def sparse(
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    epsilon: Number | None = None,
    questions: int | None = None,
    at_most: int | None = None,
    delta: Number = 0,
) -> Guarantee:
    """Theorem 3.26, solved for the parameter left out.

    >>> round(float(sparse(alpha=1000, beta=0.05, questions=1000, at_most=10).epsilon), 4)
    1.0319
    """
    return _solve(
        "3.26",
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
        questions=questions,
        at_most=at_most,
        delta=delta,
    )


def numeric_sparse(
    *,
    alpha: Number | None = None,
    beta: Number | None = None,
    epsilon: Number | None = None,
    questions: int | None = None,
    at_most: int | None = None,
    delta: Number = 0,
) -> Guarantee:
    """Theorem 3.28 with E7, solved for the parameter left out."""
    return _solve(
        "3.28",
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
        questions=questions,
        at_most=at_most,
        delta=delta,
    )


def _solve(
    theorem: str,
    *,
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
        solvable = ", ".join(names[:4] if theorem.startswith("3.24") else names)
        raise BadParameter(
            "what is left out",
            ", ".join(missing) or "nothing",
            f"leave out exactly one of {solvable}, the one to solve for",
        )
    small = small_probability(delta, "delta")
    if small and not Fraction("1e-300") <= small <= Fraction("0.999"):
        raise BadParameter("delta", as_given(small), "it must be 0, or between 1e-300 and 0.999")
    # The parameter left out is 0 until it is solved for.
    a = _ZERO if alpha is None else positive(alpha, "alpha")
    b = _ZERO if beta is None else probability(beta, "beta")
    e = _ZERO if epsilon is None else positive(epsilon, "epsilon")
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
            f"Theorem {theorem} does not give α = {show(a)} with ε = {show(e)} for any "
            f"{missing[0]}: allow a larger alpha, epsilon or beta, or fewer questions"
        )
    refuse_unproved(c, Privacy(e, small), numeric=theorem == "3.28")
    return Guarantee(
        theorem=theorem, alpha=a, beta=b, epsilon=e, delta=small, questions=k, at_most=c
    )


def _most_tops(theorem: str, product: Fraction, beta: Fraction, k: int, delta: Fraction) -> int:
    """The largest c for which αε is enough, 0 if there is none; larger c need more."""

    def enough(c: int) -> bool:
        return all(part.product(beta, k) <= product for part in _THEOREMS[theorem](c, delta))

    return least_above(0, lambda c: not enough(c)) - 1


# What the theorems require of αε, clause by clause, with certified bounds.
#
# Every clause of Theorems 3.24, 3.26 and 3.28 reads  αε ≥ A (p ln k + q ln(B/β)).


@dataclass(frozen=True, slots=True)
class AlphaClause:
    """αε ≥ scale · (p ln k + q ln(of_beta/β)); p and q are not negative, q is positive."""

    scale: Bounds  # A
    p: Fraction
    q: Bounds
    of_beta: int  # B ≥ 2

    def product(self, beta: Fraction, questions: int) -> Fraction:
        """An αε that suffices."""
        log_beta = certified.ln(self.of_beta / beta)[1]
        return self.scale[1] * (self.p * _ln(questions)[1] + self.q[1] * log_beta)

    def beta(self, product: Fraction, questions: int) -> Fraction:
        """A β, possibly above 1, for which αε suffices."""
        room = product / self.scale[1] - self.p * _ln(questions)[1]
        exponent = room / self.q[1 if room > 0 else 0]
        exponent = max(min(exponent, Fraction(_LARGEST_LOG)), Fraction(-10))
        return self.of_beta * certified.exp(-exponent)[1]

    def questions(self, product: Fraction, beta: Fraction) -> int | None:
        """The largest k for which αε suffices: 0 if there is none, None if every k will do."""
        room = product / self.scale[1] - self.q[1] * certified.ln(self.of_beta / beta)[1]
        if room < 0:
            return 0
        if self.p == 0:
            return None
        return int(certified.exp(min(room / self.p, Fraction(_LARGEST_LOG)))[0])


def _ln(questions: int) -> Bounds:
    return certified.ln(Fraction(questions))


def _above_threshold_clauses(at_most: int, delta: Fraction) -> list[AlphaClause]:
    """Theorem 3.24."""
    return [AlphaClause((Fraction(8), Fraction(8)), Fraction(1), _ONE, 2)]


def _above_threshold_sharper_clauses(at_most: int, delta: Fraction) -> list[AlphaClause]:
    """E9: max|ν| ≤ 4(ln k + ln(2/β))/ε and |ρ| ≤ 2 ln(2/β)/ε fail with probability β/2 each."""
    return [AlphaClause(_ONE, Fraction(4), (Fraction(6), Fraction(6)), 2)]


def _sparse_clauses(at_most: int, delta: Fraction) -> list[AlphaClause]:
    """Theorem 3.26, in the range of E3."""
    if delta == 0:
        return [AlphaClause((Fraction(8 * at_most),) * 2, Fraction(1), _ONE, 2 * at_most)]
    return [AlphaClause(_root_of_log(512 * at_most, delta), Fraction(1), _ONE, 2 * at_most)]


def _numeric_sparse_clauses(at_most: int, delta: Fraction) -> list[AlphaClause]:
    """Theorem 3.28, and the clause that E7 adds: the noise of the values has scale √8 s."""
    if delta == 0:
        return [AlphaClause((Fraction(9 * at_most),) * 2, Fraction(1), _ONE, 4 * at_most)]
    low, high = _root_of_log(at_most, delta / 2)
    scale = low * (_ROOT_512[0] + 1), high * (_ROOT_512[1] + 1)
    return [
        AlphaClause(scale, Fraction(1), _ONE, 4 * at_most),
        AlphaClause(scale, Fraction(0), certified.sqrt(Fraction(8)), 2 * at_most),
    ]


def _root_of_log(factor: int, delta: Fraction) -> Bounds:
    """Bounds on √(factor · ln(1/δ))."""
    low, high = certified.ln(1 / delta)
    return certified.sqrt(factor * low)[0], certified.sqrt(factor * high)[1]


_THEOREMS = {
    "3.24": _above_threshold_clauses,
    "3.24, sharper": _above_threshold_sharper_clauses,
    "3.26": _sparse_clauses,
    "3.28": _numeric_sparse_clauses,
}


# Definitions 3.9 and 3.10: whether a run was accurate.


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a run was accurate; if not, which clause failed at which questions.

    It holds positions, counted from 0, and no values.  Still, it depends on the true values and is
    not private.
    """

    halted_before: int | None = None  # the first question without an answer
    wrong_tops: tuple[int, ...] = ()  # ⊤ although the value is below T − α
    wrong_bottoms: tuple[int, ...] = ()  # ⊥ although the value is above T + α
    far_values: tuple[int, ...] = ()  # a released value more than α from the true one

    def __bool__(self) -> bool:
        failed = self.wrong_tops or self.wrong_bottoms or self.far_values
        return self.halted_before is None and not failed

    def __str__(self) -> str:
        clauses = [
            ("⊤ below T − α", self.wrong_tops),
            ("⊥ above T + α", self.wrong_bottoms),
            ("value off by more than α", self.far_values),
        ]
        said = [f"{what} at {', '.join(map(str, where))}" for what, where in clauses if where]
        if self.halted_before is not None:
            said.append(f"halted before question {self.halted_before}")
        return "; ".join(said) or "accurate"


def accurate(
    answers: Sequence[Answer],
    values: Sequence[Number],
    *,
    threshold: Number | Sequence[Number],
    alpha: Number,
) -> Verdict:
    """Definition 3.9: no halt before f_k, f ≥ T − α for every ⊤ and f ≤ T + α for every ⊥.

    `values` are the true values of all k questions, `answers` the answers that were given; if they
    are fewer, the run halted early.  `threshold` is one number, or one for each question.

    >>> print(accurate([Answer(above=True)], [100, 3], threshold=50, alpha=10))
    halted before question 1
    """
    return _judge(answers, values, threshold, alpha, numeric=False)


def numerically_accurate(
    answers: Sequence[Answer],
    values: Sequence[Number],
    *,
    threshold: Number | Sequence[Number],
    alpha: Number,
) -> Verdict:
    """Definition 3.10: as `accurate`, and |f − a| ≤ α for every released value a.

    The definition does not require f ≥ T − α for those questions; the proofs give it, and it is
    required here.
    """
    return _judge(answers, values, threshold, alpha, numeric=True)


def least_alphas(
    answers: Sequence[Answer],
    values: Sequence[Number],
    *,
    threshold: Number | Sequence[Number],
) -> tuple[Fraction, Fraction]:
    """The least α for which the given answers are right, and the least α for their values.

    The clauses of Definitions 3.9 and 3.10, solved for α.  It depends on the true values and is not
    private.

    >>> top = Answer(above=True, value=Fraction(90))
    >>> least_alphas([top, Answer(above=False)], [98, 57], threshold=50)
    (Fraction(7, 1), Fraction(8, 1))
    """
    given = _run(answers, _values(values), threshold)
    wrong = [T - f if a.above else f - T for _, a, f, T in given]
    off = [abs(f - a.value) for _, a, f, _ in given if a.value is not None]
    return max([Fraction(0), *wrong]), max([Fraction(0), *off])


def covered(
    values: Sequence[Number],
    *,
    threshold: Number | Sequence[Number],
    alpha: Number,
    at_most: int = 1,
) -> bool:
    """Whether the accuracy theorems cover these questions: few enough are near T or above it.

    At most c − 1 questions *before the last* may have f ≥ T − α.  Theorem 3.24 says so for c = 1;
    Theorems 3.26 and 3.28 as printed allow c of them anywhere, but then a run may halt early (E8).

    >>> covered([0, 0, 9], threshold=9, alpha=1), covered([9, 0, 0], threshold=9, alpha=1)
    (True, False)
    """
    truth = _values(values)
    limits, allowed = _thresholds(threshold, len(truth)), _alpha(alpha)
    near = sum(f >= T - allowed for f, T in zip(truth[:-1], limits[:-1], strict=True))
    return near <= whole(at_most, "at_most") - 1


def _judge(
    answers: Sequence[Answer],
    values: Sequence[Number],
    threshold: Number | Sequence[Number],
    alpha: Number,
    *,
    numeric: bool,
) -> Verdict:
    truth, allowed = _values(values), _alpha(alpha)
    given = _run(answers, truth, threshold)
    if numeric and any(answer.above and answer.value is None for _, answer, _, _ in given):
        raise BadParameter(
            "answers", "⊤ without a value", "Definition 3.10 needs a released value with every ⊤"
        )
    return Verdict(
        halted_before=len(given) if len(given) < len(truth) else None,
        wrong_tops=tuple(i for i, a, f, T in given if a.above and f < T - allowed),
        wrong_bottoms=tuple(i for i, a, f, T in given if not a.above and f > T + allowed),
        far_values=tuple(
            i
            for i, a, f, _ in given
            if numeric and a.value is not None and abs(f - a.value) > allowed
        ),
    )


def _run(
    answers: Sequence[Answer], truth: list[Fraction], threshold: Number | Sequence[Number]
) -> list[tuple[int, Answer, Fraction, Fraction]]:
    """Each answer with its position, the true value and the threshold."""
    given = [
        instance(answer, "answers", Answer, "give the answers of a run")
        for answer in iterated(answers, "answers", "give the answers of a run")
    ]
    if len(given) > len(truth):
        raise BadParameter(
            "answers", f"{len(given)} answers", f"give at most {len(truth)}, one for each value"
        )
    limits = _thresholds(threshold, len(truth))
    return list(zip(range(len(given)), given, truth, limits, strict=False))


def _values(values: Sequence[Number]) -> list[Fraction]:
    """Values, read exactly; an error must not show one."""
    try:
        return [exact(value, "values") for value in iterated(values, "values", "give a list")]
    except BadParameter:
        raise BadParameter("values", "(withheld)", "every value must be a finite number") from None


def _thresholds(threshold: Number | Sequence[Number], questions: int) -> list[Fraction]:
    if isinstance(threshold, str) or not isinstance(threshold, Sequence):
        return [exact(threshold, "threshold")] * questions
    if len(threshold) != questions:
        raise BadParameter(
            "threshold",
            f"{len(threshold)} thresholds",
            f"give one, or one for each of {questions} values",
        )
    return [exact(limit, "threshold") for limit in threshold]


def _alpha(alpha: Number) -> Fraction:
    allowed = exact(alpha, "alpha")
    if allowed < 0:
        raise BadParameter("alpha", as_given(allowed), "it must be at least 0")
    return allowed
