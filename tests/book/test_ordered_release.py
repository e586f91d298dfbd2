from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.small_db_oracle import (
    assert_law,
    databases,
    interval_questions,
    law,
    loss,
    multiset_count,
    neighbours,
    prefix_questions,
    score,
)

from tacit.book.coins import InsecureTestCoins
from tacit.book.small_db import Intervals, OrderedCounts, Prefixes
from tacit.draws.by_slack import SlackSearch
from tacit.errors import BadParameter
from tacit.support import Heartbeat

QUIET = Heartbeat(None)
QUESTIONS = {1: prefix_questions, 2: interval_questions}


def _counts(x, domain, rows, slacks):
    return OrderedCounts(np.array(sorted(x), dtype=np.int64), domain, rows, slacks)


@st.composite
def small_cases(draw):
    domain = draw(st.integers(1, 6))
    x = draw(st.lists(st.integers(1, domain), max_size=6))
    return tuple(sorted(x)), domain, draw(st.integers(1, 4))


def _differences(x, y, domain):
    """All D(v) = m X(v) − n Y(v)."""
    return [
        len(y) * sum(row <= v for row in x) - len(x) * sum(row <= v for row in y)
        for v in range(domain + 1)
    ]


@given(small_cases(), st.sampled_from([Prefixes, Intervals]), st.data())
@settings(max_examples=150)
def test_the_score_is_the_largest_error_of_any_question(case, kind, data):
    x, domain, rows = case
    y = tuple(sorted(data.draw(st.lists(st.integers(1, domain), min_size=rows, max_size=rows))))
    questions = kind(domain)
    found = questions.score(np.array(x, np.int64), np.array(y, np.int64))
    asked = QUESTIONS[questions.slacks](domain)
    assert Fraction(found, questions.steps(rows)) == score(asked, x, y, 1)


@given(small_cases(), st.data())
@settings(max_examples=150)
def test_counts_equal_brute_force(case, data):
    x, domain, rows = case
    room = st.integers(0, rows * len(x) + 1)
    below, above = data.draw(room), data.draw(room)
    spans = [_differences(x, y, domain) for y in databases(range(1, domain + 1), rows)]
    within = sum(-below <= min(span) and max(span) <= above for span in spans)
    assert _counts(x, domain, rows, 2).count((below, above)) == within
    even = sum(-below <= min(span) and max(span) <= below for span in spans)
    assert _counts(x, domain, rows, 1).count((below,)) == even


def _exact_law(counts, domain, rows, rate):
    """The law of the sampler from its own counts: slack by slack, then uniform in its boxes."""
    candidates = databases(range(1, domain + 1), rows)
    with mpmath.workdps(60):
        q = mpmath.exp(-mpmath.mpf((rate / rows).numerator) / (rate / rows).denominator)
        share = dict.fromkeys(candidates, mpmath.mpf(0))
        for slack in product(range(counts.limit + 1), repeat=counts.slacks):
            number = counts.count(slack)
            if not number:
                continue
            # The last slack stands for all beyond it: Σ_{t ≥ limit} (1−q) q^t = q^limit.
            lumps = [1 if t == counts.limit else 1 - q for t in slack]
            weight = mpmath.fprod(lumps) * q ** sum(slack) * number
            lower, upper = counts.boxes(slack)
            inside = [
                y
                for y in candidates
                if all(a <= v <= b for a, v, b in zip(lower, y, upper, strict=True))
            ]
            assert len(inside) == number
            for y in inside:
                share[y] += weight / number
        total = mpmath.fsum(share.values())
        return [share[y] / total for y in candidates]


CASES = [
    ((), 3, 2),
    ((1, 1, 4), 4, 2),
    ((2, 3), 3, 3),
    ((2, 2, 2, 2), 3, 2),
    ((1, 5, 5), 5, 1),
    ((1, 1), 1, 2),
]


@pytest.mark.parametrize("slacks", [1, 2])
@pytest.mark.parametrize(("x", "domain", "rows"), CASES)
def test_the_law_is_the_exponential_mechanisms(x, domain, rows, slacks):
    rate = Fraction(2, 3)
    candidates = databases(range(1, domain + 1), rows)
    scores = [score(QUESTIONS[slacks](domain), x, y, 1) for y in candidates]
    ours = _exact_law(_counts(x, domain, rows, slacks), domain, rows, rate)
    assert loss(ours, law(scores, rate)) < 1e-40


@pytest.mark.parametrize("slacks", [1, 2])
@pytest.mark.parametrize(("x", "domain", "rows"), CASES)
@pytest.mark.parametrize("epsilon", ["1/10", "3"])
def test_no_neighbour_reveals_more_than_epsilon(x, domain, rows, slacks, epsilon):
    epsilon = Fraction(epsilon)

    def law_of(data):
        return _exact_law(_counts(data, domain, rows, slacks), domain, rows, epsilon / 2)

    here = law_of(x)
    for neighbour in neighbours(x, range(1, domain + 1)):
        assert loss(here, law_of(neighbour)) <= epsilon


@pytest.mark.parametrize(
    ("questions", "x", "rows", "epsilon"),
    [
        (Prefixes(4), (1, 1, 1, 3, 4, 4, 4, 4), 2, 2),
        (Prefixes(5), (2, 5, 5, 5, 5, 5), 3, 2),
        (Intervals(4), (1, 1, 1, 3, 4, 4, 4, 4), 2, 2),
        (Intervals(5), (2, 2, 2, 2, 2, 5), 3, 2),
    ],
)
def test_draws_follow_the_exponential_mechanism_and_no_other(questions, x, rows, epsilon):
    candidates = databases(range(1, questions.domain + 1), rows)
    counts, coins = _counts(x, questions.domain, rows, questions.slacks), InsecureTestCoins(7)
    search = SlackSearch(counts, rate=Fraction(epsilon, 2 * rows), heartbeat=QUIET)
    seen = dict.fromkeys(candidates, 0)
    for _ in range(4000):
        seen[tuple(search.draw(coins).tolist())] += 1
    asked = QUESTIONS[questions.slacks](questions.domain)
    scores = [score(asked, x, y, 1) for y in candidates]
    assert_law(list(seen.values()), scores, Fraction(epsilon, 2))


@pytest.mark.parametrize("questions", [Prefixes(2**62), Intervals(2**62)])
def test_the_largest_domain(questions):
    x = np.sort(np.random.default_rng(0).integers(1, 2**62, 500, endpoint=True))
    y = questions.draw(
        questions.check(x), rows=12, rate=Fraction(5), coins=InsecureTestCoins(0), heartbeat=QUIET
    )
    assert y.shape == (12,)
    assert (y[1:] >= y[:-1]).all()
    assert y[0] >= 1
    assert y[-1] <= 2**62
    mine = np.searchsorted(x, y, "right") / len(x)
    assert np.abs(mine - np.arange(1, 13) / 12).max() < 0.2


def test_extremes_of_the_count():
    counts = _counts([5] * 100, 10, 30, 2)
    assert counts.count((counts.limit, counts.limit)) == multiset_count(10, 30)
    assert counts.count((0, 0)) == 1  # only y = thirty times 5
    assert _counts([], 7, 4, 1).count((0,)) == multiset_count(7, 4)


@pytest.mark.parametrize(
    "x",
    [[3, 2], [0, 1], [1, 9], [1.5], [[1]], [True]],
    ids=["unsorted", "low", "high", "float", "2d", "bool"],
)
def test_bad_data_is_refused_without_being_shown(x):
    with pytest.raises(BadParameter) as refused:
        Prefixes(8).check(np.array(x))
    assert str(refused.value) == (
        "x = (withheld) is not allowed: give a sorted array of integers in 1..8"
    )


@pytest.mark.parametrize("domain", [0, -1, 2**62 + 1])
def test_bad_domains(domain):
    with pytest.raises(BadParameter, match="domain"):
        Intervals(domain)


def test_a_repr_shows_no_data():
    assert "12345" not in repr(_counts([12345], 99999, 2, 1))
