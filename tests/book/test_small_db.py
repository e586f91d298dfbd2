from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.book.small_db_oracle import (
    assert_law,
    databases,
    interval_questions,
    law,
    loss,
    prefix_questions,
    score,
)

from tacit.book.coins import Coins, InsecureTestCoins
from tacit.book.small_db import (
    FiniteQuestions,
    Intervals,
    Prefixes,
    check_parameters,
    histogram,
    small_db,
)
from tacit.book.small_db_utility import expect, most_rows
from tacit.draws.linear_queries import linear_queries
from tacit.errors import BadParameter
from tacit.numbers import Number

COINS = InsecureTestCoins(11)
MARGINALS = FiniteQuestions(linear_queries([[1, 0, 1, 0], [1, 1, 0, 0]]))


@pytest.mark.parametrize("questions", [Prefixes(9), Intervals(9)])
def test_a_release_over_an_ordered_domain(questions):
    x = np.sort(np.array([2, 2, 9] * 50))
    y = small_db(x, questions, rows=3, epsilon=50, coins=COINS)
    assert y.tolist() == [2, 2, 9]


LINEAR: list[list[Number]] = [["1/2", 0, 1, "1/3"], [0, 1, 0, "1/3"]]


@pytest.mark.parametrize(
    ("questions", "asked", "first"),
    [
        (Prefixes(4), prefix_questions(4), 1),
        (Intervals(4), interval_questions(4), 1),
        (FiniteQuestions(linear_queries(LINEAR)), LINEAR, 0),
    ],
)
@pytest.mark.parametrize("rows_per_person", [1, 2])
def test_releases_follow_the_exponential_mechanism(questions, asked, first, rows_per_person):
    """From end to end; that 20 % would be noticed is shown for each sampler on its own."""
    x = tuple(first + value for value in (0, 0, 0, 0, 1, 3, 3))
    data = np.array(x) if first else np.bincount(x)
    candidates = databases(range(first, first + 4), 2)
    seen, coins = dict.fromkeys(candidates, 0), InsecureTestCoins(12)
    for _ in range(500):
        y = small_db(
            data, questions, rows=2, epsilon=3, rows_per_person=rows_per_person, coins=coins
        )
        seen[tuple(y.tolist())] += 1
    fractions = [[Fraction(value) for value in question] for question in asked]
    scores = [score(fractions, x, y, first) for y in candidates]
    rate = Fraction(3, 2 * rows_per_person)
    assert_law(list(seen.values()), scores, rate, wrong=["1/2", "2"])


def test_a_release_over_a_finite_class():
    y = small_db(np.array([100, 0, 0, 200]), MARGINALS, rows=3, epsilon=50, coins=COINS)
    # One of three in each marginal; 0, 3, 3 says so, and 1, 2, 3 as well.
    assert np.array([[1, 0, 1, 0], [1, 1, 0, 0]])[:, y].sum(axis=1).tolist() == [1, 1]


@pytest.mark.parametrize("questions", [Prefixes(5), Intervals(5)])
def test_no_people_no_problem(questions):
    y = small_db(np.array([], dtype=np.int64), questions, rows=4, epsilon=1, coins=COINS)
    assert len(y) == 4
    assert set(y.tolist()) <= set(range(1, 6))


def test_no_people_in_a_finite_class():
    assert len(small_db(np.zeros(4, int), MARGINALS, rows=4, epsilon=1, coins=COINS)) == 4


@pytest.mark.parametrize("epsilon", [1e-12, 1e12])
@pytest.mark.parametrize("questions", [Prefixes(9), Intervals(9), Intervals(2**62), MARGINALS])
def test_the_least_and_the_largest_epsilon(questions, epsilon):
    x = np.array([3, 1, 4, 1]) if questions is MARGINALS else np.array([2, 3, 3, 8])
    y = small_db(x, questions, rows=4, epsilon=epsilon, rows_per_person=10**6, coins=COINS)
    assert len(y) == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 0},
        {"rows": 1.5},
        {"rows": 10**5 + 1},
        {"epsilon": 0},
        {"epsilon": "nan"},
        {"epsilon": 1e-13},
        {"epsilon": 1e13},
        {"rows_per_person": 0},
        {"rows_per_person": 10**7},
    ],
    ids=str,
)
def test_bad_parameters_are_named(wrong):
    good = {"rows": 2, "epsilon": 1, "rows_per_person": 1}
    with pytest.raises(BadParameter, match=next(iter(wrong))):
        small_db(np.array([1]), Prefixes(3), coins=Coins(), **(good | wrong))


@pytest.mark.parametrize("asked", [prefix_questions, interval_questions])
@pytest.mark.parametrize("rows_per_person", [1, 2, 3])
def test_several_rows_of_a_person_reveal_no_more_than_epsilon(asked, rows_per_person):
    """And the divided score is needed: undivided, they would reveal more."""
    epsilon, domain, candidates = Fraction(2), 3, databases(range(1, 4), 2)
    _, rate = check_parameters(rows=2, epsilon=epsilon, rows_per_person=rows_per_person)
    _, undivided = check_parameters(rows=2, epsilon=epsilon)

    def law_of(x, of_rate):
        return law([score(asked(domain), x, y, 1) for y in candidates], of_rate)

    worst = worst_undivided = 0
    for x in [(), (1,), (1, 1, 3), (2, 2), (3, 3, 3, 3)]:
        for person in databases(range(1, 4), rows_per_person):
            both = tuple(sorted(x + person))
            worst = max(worst, loss(law_of(x, rate), law_of(both, rate)))
            worst_undivided = max(
                worst_undivided, loss(law_of(x, undivided), law_of(both, undivided))
            )
    assert worst <= epsilon
    assert rows_per_person < 3 or worst_undivided > epsilon


def test_progress_shows_the_time_and_nothing_else(monkeypatch):
    clock = iter(range(10**6))  # every look at it takes a second
    monkeypatch.setattr("tacit.support.monotonic", lambda: float(next(clock)))
    seconds: list[float] = []
    x = np.sort(np.random.default_rng(0).integers(1, 100, 1000))
    small_db(x, Intervals(100), rows=9, epsilon=1, coins=COINS, progress=seconds.append)
    assert len(seconds) > 10
    assert seconds == [float(second) for second in range(1, len(seconds) + 1)]


def test_enumeration_shows_the_time_too():
    seconds: list[float] = []
    queries = linear_queries(np.random.default_rng(0).integers(0, 2, (5, 20)))
    x = np.ones(20, int)
    questions = FiniteQuestions(queries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.support.monotonic", iter(range(10**6)).__next__)
        small_db(x, questions, rows=6, epsilon=1, coins=COINS, progress=seconds.append)
    assert seconds


def test_what_to_expect():
    prefixes = expect(Prefixes(10**5), rows=200, epsilon=1, people=10**6)
    assert prefixes.sampler == "prefixes by slack"
    assert 0 < prefixes.seconds < 5
    assert prefixes.seconds <= prefixes.longest
    intervals = expect(Intervals(10**5), rows=200, epsilon=1, people=10**6)
    assert intervals.sampler == "intervals by slack"
    assert intervals.candidates == prefixes.candidates == Prefixes(10**5).candidates(200)
    assert "candidates" not in repr(prefixes)  # 700 digits
    assert expect(Prefixes(2**62), rows=2000, epsilon=1, people=100).longest > 3600


def test_what_to_expect_of_finite_classes():
    queries = linear_queries(np.eye(64, dtype=int))
    few, many = (
        expect(FiniteQuestions(queries), rows=rows, epsilon=1, people=1000) for rows in (4, 30)
    )
    assert (few.sampler, few.candidates) == ("enumeration", 766480)
    assert (many.sampler, many.candidates) == ("sub-range", 10**5)
    wider = expect(FiniteQuestions(queries), rows=4, epsilon=1, people=10**12)
    assert wider.seconds > few.seconds


@pytest.mark.parametrize("people", [0, 1, 10**12])
@pytest.mark.parametrize("epsilon", [1e-12, 1, 1e12])
@pytest.mark.parametrize("questions", [Prefixes(1), Intervals(2**62), MARGINALS])
def test_an_expectation_for_whatever_is_allowed(questions, epsilon, people):
    expected = expect(questions, rows=10, epsilon=epsilon, people=people)
    assert 0 < expected.seconds <= expected.longest < float("inf")


def test_most_rows_is_the_last_that_fits():
    queries = linear_queries(np.eye(5, dtype=int))
    questions = FiniteQuestions(queries, most_enumerated=1000)
    rows = most_rows(questions)
    assert questions.enumerated(rows)
    assert not questions.enumerated(rows + 1)
    assert most_rows(FiniteQuestions(queries, most_enumerated=4)) == 0


def test_ones_own_functions_and_rows():
    universe = [(age, town) for age in (10, 30, 50) for town in ("Ghent", "Bruges")]
    functions = [
        lambda row: row[0] < 40,
        lambda row: row[1] == "Ghent",
        lambda row: Fraction(row[0], 100),
    ]
    finite = FiniteQuestions.of(functions, universe)
    table = [[Fraction(str(float(f(row)))) for row in universe] for f in functions]
    assert finite == FiniteQuestions(linear_queries(table))
    rows = [(10, "Ghent"), [50, "Bruges"], (10, "Ghent"), (99, "Ghent")]
    assert histogram(rows, universe).tolist() == [2, 0, 0, 0, 0, 1]
    assert histogram(np.array([[1, 2], [3, 4]]), [(3, 4), (5, 6)]).tolist() == [1, 0]
    assert histogram(np.array(["a", "b", "a"]), np.array(["a", "c"])).tolist() == [2, 0]
    people = [(10, "Ghent"), (50, "Bruges")] * 50
    drawn = small_db(histogram(people, universe), finite, rows=2, epsilon=1000)
    rows_drawn = [universe[element] for element in drawn]
    for ask in functions:
        assert sum(map(ask, rows_drawn)) / 2 == sum(map(ask, people)) / 100


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("universe", lambda: histogram([1], [1, 1])),
        ("universe", lambda: histogram([1], [])),
        ("universe", lambda: FiniteQuestions.of([bool], 3)),  # type: ignore[arg-type]
        ("rows", lambda: histogram([{"secret"}], [1])),
        ("questions", lambda: FiniteQuestions.of([1], [1])),  # type: ignore[list-item]
        ("questions", lambda: FiniteQuestions.of([], [1])),
    ],
)
def test_bad_functions_and_rows_are_named(named, call):
    with pytest.raises(BadParameter, match=named) as refused:
        call()
    assert "secret" not in str(refused.value)
