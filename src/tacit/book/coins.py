"""Exact random draws with rational parameters, one at a time and in bulk.

Every draw is settled by one uniform number in [0, 1) whose bits are drawn as they are needed,
and by certified integer bounds of the probabilities it is compared with.  While the bits seen
so far leave the answer open, more bits of the *same* number are drawn; no probability is ever
rounded.  ``docs/exactness.md`` gives the argument.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from tacit import certified
from tacit.book.keystream import InsecureTestKeyStream, KeyStream
from tacit.errors import BadParameter, InsecureCoins
from tacit.privacy import Number, exact, positive, show, whole

_FIRST_BITS = 64
_MORE_BITS = 64
_LARGEST_SCALE = 2**200


class Coins:
    """Exact draws from the operating system's randomness; safe under fork and threads."""

    secure = True

    def __init__(self) -> None:
        self._stream = KeyStream()

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        size = -(-count // 8)
        return int.from_bytes(self._stream.bytes(size), "little") >> (8 * size - count)

    def below(self, n: int) -> int:
        """A uniform integer in 0..n−1, for n of any size."""
        bound = n if type(n) is int and n > 0 else whole(n, "n")
        size = (bound - 1).bit_length()
        while True:
            candidate = self.bits(size)
            if candidate < bound:
                return candidate

    def bernoulli(self, p: Number) -> bool:
        """True with probability p, for rational p in [0, 1]."""
        chance = exact(p, "p")
        if not 0 <= chance <= 1:
            raise BadParameter("p", show(chance), "it must lie in [0, 1]")
        return self.below(chance.denominator) < chance.numerator

    def bernoulli_exp(self, gamma: Number) -> bool:
        """True with probability e^(−γ), for rational γ ≥ 0."""
        rate = exact(gamma, "gamma")
        if rate < 0:
            raise BadParameter("gamma", show(rate), "it must be 0 or more")
        return self._uniform_is_below(lambda bits: certified.exp_minus(rate, bits))

    def geometric(self, scale: Number) -> int:
        """A number y = 0, 1, 2, ... with probability proportional to e^(−y/scale)."""
        return self._geometric(_scale(scale))

    def laplace(self, scale: Number) -> int:
        """An integer x, negative or not, with probability proportional to e^(−|x|/scale)."""
        return self._laplace(_scale(scale))

    def _uniform_is_below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Whether a fresh uniform U is below p, where ``bounds(b)`` encloses 2^b · p."""
        count = _FIRST_BITS
        word = self.bits(count)
        while True:
            low, high = bounds(count)
            if word < low:  # U < (word + 1)/2^count ≤ p
                return True
            if word >= high:  # U ≥ word/2^count ≥ p
                return False
            word = word << _MORE_BITS | self.bits(_MORE_BITS)
            count += _MORE_BITS

    def _geometric(self, scale: Fraction) -> int:
        """⌊−scale · ln U⌋: it is at least y exactly when U ≤ e^(−y/scale)."""
        count = _FIRST_BITS + int(scale).bit_length()
        word = self.bits(count)
        while True:
            if word:  # U lies in [word, word + 1]/2^count, and −ln U with it
                low, high = certified.ln(Fraction(1 << count, word), count)
                low -= Fraction(1, word)  # since ln(word + 1) ≤ ln(word) + 1/word
                if (y := int(max(low, Fraction(0)) * scale)) == int(high * scale):
                    return y
            word = word << _MORE_BITS | self.bits(_MORE_BITS)
            count += _MORE_BITS

    def _laplace(self, scale: Fraction) -> int:
        """A geometric number with a random sign; −0 is thrown back, or 0 would count twice."""
        while True:
            negative, size = self.bits(1), self._geometric(scale)
            if not negative:
                return size
            if size:
                return -size

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled, because the copy would repeat "
            "its draws: make a new one instead"
        )


class InsecureTestCoins(Coins):
    """INSECURE: the same draws for the same seed, for tests only.

    The law of every draw is that of :class:`Coins`, but anyone who knows the seed can subtract
    the noise.  Refused wherever a budget is spent.  A forked copy repeats its draws.
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._stream = InsecureTestKeyStream(seed)

    def __repr__(self) -> str:
        return f"InsecureTestCoins({self._seed})  # INSECURE: reproducible, for tests only"


def refuse_insecure(coins: Coins) -> None:
    """Raise unless the coins are secure; to be called wherever a budget is spent."""
    if coins.secure is not True:
        raise InsecureCoins(
            f"{type(coins).__name__} draws reproducible noise, which anyone can subtract: "
            "use Coins() wherever a budget is spent"
        )


def _scale(scale: object) -> Fraction:
    value = positive(scale, "scale")
    if value > _LARGEST_SCALE:
        raise BadParameter("scale", show(value), "it must be at most 2^200")
    return value
