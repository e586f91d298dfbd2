"""Exact cell probabilities of geometric and discrete Laplace noise, and p-values against them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from tests.fit import chi_square_p

SCALES = [Fraction(1, 3), Fraction(22, 7), Fraction(20), Fraction(10**4), Fraction(10**6)]
_CELLS = 24


def _edges(scale: float, two_sided: bool) -> list[int]:
    """Cells of about equal probability."""
    shares = np.arange(1, _CELLS) / _CELLS
    edges = {int(-scale * np.log(share)) for share in shares} | {1, 2}
    return sorted(edges | {1 - edge for edge in edges} if two_sided else edges - {0})


def _below(edge: int, scale: float, two_sided: bool) -> float:
    """Pr[draw < edge]."""
    q = np.exp(-1 / scale)
    if not two_sided:
        return float(-np.expm1(-edge / scale))
    beyond = np.exp(-(edge if edge > 0 else 1 - edge) / scale) / (1 + q)
    return float(1 - beyond if edge > 0 else beyond)


def p_value(
    draws: Sequence[int] | NDArray[np.integer], scale: Fraction, *, two_sided: bool
) -> float:
    """How well the draws agree with the law of this scale."""
    edges = _edges(float(scale), two_sided)
    below = [0.0, *(_below(edge, float(scale), two_sided) for edge in edges), 1.0]
    cells = np.searchsorted(np.array(edges), np.asarray(draws), side="right")
    counts = np.bincount(cells, minlength=len(edges) + 1)
    return chi_square_p(counts.tolist(), np.diff(below).tolist())


def low_digit_p_value(
    draws: Sequence[int] | NDArray[np.integer], scale: Fraction, modulus: int = 64
) -> float:
    """How well the last bits of the sizes agree; coarse cells would not see them."""
    sizes = np.asarray(draws)
    sizes = np.where(sizes < 0, ~sizes, sizes)
    powers = np.exp(-np.arange(modulus) / float(scale))
    counts = np.bincount(sizes % modulus, minlength=modulus)
    return chi_square_p(counts.tolist(), (powers / powers.sum()).tolist())


def coin_p_value(coins: Sequence[bool] | NDArray[np.bool_], probability: float) -> float:
    """How well the share of successes agrees with a probability."""
    successes = int(np.sum(coins))
    return chi_square_p([successes, len(coins) - successes], [probability, 1 - probability])
