"""The range tree against least squares, its variances against the weights themselves, its noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.analyst.histogram import sum_error
from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.range_tree import MOST_VALUES, RangeTree, best_tree, rising
from tacit.errors import BadParameter, Infeasible

SHAPES = [(1, 2, 1), (5, 2, 1), (8, 2, 3), (7, 2, 3), (9, 3, 2), (20, 3, 3), (11, 4, 2), (30, 2, 4)]


def design(tree):
    """A row for each node, from the top down: which leaves it is the sum of."""
    rows = []
    leaves = tree.sizes[-1]
    for size in tree.sizes:
        rows += [np.repeat(np.eye(size)[node], leaves // size) for node in range(size)]
    return np.array(rows)


def levels_of(tree, flat):
    parts, start = [], 0
    for size in tree.sizes:
        parts.append(np.asarray(flat[start : start + size]))
        start += size
    return parts


def weights(tree):
    """The linear map from node counts to prefixes, column by column."""
    nodes = sum(tree.sizes)
    return np.array([tree.prefixes(levels_of(tree, row)) for row in np.eye(nodes)]).T


@pytest.mark.parametrize("shape", SHAPES)
def test_the_two_passes_are_least_squares(shape):
    tree = RangeTree(*shape)
    measured = np.random.default_rng(1).integers(-50, 50, sum(tree.sizes))
    leaves, *_ = np.linalg.lstsq(design(tree), measured.astype(float), rcond=None)
    expected = np.append(0, np.cumsum(leaves))[: tree.values + 1]
    assert tree.prefixes(levels_of(tree, measured)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_variance_of_every_range_is_that_of_its_weights_and_no_weight_exceeds_1(shape):
    tree = RangeTree(*shape)
    by_prefix = weights(tree)
    for start in range(tree.values + 1):
        for stop in range(start, tree.values + 1):
            used = by_prefix[stop] - by_prefix[start]
            noises = tree.noises(start, stop)
            assert 0 <= float(noises) - used @ used < 1e-5
            assert abs(used).max() <= 1 + 1e-12
    found = tree.prefix_noises(np.arange(tree.values + 1))
    expected = [float(tree.noises(0, stop)) for stop in range(tree.values + 1)]
    assert found == pytest.approx(expected, abs=1e-5)
    assert float(tree.worst_prefix) == pytest.approx(max(expected), abs=1e-5)


def test_nodes_are_sums_of_neighbours():
    counts = np.arange(1, 8)
    top, middle, leaves = RangeTree(7, 2, 3).nodes(counts)
    assert top.tolist() == [10, 18]
    assert middle.tolist() == [3, 7, 11, 7]
    assert leaves.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


@pytest.mark.parametrize("rows", [1, 3])
def test_the_noise_has_the_scale_that_all_levels_together_need(rows):
    """On every node, beyond the domain too; half or twice the scale would be noticed."""
    tree, epsilon = RangeTree(4000, 20, 3), Fraction(1, 2)
    counts = np.full(4000, 5, np.int64)
    coins = InsecureTestCoins(5)
    measured = tree.measure(counts, epsilon=epsilon, coins=coins, rows_per_person=rows)
    scale = 3 * rows / epsilon
    assert tree.scale(epsilon, rows) == scale
    noise = np.concatenate([m - t for m, t in zip(measured, tree.nodes(counts), strict=True)])
    assert [len(level) for level in measured] == list(tree.sizes)
    assert abs(noise).mean() == pytest.approx(float(scale), rel=0.06)  # 4 200 draws: ± 5 %


def test_the_error_of_every_prefix_holds_and_is_not_much_too_wide():
    """Weighted sums of noises: the bound at β is passed in at most a part β of the draws."""
    tree, draws, beta = RangeTree(60, 6, 3), 3000, 0.1
    coins, zero = InsecureTestCoins(2), np.zeros(60, np.int64)
    errors = np.array(
        [tree.prefixes(tree.measure(zero, epsilon=1, coins=coins)) for _ in range(draws)]
    )
    scale = tree.scale(1)
    for stop in (1, 6, 17, 36, 60):
        bound = sum_error(scale, tree.noises(0, stop), beta)
        assert (abs(errors[:, stop]) > bound).mean() <= beta
        assert (abs(errors[:, stop]) > bound / 2.5).mean() > beta
    every = sum_error(scale, tree.worst_prefix, beta / 60)
    assert (abs(errors).max(axis=1) > every).mean() <= beta


@pytest.mark.parametrize("values", [1, 2, 10, 40, 365])
def test_the_best_tree_has_the_fewest_levels_that_are_nearly_best(values):
    def error(tree):
        return tree.levels**2 * tree.prefix_noises(np.arange(1, values + 1)).mean()

    others = [RangeTree(values, 2, 1)]
    for levels in range(2, 10):
        others += [RangeTree(values, w, levels) for w in range(2, 65) if w ** (levels - 1) < values]
    found, least = best_tree(values), min(map(error, others))
    assert error(found) <= 1.07 * least
    fewer = [error(tree) for tree in others if tree.levels < found.levels]
    assert min(fewer, default=2 * least) > 1.05 * least


def pooled(values):
    """Pool adjacent violators as it is taught, one after another."""
    blocks: list[list[Fraction]] = []
    for value in values:
        blocks.append([Fraction(value), Fraction(1)])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return [total / length for total, length in blocks for _ in range(int(length))]


@given(st.lists(st.integers(-20, 60), min_size=1, max_size=40))
def test_the_nearest_rising_sequence(values):
    found = rising(np.array(values), 40)
    clipped = [min(max(value, 0), 40) for value in values]
    assert found.tolist() == pytest.approx(list(map(float, pooled(clipped))))
    assert all(a <= b for a, b in pairwise(found.tolist()))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-7, 7)), min_size=1, max_size=30))
def test_pooling_and_clipping_move_nothing_away_from_the_truth(steps):
    truth = np.cumsum([step for step, _ in steps])
    noisy = truth + np.array([noise for _, noise in steps])
    most = int(truth[-1])
    assert abs(rising(noisy, most) - truth).max() <= abs(noisy - truth).max() + 1e-9


def test_what_cannot_be_a_tree_is_refused():
    with pytest.raises(Infeasible, match="at most"):
        RangeTree(MOST_VALUES + 1, 8, 2)
    with pytest.raises(BadParameter, match="levels"):
        RangeTree(8, 2, 4)
    with pytest.raises(BadParameter, match="branching"):
        RangeTree(8, 1, 2)
    tree = RangeTree(8, 2, 3)
    with pytest.raises(BadParameter, match="epsilon"):
        tree.scale("1e-12")
    with pytest.raises(BadParameter, match="stop"):
        tree.noises(3, 9)
    for counts in (np.zeros(7, np.int64), np.zeros(8)):
        with pytest.raises(BadParameter, match="withheld"):
            tree.measure(counts, epsilon=1, coins=Coins())  # type: ignore[arg-type]
