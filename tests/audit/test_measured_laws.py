"""Means, variances, ratios, the tree of synthetic rows and multiplicative weights in the auditor.

The law that is listed is drawn, and it keeps its claim; a sibling does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.audit.laws.listed import clipped, drawn_orders, order_law
from tests.audit.laws.query_laws import ListedMoments, ListedShare
from tests.audit.laws.release_laws import releases
from tests.audit.laws.synthetic_laws import ListedColumnTree
from tests.fit import ACCEPT, chi_square_p

import tacit
from tacit.analyst.query import Query
from tacit.audit import exact, gallery, ours
from tacit.audit.exhibits import Chances, Listed, Variant
from tacit.audit.table import worst_loss
from tacit.book.coins import InsecureTestCoins
from tacit.book.multiplicative_weights import most_updates, multiplicative_weights
from tacit.book.synthetic import SyntheticMechanism, _Look
from tacit.book.weighted_rows import ColumnTree, Marginal


def named(name: str, epsilon: object = 1) -> Listed:
    return next(one for one in releases(epsilon) if one.name == name)  # type: ignore[arg-type]


def one_more(counts: Sequence[int], place: int) -> tuple[int, ...]:
    return tuple(count + (at == place) for at, count in enumerate(counts))


def fits(law: Chances, seen: Counter[Any], groups: int = 12) -> float:
    """How well what was seen agrees with a law; outcomes are put together, so that none is rare."""
    assert set(seen) <= set(law)
    kinds = sorted(law, key=lambda told: float(law[told]))
    parts = [kinds[place::groups] for place in range(groups)]
    observed = [sum(seen[told] for told in part) for part in parts]
    return chi_square_p(observed, [float(sum(law[told] for told in part)) for part in parts])


# What laws are made of ----------------------------------------------------------------------------


def test_a_clipped_count_is_a_sum_over_its_noise():
    scale, q = 2, np.exp(-1 / 2)
    for count in (-1, 0, 3):
        noise = np.arange(-400, 401)
        chances = (1 - q) / (1 + q) * q ** np.abs(noise)
        told = np.clip(count + noise, -2, 4)
        for (value,), chance in clipped(count, tacit.Privacy(scale).epsilon, -2, 4).items():
            assert float(chance) == pytest.approx(chances[told == value].sum(), abs=1e-14)


def test_orders_are_drawn_with_their_chances():
    scores, rate = [3, 0, 2, 2], tacit.Privacy("1/2").epsilon
    law = order_law(scores, 2, rate)
    assert sum(law.values()) == pytest.approx(1, abs=1e-15)
    weights = np.exp(np.array(scores) / 2)
    for (first, second), chance in law.items():
        expected = weights[first] / weights.sum() * weights[second]
        assert float(chance) == pytest.approx(expected / (weights.sum() - weights[first]))
    drawn = drawn_orders(scores, 2, rate, 20_000, InsecureTestCoins(3))
    seen = Counter(map(tuple, drawn.tolist()))
    chances = list(map(float, law.values()))
    assert chi_square_p([seen[told] for told in law], chances) > ACCEPT


# A mean and a variance ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mean", "variance"])
def test_moments_keep_their_claim_on_every_pair(name):
    found = named(name)
    for counts in product(range(3), repeat=3):
        for place in range(3):
            more = one_more(counts, place)
            if sum(more) <= ListedMoments.MOST:
                assert not exact(found, counts, more).exceeds(1), (counts, place)
    assert exact(found, *found.pair).loss == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "loss"),
    [("mean, each part with all of ε", 2), ("variance, squares off centre", 4 / 3)],
)
def test_moments_that_are_measured_wrongly_are_refuted(name, loss):
    sibling = named(name)
    assert exact(sibling, *sibling.pair).loss == pytest.approx(loss, abs=1e-12)
    assert not sibling.private


@pytest.mark.parametrize(("name", "selected"), [("mean", "AVG"), ("variance", "VAR_POP")])
def test_the_moments_that_are_released_have_the_law_that_is_listed(tmp_path, name, selected):
    """The real mechanism on a table, and in bulk; with half the noise it is noticed."""
    counts = (1, 0, 2)
    values = np.repeat(np.arange(3), counts).tolist()
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(map(str, values)) + "\n")
    schema = '[columns.x]\ntype = "integer"\nbounds = [0, 2]\n'
    found = named(name)
    assert isinstance(found, ListedMoments)
    law, coins = found.outcome_law(counts), InsecureTestCoins(1)
    unit, low, high = (np.array(each[: len(found.scales)]) for each in found.told_in)
    with tacit.open(tmp_path / "t.csv", person=tacit.EACH_ROW, schema=schema) as table:
        for epsilon, good in ((1, True), (2, False)):
            query = Query(table.plan_query(f"SELECT {selected}(x) FROM t", epsilon=epsilon))
            scales = [query.plan.noise_scale(0, part) for part in range(len(found.scales))]
            assert (scales == found.scales) is good
            drawn = [query.draw(table.engine, coins).columns[0] for _ in range(1500)]
            steps = np.array([[part.steps[0] for part in each.measured] for each in drawn])  # type: ignore[union-attr]
            told = Counter(map(tuple, np.clip(steps // unit, low, high).tolist()))
            assert fits(law, told) > ACCEPT if good else fits(law, told) < 1e-9
    bulk = Counter(map(tuple, found(counts, 20_000).tolist()))
    assert fits(law, bulk) > 1e-12  # these are real coins


def test_a_ratio_has_half_of_epsilon_for_each_count_and_keeps_its_claim(tmp_path):
    found = named("ratio of two counts")
    assert isinstance(found, ListedShare)
    for people in product(range(2), repeat=3):
        for place in range(3):
            assert not exact(found, people, one_more(people, place)).exceeds(1)
    assert exact(found, *found.pair).loss == pytest.approx(1, abs=1e-12)
    (tmp_path / "t.csv").write_text("pid,a,b\n1,true,true\n2,false,true\n")
    schema = '[columns.pid]\ntype="integer"\n[columns.a]\ntype="boolean"\n'
    schema += '[columns.b]\ntype="boolean"\n'
    sql = (
        "SELECT COUNT(DISTINCT pid) FILTER (WHERE a) / COUNT(DISTINCT pid) FILTER (WHERE b) FROM t"
    )
    with tacit.open(tmp_path / "t.csv", person="pid", schema=schema) as table:
        planned = table.plan_query(sql, epsilon=1)
        assert [planned.noise_scale(0, part) for part in (0, 1)] == [found.scale] * 2


# The tree of synthetic rows -----------------------------------------------------------------------


def test_a_tree_of_columns_keeps_its_claim_on_every_pair_and_its_sibling_does_not():
    found = named("synthetic rows, their tree")
    for placed in product(range(3), repeat=3):  # of rows (0, 0, 1), (0, 1, 0) and (1, 1, 1)
        counts = (0, placed[0], placed[1], 0, 0, 0, 0, placed[2])
        if max(placed[:2]) + 1 <= ListedColumnTree.FAR:
            assert not exact(found, counts, one_more(counts, 0)).exceeds(1), counts
    assert exact(found, *found.pair).loss > 0.85
    sibling = named("synthetic rows, their tree, noise for one pair")
    assert exact(sibling, *sibling.pair).at_least() > 1.5


def test_the_tree_that_is_released_has_the_law_that_is_listed():
    """The real draws and counts; with half the noise, or a public model that differs, it shows."""
    found, counts = named("synthetic rows, their tree", 4), (1, 2, 0, 1, 0, 0, 0, 0)
    assert isinstance(found, ListedColumnTree)
    law, coins = found.outcome_law(counts), InsecureTestCoins(1)
    rows = np.repeat(np.array(list(product((0, 1), repeat=3)), np.int64), counts, axis=0)
    singles = [
        Marginal((place,), np.array([4, 4]), found.mechanism.single_scale) for place in range(3)
    ]
    alone = ColumnTree.fit((2, 2, 2), singles)
    assert alone.independent((0, 1)).tolist() == [found.EXPECTED] * 4

    def p_value(real: SyntheticMechanism) -> float:
        seen: Counter[tuple[int, ...]] = Counter()
        for _ in range(2500):
            look = _Look((2, 2, 2), rows, coins)
            edges = real.edges(look, alone)
            told = [int(look.measure(edge, real.pair_scale).counts[0]) for edge in edges]
            drawn = [found.PAIRS.index(edge) for edge in edges]
            seen[(*drawn, *(min(max(count, 0), found.FAR) for count in told))] += 1
        return fits(law, seen)

    assert p_value(found.mechanism) > ACCEPT
    assert p_value(SyntheticMechanism((2,) * 3, found.mechanism.epsilon * 2)) < 1e-9
    assert fits(law, Counter(map(tuple, found(counts, 20_000).tolist()))) > 1e-12


# Multiplicative weights ---------------------------------------------------------------------------


def weights(name: str, epsilon: object = 1) -> Variant:
    every = (*ours(epsilon), *gallery(epsilon))  # type: ignore[arg-type]
    found = next(one for one in every if one.name == name)
    assert isinstance(found, Variant)
    return found


def test_multiplicative_weights_keep_their_claim_and_the_sibling_does_not():
    found = weights("multiplicative weights (book)")
    assert worst_loss(found, 10)[0] == pytest.approx(1, abs=1e-6)
    sibling = weights("multiplicative weights, differences taken for counts")
    assert worst_loss(sibling, 10)[1] > 1.49


def test_multiplicative_weights_ask_the_stream_that_is_audited():
    """The real loop, with room for one update: which comparison is ⊤, against the exact law."""
    people, alpha = 4, "3/5"
    assert most_updates(2, alpha, sharper=True) == 1
    threshold = 2 * 3 + 1  # one step above 2αn, where αn = 2.4 is rounded up
    x, asked = np.array([9, 1]), [[1, 0], [0, 1], [1, 1]]
    truth = [int(x @ np.array(question)) for question in asked]
    guesses = [2, 2, 4]  # of the uniform model
    away = [true - guess for true, guess in zip(truth, guesses, strict=True)]
    differences = [side * off - threshold for off in away for side in (1, -1)]
    law = exact(
        weights("multiplicative weights (book)", 2).law.bits_only(), differences, differences
    )
    chances = dict(zip(law.patterns, law.probabilities, strict=True))
    coins, seen = InsecureTestCoins(5), Counter[int]()
    for _ in range(3000):
        told = list(
            multiplicative_weights(
                x, asked, people=people, alpha=alpha, epsilon=2, sharper=True, coins=coins
            )
        )
        sources = [each.source for each in told]
        seen[sources.index("measured") if "measured" in sources else len(asked)] += 1
    expected = [0.0] * (len(asked) + 1)
    for pattern, chance in chances.items():
        expected[len(pattern) // 2 if not pattern[-1] else (len(pattern) - 1) // 2] += chance
    assert sum(expected) == pytest.approx(1)
    assert chi_square_p([seen[place] for place in range(len(expected))], expected) > ACCEPT
