from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.small_db_oracle import assert_law, databases, law, loss, neighbours, score
from tests.fit import ACCEPT, chi_square_p

from tacit.book.coins import InsecureTestCoins
from tacit.book.small_db import FiniteQuestions
from tacit.draws.candidates import (
    DrawnMultisets,
    EveryMultiset,
    LevelCounts,
    LevelDraw,
    draw_sub_range,
    reach,
)
from tacit.draws.linear_queries import linear_queries
from tacit.draws.scalar import WeightedChoice
from tacit.errors import BadParameter
from tacit.numbers import Number
from tacit.numerics import certified
from tacit.support import Heartbeat

QUIET = Heartbeat(None)
COUNTING = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0]]  # four atoms, the last of two elements
LINEAR: list[list[Number]] = [["1/2", 0, 1, "1/3"], [0, 1, 0, "1/3"]]
MATRICES = [COUNTING, LINEAR]


def _histogram(rows, universe):
    return np.bincount(np.array(rows, dtype=np.int64), minlength=universe)


def _atoms(queries, rows):
    return tuple(sorted(Counter(queries.atom_of[list(rows)].tolist()).items()))


def _exact_law(matrix, x, rows, rate):
    """The law of the sampler from its own groups: what is proposed times what is accepted."""
    queries = linear_queries(matrix)
    unit = rows * queries.denominator
    every = EveryMultiset(queries, queries.histogram(_histogram(x, len(matrix[0]))), rows)
    levels = LevelCounts(every, rate=rate / unit, heartbeat=QUIET)
    accepted = {}
    for block in every.blocks():
        for i, key in enumerate(levels.keys(block)):
            counts, level = tuple(sorted(block.counts(i))), int(block.levels[i])
            counts = tuple((atom, times) for atom, times in counts if times)
            assert level >= levels.floor(int(key))  # or no coin could make up for it
            # A group's weight over its size, times e^(−rate·(level − floor)), is e^(−rate·level):
            # what the draw must give.
            accepted[counts] = Fraction(level, unit)
    assert int(levels.sizes.sum()) == len(accepted)
    keys = Counter(int(key) for block in every.blocks() for key in levels.keys(block))
    assert keys == {i: int(size) for i, size in enumerate(levels.sizes) if size}
    ordered = sorted(accepted)
    laws = law([accepted[counts] for counts in ordered], rate)
    return dict(zip(ordered, laws, strict=True))


def _true_law(matrix, x, rows, rate):
    """Brute force over all databases on the universe, one for each multiset of atoms."""
    queries = linear_queries(matrix)
    candidates = databases(range(len(matrix[0])), rows)
    scores = {_atoms(queries, y): score(_fractions(matrix), x, y, 0) for y in candidates}
    ordered = sorted(scores)
    laws = law([scores[counts] for counts in ordered], rate)
    return dict(zip(ordered, laws, strict=True))


def _fractions(matrix):
    return [[Fraction(value) for value in row] for row in matrix]


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("x", [(), (0,), (0, 0, 1, 3), (2, 2, 2, 2, 2, 2)])
def test_the_law_is_the_exponential_mechanisms(matrix, x):
    ours = _exact_law(matrix, x, 3, Fraction(2, 3))
    truth = _true_law(matrix, x, 3, Fraction(2, 3))
    assert ours.keys() == truth.keys()
    assert loss([ours[y] for y in truth], list(truth.values())) < 1e-40


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("epsilon", ["1/10", "3"])
def test_no_neighbour_reveals_more_than_epsilon(matrix, epsilon):
    epsilon, universe = Fraction(epsilon), range(len(matrix[0]))
    for x in [(), (0, 1), (2, 2, 2), (0, 1, 2, 3)]:
        here = _exact_law(matrix, x, 2, epsilon / 2)
        for neighbour in neighbours(x, universe):
            there = _exact_law(matrix, neighbour, 2, epsilon / 2)
            assert loss(list(here.values()), [there[y] for y in here]) <= epsilon


@pytest.mark.parametrize("matrix", MATRICES)
def test_draws_follow_the_exponential_mechanism_and_no_other(matrix):
    x, rows, rate = (0, 0, 0, 1, 1, 2), 3, Fraction(2)
    questions = FiniteQuestions(linear_queries(matrix))
    histogram, coins = _histogram(x, len(matrix[0])), InsecureTestCoins(5)
    everything = questions._everything(histogram, rows)
    unit = rows * questions.queries.denominator
    sampler = LevelDraw(everything, rate=rate / unit, heartbeat=QUIET)
    # Only each atom's first element is ever shown.
    first = {int(questions.queries.members(a)[0]) for a in range(questions.queries.atoms)}
    candidates = [y for y in databases(range(len(matrix[0])), rows) if first.issuperset(y)]
    seen = dict.fromkeys(candidates, 0)
    for _ in range(3000):
        seen[tuple(questions._elements_of(sampler.draw(coins)).tolist())] += 1
    scores = [score(_fractions(matrix), x, y, 0) for y in candidates]
    assert_law(list(seen.values()), scores, rate)


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=400),
    st.fractions(Fraction(1, 10**6), 2),
    st.integers(1, 50),
)
@settings(max_examples=60)
def test_groups_are_the_same_in_whatever_order_scores_come(levels, rate, length):
    class Listed:
        def __init__(self, scores):
            self.scores = scores

        def blocks(self):
            from tacit.draws.candidates import MultisetBlock

            for start in range(0, len(self.scores), length):
                yield MultisetBlock(np.array(self.scores[start : start + length]), lambda i: ())

    def sizes(scores):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tacit.draws.candidates._PENDING", length)
            patch.setattr("tacit.draws.candidates._GROUPS", 8)
            found = LevelCounts(Listed(scores), rate=rate, heartbeat=QUIET)
            return found.best, found.sizes.tolist()

    assert sizes(levels) == sizes(sorted(levels)) == sizes(sorted(levels, reverse=True))


def test_a_lumped_group_keeps_the_law(monkeypatch):
    monkeypatch.setattr("tacit.draws.candidates._GROUPS", 2)
    matrix, x, rows, rate = COUNTING, (0, 0, 0, 1, 1, 2), 3, Fraction(1)
    ours = _exact_law(matrix, x, rows, rate)
    truth = _true_law(matrix, x, rows, rate)
    assert loss([ours[y] for y in truth], list(truth.values())) < 1e-40
    test_draws_follow_the_exponential_mechanism_and_no_other(COUNTING)


def test_no_part_of_a_draw_shows_data_in_its_repr():
    questions = FiniteQuestions(linear_queries(COUNTING))
    everything: Any = questions._everything(np.array([98765, 0, 0, 0, 0]), 2)
    block = next(iter(everything.blocks()))
    tables = next(everything._enumeration.pairs())
    for part in (everything, block, *tables):
        assert "98765" not in repr(part)
        assert "array" not in repr(part)


@pytest.mark.parametrize("crowded", [0, 1])
def test_few_trials_whatever_the_data(monkeypatch, crowded):
    """One atom has one element, the other 999; all rows are in one of them."""
    trials = []
    choose = WeightedChoice.draw
    monkeypatch.setattr(
        WeightedChoice, "draw", lambda self, coins: trials.append(1) or choose(self, coins)
    )
    questions = FiniteQuestions(linear_queries([[1] + [0] * 999]))
    x, coins = _histogram([crowded] * 2000, 1000), InsecureTestCoins(1)
    for _ in range(50):
        y = questions.draw(x, rows=30, rate=Fraction(1, 2), coins=coins, heartbeat=QUIET)
        assert len(y) == 30
    assert len(trials) < 80


def test_a_sub_range_is_drawn_uniformly():
    queries = linear_queries(COUNTING)
    drawn = draw_sub_range(queries.atoms, 3, 6000, InsecureTestCoins(2))
    weights = Counter(_atoms(queries, y) for y in databases(range(5), 3))
    seen = Counter(tuple(sorted(Counter(row.tolist()).items())) for row in drawn)
    assert seen.keys() <= weights.keys()
    candidates = sorted(weights)
    observed = [seen[counts] for counts in candidates]
    by_elements = [weights[counts] / weights.total() for counts in candidates]
    assert chi_square_p(observed, [1 / len(candidates)] * len(candidates)) > ACCEPT
    assert chi_square_p(observed, by_elements) < ACCEPT


def test_a_sub_range_release_follows_the_mechanism_over_its_own_candidates():
    queries, x, rate = linear_queries(LINEAR), (0, 0, 0, 1, 1, 2), Fraction(2)
    coins = InsecureTestCoins(3)
    drawn = draw_sub_range(queries.atoms, 3, 40, coins)
    candidates = DrawnMultisets(queries, queries.histogram(_histogram(x, 4)), drawn)
    sampler = LevelDraw(candidates, rate=rate / (3 * queries.denominator), heartbeat=QUIET)
    weights = Counter(tuple(sorted(row.tolist())) for row in drawn)
    seen = dict.fromkeys(weights, 0)
    for _ in range(4000):
        counts = sampler.draw(coins)
        seen[tuple(sorted(atom for atom, times in counts for _ in range(times)))] += 1
    scores = [score(_fractions(LINEAR), x, y, 0) for y in weights]
    assert_law(list(seen.values()), scores, rate, list(weights.values()))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(3)])
def test_no_neighbour_reveals_more_than_epsilon_within_a_sub_range(epsilon):
    queries = linear_queries(LINEAR)
    drawn = draw_sub_range(queries.atoms, 3, 30, InsecureTestCoins(6))

    def law_of(x):
        candidates = DrawnMultisets(queries, queries.histogram(_histogram(x, 4)), drawn)
        levels = [int(level) for block in candidates.blocks() for level in block.levels]
        unit = 3 * queries.denominator
        truth = [score(_fractions(LINEAR), x, tuple(y), 0) for y in drawn.tolist()]
        assert [Fraction(level, unit) for level in levels] == truth
        return law(truth, epsilon / 2)

    for x in [(), (0, 1), (2, 2, 2), (0, 1, 2, 3)]:
        for neighbour in neighbours(x, range(4)):
            assert loss(law_of(x), law_of(neighbour)) <= epsilon


def test_the_sub_range_ignores_the_data():
    questions = FiniteQuestions(linear_queries(COUNTING), most_enumerated=1, sub_range=50)
    assert not questions.enumerated(3)
    x = [_histogram(rows, 5) for rows in [(), (0,) * 9]]
    ranges: list[Any] = [questions._part(data, 3, InsecureTestCoins(8)) for data in x]
    assert np.array_equal(ranges[0]._drawn, ranges[1]._drawn)
    y = questions.draw(x[1], rows=3, rate=Fraction(9), coins=InsecureTestCoins(8), heartbeat=QUIET)
    assert len(y) == 3


@pytest.mark.parametrize(("size", "beta"), [(55, "1/20"), (20, "1/10"), (7, "1/3")])
def test_reach_holds_as_often_as_it_says(size, beta):
    elements, rows, beta = 4, 6, Fraction(beta)
    within = reach(elements, rows, size, beta)
    everything = [Counter(y) for y in databases(range(elements), rows)]

    def misses(best, j):
        """How likely no candidate of a sub-range shares all but j rows with the best one."""
        near = sum((y & best).total() >= rows - j for y in everything)
        return (1 - Fraction(near, len(everything))) ** size

    assert 0 < within < rows
    assert max(misses(best, within) for best in everything) <= beta
    assert max(misses(best, within - 1) for best in everything) > beta  # and no more than needed


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 10**5), st.integers(2, 1000))
def test_reach_is_the_least_by_trying_every_one(elements, rows, size, inverse):
    _, needed = certified.ln(Fraction(inverse))
    everything = comb(elements + rows - 1, rows)
    tried = (j for j in range(rows) if size * comb(elements + j - 1, j) >= needed * everything)
    assert reach(elements, rows, size, Fraction(1, inverse)) == next(tried, rows)


def test_reach_never_writes_out_the_whole_range(monkeypatch):
    """10^6 elements and 10^5 rows: a binomial of half a million bits, were it written out."""
    asked = []
    monkeypatch.setattr(
        "tacit.draws.candidates.prod", lambda numbers: asked.append(len(numbers)) or 1
    )
    reach(10**6, 10**5, 1, Fraction(1, 40))
    monkeypatch.undo()
    assert asked == [1, 1]
    assert reach(10**6, 10**5, 335, Fraction(1, 40)) == 99_999
    assert reach(2, 10**5, 300, Fraction(1, 40)) == 1229


def test_reach_at_its_ends():
    assert reach(10, 5, 10**9, Fraction(1, 20)) == 0
    assert reach(10**6, 5, 1, Fraction(1, 20)) == 5


@pytest.mark.parametrize("x", [[1, 2], [1, 1, 1, 1, -7], [0.5] * 5, [[1] * 5]], ids=str)
def test_bad_data_is_refused_without_being_shown(x):
    with pytest.raises(BadParameter) as refused:
        FiniteQuestions(linear_queries(COUNTING)).check(np.array(x))
    assert str(refused.value) == (
        "x = (withheld) is not allowed: give a histogram: 5 integers, none below 0"
    )


def test_candidates_that_would_fill_the_memory_are_fewer():
    questions = FiniteQuestions(linear_queries(np.eye(40, dtype=int)))
    assert questions.part(20) == 10**5
    assert questions.part(10**4) * 10**4 < 10**8


@pytest.mark.parametrize("matrix", [*MATRICES, [[1, 1, 1]]])
def test_the_score_is_the_largest_error_of_any_query(matrix):
    questions, universe = FiniteQuestions(linear_queries(matrix)), len(matrix[0])
    for x in [(), (0,), (0, 1, 2), (0, 0, 1, 2, 2)]:
        for rows in (1, 3):
            for y in databases(range(universe), rows):
                found = questions.score(_histogram(x, universe), np.array(y, np.int64))
                truth = score(_fractions(matrix), x, y, 0)
                assert Fraction(found, questions.steps(rows)) == truth


def test_the_score_of_very_many_people_does_not_overflow():
    questions = FiniteQuestions(linear_queries([["1/281474976710656", 1]]))  # steps of 2^-48
    assert questions.score(np.array([10**9, 0]), np.array([1, 1])) == 2 * 10**9 * (2**48 - 1)
