"""The sparse vector technique as printed: Algorithms 1, 2 and 3, with Laplace noise.

The book's boxes are the three generators below; each is lazy, so that the next question may
depend on the answers so far.  They drive `TwoSided.step`, as the interactive stream does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arguments import instance, iterated
from tacit.book import recipes
from tacit.book.answer import Answer
from tacit.book.coins import Coins, given_coins
from tacit.book.mechanism import SparseVector
from tacit.privacy import Number, Privacy


@dataclass(frozen=True, kw_only=True)
class TwoSided(SparseVector):
    """Laplace noise on the threshold and on every question: the book's way, and Lyu's.

    Theorem 3.23 holds verbatim on the grid with discrete Laplace noise: the shifts in its proof
    are by Δ and 2Δ, whole numbers of steps.
    """

    def _draw_offset(self, coins: Coins) -> int:
        return coins.laplace(self._threshold_noise)

    def _is_above(self, value: int, noisy_threshold: int, coins: Coins) -> bool:
        return value + coins.laplace(self._question_noise) >= noisy_threshold

    def _are_above(
        self, values: NDArray[np.int64], noisy_threshold: int, coins: Coins
    ) -> NDArray[np.bool_]:
        return values + coins.laplaces(self._question_noise, len(values)) >= noisy_threshold


def above_threshold(
    values: Iterable[Number],
    *,
    threshold: Number,
    epsilon: Number,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins,
) -> Iterator[Answer]:
    """Algorithm 1, AboveThreshold: ⊥ until the first ⊤, then halt.

    T̂ = T + Lap(2Δ/ε); each value is compared as value + Lap(4Δ/ε) ≥ T̂.

    Privacy: (ε, 0), Theorem 3.23.  Accuracy: Theorem 3.24.
    """
    return sparse(
        values,
        threshold=threshold,
        at_most=1,
        epsilon=epsilon,
        sensitivity=sensitivity,
        grid=grid,
        coins=coins,
    )


def sparse(
    values: Iterable[Number],
    *,
    threshold: Number,
    at_most: int,
    epsilon: Number,
    delta: Number = 0,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins,
) -> Iterator[Answer]:
    """Algorithm 2, Sparse: AboveThreshold again and again, until the c-th ⊤.

    σ = 2cΔ/ε, or √(32 c ln(1/δ)) Δ/ε if δ > 0; T̂ = T + Lap(σ) is drawn anew after each ⊤; each
    value is compared as value + Lap(2σ) ≥ T̂.

    Privacy: (ε, δ), Theorem 3.25, within E3.  Accuracy: Theorem 3.26, with E8.
    """
    recipe = recipes.book(at_most, Privacy(epsilon, delta))
    mechanism = TwoSided.build(recipe, threshold=threshold, sensitivity=sensitivity, grid=grid)
    return answers(mechanism, values, coins)


def numeric_sparse(
    values: Iterable[Number],
    *,
    threshold: Number,
    at_most: int,
    epsilon: Number,
    delta: Number = 0,
    sensitivity: Number = 1,
    grid: Number = 1,
    coins: Coins,
) -> Iterator[Answer]:
    """Algorithm 3, NumericSparse: Sparse, and on ⊤ the value with *fresh* Laplace noise.

    Privacy: (ε, δ), Theorem 3.27, with E5 and E6 mended and within E3.
    Accuracy: Theorem 3.28, with E7 and E8.
    """
    recipe = recipes.book(at_most, Privacy(epsilon, delta), numeric=True)
    mechanism = TwoSided.build(recipe, threshold=threshold, sensitivity=sensitivity, grid=grid)
    return answers(mechanism, values, coins)


def answers(mechanism: SparseVector, values: Iterable[Number], coins: Coins) -> Iterator[Answer]:
    """The loop of all three algorithms: one answer a value, until the halt."""
    instance(mechanism, "mechanism", SparseVector, "prepare a recipe: one_sided.prepare(...)")
    several = iterated(values, "values", "give the true values, one for each question")
    return _loop(mechanism, several, given_coins(coins))


def _loop(mechanism: SparseVector, values: Iterator[Number], coins: Coins) -> Iterator[Answer]:
    state = mechanism.start(coins)
    for value in values:
        answer, state = mechanism.step(state, value, coins)
        yield answer
        if mechanism.halted(state):
            return
