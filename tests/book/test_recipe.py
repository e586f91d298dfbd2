from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.book import recipes
from tacit.book.answer import BELOW, Answer
from tacit.book.recipe import Recipe
from tacit.errors import BadParameter
from tacit.privacy import Privacy

TINY_DELTA = Privacy(1, "1e-6")


@pytest.mark.parametrize(
    "recipe",
    [
        recipes.book(7, TINY_DELTA),
        recipes.book(7, Privacy("1/3"), numeric=True),
        recipes.spend("one-sided", 7, TINY_DELTA, monotone=True, groups=3).shifted("7/3"),
    ],
    ids=str,
)
def test_a_recipe_can_be_stored(recipe):
    assert Recipe.from_json(recipe.as_json()) == recipe


def test_all_of_a_pure_promise_is_spent():
    recipe = recipes.spend("one-sided", 5, Privacy("1/3"), monotone=False, value_share="1/7")
    assert recipe.group_epsilon == Fraction(1, 3)
    assert recipe.cost.parts == ((1, Fraction(1, 3)),)


def test_groups_spend_nearly_all_of_an_approximate_promise():
    """A thousandth more in each group would not be allowed."""
    recipe = recipes.spend("one-sided", 60, TINY_DELTA, monotone=False, groups=60)
    assert recipe.group_epsilon * 60 > 1
    more = recipe.group_epsilon * Fraction(1001, 1000)
    from tacit.book.composition import optimal_delta

    assert optimal_delta(60, recipe.group_epsilon, 1) <= 1e-6 < optimal_delta(60, more, 1)


def test_monotone_groups_may_spend_more_than_general_ones():
    shares = {"groups": 100, "threshold_share": Fraction(3, 5)}
    monotone = recipes.spend("one-sided", 100, TINY_DELTA, monotone=True, **shares)
    general = recipes.spend("one-sided", 100, TINY_DELTA, monotone=False, **shares)
    assert monotone.group_epsilon > general.group_epsilon * Fraction(11, 10)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"groups": 6}, "groups"),
        ({"groups": 0}, "groups"),
        ({"threshold_share": 0}, "threshold_share"),
        ({"threshold_share": 1}, "threshold_share"),
        ({"value_share": 1}, "value_share"),
        ({"at_most": 0}, "at_most"),
    ],
    ids=str,
)
def test_bad_shares_are_named(change, named):
    good = {"at_most": 5, "monotone": False}
    arguments = {**good, **change}
    with pytest.raises(BadParameter, match=named):
        recipes.spend("one-sided", arguments.pop("at_most"), Privacy(1), **arguments)


def test_answers_print_and_can_be_stored():
    answer = Answer(
        above=True,
        value=Fraction(-12345, 10),
        gap=Fraction(3),
        noise_scale=Fraction(40),
        grid=Fraction(1, 10),
    )
    assert str(answer) == "⊤ -1 234.5 ± 12 (95 %)"
    assert Answer.from_json(answer.as_json()) == answer
    assert Answer.from_json(BELOW.as_json()) == BELOW
    assert (str(BELOW), bool(BELOW), str(Answer(above=True))) == ("⊥", False, "⊤")


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(20), Fraction(10**4)])
@pytest.mark.parametrize("beta", [0.05, 0.01, 1e-6])
def test_the_error_bar_is_the_smallest_that_holds(scale, beta):
    from math import exp

    q = exp(-1 / float(scale))
    steps = int(Answer(above=True, value=Fraction(0), noise_scale=scale).error(beta))
    exceed = [2 * q ** (m + 1) / (1 + q) for m in (steps, steps - 1)]
    assert exceed[0] <= beta * (1 + 1e-9)
    assert steps == 0 or exceed[1] > beta * (1 - 1e-9)
