"""The exact output law of a sparse vector mechanism, by brute summation over threshold noise.

Written from the definition alone (P(a) = Σ_z f(z) ∏_⊥ F ∏_⊤ G, factorised where the threshold
noise is redrawn), and not from the code under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import exp, inf, log

import numpy as np

from tacit.book.recipes import Recipe

REACH = 60  # scales of threshold noise that are summed: what is left out is below e^(−60)


def threshold_law(recipe: Recipe, sensitivity: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Threshold noises z and their probabilities."""
    b = float(recipe.threshold_scale) * sensitivity
    last = int(REACH * b) + 10
    if recipe.noise == "one-sided":
        z = np.arange(last)
        return z, np.exp(-z / b) * -np.expm1(-1 / b)
    z = np.arange(-last, last + 1)
    return z, np.exp(-np.abs(z) / b) * -np.expm1(-1 / b) / (1 + exp(-1 / b))


def chance_of_top(recipe: Recipe, x: np.ndarray, sensitivity: int = 1) -> tuple[np.ndarray, ...]:
    """Pr[ν ≥ x] and Pr[ν < x]."""
    b = float(recipe.question_scale) * sensitivity
    if recipe.noise == "one-sided":
        reach = np.maximum(x, 0)
        return np.exp(-reach / b), -np.expm1(-reach / b)
    q = exp(-1 / b)
    positive = np.exp(-np.maximum(x, 0) / b) / (1 + q)
    negative = np.exp(-np.maximum(1 - x, 0) / b) / (1 + q)
    top = np.where(x > 0, positive, 1 - negative)
    return top, np.where(x > 0, 1 - positive, negative)


def pattern_law(
    recipe: Recipe, values: Sequence[int], threshold: int = 0, sensitivity: int = 1
) -> dict[tuple[bool, ...], float]:
    """Every output pattern (it ends at the last ⊤ or at the last value) and its probability."""
    threshold += int(recipe.shift)
    z, weights = threshold_law(recipe, sensitivity)
    law: dict[tuple[bool, ...], float] = {}
    live: list[tuple[tuple[bool, ...], np.ndarray]] = [((), weights)]
    for value in values:
        following = []
        top, bottom = chance_of_top(recipe, threshold + z - value, sensitivity)
        for pattern, mass in live:
            following.append(((*pattern, False), mass * bottom))
            above, tops = mass * top, sum(pattern) + 1
            if tops == recipe.at_most:
                law[(*pattern, True)] = float(above.sum())
            elif tops % recipe.tops_per_group == 0:
                following.append(((*pattern, True), above.sum() * weights))
            else:
                following.append(((*pattern, True), above))
        live = following
    law.update({pattern: float(mass.sum()) for pattern, mass in live})
    return law


def gap_law(recipe: Recipe, value: int, gap: int, z: np.ndarray, threshold: int) -> np.ndarray:
    """Pr[⊤ with this gap | z] of one-sided noise: ν must be exactly gap + T + z − q."""
    b = float(recipe.question_scale)
    noise = gap + threshold + z - value
    return np.where(noise >= 0, np.exp(-np.maximum(noise, 0) / b) * -np.expm1(-1 / b), 0.0)


def loss(law: dict[tuple[bool, ...], float], other: dict[tuple[bool, ...], float]) -> float:
    """max |ln P/P′| over all patterns."""
    return max(log_ratio(probability, other[pattern]) for pattern, probability in law.items())


def log_ratio(p: float, other: float) -> float:
    if p == other:
        return 0.0
    return inf if p == 0 or other == 0 else abs(log(p / other))


def delta(
    law: dict[tuple[bool, ...], float], other: dict[tuple[bool, ...], float], epsilon: Fraction
) -> float:
    """Σ (P − e^ε P′)₊."""
    return sum(max(p - exp(epsilon) * other[pattern], 0.0) for pattern, p in law.items())


def neighbours(values: Sequence[int], *, monotone: bool) -> list[tuple[int, ...]]:
    """All extreme neighbours: every value moves by one step, up or down (all alike if monotone)."""
    signs = [(1,) * len(values), (-1,) * len(values)]
    if not monotone:
        signs = list(product((-1, 1), repeat=len(values)))
    moved = [tuple(v + s for v, s in zip(values, sign, strict=True)) for sign in signs]
    if monotone:  # one person need not matter to every question
        moved += [(values[0] + 1, *values[1:]), (*values[:-1], values[-1] - 1)]
    return moved
