"""A stream that asks its ⊥ again, ready to be audited; and one that draws ρ anew in each round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
from tests.audit.laws.listed import exp_minus

from tacit.audit.black_boxes import system_coins
from tacit.audit.exhibits import Chances, Listed, Pair, moved
from tacit.audit.variants import Steps
from tacit.book import recipes
from tacit.book.noise import ONE_SIDED
from tacit.book.recipes import Recipe
from tacit.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class ListedAgain(Listed):
    """Counts that are asked in two rounds, up to the first ⊤; given are the counts.

    Told is which comparison was ⊤, from 0 on, or the number of all if none was.
    """

    renewed: bool = False  # ρ is drawn anew for the second round, and not paid for

    T: ClassVar[int] = 1
    ROUNDS: ClassVar[int] = 2

    @property
    def recipe(self) -> Recipe:
        """One ⊤, with half of ε for ρ."""
        return recipes.spend(
            ONE_SIDED, 1, self.claimed, monotone=True, threshold_share=Fraction(1, 2)
        )

    def neighbours(self) -> Iterable[Pair]:
        """All ways in which a person may raise three counts."""
        return moved(product(range(3), repeat=3), product((0, 1), repeat=3))

    def __call__(self, answers: Sequence[int], size: int) -> Steps:
        """``size`` independent outcomes."""
        coins, recipe = system_coins(), self.recipe
        told = np.full(size, self.ROUNDS * len(answers), np.int64)
        rho = coins.geometrics(recipe.threshold_scale, size)
        for at, value in enumerate(self.ROUNDS * tuple(answers)):
            if self.renewed and at == len(answers):
                rho = coins.geometrics(recipe.threshold_scale, size)
            above = value + coins.geometrics(recipe.question_scale, size) >= self.T + rho
            told[above & (told == self.ROUNDS * len(answers))] = at
        return told.reshape(size, 1)

    def outcome_law(self, answers: Sequence[int]) -> Chances:
        """Every comparison that may be the first ⊤."""
        asked = (tuple(answers),) if self.renewed else (self.ROUNDS * tuple(answers),)
        found: dict[tuple[int, ...], Fraction] = {}
        reached, place = Fraction(1), 0  # the chance that nothing was ⊤ before this round
        for values in asked * (self.ROUNDS if self.renewed else 1):
            still = [self._all_below(values[:at]) for at in range(len(values) + 1)]
            for before, after in pairwise(still):
                found[(place,)] = reached * (before - after)
                place += 1
            reached *= still[-1]
        found[(place,)] = reached
        law: Chances = found  # type: ignore[assignment]  # keys of a Mapping are invariant
        return law

    def _all_below(self, values: Sequence[int]) -> Fraction:
        """The chance that all these are ⊥: the mean over ρ of a product.

        Where ρ is at least ``start`` each factor is 1 − c·qᶻ for a ρ that is z larger.
        """
        p, q = (
            exp_minus(1 / scale)
            for scale in (self.recipe.threshold_scale, self.recipe.question_scale)
        )
        start, found = max([0, *(value - self.T for value in values)]), Fraction(0)
        for rho in range(start):
            chance = (1 - p) * p**rho
            for value in values:
                chance *= 1 - q ** max(self.T + rho - value, 0)
            found += chance
        product = [Fraction(1)]
        for value in values:
            reaches = q ** (self.T + start - value)
            pairs = zip([*product, Fraction(0)], [Fraction(0), *product], strict=True)
            product = [same - reaches * lower for same, lower in pairs]
        return found + sum(
            each * p**start * (1 - p) / (1 - p * q**power) for power, each in enumerate(product)
        )


def listed_again(claimed: Privacy, *, renewed: bool = False) -> ListedAgain:
    """On a pair in which all counts rise but the last, which is then ⊤."""
    return ListedAgain(
        name="asked again, with a new ρ" if renewed else "asked again",
        claimed=claimed,
        private=not renewed,
        pair=((1,) * 12 + (0,), (2,) * 12 + (0,)),
        why="each ρ costs ε₁" if renewed else "",
        renewed=renewed,
    )
