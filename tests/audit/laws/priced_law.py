"""A stream with a price for each ⊤, ready to be audited; and one that asks too little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
from tests.audit.laws.listed import exp_minus

from tacit.audit.black_boxes import system_coins
from tacit.audit.exhibits import Chances, Listed, Pair, moved
from tacit.audit.variants import Steps
from tacit.privacy import Privacy

Told = tuple[int, ...]
_Terms = dict[Fraction, Fraction]  # a sum of c · e^(−a z), as c by a


@dataclass(frozen=True, kw_only=True)
class ListedPriced(Listed):
    """Three questions of any direction, whose scales are chosen by the answers so far.

    The first ⊤ may cost a quarter of ε₂; from then on each question is asked at the smallest of
    three scales that what is left still pays for, and not at all if none is.  Told is −1 for ⊥, −2
    for what was not asked, and for ⊤ the gap: 0, 1, or more.
    """

    by_direction: bool = False  # a ⊤ costs Δ/b, as if all questions had the direction of its own

    _T: ClassVar[int] = 1
    _FAR: ClassVar[int] = 2  # gaps from here on lose the same, where values are at most T + 1
    _BELOW: ClassVar[int] = -1
    _NOT_ASKED: ClassVar[int] = -2
    _PRICES: ClassVar[tuple[Fraction, ...]] = (Fraction(1), Fraction(3, 4), Fraction(1, 4))

    @property
    def _each(self) -> Fraction:
        """ε₁ and ε₂, each half of what is claimed."""
        return self.claimed.epsilon / 2

    def scale(self, told: Sequence[int]) -> Fraction | None:
        """The scale of the next question, after these answers; None if no price is left."""
        price = self._price(tuple(told))
        return None if price is None else (1 if self.by_direction else 2) / (price * self._each)

    def _price(self, told: Told) -> Fraction | None:
        """What the next ⊤ costs, as a part of ε₂."""
        left, price = Fraction(1), self._PRICES[-1]
        for answer in told:
            left -= price if answer >= 0 else 0
            payable = [each for each in self._PRICES if each <= left]
            if not payable:
                return None
            price = payable[0]
        return price

    def neighbours(self) -> Iterable[Pair]:
        """Three questions that a person may raise, lower, or neither."""
        return moved(product((0, 1), repeat=3), product((-1, 0, 1), repeat=3))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes: what was told of each question."""
        coins = system_coins()
        rho = coins.geometrics(1 / self._each, size)
        told = np.empty((size, 0), np.int64)
        for value in answers:
            column = np.full(size, self._NOT_ASKED, np.int64)
            for before in np.unique(told, axis=0):
                alike = np.flatnonzero((told == before).all(axis=1))
                scale = self.scale(before.tolist())
                if scale is not None:
                    gap = value + coins.geometrics(scale, len(alike)) - (self._T + rho[alike])
                    column[alike] = np.where(gap >= 0, np.minimum(gap, self._FAR), self._BELOW)
            told = np.column_stack([told, column])
        return told

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Every answer to every question: a sum over ρ for each."""
        found: Chances = {
            told: self._chance(answers, told) for told in self._outcomes(len(answers))
        }
        return found

    def _outcomes(self, questions: int, told: Told = ()) -> Iterator[Told]:
        if len(told) == questions:
            yield told
            return
        asked = self.scale(told) is not None
        kinds = (self._BELOW, *range(self._FAR + 1)) if asked else (self._NOT_ASKED,)
        for kind in kinds:
            yield from self._outcomes(questions, (*told, kind))

    def _chance(self, answers: Sequence[int], told: Told) -> Fraction:
        """From ρ = ``start`` on nothing is above without ν, and all factors are exponentials."""
        asked = [
            (value, 1 / scale, answer)
            for at, (value, answer) in enumerate(zip(answers, told, strict=True))
            if (scale := self.scale(told[:at])) is not None
        ]
        start = max(0, *(value - self._T for value in answers))
        p, found = exp_minus(self._each), Fraction(0)
        for noise in range(start):
            chance = (1 - p) * p**noise
            for value, rate, answer in asked:
                chance *= self._of_one(self._T + noise - value, rate, answer)
            found += chance
        terms: _Terms = {Fraction(0): Fraction(1)}
        for value, rate, answer in asked:
            constant, factor = self._beyond(self._T + start - value, rate, answer)
            later = {a: constant * c for a, c in terms.items()}
            for a, c in terms.items():
                later[a + rate] = later.get(a + rate, Fraction(0)) + factor * c
            terms = later
        return found + sum(
            (c * p**start * (1 - p) / (1 - p * exp_minus(a)) for a, c in terms.items()),
            Fraction(0),
        )

    def _of_one(self, missing: int, rate: Fraction, answer: int) -> Fraction:
        """The chance of one answer, if ν must be so much to reach."""
        if answer == self._BELOW:
            return 1 - exp_minus(max(missing, 0) * rate)
        if answer == self._FAR:
            return exp_minus(max(missing + answer, 0) * rate)
        if missing + answer < 0:
            return Fraction(0)
        return (1 - exp_minus(rate)) * exp_minus((missing + answer) * rate)

    def _beyond(self, missing: int, rate: Fraction, answer: int) -> tuple[Fraction, Fraction]:
        """The same as c + d·e^(−rate·z), for every ρ that is z larger."""
        reaches = exp_minus(missing * rate)
        if answer == self._BELOW:
            return Fraction(1), -reaches
        exactly = 1 if answer == self._FAR else 1 - exp_minus(rate)
        return Fraction(0), reaches * exp_minus(answer * rate) * exactly


def listed_priced(claimed: Privacy, *, by_direction: bool = False) -> ListedPriced:
    """The stream, on a pair that loses all of ε: ⊥ on what rises, then ⊤ on what falls."""
    return ListedPriced(
        name="price by the question's direction" if by_direction else "price for each ⊤",
        claimed=claimed,
        private=not by_direction,
        pair=((0, 0, 0), (1, -1, -1)),
        why="the factor belongs to the stream" if by_direction else "",
        by_direction=by_direction,
    )
