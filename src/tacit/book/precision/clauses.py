"""What an accuracy theorem asks of α·ε, clause by clause, with certified bounds.

Every clause of Theorems 3.24, 3.26 and 3.28 reads  αε ≥ A (p ln k + q ln(B/β)).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit import certified
from tacit.book.composition import corollary_limit
from tacit.certified import Bounds
from tacit.errors import ConditionNotMet
from tacit.privacy import as_given, show_limit

_LARGEST_LOG = 1000  # β is told down to e^(−1000) and k up to e^1000: worse ones, and true


@dataclass(frozen=True, slots=True)
class Clause:
    """αε ≥ scale · (p ln k + q ln(of_beta/β)); p and q are not negative, q is positive."""

    scale: Bounds  # A
    p: Fraction
    q: Bounds
    of_beta: int  # B ≥ 2

    def product(self, beta: Fraction, questions: int) -> Fraction:
        """An αε that is enough."""
        log_beta = certified.ln(self.of_beta / beta)[1]
        return self.scale[1] * (self.p * _ln(questions)[1] + self.q[1] * log_beta)

    def beta(self, product: Fraction, questions: int) -> Fraction:
        """A β, possibly above 1, for which αε is enough."""
        room = product / self.scale[1] - self.p * _ln(questions)[1]
        exponent = room / self.q[1 if room > 0 else 0]
        exponent = max(min(exponent, Fraction(_LARGEST_LOG)), Fraction(-10))
        return self.of_beta * certified.exp(-exponent)[1]

    def questions(self, product: Fraction, beta: Fraction) -> int | None:
        """The largest k for which αε is enough: 0 if there is none, None if every k will do."""
        room = product / self.scale[1] - self.q[1] * certified.ln(self.of_beta / beta)[1]
        if room < 0:
            return 0
        if self.p == 0:
            return None
        return int(certified.exp(min(room / self.p, Fraction(_LARGEST_LOG)))[0])


def _ln(questions: int) -> Bounds:
    return certified.ln(Fraction(questions))


_ONE = (Fraction(1), Fraction(1))
_ROOT_512 = certified.sqrt(Fraction(512))


def above_threshold(at_most: int, delta: Fraction) -> list[Clause]:
    """Theorem 3.24."""
    return [Clause((Fraction(8), Fraction(8)), Fraction(1), _ONE, 2)]


def above_threshold_sharper(at_most: int, delta: Fraction) -> list[Clause]:
    """E9: max|ν| ≤ 4(ln k + ln(2/β))/ε and |ρ| ≤ 2 ln(2/β)/ε fail with probability β/2 each."""
    return [Clause(_ONE, Fraction(4), (Fraction(6), Fraction(6)), 2)]


def sparse(at_most: int, delta: Fraction) -> list[Clause]:
    """Theorem 3.26, within E3."""
    if delta == 0:
        return [Clause((Fraction(8 * at_most),) * 2, Fraction(1), _ONE, 2 * at_most)]
    return [Clause(_root_of_log(512 * at_most, delta), Fraction(1), _ONE, 2 * at_most)]


def numeric_sparse(at_most: int, delta: Fraction) -> list[Clause]:
    """Theorem 3.28, with the clause that E7 adds: the values' own noise has scale √8 s."""
    if delta == 0:
        return [Clause((Fraction(9 * at_most),) * 2, Fraction(1), _ONE, 4 * at_most)]
    low, high = _root_of_log(at_most, delta / 2)
    scale = low * (_ROOT_512[0] + 1), high * (_ROOT_512[1] + 1)
    return [
        Clause(scale, Fraction(1), _ONE, 4 * at_most),
        Clause(scale, Fraction(0), certified.sqrt(Fraction(8)), 2 * at_most),
    ]


def _root_of_log(factor: int, delta: Fraction) -> Bounds:
    """Bounds of √(factor · ln(1/δ))."""
    low, high = certified.ln(1 / delta)
    return certified.sqrt(factor * low)[0], certified.sqrt(factor * high)[1]


def refuse_outside(at_most: int, epsilon: Fraction, delta: Fraction, *, numeric: bool) -> None:
    """E3: with δ > 0 the algorithm itself is known to be private up to a limit only."""
    if delta == 0:
        return
    limit = corollary_limit(at_most, delta / 2 if numeric else delta)
    if numeric:
        limit *= 1 + 1 / _ROOT_512[1]
    if epsilon > limit:
        raise ConditionNotMet(
            f"ε = {as_given(epsilon)} with {at_most} ⊤ and δ = {as_given(delta)} is more than "
            f"{show_limit(limit)}, up to which Theorem {'3.27' if numeric else '3.25'} is proved "
            "(E3)"
        )
