"""What is measured for synthetic rows: its costs, its sensitivities, its laws; rows that fit."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import exp, prod
from typing import Any

import numpy as np
import pytest
from tests.fit import ACCEPT, chi_square_p

from tacit.book.coins import InsecureTestCoins
from tacit.book.synthetic import SyntheticMechanism, _Look
from tacit.book.weighted_rows import (
    ColumnTree,
    Marginal,
    WeightedRows,
    cell_places,
    nearest_counts,
)
from tacit.errors import BadParameter, Infeasible
from tacit.privacy import Privacy

SIZES = (3, 2, 4)
PAIRS = tuple(combinations(range(3), 2))


def some_rows(size, seed=1):
    """Rows whose second column follows from the first, and whose third mostly does."""
    coins = InsecureTestCoins(seed)
    first = coins.belows(3, size)
    noise = coins.belows(4, size)
    third = np.where(coins.belows(10, size) < 8, first, noise)
    return np.stack([first, first % 2, third], axis=1)


# The promise: what each part costs ----------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 1, 5])
@pytest.mark.parametrize("sizes", [(3,), (3, 2), SIZES, (2,) * 7])
@pytest.mark.parametrize("rows", [1, 4])
def test_the_parts_cost_epsilon_exactly(sizes, rounds, rows):
    epsilon, d = Fraction(3, 7), len(sizes)
    candidates = tuple(combinations(range(d), 2)) or ((0,),)
    mechanism = SyntheticMechanism(sizes, epsilon, rows, rounds, candidates)
    assert mechanism.cost.privacy == Privacy(epsilon)
    spent = rows * d / mechanism.single_scale  # from the scales that are really used
    if d > 1:
        spent += rows * (d - 1) / mechanism.pair_scale
    if d > 2:
        spent += mechanism.tree_chooser.rate * 2 * rows * (d - 1)
    if rounds:
        spent += rounds * rows / mechanism.round_scale
        spent += rounds * mechanism.round_chooser.rate * 2 * rows
    assert spent == epsilon


def test_a_row_changes_no_score_and_no_marginal_by_more_than_one():
    """By brute force: every table of up to two rows, every third row, a model off the grid."""
    sizes, coins = (2, 3), InsecureTestCoins(1)
    model = np.array([0.5, 1.2, 0.0, 2.5, 0.49, 1e-9])
    every = list(product(range(2), range(3)))
    for rows in product(every, repeat=2):
        before = _Look(sizes, np.array(rows, np.int64), coins)
        for row in every:
            after = _Look(sizes, np.array([*rows, row], np.int64), coins)
            change = after.score((0, 1), model, Fraction(1, 3)) - before.score(
                (0, 1), model, Fraction(1, 3)
            )
            assert change in (-1, 1)
            for columns in ((0,), (1,), (0, 1)):
                assert np.abs(after.true(columns) - before.true(columns)).sum() == 1


def test_true_counts_are_those_of_a_loop():
    rows = some_rows(200)
    look = _Look(SIZES, rows, InsecureTestCoins(1))
    for columns in ((1,), (0, 2), (0, 1, 2)):
        counted = Counter(tuple(row[list(columns)].tolist()) for row in rows)
        cells = product(*(range(SIZES[place]) for place in columns))
        assert look.true(columns).tolist() == [counted[cell] for cell in cells]


def test_noise_has_the_scales_that_are_said():
    """Every measured count, against the exact law of its noise; half the noise is noticed."""
    rows = some_rows(50)
    mechanism = SyntheticMechanism(SIZES, Fraction(4), 1, 2, PAIRS)
    coins = InsecureTestCoins(2)
    noise: dict[Fraction, list[int]] = {}
    look = _Look(SIZES, rows, coins)
    for _ in range(60):
        measured, _ = mechanism.draw(rows, coins, 100)
        assert [len(each.columns) for each in measured] == [1, 1, 1, 2, 2, 2, 2]
        for each in measured:
            noise.setdefault(each.scale, []).extend(
                (each.counts - look.true(each.columns)).tolist()
            )
    expected = (mechanism.single_scale, mechanism.pair_scale, mechanism.round_scale)
    assert set(noise) == set(expected)
    for scale, found in noise.items():
        assert fits(found, float(scale)) > ACCEPT
        assert fits(found, float(scale) / 2) < 1e-9


def fits(noise, scale):
    """How well numbers fit discrete Laplace noise, in bins of about half a scale."""
    q, width = exp(-1 / scale), max(round(scale / 2), 1)
    edges = [place * width for place in range(-6, 7)]

    def below(x):
        return q ** (1 - x) / (1 + q) if x <= 0 else 1 - q**x / (1 + q)

    sums = [0.0, *(below(edge) for edge in edges), 1.0]
    places = np.searchsorted(edges, noise, side="right")
    observed = np.bincount(places, minlength=len(edges) + 1)
    return chi_square_p(observed.tolist(), np.diff(sums).tolist())


def test_pairs_that_depend_on_each_other_are_chosen_with_the_exact_chance():
    """The tree's first edge: e^(rate·score) by brute force, at an ε where nothing is sure."""
    rows, epsilon = some_rows(60), Fraction(1)
    mechanism = SyntheticMechanism(SIZES, epsilon)
    alone = ColumnTree.fit(
        SIZES,
        [
            Marginal((place,), np.bincount(rows[:, place], minlength=size), Fraction(1, 1000))
            for place, size in enumerate(SIZES)
        ],
    )
    coins = InsecureTestCoins(3)
    look = _Look(SIZES, rows, coins)
    spoilt = Fraction(80, 100) * mechanism.pair_scale
    scores = [look.score(pair, alone.independent(pair), spoilt) for pair in PAIRS]
    rate = float(epsilon * Fraction(15, 100) / 2 / 2)  # ε′/2r, and two draws
    weights = np.exp(rate * (np.array(scores) - max(scores)))
    seen = Counter(mechanism.edges(look, alone)[0] for _ in range(4000))
    expected = (weights / weights.sum()).tolist()
    assert chi_square_p([seen[pair] for pair in PAIRS], expected) > ACCEPT
    assert min(expected) > 0.01
    assert max(expected) - min(expected) > 0.1  # so that another rate would be noticed


# Rows that fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 3])
def test_with_little_noise_the_rows_have_the_marginals_of_the_table(rounds):
    rows = some_rows(3000)
    mechanism = SyntheticMechanism(SIZES, Fraction(10**6), 1, rounds, PAIRS)
    measured, model = mechanism.draw(rows, InsecureTestCoins(4), 20_000)
    assert {(0, 1), (0, 2)} <= {each.columns for each in measured}  # the tree that is true
    drawn = model.draw(3000, InsecureTestCoins(5))
    for columns in PAIRS:
        size = SIZES[columns[0]] * SIZES[columns[1]]
        true = np.bincount(cell_places(rows, columns, SIZES), minlength=size)
        found = np.bincount(cell_places(drawn, columns, SIZES), minlength=size)
        assert np.abs(true - found).max() <= 30, columns
        assert np.abs(true - model.marginal(columns)).max() <= 30, columns


@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("epsilon", ["1/10000", 1, 10**6])
def test_an_empty_table_and_wild_noise_give_rows_all_the_same(size, rounds, epsilon):
    mechanism = SyntheticMechanism(SIZES, Fraction(epsilon), 1, rounds, PAIRS)
    for seed in range(5):
        measured, model = mechanism.draw(some_rows(size), InsecureTestCoins(seed), 500)
        assert len(measured) == 3 + 2 + rounds
        assert np.isfinite(model.weights).all()
        assert (model.weights >= 0).all()
        drawn = model.draw(17, InsecureTestCoins(seed))
        assert drawn.shape == (17, 3)
        assert (drawn >= 0).all()
        assert (drawn < np.array(SIZES)).all()


@pytest.mark.parametrize("sizes", [(4,), (4, 2)])
def test_few_columns_have_no_tree_to_choose(sizes):
    rows = some_rows(500)[:, [2, 1][: len(sizes)]]
    measured, model = SyntheticMechanism(sizes, Fraction(10**5)).draw(rows, InsecureTestCoins(1))
    assert len(measured) == 2 * len(sizes) - 1
    columns = tuple(range(len(sizes)))
    true = np.bincount(cell_places(rows, columns, sizes), minlength=len(model.marginal(columns)))
    assert np.abs(model.marginal(columns) - true).max() <= 3


def test_nearest_counts_are_the_nearest():
    """Against a search by bisection for the one number that is taken off."""
    coins = InsecureTestCoins(7)
    for _ in range(50):
        noisy = coins.laplaces(20, 9).astype(np.float64)
        total = float(1 + coins.below(100))
        low, high = float(noisy.min()) - total, float(noisy.max())
        for _ in range(200):
            middle = (low + high) / 2
            if np.maximum(noisy - middle, 0).sum() > total:
                low = middle
            else:
                high = middle
        found = nearest_counts(noisy, total)
        assert found.sum() == pytest.approx(total)
        assert found == pytest.approx(np.maximum(noisy - low, 0), abs=1e-6)


def test_rows_come_as_often_as_their_weights_say():
    places = np.arange(40, dtype=np.int64)[:, np.newaxis]
    rows = WeightedRows((40,), places, 100.0)
    rows.weights = np.arange(40, dtype=np.float64)
    share = rows.weights / rows.weights.sum() * 1000
    coins, found = InsecureTestCoins(8), np.zeros(40)
    for _ in range(200):
        once = np.bincount(rows.draw(1000, coins)[:, 0], minlength=40)
        assert (np.abs(once - share) <= 1 + 1e-6).all()  # rounded up or down
        found += once
    assert found / 200 == pytest.approx(share, abs=0.2)


def test_fitting_reaches_marginals_that_agree():
    coins = InsecureTestCoins(9)
    rows = WeightedRows((3, 4), np.stack([coins.belows(3, 500), coins.belows(4, 500)], axis=1), 60)
    wanted = [
        Marginal((0,), np.array([10, 20, 30]), Fraction(1)),
        Marginal((1,), np.array([6, 12, 18, 24]), Fraction(1)),
    ]
    rows.fit(wanted, sweeps=30)
    for each in wanted:
        assert rows.marginal(each.columns) == pytest.approx(each.counts.astype(float), abs=1e-6)


def test_no_weight_grows_beyond_all_bounds():
    """Noisy marginals contradict each other: some weights shrink in each sweep, and grow again."""
    coins, sizes = InsecureTestCoins(4), (3, 2, 2, 4, 8)
    places = np.stack([coins.belows(size, 900) for size in sizes], axis=1)
    wild = [
        Marginal(each, coins.belows(3, prod(sizes[place] for place in each)) * 99, Fraction(60))
        for columns in (1, 2, 3)
        for each in combinations(range(5), columns)
    ]
    rows = WeightedRows(sizes, places, 900)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        rows.fit(wild, sweeps=90)
    assert np.isfinite(rows.weights).all()


# What is refused ----------------------------------------------------------------------------------


def test_what_cannot_be_measured_is_refused():
    cases: tuple[dict[str, Any], ...] = (
        {"sizes": ()},
        {"sizes": (2, 0)},
        {"sizes": (2,) * 101},
        {"epsilon": 0},
        {"epsilon": "1e-12"},
        {"rows_per_person": 0},
        {"rounds": -1},
        {"rounds": 2},
        {"candidates": ((0, 3),)},
        {"candidates": ((1, 0),)},
        {"candidates": ((1, 1),)},
        {"candidates": ((),)},
    )
    for wrong in cases:
        with pytest.raises(BadParameter):
            SyntheticMechanism(**{"sizes": SIZES, "epsilon": Fraction(1), **wrong})
    with pytest.raises(Infeasible):
        SyntheticMechanism((2000, 2000), Fraction(1))
    with pytest.raises(Infeasible):
        SyntheticMechanism((1000, 1000, 1000), Fraction(1), candidates=((0, 1, 2),))
    with pytest.raises(BadParameter, match="withheld"):
        SyntheticMechanism(SIZES, Fraction(1)).draw(
            np.zeros((2, 2), np.int64), InsecureTestCoins(1)
        )
