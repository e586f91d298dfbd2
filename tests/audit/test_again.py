"""What is ⊥ is asked again, in the auditor: its exact law, the real stream, and an unpaid ρ."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from tests.audit.laws.again_law import ListedAgain, listed_again
from tests.audit.laws.release_laws import releases
from tests.fit import ACCEPT, ACCEPT_REAL, chi_square_p

import tacit
from tacit.audit import exact
from tacit.audit.table import rows
from tacit.book.coins import InsecureTestCoins
from tacit.book.one_sided import prepare
from tacit.privacy import Privacy

HONEST, UNPAID = listed_again(Privacy(1)), listed_again(Privacy(1), renewed=True)
RUNS = 6000


def by_a_sum(law: ListedAgain, values: tuple[int, ...]) -> list[float]:
    """The chance that each comparison is the first ⊤: a plain sum over ρ, in floats."""
    p, q = exp(-1 / law.recipe.threshold_scale), exp(-1 / law.recipe.question_scale)
    found = [0.0] * (len(values) + 1)
    for rho in range(400):
        still = (1 - p) * p**rho
        for place, value in enumerate(values):
            above = q ** max(law.T + rho - value, 0)
            found[place] += still * above
            still *= 1 - above
        found[-1] += still
    return found


def test_the_law_is_that_of_a_stream_asked_twice_as_much():
    for counts in ((0, 0), (3, 1, 0)):
        law = HONEST.outcome_law(counts)
        total: Any = sum(law.values())
        assert abs(total - 1) < Fraction(1, 10**60)
        assert list(map(float, law.values())) == pytest.approx(by_a_sum(HONEST, 2 * counts))
        one = by_a_sum(UNPAID, counts)
        twice = [*one[:-1], *(one[-1] * each for each in one)]
        assert list(map(float, UNPAID.outcome_law(counts).values())) == pytest.approx(twice)


def test_no_pair_of_neighbours_loses_more_than_is_promised_but_with_a_new_rho():
    rng = np.random.default_rng(11)
    for _ in range(25):
        here = rng.integers(-3, 4, 5)
        there = here + rng.integers(0, 2, 5)
        assert not exact(HONEST, here.tolist(), there.tolist()).exceeds(1), (here, there)
        assert not exact(HONEST, there.tolist(), here.tolist()).exceeds(1), (here, there)
    assert exact(HONEST, *HONEST.pair).loss == pytest.approx(1, abs=1e-9)
    assert exact(UNPAID, *UNPAID.pair).at_least() > 1.4  # nearly 2 ε₁ + ε₂


def p_value(law: ListedAgain, counts: tuple[int, ...], seen: Counter[int]) -> float:
    chances = [float(chance) for chance in law.outcome_law(counts).values()]
    return chi_square_p([seen[place] for place in range(len(chances))], chances)


def test_the_black_box_and_the_mechanism_have_the_law_that_is_listed():
    counts, coins, seen = (1, 2, 0), InsecureTestCoins(5), Counter[int]()
    assert p_value(HONEST, counts, Counter(HONEST(counts, 20_000)[:, 0].tolist())) > 1e-12
    mechanism = prepare(HONEST.recipe, threshold=HONEST.T)
    for _ in range(RUNS):
        state, place = mechanism.start(coins), 0
        for value in 2 * counts:
            answer, state = mechanism.step(state, value, coins)
            if answer:
                break
            place += 1
        seen[place] += 1
    assert p_value(HONEST, counts, seen) > ACCEPT
    assert p_value(UNPAID, counts, seen) < 1e-9


def test_a_batch_that_is_asked_again_has_the_law_that_is_listed():
    """Of one question the round cannot be told apart, so only whether it was ⊤ in the end."""
    data = {"age": [1, 2, 3]}
    schema = '[columns.age]\ntype = "integer"\nbounds = [0, 9]\n'
    above = 0
    with tacit.open(_frame(data), person=tacit.EACH_ROW, name="ages", schema=schema) as table:
        for _ in range(600):
            budget = tacit.Budget.in_memory(epsilon=1, covers=["ages"])
            with table.sparse(
                threshold=1, recipe=HONEST.recipe, at_most=1, epsilon=1, rounds=2, budget=budget
            ) as stream:
                above += any(stream.ask_all(["age > 8"], again=True))
    never = float(HONEST.outcome_law((0,))[(2,)])
    assert chi_square_p([above, 600 - above], [1 - never, never]) > ACCEPT_REAL


def _frame(data: dict[str, list[int]]) -> object:
    import pyarrow

    return pyarrow.table(data)


def test_the_table_lists_both_and_refutes_the_one():
    mine = [one for one in releases("1/10") if isinstance(one, ListedAgain)]
    found = list(rows(mine, runs=None))
    assert [row.refuted for row in found] == [True, False]
    assert not any(row.surprising for row in found)
