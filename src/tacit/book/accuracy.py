"""What accuracy means, and what the book proves about it (Definitions 3.9 and 3.10).

The theorems are in :mod:`tacit.book.precision.theorems`; the computed (not bounded) accuracy of a
recipe is in :mod:`tacit.book.half_gap`.  Everything here looks at true values: it is for tests, for
demonstrations on invented data and for choosing parameters, never for answering questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.arguments import instance, iterated
from tacit.book.answer import Answer
from tacit.book.precision.theorems import Guarantee, above_threshold, numeric_sparse, sparse
from tacit.errors import BadParameter
from tacit.privacy import Number, as_given, exact, whole

__all__ = [
    "Guarantee",
    "Verdict",
    "above_threshold",
    "accurate",
    "covered",
    "numeric_sparse",
    "numerically_accurate",
    "sparse",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a run was accurate; if not, which clause failed at which questions, from 0.

    Positions only, never a value.  Still, they are drawn from the truth: not private.
    """

    halted_before: int | None = None  # the first question that was left unanswered
    wrong_tops: tuple[int, ...] = ()  # ⊤ although the value is below T − α
    wrong_bottoms: tuple[int, ...] = ()  # ⊥ although the value is above T + α
    far_values: tuple[int, ...] = ()  # a released value further than α from the truth

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

    `values` are the true values of all k questions, `answers` those that were given: fewer mean
    that the run halted early.  A threshold for each question, if they differ.

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

    The definition leaves out f ≥ T − α for those questions; the proofs give it, and it is asked
    for here.
    """
    return _judge(answers, values, threshold, alpha, numeric=True)


def _judge(
    answers: Sequence[Answer],
    values: Sequence[Number],
    threshold: Number | Sequence[Number],
    alpha: Number,
    *,
    numeric: bool,
) -> Verdict:
    truth = _values(values)
    limits, allowed = _thresholds(threshold, len(truth)), _alpha(alpha)
    answers = [
        instance(answer, "answers", Answer, "give the answers of a run")
        for answer in iterated(answers, "answers", "give the answers of a run")
    ]
    if len(answers) > len(truth):
        raise BadParameter("answers", f"{len(answers)} of them", f"there are {len(truth)} values")
    if numeric and any(answer.above and answer.value is None for answer in answers):
        raise BadParameter("answers", "⊤ without a value", "Definition 3.10 judges released values")
    given = list(zip(range(len(answers)), answers, truth, limits, strict=False))
    return Verdict(
        halted_before=len(answers) if len(answers) < len(truth) else None,
        wrong_tops=tuple(i for i, a, f, T in given if a.above and f < T - allowed),
        wrong_bottoms=tuple(i for i, a, f, T in given if not a.above and f > T + allowed),
        far_values=tuple(
            i
            for i, a, f, _ in given
            if numeric and a.value is not None and abs(f - a.value) > allowed
        ),
    )


def covered(
    values: Sequence[Number],
    *,
    threshold: Number | Sequence[Number],
    alpha: Number,
    at_most: int = 1,
) -> bool:
    """Whether the accuracy theorems speak of these questions: few enough come near T or above it.

    At most c − 1 questions *before the last* may have f ≥ T − α.  Theorem 3.24 says so for c = 1;
    Theorems 3.26 and 3.28 as printed allow c of them anywhere, and then a ⊤ may halt it early (E8).

    >>> covered([0, 0, 9], threshold=9, alpha=1), covered([9, 0, 0], threshold=9, alpha=1)
    (True, False)
    """
    truth = _values(values)
    limits, allowed = _thresholds(threshold, len(truth)), _alpha(alpha)
    near = sum(f >= T - allowed for f, T in zip(truth[:-1], limits[:-1], strict=True))
    return near <= whole(at_most, "at_most") - 1


def _values(values: Sequence[Number]) -> list[Fraction]:
    """Read values exactly; an error must not quote one."""
    try:
        return [exact(value, "values") for value in iterated(values, "values", "give a list")]
    except BadParameter:
        raise BadParameter("values", "(withheld)", "every value must be a finite number") from None


def _thresholds(threshold: Number | Sequence[Number], questions: int) -> list[Fraction]:
    if isinstance(threshold, str) or not isinstance(threshold, Sequence):
        return [exact(threshold, "threshold")] * questions
    if len(threshold) != questions:
        raise BadParameter(
            "threshold", f"{len(threshold)} of them", f"one, or one for each of {questions} values"
        )
    return [exact(each, "threshold") for each in threshold]


def _alpha(alpha: Number) -> Fraction:
    allowed = exact(alpha, "alpha")
    if allowed < 0:
        raise BadParameter("alpha", as_given(allowed), "it must be at least 0")
    return allowed
