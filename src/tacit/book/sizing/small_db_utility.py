"""How accurate SmallDB is: the bound of Thm 4.9 with explicit constants.

SmallDB draws a database y of m rows with weight e^(−εS/2), where S = max_f |n·f(x) − n·f(y)|
has sensitivity 1.  It chooses among the C(|A|+m−1, m) multisets of m atoms, one of which has
S ≤ n·α_m (``small_db_size``).  So, with probability 1 − β,

    max_f |f(x) − f(y)|  ≤  α_m + (2/(εn))·(ln C(|A|+m−1, m) + ln(1/β)).

The book counts |X|^m databases, which is never less, and states the theorem up to a constant
(erratum E16); these are numbers, rounded up.

Privacy: n is a public number that the steward types, never one that is counted from the data.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb

from tacit import certified
from tacit.errors import BadParameter
from tacit.privacy import Number, exact, positive, probability, whole

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
    atoms: Number,
) -> Fraction:
    """The error that SmallDB keeps to with probability 1 − β, rounded up and at most 1.

    Accuracy: Thm 4.9 with explicit constants.

    >>> from tacit.privacy import show
    >>> show(error_bound(10_000, epsilon=1, beta=0.05, rows=50, alpha_m="1/100", atoms=100))
    '0.02908'
    """
    people = whole(n, "n")
    noise = noise_of(epsilon, beta, atoms)
    at_best = exact(alpha_m, "alpha_m")
    if not 0 <= at_best <= 1:
        raise BadParameter("alpha_m", alpha_m, "it must lie in [0, 1]")
    return min(certified.round_up(at_best + noise(whole(rows, "rows")) / people), Fraction(1))


def noise_of(epsilon: Number, beta: Number, atoms: Number) -> Callable[[int], Fraction]:
    """The draw's share of the error times n, by m: (2/ε)(ln(candidates) + ln(1/β)), rounded up."""
    points = whole(atoms, "atoms")
    log_beta = certified.ln(1 / probability(beta, "beta"))[1]
    per_person = 2 / positive(epsilon, "epsilon")
    return lambda m: per_person * (log_candidates(m, points) + log_beta)


def log_candidates(rows: int, atoms: int) -> Fraction:
    """An upper bound of ln C(|A|+m−1, m), for m = `rows`.

    >>> float(log_candidates(2, 3))  # ln 6
    1.791759469228055
    """
    return Fraction(0) if atoms == 1 else log_binomial(atoms + rows - 1, rows)


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
