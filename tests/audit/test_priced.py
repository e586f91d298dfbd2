"""A price for each ⊤ in the auditor: its exact law, the real stream, and too low a price."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.audit.laws.priced_law import ListedPriced, listed_priced
from tests.audit.laws.release_laws import releases
from tests.fit import ACCEPT, chi_square_p

from tacit.audit import exact
from tacit.audit.table import rows
from tacit.book import priced
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.one_sided import prepare
from tacit.book.recipes import PARTS, Recipe
from tacit.privacy import Privacy

HONEST = listed_priced(Privacy(1))
TOO_CHEAP = listed_priced(Privacy(1), by_direction=True)


def asked(law: ListedPriced, answers: tuple[int, ...], coins: Coins) -> tuple[int, ...]:
    """The real stream, asked at the scales of the law, and told as the law tells it."""
    recipe = priced.recipe(Privacy(1), least_scale=4, threshold_share="1/2")
    mechanism = prepare(recipe, threshold=1)
    state, told = mechanism.start(coins), list[int]()
    for value in answers:
        scale = law.scale(told)
        if scale is None:
            assert mechanism.halted(state)
            told.append(-2)
            continue
        answer, state = priced.asked_at(mechanism, scale).step(state, value, coins)
        told.append(-1 if answer.gap is None else min(int(answer.gap), 2))
    return tuple(told)


def test_no_pair_of_neighbours_loses_more_than_is_promised():
    rng = np.random.default_rng(7)
    largest = 0.0
    for _ in range(60):
        here = rng.integers(-3, 3, 3)
        there = here + rng.integers(-1, 2, 3)
        found = exact(HONEST, here.tolist(), np.minimum(there, 2).tolist())
        assert not found.exceeds(1), (here, there)
        largest = max(largest, found.loss)
    assert largest > 0.5


def test_the_promise_is_used_up_and_a_price_by_direction_breaks_it():
    assert exact(HONEST, *HONEST.pair).loss == pytest.approx(1, abs=1e-12)
    wrong = exact(TOO_CHEAP, *TOO_CHEAP.pair)
    assert wrong.loss == pytest.approx(1.5, abs=1e-12)  # ε₁ + 2 ε₂
    assert wrong.exceeds(1)
    for counts in ((0, 0, 0), (1, 0, 2)):  # for questions of one direction it is enough
        assert not exact(TOO_CHEAP, counts, tuple(count + 1 for count in counts)).exceeds(1)


@pytest.mark.parametrize("answers", [(0, 0, 0), (2, 1, 0), (1, -1, 2)])
def test_the_law_is_one_of_chances(answers):
    law = HONEST.outcome_law(answers)
    total: Any = sum(law.values())
    assert abs(total - 1) < Fraction(1, 10**60)
    assert any(-2 in told for told in law if isinstance(told, tuple))  # some are not asked


def test_the_stream_that_is_asked_has_the_law_that_is_listed():
    answers, coins = (1, 2, 0), InsecureTestCoins(3)
    seen = Counter(asked(HONEST, answers, coins) for _ in range(6000))

    def p_value(law: ListedPriced) -> float:
        chances = {told: float(chance) for told, chance in law.outcome_law(answers).items()}
        common = [told for told, chance in chances.items() if chance > 0.005]
        counts = [seen[told] for told in common]  # type: ignore[index]
        expected = [chances[told] for told in common]
        return chi_square_p([*counts, 6000 - sum(counts)], [*expected, 1 - sum(expected)])

    assert p_value(HONEST) > ACCEPT
    assert p_value(TOO_CHEAP) < 1e-9


def test_the_black_box_has_the_law_that_is_listed():
    answers = (1, 2, 0)
    runs = [tuple(run) for run in HONEST(answers, 20_000).tolist()]
    seen = Counter(runs)
    law = HONEST.outcome_law(answers)
    common = [told for told, chance in law.items() if chance > 0.005]
    counts = [seen[told] for told in common]  # type: ignore[index]
    expected = [float(law[told]) for told in common]
    rest = (20_000 - sum(counts), 1 - sum(expected))
    assert chi_square_p([*counts, rest[0]], [*expected, rest[1]]) > ACCEPT


def test_the_table_lists_both_and_refutes_the_one():
    mine = [one for one in releases("1/10") if isinstance(one, ListedPriced)]
    found = list(rows(mine, runs=None))
    assert [row.refuted for row in found] == [True, False]
    assert not any(row.surprising for row in found)


def test_prices_of_the_law_are_those_of_the_recipe():
    recipe = priced.recipe(Privacy(1), least_scale=4, threshold_share="1/2")
    assert isinstance(recipe, Recipe)
    assert recipe.price == PARTS
    for scale, part in ((4, 1), (Fraction(16, 3), Fraction(3, 4)), (16, Fraction(1, 4))):
        at_scale = priced.asked_at(prepare(recipe, threshold=0), scale)
        assert at_scale.price == -(-part * PARTS // 1)
