"""How accurate SmallDB is: the bound of Thm 4.9 with explicit constants.

SmallDB draws a database y of m rows with weight μ(y)·e^(−εS/2), where S = max_f |n·f(x) − n·f(y)|
has sensitivity 1.  Some y* has S ≤ n·α_m (``small_db_size``), and all candidates together weigh
μ(R).  So, with probability 1 − β,

    max_f |f(x) − f(y)|  ≤  α_m + (2/(εn))·(ln(μ(R)/μ(y*)) + ln(1/β)).

The book states it up to a constant (erratum E16); these are numbers, rounded up.

Privacy: n is a public number that the steward types, never one that is counted from the data.

Three measures μ over databases of m rows are known, none of which looks at the data:

- ``multisets``: weight 1 for each multiset of atoms, C(|A|+m−1, m) in all;
- ``faithful``: weight 1 for each multiset over the universe, C(|X|+m−1, m) in all;
- ``sequences``: weight 1 for each of the |X|^m sequences of rows, and y* has at least one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Literal, get_args

from tacit import certified
from tacit.errors import BadParameter
from tacit.privacy import Number, exact, positive, probability, whole

Measure = Literal["multisets", "faithful", "sequences"]

_FEW = 300  # up to here binomials are exact, beyond it Stirling's series is sharp to 10⁻¹⁵
_BITS = 160
# ½·ln(2π) = 0.918938533204672741780329736...; rounded down, because it is subtracted
_HALF_LOG_TWO_PI = Fraction("0.918938533204672741780329")


def error_bound(
    n: Number,
    *,
    epsilon: Number,
    beta: Number,
    rows: Number,
    alpha_m: Number,
    atoms: Number | None = None,
    universe: Number | None = None,
    measure: Measure = "multisets",
) -> Fraction:
    """The error that SmallDB keeps to with probability 1 − β, rounded up and at most 1.

    Accuracy: Thm 4.9 with explicit constants.

    >>> from tacit.privacy import show
    >>> show(error_bound(10_000, epsilon=1, beta=0.05, rows=50, alpha_m="1/100", atoms=100))
    '0.02908'
    """
    people = whole(n, "n")
    noise = noise_of(epsilon, beta, measure, atoms, universe)
    at_best = exact(alpha_m, "alpha_m")
    if not 0 <= at_best <= 1:
        raise BadParameter("alpha_m", alpha_m, "it must lie in [0, 1]")
    return min(certified.round_up(at_best + noise(whole(rows, "rows")) / people), Fraction(1))


def noise_of(
    epsilon: Number, beta: Number, measure: Measure, atoms: Number | None, universe: Number | None
) -> Callable[[int], Fraction]:
    """The draw's share of the error times n, by m: (2/ε)(ln(μ(R)/μ(y*)) + ln(1/β)), rounded up."""
    points = points_of(measure, atoms, universe)
    log_beta = certified.ln(1 / probability(beta, "beta"))[1]
    per_person = 2 / positive(epsilon, "epsilon")
    return lambda m: per_person * (log_range(m, points, measure) + log_beta)


def log_range(rows: int, points: int, measure: Measure) -> Fraction:
    """ln(μ(R)/μ(y*)) at most, for m = `rows` and the points that the measure ranges over.

    >>> float(log_range(2, 3, "multisets")), float(log_range(2, 3, "sequences"))  # ln 6, ln 9
    (1.791759469228055, 2.1972245773362196)
    """
    if points == 1:
        return Fraction(0)
    if measure == "sequences":
        return rows * certified.ln(Fraction(points), _BITS)[1]
    return log_binomial(points + rows - 1, rows)


def points_of(measure: Measure, atoms: Number | None, universe: Number | None) -> int:
    """The number of points that the measure ranges over."""
    if measure not in get_args(Measure):
        choices = ", ".join(get_args(Measure))
        raise BadParameter("measure", repr(measure), f"choose one of {choices}")
    if measure == "multisets" and atoms is not None:
        return whole(atoms, "atoms")
    if universe is None:  # fewer atoms than points would promise too small an error
        needs = "atoms, or universe" if measure == "multisets" else "universe"
        raise BadParameter("universe", None, f"the measure {measure!r} needs {needs}")
    return whole(universe, "universe")


def log_binomial(n: int, k: int) -> Fraction:
    """An upper bound of ln C(n, k), at most 10⁻¹⁵ too high for 0 ≤ k ≤ n."""
    if min(k, n - k) <= _FEW:
        return certified.ln(Fraction(comb(n, k)), _BITS)[1]
    # ln n! = n ln n − n + ½ ln n + ½ ln 2π + e(n); the terms −n + k + (n−k) cancel.
    bits = _BITS + n.bit_length()
    n_log = certified.ln(Fraction(n), bits)[1]
    k_log, rest_log = (certified.ln(Fraction(part), bits)[0] for part in (k, n - k))
    half = Fraction(1, 2)
    stirling = (n + half) * n_log - (k + half) * k_log - (n - k + half) * rest_log
    series = _series_high(n) - _series_low(k) - _series_low(n - k)
    return stirling - _HALF_LOG_TWO_PI + series


def _series_low(n: int) -> Fraction:
    """The rest of Stirling's formula is above its series cut after a negative term."""
    return Fraction(1, 12 * n) - Fraction(1, 360 * n**3)


def _series_high(n: int) -> Fraction:
    """And below its series cut after a positive term."""
    return _series_low(n) + Fraction(1, 1260 * n**5)
