"""Floats leak, and our releases lie on one grid whatever the data."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import Privacy
from tacit.audit import off_grid, precision_test, real_runs, support_test
from tacit.audit.floating_point import last_bit, reachable
from tacit.book import one_sided, recipes, sparse_vector
from tacit.book.coins import InsecureTestCoins
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter


class NaiveLaplace:
    """The Laplace mechanism as everybody writes it first."""

    def __init__(self, scale: float, seed: int) -> None:
        self.scale, self.generator = scale, np.random.default_rng(seed)

    def __call__(self, count: float, size: int) -> np.ndarray:
        return count + self.generator.laplace(scale=self.scale, size=size)


class GridLaplace:
    """Ours: whole steps of a public grid."""

    def __init__(self, scale: int, grid: Fraction, seed: int) -> None:
        self.scale, self.grid, self.coins = scale, grid, InsecureTestCoins(seed)

    def __call__(self, count: int, size: int) -> list[Fraction]:
        noise = self.coins.laplaces(self.scale / self.grid, size)
        return [count + int(step) * self.grid for step in noise]


@pytest.mark.parametrize("scale", [3, 10, 100])
def test_float_noise_is_refuted(scale):
    """Even at ε = 1, far above the 1/scale that the noise should give."""
    naive = NaiveLaplace(scale, 1)
    assert precision_test(naive, (0, 1), epsilon=1, runs=60_000, workers=1).refuted
    assert support_test(naive, (0, 1), scale=scale, epsilon=1, runs=4000, workers=1).refuted


@pytest.mark.parametrize("grid", [Fraction(1), Fraction(1, 8), Fraction(1, 10)])
def test_ours_is_not_refuted(grid):
    ours = GridLaplace(10, grid, 1)
    claim = Fraction(1, 10)
    assert not precision_test(ours, (0, 1), epsilon=claim, runs=20_000, workers=1).refuted
    found = support_test(ours, (0, 1), scale=10, epsilon=claim, runs=3000, workers=1)
    assert not found.refuted
    assert off_grid(ours(0, 500), grid) == off_grid(ours(1, 500), grid) == 0


def test_our_streams_release_on_one_grid_whatever_the_data():
    grid = Fraction(1, 4)
    coins = InsecureTestCoins(2)
    rng = np.random.default_rng(3)
    for _ in range(40):
        values = [int(step) * grid for step in rng.integers(-40, 40, 6)]
        threshold = Fraction(int(rng.integers(-30, 30)), 7)  # off the grid
        options: dict[str, Any] = {
            "threshold": threshold,
            "epsilon": 1,
            "grid": grid,
            "coins": coins,
        }
        answers = [
            *sparse_vector.numeric_sparse(values, at_most=2, **options),
            *one_sided.sparse(values, at_most=2, value_share=Fraction(1, 4), **options),
        ]
        told = [n for answer in answers for n in (answer.value, answer.gap) if n is not None]
        assert off_grid(told, grid) == 0


def test_our_gaps_and_values_pass_the_precision_test():
    recipe = recipes.spend("one-sided", 1, Privacy(1), monotone=False, value_share=Fraction(1, 4))
    runs = real_runs(prepare(recipe, threshold="1/2"), InsecureTestCoins(5))

    def told(answers, size: int) -> np.ndarray:
        rows = runs(answers, size)
        return rows[:, 1] + 1000.0 * rows[:, 2]

    assert not precision_test(told, ((0, 1), (1, 0)), epsilon=1, runs=6000, workers=1).refuted


def test_last_bits():
    numbers = [1.0, 3.0, 12.0, 0.75, 2.0**-1000, -5.5, 0.0, 2.0**53 + 2]
    assert last_bit(np.array(numbers)).tolist() == [0, 0, 2, -2, -1000, -1, 2000, 1]
    assert last_bit([Fraction(3, 20), Fraction(1, 3), 8]).tolist() == [-2, 0, 3]


def test_reachable_numbers_are_those_of_the_generator():
    drawn = np.random.default_rng(7).laplace(2.0, 5.0, 300).tolist()
    assert all(reachable(number, 2.0, 5.0) for number in drawn)
    assert sum(reachable(number, 3.0, 5.0) for number in drawn) < 200


def test_bad_grid():
    with pytest.raises(BadParameter, match="grid"):
        off_grid([1], 0)
