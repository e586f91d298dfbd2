from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from tacit.book import recipes
from tacit.book.answer import BELOW, Answer
from tacit.book.recipes import Recipe
from tacit.errors import BadParameter, ConditionNotMet
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
    shares: dict[str, Any] = {"groups": 100, "threshold_share": Fraction(3, 5)}
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


PLAIN: dict[str, Any] = {
    "name": "mine",
    "noise": "one-sided",
    "privacy": Privacy(2),
    "at_most": 2,
    "groups": 2,
    "threshold_epsilon": Fraction(1, 2),
    "question_epsilon": Fraction(1, 2),
}


def test_a_recipe_reads_its_numbers_as_privacy_does():
    written: dict[str, Any] = {"at_most": "2", "groups": 2.0, "threshold_epsilon": 0.5}
    written |= {"question_epsilon": "1/2", "value_epsilon": 0, "shift": "2.5"}
    recipe = Recipe(**{**PLAIN, **written})
    assert recipe == Recipe(**PLAIN, shift=Fraction(5, 2))
    assert all(type(getattr(recipe, name)) is int for name in ("at_most", "groups"))
    for name in ("threshold_epsilon", "question_epsilon", "value_epsilon", "shift"):
        assert type(getattr(recipe, name)) is Fraction
    assert Recipe.from_json(recipe.as_json()) == recipe


def test_the_promise_is_checked_on_the_numbers_as_read():
    """Ten tenths make one: in floats they would not, and a recipe could seem to fit."""
    tenth = {"threshold_epsilon": 0.05, "question_epsilon": 0.05, "at_most": 10, "groups": 10}
    assert Recipe(**{**PLAIN, **tenth, "privacy": Privacy(1)}).group_epsilon * 10 == 1
    more = {**tenth, "question_epsilon": 0.05000000000000001}
    with pytest.raises(ConditionNotMet):
        Recipe(**{**PLAIN, **more, "privacy": Privacy(1)})


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("noise", "gauss"),
        ("noise", None),
        ("monotone", "False"),
        ("monotone", 1),
        ("privacy", 1),
        ("at_most", "2.5"),
        ("groups", 3),
        ("threshold_epsilon", 0),
        ("question_epsilon", "nan"),
        ("value_epsilon", -1),
        ("shift", "far"),
    ],
)
def test_a_recipe_of_anything_else_is_refused(name, bad):
    with pytest.raises(BadParameter, match=f"^{name} = "):
        Recipe(**{**PLAIN, name: bad})


@pytest.mark.parametrize(
    ("name", "bad"),
    [("noise", "gauss"), ("monotone", "perhaps"), ("at_most", "two"), ("shift", "")],
)
def test_a_stored_recipe_that_was_changed_is_refused(name, bad):
    with pytest.raises(BadParameter, match=f"^{name} = "):
        Recipe.from_json({**Recipe(**PLAIN).as_json(), name: bad})


@pytest.mark.parametrize("at_most", [1, 2, 7, 10, 24])
def test_groups_that_never_begin_are_not_paid_for(at_most):
    """Against a walk through all ⊤: a group ends whenever it has had its share of them."""
    for groups in range(1, at_most + 1):
        tops_per_group = -(-at_most // groups)
        begun = len({top // tops_per_group for top in range(at_most)})
        recipe = recipes.spend("one-sided", at_most, TINY_DELTA, monotone=True, groups=groups)
        assert (recipe.groups, recipe.tops_per_group) == (begun, tops_per_group)
        assert recipe.cost.parts[0][0] == begun
    recipe = recipes.spend("one-sided", 10, TINY_DELTA, monotone=True, groups=6)
    assert recipe == recipes.spend("one-sided", 10, TINY_DELTA, monotone=True, groups=5)
    five = {"at_most": 10, "threshold_epsilon": "1/5", "question_epsilon": "1/5"}
    assert Recipe(**{**PLAIN, **five, "groups": 6}).groups == 5  # or 6 × 2/5 would not fit


@pytest.mark.parametrize("at_most", [1, 10, 10**10, 10**400])
@pytest.mark.parametrize("monotone", [True, False])
def test_a_default_share_for_any_number_of_tops(at_most, monotone):
    recipe = recipes.spend("one-sided", at_most, Privacy(1), monotone=monotone)
    assert recipe.group_epsilon == 1
    tops = at_most if monotone else 2 * at_most
    if at_most < 10**300:
        ratio = recipe.question_epsilon / recipe.threshold_epsilon
        assert float(ratio) == pytest.approx(tops ** (2 / 3), rel=1e-6)


@pytest.mark.parametrize("numeric", [False, True])
def test_where_a_delta_is_too_small_to_use_the_pure_recipe_serves(numeric):
    pure = recipes.book(1, Privacy(1), numeric=numeric)
    assert recipes.book_least_noise(1, Privacy(1, "1e-450"), numeric=numeric) == pure


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
    bar = Answer(above=True, value=Fraction(0), noise_scale=scale).error(beta)
    assert bar is not None
    steps = int(bar)
    exceed = [2 * q ** (m + 1) / (1 + q) for m in (steps, steps - 1)]
    assert exceed[0] <= beta * (1 + 1e-9)
    assert steps == 0 or exceed[1] > beta * (1 - 1e-9)
