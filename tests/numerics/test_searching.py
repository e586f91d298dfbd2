"""Curves with one valley, and with many small ones."""

from __future__ import annotations

import warnings
from math import log

import numpy as np
import pytest

from tacit.numerics.searching import lowest, lowest_quotient


@pytest.mark.parametrize("bottom", [0.001, 0.05, 0.3, 0.7, 0.99])
@pytest.mark.parametrize("start", [0.01, 0.4, 0.95])
def test_the_lowest_share_is_found(start, bottom):
    def valley(share):
        apart = log(share / (1 - share)) - log(bottom / (1 - bottom))
        return 100 + apart * apart + 0.1 * apart**3 * (abs(apart) < 3)

    assert valley(lowest(valley, start)) <= 100.005


@pytest.mark.parametrize("apart", [0.7, 1.0, 1.4])
@pytest.mark.parametrize("bottom", [0.05, 0.31, 0.7])
def test_a_sharp_valley_is_found_too(bottom, apart):
    """Bits and values, each with its own error: nearly the larger of two curves."""

    def valley(share):
        return np.logaddexp(20 * bottom / share, 20 * (1 - bottom) / (1 - share))

    best = min(map(valley, np.linspace(bottom / 2, (1 + bottom) / 2, 20_001)))
    assert valley(lowest(valley, bottom * apart)) <= best * 1.0003


def _smooth(share):
    return 0.4 / share + 0.6 / (1 - share)


def _bumpy(teeth, share):
    """Arches that meet in corners, as what monotone groups may spend does."""
    phase = (teeth * share + 0.3) % 1
    return (1 + share) * (1 - 0.4 / teeth * phase * (1 - phase))


def _excess(teeth, share):
    grid = np.linspace(0.05, 0.95, 180_001)
    best = (_smooth(grid) / _bumpy(teeth, grid)).min()
    return _smooth(share) / _bumpy(teeth, share) / best - 1


@pytest.mark.parametrize("teeth", [1, 2, 5, 10, 30, 60, 100])
@pytest.mark.parametrize("start", [0.1, 0.5, 0.8])
def test_the_lowest_of_many_small_valleys_is_found(teeth, start):
    with warnings.catch_warnings(action="error"):
        found = lowest_quotient(_smooth, lambda x: _bumpy(teeth, x), start)
    assert _excess(teeth, found) < 0.0003


def test_parabolas_alone_go_astray_among_small_valleys():
    plain = [lowest(lambda x: _smooth(x) / _bumpy(10, x), start) for start in (0.1, 0.5, 0.8)]
    assert max(_excess(10, found) for found in plain) > 0.001
