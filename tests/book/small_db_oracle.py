"""The exponential mechanism by brute force: every database, every question, 60 digits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import mpmath
from tests.fit import ACCEPT, chi_square_p

Rows = tuple[int, ...]


def databases(universe: Iterable[int], rows: int) -> list[Rows]:
    return list(combinations_with_replacement(universe, rows))


def prefix_questions(domain: int) -> list[list[int]]:
    return [[int(value <= end) for value in range(1, domain + 1)] for end in range(1, domain + 1)]


def interval_questions(domain: int) -> list[list[int]]:
    values = range(1, domain + 1)
    return [
        [int(start <= value <= end) for value in values]
        for start in values
        for end in range(start, domain + 1)
    ]


def score(questions: Sequence[Sequence[Fraction | int]], x: Rows, y: Rows, first: int) -> Fraction:
    """max_f |n f(x) − n f(y)|, for rows whose values are counted from `first`."""
    worst = Fraction(0)
    for question in questions:
        of_x = sum((Fraction(question[row - first]) for row in x), Fraction(0))
        of_y = sum((Fraction(question[row - first]) for row in y), Fraction(0))
        worst = max(worst, abs(of_x - len(x) * of_y / len(y)))
    return worst


def law(
    scores: Sequence[Fraction], rate: Fraction, weights: Sequence[int] | None = None
) -> list[mpmath.mpf]:
    """Probabilities ∝ weight · e^(−rate·score)."""
    with mpmath.workdps(60):
        parts = [
            weight * mpmath.exp(-mpmath.mpf((rate * s).numerator) / (rate * s).denominator)
            for s, weight in zip(scores, weights or [1] * len(scores), strict=True)
        ]
        total = mpmath.fsum(parts)
        return [part / total for part in parts]


def assert_law(
    seen: Sequence[int],
    scores: Sequence[Fraction],
    rate: Fraction,
    weights: Sequence[int] | None = None,
    *,
    wrong: Sequence[str] = ("8/10", "12/10"),
) -> None:
    """The counts fit this law, and do not if the rate is wrong by any of these factors."""
    weights = weights or [1] * len(scores)
    assert chi_square_p(seen, [float(p) for p in law(scores, rate, weights)]) > ACCEPT
    # Candidates of one score keep their shares in every law: pooled, they distinguish rates best.
    levels = sorted(set(scores))
    together = [
        [sum(v for v, s in zip(values, scores, strict=True) if s == level) for level in levels]
        for values in (seen, weights)
    ]
    for factor in ("1", *wrong):
        probabilities = law(levels, rate * Fraction(factor), together[1])
        p_value = chi_square_p(together[0], [float(p) for p in probabilities])
        assert (p_value > ACCEPT) == (factor == "1"), (factor, p_value)


def loss(one: Sequence[mpmath.mpf], other: Sequence[mpmath.mpf]) -> mpmath.mpf:
    """The largest |ln P/P′|."""
    with mpmath.workdps(60):
        return max(abs(mpmath.log(p / q)) for p, q in zip(one, other, strict=True))


def neighbours(x: Rows, universe: Iterable[int]) -> list[Rows]:
    """Every database with one row more or one row less."""
    fewer = [x[:i] + x[i + 1 :] for i in range(len(x))]
    more = [tuple(sorted((*x, value))) for value in universe]
    return sorted(set(fewer + more))


def multiset_count(points: int, size: int) -> int:
    return comb(points + size - 1, size)
