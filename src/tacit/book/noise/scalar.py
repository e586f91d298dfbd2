"""Exact draws, one at a time: one uniform number, compared with certified bounds.

The uniform U in [0, 1) is never rounded.  Its leading bits are drawn first; while they leave the
answer open, further bits of the *same* U are drawn and the bounds are sharpened.  (Starting
again with a fresh U would favour the answers that are easy to decide.)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tacit import certified
from tacit.book.noise.keystream import KeyStream
from tacit.certified import Units

_MORE_BITS = 64

BoundsAt = Callable[[int], Units]
"""``bounds(b)`` gives integers (low, high) with low ≤ 2^b · p ≤ high."""


def is_below(stream: KeyStream, bounds: BoundsAt, word: int = 0, bits: int = 0) -> bool:
    """Whether U < p.  The leading `bits` of U may have been drawn before, as `word`."""
    while True:
        word, bits = word << _MORE_BITS | stream.bits(_MORE_BITS), bits + _MORE_BITS
        low, high = bounds(bits)
        if word < low:  # U < (word + 1)/2^bits ≤ p
            return True
        if word >= high:  # U ≥ word/2^bits ≥ p
            return False


def rational(p: Fraction) -> BoundsAt:
    """The bounds of a rational probability."""
    return lambda bits: (
        (p.numerator << bits) // p.denominator,
        -((-p.numerator << bits) // p.denominator),
    )


def exp_minus(gamma: Fraction) -> BoundsAt:
    """The bounds of e^(−γ), γ ≥ 0."""
    return lambda bits: certified.exp_minus(gamma, bits)


def below(stream: KeyStream, n: int) -> int:
    """A uniform integer in 0..n−1: the first one, of those with as many bits, that is below n."""
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
    """A geometric number with a random sign; −0 is thrown back, or 0 would count twice."""
    while True:
        size = geometric(stream, scale)
        if not stream.bits(1):
            return size
        if size:
            return -size
