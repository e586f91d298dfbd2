"""Theorems of composition side by side: each line is what the book's function says."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import pytest

import tacit
from tacit.book import composition, optimal, zcdp
from tacit.errors import BadParameter

DELTA = "1.2664165549094176e-14"  # e^(−32)


def by_name(found):
    return {line.theorem: line.epsilon for line in found.lines}


def test_example_3_7_both_ways():
    total = by_name(tacit.compose(10_000, epsilon_each="1/801", delta=DELTA))
    assert total["Theorem 3.20"] == pytest.approx(1.01435, abs=1e-5)  # E1
    assert total["optimal composition"] < 1
    assert total["basic composition"] == pytest.approx(10_000 / 801)
    each = by_name(tacit.compose(10_000, epsilon=1, delta=DELTA))
    assert 1 / each["Theorem 3.20"] == pytest.approx(812.32, abs=0.01)
    assert 1 / each["Theorem 3.20, tanh(ε₀/2)"] == pytest.approx(806.20, abs=0.01)
    assert 1 / each["optimal composition"] == pytest.approx(715.52, abs=0.01)
    assert 1 / each["Corollary 3.21"] == pytest.approx(1600, abs=0.1)


@pytest.mark.parametrize(("k", "epsilon"), [(1, "1/2"), (20, 1), (1000, "0.3")])
def test_what_each_may_be_comes_to_no_more_than_the_total(k, epsilon):
    for theorem, each in by_name(tacit.compose(k, epsilon=epsilon, delta="1e-6")).items():
        if theorem == "Corollary 3.21":  # which says no more than Theorem 3.20
            theorem = "Theorem 3.20"
        total = by_name(tacit.compose(k, epsilon_each=Fraction(each), delta="1e-6"))[theorem]
        assert total <= float(Fraction(epsilon)) * (1 + 1e-9)
        assert total > float(Fraction(epsilon)) * 0.4


def test_the_best_comes_first_and_what_says_nothing_last():
    found = tacit.compose(3, epsilon_each=1000, delta="1e-6")
    numbers = found.to_dict()["epsilon"]
    assert numbers[-1] is None
    assert numbers[:-1] == sorted(numbers[:-1])
    assert str(found).splitlines()[-1].split()[-2:] == ["says", "nothing"]
    assert "says nothing" in found._repr_html_()
    each = tacit.compose(50, epsilon=1, delta="1e-6").to_dict()["epsilon_each"]
    assert each == sorted(each, reverse=True)
    assert [line.epsilon for line in found.lines] == numbers


def test_the_curves_are_those_of_the_theorems(tmp_path):
    pytest.importorskip("matplotlib")
    found = tacit.compose(100, epsilon_each="1/10", delta="1e-6")
    curves = found.curves()
    at, delta = curves["optimal composition"][40]
    assert delta == optimal.optimal_delta(100, "1/10", Fraction(at))
    assert curves["zCDP"][40] == (at, zcdp.zcdp_delta(Fraction(1, 2), Fraction(at)))
    for at, delta in curves["Theorem 3.20"]:
        if exp(-300) < delta < 1:
            again = composition.advanced_epsilon(100, "1/10", Fraction(delta))
            assert again == pytest.approx(at, rel=1e-9)
    assert min(delta for _, delta in curves["Theorem 3.20"]) < 1e-6
    found.plot(tmp_path / "delta.svg")
    assert (tmp_path / "delta.svg").stat().st_size > 1000


def test_either_a_part_or_the_total_is_given():
    for given in ({}, {"epsilon": 1, "epsilon_each": 1}):
        with pytest.raises(BadParameter, match="give either epsilon_each or epsilon"):
            tacit.compose(3, delta="1e-6", **given)
    with pytest.raises(BadParameter, match="delta = 0"):
        tacit.compose(3, delta=0, epsilon=1)
