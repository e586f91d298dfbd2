"""The closing remarks of sections 3.5.2 and 3.6.3, as numbers.

Section 3.5.2 asks how many counting queries can be answered with non-trivial accuracy: close to n²
with noise o(n), and close to n with noise o(√n), below the sampling error.  Section 3.6.3 says that
the sparse vector technique finds the large queries almost for free: had we known beforehand which
they are, Laplace noise would be smaller only by a constant and ln k.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Literal, get_args

from tacit.arguments import one_of
from tacit.book.accuracy import numeric_sparse
from tacit.book.composition import advanced_each, corollary_each, optimal_each
from tacit.numbers import Number, chance, positive, probability, show, spending
from tacit.numerics import certified
from tacit.numerics.searching import least_above

__all__ = ["SearchPrice", "queries_within", "search_price"]

Composition = Literal["basic", "advanced", "optimal"]
_MOST = 10**12  # mechanisms that can be composed


def queries_within(
    error: Number, *, epsilon: Number, delta: Number, beta: Number, by: Composition = "advanced"
) -> int:
    """How many counting queries Laplace noise answers so that none is off by more than `error`.

    ``by`` says how they are composed: by addition (which needs no δ), by Theorem 3.20, or
    optimally.  Every query gets noise of its own; by Fact 3.7 and the union bound k of them, each
    (ε₀, 0)-private, stay within the error if ln(k/β) ≤ error · ε₀.

    Accuracy: except with probability β.  At most 10¹² are counted.

    >>> for n in (10**4, 10**5, 10**6):  # noise o(n): close to n²; noise o(√n): close to n
    ...     linear = queries_within(n / 10, epsilon=1, delta="1e-9", beta=0.05)
    ...     root = queries_within(n**0.5, epsilon=1, delta="1e-9", beta=0.05)
    ...     print(f"{linear / n**2:.1e} n²   {root / n:.1e} n")
    3.0e-06 n²   8.0e-04 n
    1.5e-06 n²   4.8e-04 n
    8.3e-07 n²   3.0e-04 n
    """
    one_of(by, "by", get_args(Composition))
    most, total = floor(positive(error, "error")), spending(epsilon, "epsilon")
    failing = probability(beta, "beta")
    slack = Fraction(0) if by == "basic" else chance(delta, "delta")

    def epsilon_each(k: int) -> Fraction:
        if by == "basic":
            return total / k
        allowed = (
            advanced_each(k, total, slack) if by == "advanced" else optimal_each(k, total, slack)
        )
        return Fraction(allowed)

    def too_many(k: int) -> bool:
        return k > _MOST or certified.ln(k / failing)[1] > most * epsilon_each(k)

    return least_above(0, too_many) - 1


@dataclass(frozen=True, slots=True)
class SearchPrice:
    """What it costs not to know which queries are large: α then, and α if they are known."""

    unknown: Fraction
    known: Fraction

    @property
    def ratio(self) -> Fraction:
        """How many times larger α is."""
        return self.unknown / self.known

    def __str__(self) -> str:
        return (
            f"α = {show(self.unknown)} for the queries that NumericSparse finds, "
            f"{show(self.known)} if they are known: {float(self.ratio):.1f} times"
        )


def search_price(
    *, epsilon: Number, questions: int, at_most: int, beta: Number, delta: Number = 0
) -> SearchPrice:
    """NumericSparse on k queries against Laplace noise on the c large ones, by the same (ε, δ).

    The first α is that of Theorem 3.28.  The second is (c/ε) ln(c/β), or √(8c ln(1/δ)) ln(c/β)/ε
    by Corollary 3.21 if δ > 0: Fact 3.7 and the union bound over c values.

    >>> print(search_price(epsilon=1, questions=10**6, at_most=10, beta=0.05))
    α = 1845 for the queries that NumericSparse finds, 52.98 if they are known: 34.8 times
    """
    guarantee = numeric_sparse(
        epsilon=epsilon, questions=questions, at_most=at_most, beta=beta, delta=delta
    )
    c = guarantee.at_most
    epsilon_each = (
        corollary_each(c, guarantee.epsilon, guarantee.delta)
        if guarantee.delta
        else guarantee.epsilon / c
    )
    known = certified.round_up(certified.ln(c / guarantee.beta)[1] / epsilon_each)
    return SearchPrice(guarantee.alpha, known)
