"""Exact random draws with rational parameters, one at a time and in bulk.

Every draw compares one uniform number in [0, 1), whose bits are drawn as they are needed, with
certified integer bounds on probabilities.  While the bits drawn so far leave the answer open, more
bits of the *same* number are drawn; no probability is ever rounded.  ``docs/exactness.md`` gives
the argument.  What meets the noise is first put on a public grid, by the functions further below.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arguments import instance
from tacit.draws import scalar
from tacit.draws.keystream import InsecureTestKeyStream, KeyStream
from tacit.draws.samplers import ExpCoins, Sampler, belows, bernoullis, exp_coins, noise
from tacit.errors import BadParameter, InsecureCoins
from tacit.numbers import Number, as_given, exact, positive, whole
from tacit.support import Uncopyable

__all__ = ["Coins", "InsecureTestCoins", "given_coins", "given_or_fresh", "refuse_insecure"]

MOST_STEPS = 1 << 61
"""Values and thresholds stay within ±2^61 grid steps: their differences fit into 64 bits."""

MOST_SCALE = 1 << 50
"""The widest noise of a stream, in steps: it exceeds 2^58 steps with a probability of e^(−256)."""

WIDEST_NOISE = 1 << 200
"""The widest noise of a single number, in steps: anything wider is taken for a mistake."""

_LARGEST_IN_BULK = 2**50  # a draw exceeds 64 bits with a probability below e^(−8000)
_LARGEST_BELOW = 2**62
_MOST_AT_ONCE = 2**40  # more than any memory holds
_PREPARE_AFTER, _MOST_SCALES = 50, 16  # draws of a scale; scales that are remembered


class Coins(Uncopyable):
    """Exact draws from the operating system's randomness; safe under fork and threads."""

    secure = True

    def __init__(self) -> None:
        self._start(KeyStream())

    def _start(self, stream: KeyStream) -> None:
        self._stream = stream
        self._uses: dict[tuple[Fraction, bool], int | Sampler] = {}
        self._last: tuple[Fraction | None, ExpCoins | None] = None, None

    def below(self, n: int) -> int:
        """A uniform integer in 0..n−1, for n of any size."""
        return scalar.below(self._stream, n if type(n) is int and n > 0 else whole(n, "n"))

    def bernoulli(self, p: Number) -> bool:
        """True with probability p, for rational p in [0, 1]."""
        chance = _chance(p)
        return scalar.below(self._stream, chance.denominator) < chance.numerator

    def bernoulli_exp(self, gamma: Number) -> bool:
        """True with probability e^(−γ), for rational γ ≥ 0."""
        return scalar.is_below(self._stream, scalar.exp_minus(_not_negative(gamma, "gamma")))

    def bernoulli_exp_steps(self, steps: int, rate: Number) -> bool:
        """True with probability e^(−max(steps, 0) · rate); fast for many coins of one rate."""
        if type(steps) is not int:
            steps = _whole_steps(steps)
        last_rate, last_tables = self._last  # read at once: another thread may be replacing it
        if rate is last_rate and last_tables is not None:  # the usual case, and by far the fastest
            return last_tables.flip(self._stream, steps)
        if (step := _not_negative(rate, "rate")) == 0:
            return True
        tables = exp_coins(step)
        if type(rate) is Fraction:  # which cannot change
            self._last = rate, tables
        return tables.flip(self._stream, steps)

    def geometric(self, scale: Number) -> int:
        """A number y = 0, 1, 2, ... with probability proportional to e^(−y/scale)."""
        return self._one(_scale(scale), two_sided=False)

    def laplace(self, scale: Number) -> int:
        """An integer x, of either sign, with probability proportional to e^(−|x|/scale)."""
        return self._one(_scale(scale), two_sided=True)

    def belows(self, n: int, size: int) -> NDArray[np.int64]:
        """An array of independent ``below(n)``, for n up to 2^62."""
        limit = whole(n, "n")
        if limit > _LARGEST_BELOW:
            raise BadParameter("n", as_given(limit), "it must be at most 2^62 in bulk")
        return belows(self._stream, limit, _size(size))

    def bernoullis(self, p: Number, size: int) -> NDArray[np.bool_]:
        """An array of independent draws of ``bernoulli(p)``."""
        return bernoullis(self._stream, _chance(p), _size(size))

    def bernoulli_exps(self, steps: ArrayLike, rate: Number) -> NDArray[np.bool_]:
        """An array whose element i is True with probability e^(−max(steps[i], 0) · rate)."""
        checked = _steps(steps)
        if (step := _not_negative(rate, "rate")) == 0:
            return np.ones(checked.shape, np.bool_)
        return exp_coins(step).draws(self._stream, checked)

    def geometrics(self, scale: Number, size: int) -> NDArray[np.int64]:
        """An array of independent draws of ``geometric(scale)``."""
        return noise(_bulk_scale(scale), False).draws(self._stream, _size(size))

    def laplaces(self, scale: Number, size: int) -> NDArray[np.int64]:
        """An array of independent draws of ``laplace(scale)``."""
        return noise(_bulk_scale(scale), True).draws(self._stream, _size(size))

    def laplace_sampler(self, scale: Number) -> Sampler:
        """``laplace(scale)``, prepared for many draws."""
        return Sampler(self._stream, _bulk_scale(scale), two_sided=True)

    def _one(self, scale: Fraction, *, two_sided: bool) -> int:
        """One draw; a scale that is used often is prepared, with the same law."""
        uses = self._uses.get((scale, two_sided), 0)
        if isinstance(uses, Sampler):
            return uses.draw()
        if uses >= _PREPARE_AFTER and scale <= _LARGEST_IN_BULK:
            self._uses[scale, two_sided] = Sampler(self._stream, scale, two_sided=two_sided)
        else:
            if not uses and len(self._uses) >= _MOST_SCALES:
                self._uses.clear()
            self._uses[scale, two_sided] = uses + 1
        return (scalar.laplace if two_sided else scalar.geometric)(self._stream, scale)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class InsecureTestCoins(Coins):
    """INSECURE: the same draws for the same seed, for tests only.

    Every draw has the law of :class:`Coins`, but anyone who knows the seed can subtract the
    noise.  They are refused wherever a budget is spent.  A forked copy continues its parent's key
    stream, without what the parent had drawn in advance.
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._seed = whole(seed, "seed", at_least=0)
        self._start(InsecureTestKeyStream(self._seed))

    def __repr__(self) -> str:
        return f"InsecureTestCoins({self._seed})  # INSECURE: reproducible, for tests only"


def given_coins(coins: Coins) -> Coins:
    """The coins that were given to an algorithm, checked."""
    return instance(coins, "coins", Coins, "give Coins()")


def given_or_fresh(coins: Coins | None) -> Coins:
    """The coins that were given, checked, or secure coins of its own if none were."""
    return Coins() if coins is None else given_coins(coins)


def refuse_insecure(coins: Coins) -> None:
    """Refuse coins that are not secure; to be called wherever a budget is spent."""
    if getattr(coins, "secure", False) is not True:
        raise InsecureCoins(
            f"{type(coins).__name__} draws reproducible noise, which anyone can subtract: "
            "use Coins() wherever a budget is spent"
        )


# The public grid: values are whole numbers of steps, and thresholds are rounded up to whole steps.
#
# A gap or a value released off the grid would distinguish neighbouring data with certainty, so only
# whole numbers of steps ever meet the noise.


def value_steps(value: Number, grid: Fraction) -> int:
    """A true value in steps.  It is data, so an error must not show it."""
    try:
        steps = exact(value, "value") / grid
    except BadParameter:
        steps = Fraction(1, 2)
    if steps.denominator != 1:
        raise BadParameter("value", "(withheld)", f"it must be a whole multiple of grid {grid}")
    return steps.numerator


def clamped(steps: int) -> int:
    """A value clamped to ±2^61 steps."""
    return max(-MOST_STEPS, min(steps, MOST_STEPS))


def threshold_steps(threshold: Fraction, grid: Fraction) -> int:
    """A public threshold in steps, rounded up."""
    steps = threshold / grid
    rounded_up = -(-steps.numerator // steps.denominator)
    if abs(rounded_up) > MOST_STEPS:
        raise BadParameter("threshold", as_given(threshold), "it must be within ±2^61 grid steps")
    return rounded_up


def sensitivity_steps(sensitivity: Fraction, grid: Fraction) -> int:
    """A question's sensitivity in steps; it must be a whole number of steps."""
    steps = sensitivity / grid
    if steps.denominator != 1:
        raise BadParameter(
            "sensitivity", as_given(sensitivity), f"it must be a whole multiple of grid {grid}"
        )
    return steps.numerator


# What callers give, read exactly.


def _scale(scale: object, largest: int = WIDEST_NOISE, where: str = "") -> Fraction:
    # Reading a Fraction again would take longer than a draw from a pool.
    quick = scale if type(scale) is Fraction and scale.numerator > 0 else None
    value = quick or positive(scale, "scale")
    if value.numerator > largest * value.denominator:
        limit = f"it must be at most 2^{largest.bit_length() - 1}"
        raise BadParameter("scale", as_given(value), limit + where)
    return value


def _bulk_scale(scale: object) -> Fraction:
    return _scale(scale, _LARGEST_IN_BULK, " in bulk, where numbers have 64 bits")


def _chance(p: object) -> Fraction:
    value = exact(p, "p")
    if not 0 <= value <= 1:
        raise BadParameter("p", as_given(value), "it must lie between 0 and 1")
    return value


def _not_negative(number: object, name: str) -> Fraction:
    value = exact(number, name)
    if value < 0:
        raise BadParameter(name, as_given(value), "it must be 0 or more")
    return value


def _size(size: object) -> int:
    number = whole(size, "size", at_least=0)
    if number > _MOST_AT_ONCE:
        raise BadParameter("size", as_given(number), f"it must be at most {_MOST_AT_ONCE}")
    return number


def _whole_steps(steps: object) -> int:
    value = exact(steps, "steps")
    if value.denominator != 1:
        raise BadParameter("steps", as_given(value), "it must be a whole number")
    return value.numerator


def _steps(steps: object) -> NDArray[np.int64]:
    try:
        array = np.asarray(steps)
    except ValueError:  # rows of unequal length
        array = np.asarray(None)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        allowed = "give integers that fit into 64 bits with a sign, such as an int64 array"
        raise BadParameter("steps", f"an array of {array.dtype}", allowed)
    return np.asarray(array, np.int64, order="C")
