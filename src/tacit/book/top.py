"""The largest of a list of counts, in order: the exponential mechanism, once for each place.

For each of n places one of those that are left is drawn with probability proportional to
e^(ε₀ q/Δ) (McSherry and Talwar 2007; for counts, which adding a person only ever raises, without
the factor 1/2).  A draw's privacy loss lies in an interval of length ε₀, which contains 0: every
q_i rises by 0 to Δ, and so does the logarithm of the sum in the denominator, times Δ/ε₀.  So a draw
is (ε₀, 0)-private, and ε₀²/8-zCDP (Dong, Durfee, Rogers 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tacit.book.coins import MOST_STEPS, Coins, given_coins
from tacit.book.zcdp import zcdp_rho
from tacit.draws.scalar import WeightedChoice
from tacit.errors import BadParameter
from tacit.numbers import Number, probability, whole
from tacit.numerics import certified
from tacit.privacy import Cost, Privacy

__all__ = ["TopMechanism"]

_GROUPS = (0, 1, 2, 4, 8, 16, 32, 64)  # of −ln(probability), beside the largest
_MOST_GAP = 1 << 62


@dataclass(frozen=True, slots=True)
class TopMechanism:
    """The n largest of some values that a person raises by 0 to Δ each, or lowers, but not both.

    (Values that a person may move either way by up to Δ/2 will do as well: what matters is that the
    changes of all of them lie in an interval of length Δ.)

    Privacy: (ε, δ).  With δ = 0 each draw has ε₀ = ε/n.  With δ > 0, ε₀ is the larger of that and
    the largest with n·ε₀²/8-zCDP within (ε, δ), rounded down.

    >>> TopMechanism(10, Privacy(1)).epsilon_each
    Fraction(1, 10)
    >>> round(float(TopMechanism(10, Privacy(1, "1e-6")).epsilon_each), 3)
    0.14
    """

    places: int
    privacy: Privacy
    sensitivity: int = 1  # in grid steps

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", whole(self.places, "places"))
        object.__setattr__(self, "sensitivity", whole(self.sensitivity, "sensitivity"))

    @property
    def epsilon_each(self) -> Fraction:
        """ε₀, the loss of one draw."""
        pure = self.privacy.epsilon / self.places
        if self.privacy.delta == 0:
            return pure
        rho = zcdp_rho(self.privacy.epsilon, self.privacy.delta)
        return max(pure, certified.round_down(certified.sqrt(8 * rho / self.places)[0]))

    @property
    def cost(self) -> Cost:
        """The promise, and its n draws, each with a bounded range."""
        return Cost(self.privacy, ranges=((self.places, self.epsilon_each),))

    @property
    def rate(self) -> Fraction:
        """How much likelier a value is that is larger by a step, as a logarithm: ε₀/Δ."""
        return self.epsilon_each / self.sensitivity

    def alpha_steps(self, candidates: int, beta: Number) -> int:
        """Each one drawn is at most this far below the largest then left, but with probability β.

        Accuracy: one that is further than α below is drawn with probability at most e^(−ε₀α/Δ), of
        k at most k times that, in any of n draws at most kn times that.
        """
        listed = whole(candidates, "candidates")
        failing = probability(beta, "beta") / (listed * self.places)
        return ceil(certified.ln(1 / failing)[1] / self.rate)

    def draw(self, values: NDArray[np.int64], coins: Coins) -> list[int]:
        """The places of the n that were drawn, in the order of draw; values are in grid steps.

        Exact: see `_Left.take`.
        """
        listed = np.asarray(values)
        if listed.ndim != 1 or listed.dtype != np.int64 or len(listed) < self.places:
            raise BadParameter("values", "(withheld)", "give an int64 each, no fewer than places")
        if len(listed) and max(-int(listed.min()), int(listed.max())) > MOST_STEPS:
            raise BadParameter("values", "(withheld)", "they must be within ±2^61 steps")
        left = _Left(listed, self.rate, given_coins(coins))
        return [left.take() for _ in range(self.places)]


class _Left:
    """What is left of a list, in falling order, in groups by how far it is below the largest."""

    def __init__(self, values: NDArray[np.int64], rate: Fraction, coins: Coins) -> None:
        self._order = np.argsort(-values, kind="stable")
        self._falling = -values[self._order]  # with its sign turned, so that it rises
        self._rate, self._coins = rate, coins
        self._starts = [min(ceil(at / rate), _MOST_GAP) for at in _GROUPS]
        self._weights = [rate * start for start in self._starts]

    def take(self) -> int:
        """Take one away, with probability proportional to e^(−rate·gap), gap = q* − q.

        Exact: a group whose gaps are at least s is chosen with probability proportional to its size
        times e^(−rate·s), then one of the group, which is taken with probability e^(−rate·(gap −
        s)), or else all is done again.
        """
        first = int(self._falling[0])
        ends = np.searchsorted(self._falling, [first + start for start in self._starts])
        bounds = [*ends.tolist(), len(self._falling)]
        sizes = [after - before for before, after in pairwise(bounds)]
        groups = WeightedChoice(sizes, self._weights)
        while True:
            group = groups.draw(self._coins)
            place = bounds[group] + self._coins.below(sizes[group])
            above = int(self._falling[place]) - first - self._starts[group]
            if self._coins.bernoulli_exp_steps(above, self._rate):
                return self._without(place)

    def _without(self, place: int) -> int:
        found = int(self._order[place])
        self._order = np.delete(self._order, place)
        self._falling = np.delete(self._falling, place)
        return found
