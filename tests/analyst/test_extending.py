"""The toys of docs/extending: they keep to the contracts, and are found where the page says."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.pages import FENCE, ROOT, Place, captured

from tacit.analyst import plan, tuning
from tacit.privacy import Privacy


def names_of(page: str) -> dict[str, Any]:
    """What the code of a page defines."""
    names: dict[str, Any] = {"__name__": "__page__"}
    text = (ROOT / "docs" / "extending" / page).read_text()
    with tempfile.TemporaryDirectory() as folder:
        for block in FENCE.finditer(text):
            if block["kind"] == "python":
                code = compile(block["body"], page, "exec", dont_inherit=True)
                captured(code, names, Place(Path(folder)))
    return names


RELEASE = names_of("add-a-release.md")
RECIPE = names_of("add-a-recipe.md")


class TestMostFrequent(RELEASE["TestMostFrequent"]):  # type: ignore[misc, valid-type]
    """All of the contract, as the page subclasses it."""


@pytest.fixture
def with_one_third(monkeypatch):
    """The line that the page says to add."""
    builders = plan._builders

    def more(task, delta):
        def one_third(epsilon):
            return tuning.shifted(RECIPE["one_third"](task.at_most, Privacy(epsilon)), task)

        return {**builders(task, delta), "one third": one_third}

    monkeypatch.setattr(plan, "_builders", more)
    plan._planned.cache_clear()
    yield
    plan._planned.cache_clear()


@pytest.mark.usefixtures("with_one_third")
def test_a_recipe_with_a_line_in_the_plan_is_compared_and_found_by_its_name(visits, budget):
    made = plan.sparse(questions=1000, at_most=5, epsilon=1)
    line = made.option("one third")
    assert "one third" in str(made)
    assert made.alpha <= line.alpha < made.option("book").alpha
    assert line.recipe.privacy == Privacy(1)
    for_alpha = plan.sparse(questions=1000, at_most=5, alpha=Fraction(line.alpha))
    assert for_alpha.option("one third").epsilon == pytest.approx(1, rel=1e-3)
    stream = visits.sparse(
        threshold=100, at_most=5, epsilon=100, recipe="one third", questions=1000, budget=budget
    )
    assert stream.recipe.name == "one third"
    assert stream.ask("town = 'Bruges'")
    stream.suspend()
    assert not visits.resume(stream.name, budget=budget).ask("town = 'Ypres'")
