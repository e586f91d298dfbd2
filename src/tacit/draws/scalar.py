"""Exact draws, one at a time: a uniform number is compared with certified bounds.

The uniform U in [0, 1) is never rounded.  Its leading bits are drawn first; while they leave the
answer open, more bits of the *same* U are drawn and the bounds are made tighter.  (A fresh U would
favour the answers that are easy to decide.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from tacit.draws.keystream import KeyStream
from tacit.numerics import certified
from tacit.numerics.certified import Units

if TYPE_CHECKING:
    from tacit.book.coins import Coins


_MORE_BITS = 64

BoundsAt = Callable[[int], Units]
"""``bounds(b)`` gives integers (low, high) with low ≤ 2^b · p ≤ high."""


def is_below(stream: KeyStream, bounds: BoundsAt, word: int = 0, bits: int = 0) -> bool:
    """Whether U < p.  The leading `bits` of U may have been drawn already, as `word`."""
    while True:
        word, bits = word << _MORE_BITS | stream.bits(_MORE_BITS), bits + _MORE_BITS
        low, high = bounds(bits)
        if word < low:  # U < (word + 1)/2^bits ≤ p
            return True
        if word >= high:  # U ≥ word/2^bits ≥ p
            return False


def rational(p: Fraction) -> BoundsAt:
    """Bounds on a rational probability."""
    return lambda bits: (
        (p.numerator << bits) // p.denominator,
        -((-p.numerator << bits) // p.denominator),
    )


def exp_minus(gamma: Fraction) -> BoundsAt:
    """Bounds on e^(−γ), γ ≥ 0."""
    return lambda bits: certified.exp_minus(gamma, bits)


def below(stream: KeyStream, n: int) -> int:
    """A uniform integer in 0..n−1: of integers with as many bits, the first that is below n."""
    bits = (n - 1).bit_length()
    while True:
        candidate = stream.bits(bits)
        if candidate < n:
            return candidate


def geometric(stream: KeyStream, scale: Fraction) -> int:
    """⌊−scale · ln U⌋, which is at least y exactly when U ≤ e^(−y/scale)."""
    bits = int(scale).bit_length()
    word = stream.bits(bits)
    while True:
        word, bits = word << _MORE_BITS | stream.bits(_MORE_BITS), bits + _MORE_BITS
        if word:  # U lies in [word, word + 1]/2^bits, and ln(word + 1) ≤ ln(word) + 1/word
            low, high = certified.ln(Fraction(1 << bits, word), bits)
            least = max(low - Fraction(1, word), Fraction(0)) * scale
            if int(least) == int(high * scale):
                return int(least)


def laplace(stream: KeyStream, scale: Fraction) -> int:
    """A geometric number with a random sign; −0 is drawn again, or 0 would count twice."""
    while True:
        size = geometric(stream, scale)
        if not stream.bits(1):
            return size
        if size:
            return -size


# A choice with weights w·e^(−γ), where w are integers of any size and γ rationals.
#
# Certified bounds on the weights are added up, and U is compared with the running sums; while the
# answer is open, both U and the bounds get more bits.


_FIRST_BITS = 96
_GUARD_BITS = 8


class WeightedChoice:
    """Draws an index i with probability proportional to weights[i] · e^(−gammas[i]), exactly.

    Weights are integers, at least one of them positive; each γ is rational and at least 0.

    >>> from tacit.book.coins import Coins
    >>> WeightedChoice([0, 10**400, 0], [Fraction(0), Fraction(900), Fraction(0)]).draw(Coins())
    1
    """

    def __init__(
        self, weights: Sequence[int], gammas: Sequence[Fraction], *, first_bits: int = _FIRST_BITS
    ) -> None:
        self._indices = [index for index, weight in enumerate(weights) if weight > 0]
        self._weights = [weights[index] for index in self._indices]
        self._gammas = [gammas[index] for index in self._indices]
        self._first_bits = first_bits
        self._sums: dict[int, tuple[list[int], list[int]]] = {}

    def draw(self, coins: Coins) -> int:
        """One index; independent of all earlier draws."""
        bits = self._first_bits
        word = coins.below(1 << bits)
        while (place := self._place(word, bits)) is None:
            word = word << bits | coins.below(1 << bits)
            bits *= 2
        return self._indices[place]

    def _place(self, word: int, bits: int) -> int | None:
        """The place of U in [word, word + 1)/2^bits among the sums; None if it is not certain."""
        lows, highs = self._running_sums(bits)
        # U·total < (word + 1)·highs[-1]/2^bits must lie below a place's upper end, and
        # U·total ≥ word·lows[-1]/2^bits must lie above its lower end.
        place = bisect_left(lows, -(-(word + 1) * highs[-1] >> bits))
        place = min(place, len(lows) - 1)  # nothing lies above the last place's upper end
        if place and highs[place - 1] << bits > word * lows[-1]:
            return None
        return place

    def _running_sums(self, bits: int) -> tuple[list[int], list[int]]:
        """Running sums of the lower and of the upper bounds, in a common unit."""
        if bits not in self._sums:
            bounds = [
                _bounds(w, gamma, bits)
                for w, gamma in zip(self._weights, self._gammas, strict=True)
            ]
            unit = max(high.bit_length() + exponent for _, high, exponent in bounds) - bits
            lows = [_shift_down(low, unit - exponent) for low, _, exponent in bounds]
            highs = [-_shift_down(-high, unit - exponent) for _, high, exponent in bounds]
            self._sums[bits] = list(accumulate(lows)), list(accumulate(highs))
        return self._sums[bits]


def _bounds(weight: int, gamma: Fraction, bits: int) -> tuple[int, int, int]:
    """(low, high, exponent) with low ≤ weight·e^(−γ)/2^exponent ≤ high, to about `bits` bits.

    e^(−γ) = 2^(−k) · e^(−rest) with 0 ≤ rest < 1, so that large γ need no more bits.
    """
    work = bits + _GUARD_BITS
    low, high, exponent = _exp_bounds(gamma, work)
    drop = max(weight.bit_length() - work, 0)
    return (weight >> drop) * low, -(-weight >> drop) * high, drop + exponent


@lru_cache(maxsize=1024)
def _exp_bounds(gamma: Fraction, work: int) -> tuple[int, int, int]:
    """(low, high, exponent) with low ≤ e^(−γ)/2^exponent ≤ high, to about `work` bits.

    Those that draw often do so with the same γ, which are public.
    """
    two_low, two_high = certified.ln(Fraction(2), work + int(gamma).bit_length())
    halvings = int(gamma / two_high)
    rest_low = _on_grid(gamma - halvings * two_high, work)
    rest_high = _on_grid(gamma - halvings * two_low, work) + Fraction(1, 1 << work)
    low, _ = certified.exp_minus(rest_high, work)
    _, high = certified.exp_minus(rest_low, work)
    return low, high, -halvings - work


def _on_grid(x: Fraction, bits: int) -> Fraction:
    """X rounded down to a multiple of 2^(−bits)."""
    return Fraction((x.numerator << bits) // x.denominator, 1 << bits)


def _shift_down(value: int, places: int) -> int:
    """⌊value / 2^places⌋, for places of either sign."""
    return value >> places if places >= 0 else value << -places
