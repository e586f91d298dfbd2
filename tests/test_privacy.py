from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import BadParameter
from tacit.numbers import exact, show, whole
from tacit.privacy import Cost, Privacy


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("1e-9", Fraction(1, 10**9)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (1e-300, Fraction(1, 10**300)),
    ],
)
def test_numbers_are_read_exactly(written, meant):
    assert exact(written, "x") == meant


@pytest.mark.parametrize(
    "bad",
    [
        float("nan"),
        float("inf"),
        "abc",
        "",
        "1/0",
        None,
        True,
        "1e999999999",
        [1],
        Decimal("nan"),
        Decimal("1e99999999"),
    ],
)
def test_what_is_not_a_number_is_named(bad):
    with pytest.raises(BadParameter, match="epsilon = "):
        exact(bad, "epsilon")


@pytest.mark.parametrize("epsilon", [0, -1, "-1/2", float("nan"), float("inf")])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(BadParameter, match="epsilon"):
        Privacy(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, "nan"])
def test_delta_must_be_a_small_probability(delta):
    with pytest.raises(BadParameter, match="delta"):
        Privacy(1, delta=delta)


def test_whole_numbers():
    assert whole(3.0, "k") == 3
    for bad in (0, 2.5, -1):
        with pytest.raises(BadParameter, match="k = "):
            whole(bad, "k")


def test_tiny_numbers_are_never_shown_as_zero():
    assert show("2e-6") == "2e-06"
    assert show("1e-400") == "1e-400"
    assert "0.000" not in show(Fraction(1, 10**5))


def test_eleven_elevenths_make_one():
    assert sum([Privacy("1/11").epsilon] * 11) == 1


def test_errors_survive_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(BadParameter("k", 0, "at least 1")))  # noqa: S301
    assert (error.parameter, str(error)) == ("k", "k = 0 is not allowed: at least 1")


def test_a_pure_cost_has_one_part():
    assert Cost.pure(2) == Cost(Privacy(2), ((1, Fraction(2)),))
