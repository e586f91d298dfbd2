"""Uniform integers in bulk: each as often as any other, and none beyond."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book.coins import Coins, InsecureTestCoins
from tacit.errors import BadParameter


@pytest.mark.parametrize("n", [2, 3, 5, 64, 100])
def test_each_comes_as_often_as_any_other(n):
    drawn = InsecureTestCoins(3).belows(n, 20_000)
    assert drawn.dtype == np.int64
    seen = np.bincount(drawn, minlength=n)
    assert len(seen) == n
    assert chi_square_p(seen.tolist(), [1 / n] * n) > ACCEPT


def test_the_ends_of_what_it_takes():
    coins = Coins()
    assert coins.belows(1, 50).tolist() == [0] * 50
    assert coins.belows(7, 0).tolist() == []
    wide = coins.belows(2**62, 1000)
    assert (wide >= 0).all()
    assert (wide < 2**62).all()
    assert len(np.unique(wide)) == 1000
    assert (
        np.bincount(wide >> 60, minlength=4) > 100
    ).all()  # of 250, ten standard deviations away
    for n in (0, 2**62 + 1, 1.5):
        with pytest.raises(BadParameter, match="n"):
            coins.belows(n, 3)  # type: ignore[arg-type]
