"""Top: the promise by the contract of releases, what is told, and what is refused."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from itertools import permutations
from math import exp
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import wire
from tacit.analyst.top import Contest, NoisyTop, plan_top
from tacit.errors import BadParameter, QuestionRefused
from tacit.privacy import Privacy
from tacit.tables.language.prepared import Reader
from tacit.testing.releases import ReleaseContract, laplace_law

CELLS = "select count(distinct pid) from visits group by town"
LISTED = ["town = 'Bruges'", "age = 3", "town = 'Ghent'", "age = 1"]


@pytest.fixture
def budget():
    return tacit.Budget.in_memory(epsilon=10**9, delta="1e-3", covers=["visits"])


def mechanism(schema, questions, **options):
    contest = Contest.of(Reader(schema), schema, questions, {})
    return NoisyTop(plan_top(2, contest, **{"delta": 0, "counts_epsilon": None, **options}))


class TestTop(ReleaseContract):
    """The two largest of four counts that overlap."""

    def mechanism(self, schema):
        return mechanism(schema, LISTED, epsilon=1)

    def wrong(self, schema):
        return [
            lambda: mechanism(schema, LISTED[:1], epsilon=1),
            lambda: mechanism(schema, LISTED, epsilon=0),
            lambda: mechanism(schema, LISTED, epsilon=1, counts_epsilon=-1),
            lambda: mechanism(schema, ["town = 'Ghent'", "-count(age = 3)"], epsilon=1),
            lambda: mechanism(schema, ["town = 'Ghent'", "count(age = 3) / 2"], epsilon=1),
        ]

    def outcome(self, drawn):
        return drawn.questions

    def law(self, engine):
        values = engine.values([Reader(engine.schema).read(text, {}).question for text in LISTED])
        weights = [exp(value / 2) for value in values]
        return {
            (LISTED[first], LISTED[second]): weights[first]
            / sum(weights)
            * weights[second]
            / (sum(weights) - weights[first])
            for first, second in permutations(range(4), 2)
        }


class TestTopWithCounts(ReleaseContract):
    """Two cells of which a person may be in both: their counts have noise for both."""

    REACH = 2

    def mechanism(self, schema):
        questions = CELLS.replace("visits", "people")
        return mechanism(schema, questions, epsilon=1, counts_epsilon=1)

    def outcome(self, drawn):
        counts = (int(count.value) for count in drawn.counts)
        near = (min(max(count, -self.REACH), self.REACH) for count in counts)
        return (drawn.questions[0].count("Ghent"), *near)

    def law(self, engine):
        asked = ("town = 'Bruges'", "town = 'Ghent'")
        bruges, ghent = engine.values([Reader(engine.schema).read(a, {}).question for a in asked])
        first = exp(ghent / 2) / (exp(ghent / 2) + exp(bruges / 2))
        told: dict[Hashable, float] = {}
        for ghent_first, chance in ((1, first), (0, 1 - first)):
            pair = (ghent, bruges) if ghent_first else (bruges, ghent)
            one, other = (laplace_law(value, Fraction(2), self.REACH) for value in pair)
            for x, p in one.items():
                told |= {(ghent_first, x, y): chance * p * q for y, q in other.items()}
        return told


def test_with_enough_epsilon_it_is_the_order_of_the_counts(visits, budget):
    found = visits.top(3, CELLS, epsilon=1000, counts_epsilon=10**4, budget=budget)
    assert found.to_dict() == {
        "town": ["Bruges", "Ghent", "Ypres"],
        **{key: [200, 90, 10] for key in ("count", "count_lower", "count_upper")},
    }
    assert str(found).splitlines()[0] == "1. Bruges: 200 ± 0 (95 %)"
    assert len(found) == 3
    assert found.privacy == Privacy(11_000)
    listed = visits.top(
        2, [("age = :a", {"a": 7}), "age >= 50", "true"], epsilon=1000, budget=budget
    )
    assert listed.to_dict() == {"question": ["true", "age >= 50"]}
    assert str(listed) == "1. true\n2. age >= 50"
    given = visits.top(
        1, CELLS.replace("group", "where age >= :a group"), epsilon=999, budget=budget, a=90
    )
    assert given.cells == (("Bruges",),)


def test_the_cells_of_a_group_by_are_counted_together(visits, budget, monkeypatch):
    monkeypatch.setattr(type(visits.engine), "values", None)  # which answers one by one
    found = visits.top(3, CELLS, epsilon=1000, budget=budget)
    assert found.to_dict() == {"town": ["Bruges", "Ghent", "Ypres"]}


def test_what_is_paid_is_the_order_and_the_counts(visits):
    budget = tacit.Budget.in_memory(epsilon=2, delta="1e-5", covers=["visits"])
    visits.top(2, CELLS, epsilon=1, delta="1e-6", counts_epsilon="1/2", budget=budget)
    assert budget.spent.epsilon == Fraction(3, 2)
    assert budget.spent.delta == Fraction(1, 10**6)
    assert budget.history[-2].body["what"] == "top 2 of 3 cells of town"


def test_the_plan_says_how_far_off_it_may_be(visits):
    plan = visits.plan_top(2, CELLS, epsilon="1/10", counts_epsilon="1/10")
    assert plan.error() is not None
    assert plan.noise_scale == 20  # a person may be in both
    text = str(plan)
    assert f"at most {plan.alpha()} below" in text
    assert "table.histogram('town', ...)" in text
    values = np.array([200, 90, 10])
    mechanism, far = plan.mechanism, 0
    for seed in range(2000):
        drawn = mechanism.draw(values, tacit.book.coins.InsecureTestCoins(seed))
        left = [max(np.delete(values, drawn[:at])) for at in range(2)]
        short = max(most - values[place] for most, place in zip(left, drawn, strict=True))
        far += short > plan.alpha("1/10")
    assert 0 < far <= 200


def test_with_one_row_a_person_the_counts_of_cells_share_one_noise():
    schema = tacit.tables.read_schema(
        '[columns.town]\ntype = "text"\nkeys = ["Bruges", "Ghent"]\n',
        name="visits",
        person=tacit.EACH_ROW,
    )
    cells = mechanism(
        schema, "select count(*) from visits group by town", epsilon=1, counts_epsilon=1
    )
    assert cells.plan.noise_scale == 1
    listed = mechanism(schema, ["town = 'Ghent'", "true"], epsilon=1, counts_epsilon=1)
    assert listed.plan.noise_scale == 2


def test_it_is_saved_sent_and_read_again(visits, budget, tmp_path):
    for options in ({}, {"counts_epsilon": 1, "delta": "1e-9"}):
        found = visits.top(2, CELLS, epsilon=1, budget=budget, **options)
        found.save(tmp_path / "top.json")
        for again in (tacit.load_top(tmp_path / "top.json"), wire.from_line(wire.to_line(found))):
            assert again == found
            assert str(again) == str(found)
    (tmp_path / "cut.json").write_text((tmp_path / "top.json").read_text()[:-4])
    with pytest.raises(BadParameter, match="path"):
        tacit.load_top(tmp_path / "cut.json")


def test_what_cannot_be_drawn_is_refused_for_nothing(visits, budget):
    for questions, said in (
        (["age > 3", "count(age > 3) - count(age > 5)"], "may lower"),
        (["age > 3", "sum(cost)"], "the same grid"),
    ):
        with pytest.raises(QuestionRefused, match=said):
            visits.top(1, questions, epsilon=1, budget=budget)
    with pytest.raises(BadParameter, match="only 3 cells of town"):
        visits.top(4, CELLS, epsilon=1, budget=budget)
    with pytest.raises(BadParameter, match="several"):
        visits.top(1, "age > 3", epsilon=1, budget=budget)
    assert budget.spent.epsilon == 0


def test_a_zcdp_budget_charges_an_eighth_of_the_square_of_each_draw(visits, tmp_path):
    path = tmp_path / "zcdp.budget"
    with tacit.Budget.create(
        path, epsilon=4, delta="1e-6", covers=["visits"], accountant="zcdp"
    ) as budget:
        visits.top(2, CELLS, epsilon="1/2", budget=budget)
        assert budget.spent.rho == 2 * Fraction(1, 16) / 8
        visits.top(2, CELLS, epsilon="1/2", counts_epsilon="1/4", budget=budget)
        spent = budget.spent
    assert spent.rho == 4 * Fraction(1, 16) / 8 + Fraction(1, 16) / 2
    with tacit.Budget.open(path) as again:
        assert again.spent == spent
        again.verify()


def test_a_zcdp_budget_charges_every_release_by_its_pieces(visits):
    budget = tacit.Budget.in_memory(epsilon=9, delta="1e-6", covers=["visits"], accountant="zcdp")
    asked = {"epsilon": "1/2", "max_rows": 1}
    plans = (
        (visits.plan_small_db(tacit.prefixes("age"), rows=3, **asked).cost, visits.small_db),
        (visits.plan_ranges("age", **asked).cost, visits.ranges),
        (visits.plan_synthetic(["town", "age"], **asked).mechanism.cost, visits.synthetic),
    )
    given: Any = (((tacit.prefixes("age"),), {"rows": 3}), (("age",), {}), ((["town", "age"],), {}))
    for (cost, release), (places, more) in zip(plans, given, strict=True):
        before = budget.spent.rho
        release(*places, **more, **asked, budget=budget)
        assert cost.privacy == Privacy("1/2")
        parts = sum(count * each**2 / 2 for count, each in cost.parts)
        assert budget.spent.rho - before == parts + sum(n * e**2 / 8 for n, e in cost.ranges)
        assert budget.spent.rho - before < Fraction(1, 8)  # what one pure part would cost
    budget.verify()
