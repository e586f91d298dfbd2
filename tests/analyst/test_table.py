from __future__ import annotations

from fractions import Fraction

import pytest
from tests.fit import ACCEPT, chi_square_p

import tacit
from tacit.analyst.table import Table
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import BadParameter, BudgetExhausted, InsecureCoins, QuestionRefused


def test_a_count_is_near_the_truth_and_charged(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    estimate = visits.count("town = 'Bruges'", epsilon="1/2", budget=budget)
    assert abs(estimate.value - 200) <= estimate.error("1e-9")
    assert budget.spent.epsilon * 2 == 1
    with pytest.raises(BudgetExhausted):
        visits.count("town = 'Bruges'", epsilon="3/4", budget=budget)


def test_noise_too_wide_to_draw_is_refused_before_it_is_paid(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    with pytest.raises(BadParameter, match="epsilon = 1e-70 is not allowed: noise would be wider"):
        visits.count("cost >= 0", epsilon="1e-70", budget=budget)
    assert budget.spent.epsilon == 0
    assert visits.count("cost >= 0", epsilon="1e-50", budget=budget).noise_scale == 10**50
    assert budget.spent.epsilon == Fraction("1e-50")


def test_counts_have_laplace_noise_of_the_stated_scale(visits):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    noise = [
        int(visits.count("town = 'Bruges'", epsilon="1/2", budget=budget).value) - 200
        for _ in range(1500)
    ]

    def p(scale):
        from math import exp

        q = exp(-1 / scale)
        cells = range(-8, 9)
        law = [q ** abs(x) * (1 - q) / (1 + q) for x in cells]
        counts = [noise.count(x) for x in cells]
        return chi_square_p([*counts, len(noise) - sum(counts)], [*law, 1 - sum(law)])

    assert p(2) > ACCEPT
    assert p(3) < ACCEPT


def test_a_sum_clamps_each_person_and_has_noise_of_her_total(visits):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    estimate = visits.sum("cost", where="town = :town", town="Ypres", epsilon=100, budget=budget)
    assert abs(estimate.value - 10 * 2 * 10.5) <= estimate.error("1e-9")
    assert estimate.noise_scale == 200 / estimate.grid / 100
    with pytest.raises(BadParameter, match="column"):
        visits.sum("costs", epsilon=1, budget=budget)
    with pytest.raises(QuestionRefused):
        visits.sum("town", epsilon=1, budget=budget)


def test_check_says_what_is_promised_and_costs_nothing(visits):
    text = str(visits.check("age >= 60 and town = 'Ghent'"))
    assert "sensitivity  1" in text
    assert "direction    +1" in text
    assert (
        "refused" in str(visits.check("age / 2 > 3")).lower() or visits.check("age / 2 > 3").refusal
    )


def test_test_coins_are_refused_where_a_budget_is_spent(visits):
    with pytest.raises(InsecureCoins):
        Table(visits.engine, coins=InsecureTestCoins(1))


def test_people_is_a_public_number_and_a_person_has_no_default(visits_file):
    with pytest.raises(BadParameter, match="people"):
        tacit.open(visits_file, person="pid", people=0)
    with pytest.raises(TypeError):
        tacit.open(visits_file)
    with tacit.open(visits_file, person="pid", people=300) as table:
        assert table.people == 300


def test_prepared_questions_are_asked_often(visits, budget, calm):
    stream = visits.sparse(threshold=100, at_most=3, budget=budget, **calm)
    question = visits.prepare("town = :town")
    assert [stream.ask(question, town=town).above for town in ("Bruges", "Ghent")] == [True, False]
