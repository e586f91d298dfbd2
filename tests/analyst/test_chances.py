"""How likely counts are ⊤, from a plan: as numbers, a table and pictures."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tacit
from tacit.analyst.chances import LEVELS
from tacit.book.chance import chance_above
from tacit.book.one_sided import prepare
from tacit.errors import BadParameter


@pytest.fixture(scope="module")
def plan():
    return tacit.plan.sparse(questions=1000, at_most=5, epsilon=1)


@pytest.mark.parametrize("name", [None, "book", "one-sided"])
def test_a_chance_is_that_of_the_recipe_at_its_own_shift(plan, name):
    recipe = plan.best if name is None else plan.recipe(name)
    found = plan.chance(530, threshold=500, recipe=name, sensitivity=2, grid="1/2")
    assert found == chance_above(prepare(recipe, threshold=500, sensitivity=2, grid="1/2"), 530)
    assert plan.chance(30, recipe=name) == plan.chance(530, threshold=500, recipe=name)


def test_the_table_has_the_first_count_of_each_level(plan):
    around = plan.chances(threshold=500)
    assert len(around.counts) == len(LEVELS)
    for count, chance, level in zip(around.counts, around.chances, LEVELS, strict=True):
        assert chance == plan.chance(count, threshold=500)
        assert plan.chance(count - 1, threshold=500).high < level <= chance.low
    assert around.to_dict()["count"] == [int(count) for count in around.counts]
    assert [float(plan.chance(at, threshold=500)) for at, _ in around.curve] == [
        part for _, part in around.curve
    ]
    assert (around.curve[0][0], around.curve[-1][0]) == (around.counts[0], around.counts[-1])


def test_it_is_shown_as_lines_and_as_a_picture(plan, tmp_path):
    pytest.importorskip("matplotlib")
    around = plan.chances(threshold=30)
    lines = str(around).splitlines()
    assert lines[0] == "chance of ⊤ at a true count, threshold 30, one-sided, monotone"
    assert len(lines) == 2 + len(LEVELS)
    assert lines[-1].endswith("█" * 20)
    html = around._repr_html_()
    assert html.count("<tr>") == 1 + len(LEVELS)
    assert f"{around.counts[3]}</td><td>{around.chances[3]}" in html
    assert html.count("stroke-dasharray") == (around.counts[0] <= 30 <= around.counts[-1])
    around.plot(tmp_path / "chances.svg")
    assert (tmp_path / "chances.svg").stat().st_size > 1000


def test_with_hardly_any_noise_the_table_is_a_step():
    sure = tacit.plan.above_threshold(questions=10, epsilon=10**6).chances(threshold=7)
    assert len(sure.counts) == 1
    assert "<svg" in sure._repr_html_()
    assert sure.chances[0].low > Fraction(99, 100)


def test_what_is_wrong_is_named(plan):
    with pytest.raises(BadParameter, match="count = 'x' is not allowed"):
        plan.chance("x")
    with pytest.raises(BadParameter, match="recipe = 'none' is not allowed"):
        plan.chances(recipe="none")
    with pytest.raises(BadParameter, match="must end in one of"):
        plan.chances().plot("chances.xyz")
