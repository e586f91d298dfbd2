"""Noise is drawn at the scale that is told, and that scale is the one of the theorem.

What a release tells of its noise, and what its coins are asked for, come from different lines.  So
the coins note what they are asked for; and expected scales are worked out here, at values where
formulas differ that agree at 1: several rows and cells of a person, uneven shares, an ε like 2/7.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

import tacit
from tacit.analyst.table import Table
from tacit.book.coins import Coins
from tacit.budget import Budget

EPSILON = Fraction(2, 7)
SCHEMA = """
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 15]
[columns.minute]
type = "integer"
bounds = [0, 9999]
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Mons"]
[columns.cost]
type = "real"
grid = "0.5"
bounds = [-10, 40]
total = [-30, 50]
[columns.fee]
type = "real"
grid = "0.5"
bounds = [0, 20]
total = [0, 30]
"""


class NotingCoins(Coins):
    """Coins that note the scale of all Laplace noise, how often, and the rates of choices."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[Fraction, int]] = []
        self.rates: set[Fraction] = set()

    def bernoulli_exp_steps(self, steps, rate):
        self.rates.add(rate)
        return super().bernoulli_exp_steps(steps, rate)

    def laplace(self, scale):
        self.drawn.append((Fraction(scale), 1))
        return super().laplace(scale)

    def laplaces(self, scale, size):
        self.drawn.append((Fraction(scale), size))
        return super().laplaces(scale, size)

    def laplace_sampler(self, scale):
        return NotingSampler(super().laplace_sampler(scale), Fraction(scale), self.drawn)


class NotingSampler:
    def __init__(self, sampler, scale, drawn):
        self.sampler, self.scale, self.noted = sampler, scale, drawn

    def draws(self, size):
        self.noted.append((self.scale, size))
        return self.sampler.draws(size)


@pytest.fixture
def coins():
    return NotingCoins()


@pytest.fixture
def visits(tmp_path, coins):
    rows = [
        f"{n // 4},{n % 16},{n * 100},{('Bruges', 'Ghent', 'Mons')[n % 3]},{n % 9},{n % 7}"
        for n in range(80)
    ]
    (tmp_path / "visits.csv").write_text("\n".join(["pid,age,minute,town,cost,fee", *rows, ""]))
    with (
        tacit.open(tmp_path / "visits.csv", person="pid", schema=SCHEMA) as opened,
        Table(opened.engine, coins=coins, people=20) as table,
    ):
        yield table


@pytest.fixture
def paid():
    return {"budget": Budget.in_memory(epsilon=100, delta="1e-6", covers=["visits"])}


def test_a_count_and_a_sum(visits, coins, paid):
    people = visits.count("age >= 3", epsilon=EPSILON, **paid)
    rows = visits.count("SELECT COUNT(*) FROM visits", max_rows=3, epsilon=EPSILON, **paid)
    total = visits.sum("cost", epsilon=EPSILON, **paid)
    weighted = visits.count("count(age >= 3) - 3 * count(age >= 9)", epsilon=EPSILON, **paid)
    expected = [1 / EPSILON, 3 / EPSILON, 100 / EPSILON, 3 / EPSILON]  # of 50, in steps of .5
    assert [each.noise_scale for each in (people, rows, total, weighted)] == expected
    assert coins.drawn == [(scale, 1) for scale in expected]


def test_a_histogram(visits, coins, paid):
    drawn = visits.histogram("town", "age", max_rows=3, epsilon=EPSILON, **paid)
    assert drawn.noise_scale == 3 / EPSILON
    assert coins.drawn == [(3 / EPSILON, 48)]


def test_a_query_of_several_aggregates(visits, coins, paid):
    asked = (
        "SELECT town, COUNT(DISTINCT pid) AS people, COUNT(*) AS n, SUM(cost) AS total, "
        "AVG(cost) AS mean FROM visits GROUP BY town"
    )
    given = {"weights": [1, 2, 3, 4], "max_rows": 3, "max_cells": 2, "epsilon": EPSILON}
    visits.query(asked, **given, **paid)
    share = EPSILON / 10
    # A mean is a count, and a sum of what lies how far from the middle, 15: at most 25, 3 times, in
    # steps of .25; each has half of the share.
    of_mean = [2 * 3 / (2 * share), 2 * 3 * 100 / (2 * share)]
    expected = [2 / share, 2 * 3 / (2 * share), 2 * 100 / (3 * share), *of_mean]
    assert coins.drawn == [(scale, 3) for scale in expected]
    planned = visits.plan_query(asked, **given)
    told = [planned.noise_scale(place) for place in range(4)] + [planned.noise_scale(3, 1)]
    assert sorted(told) == sorted(expected)


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ("COUNT(*) FILTER (WHERE age >= 3) / COUNT(*)", [3, 3]),  # inside, and the rest
        ("SUM(cost) / SUM(fee)", [2 * 100, 2 * 60]),  # 50 and 30, in steps of .5, half of ε each
    ],
)
def test_a_query_of_quotients(visits, coins, paid, asked, steps):
    text = f"SELECT town, {asked} AS each FROM visits GROUP BY town"
    visits.query(text, max_rows=3, max_cells=2, epsilon=EPSILON, **paid)
    assert coins.drawn == [(2 * each / EPSILON, 3) for each in steps]


@pytest.mark.parametrize(("ordered", "steps"), [("COUNT(*)", 3), ("SUM(fee)", 60)])
def test_the_cells_of_a_query_that_are_largest(visits, coins, paid, ordered, steps):
    text = f"SELECT town, {ordered} AS n FROM visits GROUP BY town ORDER BY n DESC LIMIT 2"
    visits.query(text, max_rows=3, epsilon=EPSILON, **paid)
    assert coins.rates == {EPSILON / 2 / 2 / steps}  # half of ε chooses, two times
    assert coins.drawn == [(2 * steps / (EPSILON / 2), 2)]


def test_the_largest_of_questions_that_a_person_changes_differently(visits, coins, paid):
    """By half and by one and a half, in steps of a half."""
    asked = ["0.5 * count(age >= 3)", "0.5 * count(age >= 9) + count(age >= 12)"]
    visits.top(2, [*asked, "0.5 * count(age >= 6)"], epsilon=EPSILON, **paid)
    assert coins.rates == {EPSILON / 2 / 3}


@pytest.mark.parametrize(("column", "several"), [("age", False), ("minute", True)])
def test_ranges(visits, coins, paid, column, several):
    drawn = visits.ranges(column, max_rows=3, epsilon=EPSILON, **paid)
    levels = drawn.plan.tree.levels
    assert (levels > 1) is several
    assert drawn.noise_scale == 3 * levels / EPSILON
    assert [scale for scale, _ in coins.drawn] == [drawn.noise_scale] * levels


@pytest.mark.parametrize(
    ("asked", "overlapping"),
    [
        (["age >= 3", "age >= 9", "age >= 12"], 2),
        ("SELECT COUNT(*) FROM visits GROUP BY town", 6),
        ("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town", 2),
    ],
)
def test_the_counts_of_the_largest(visits, coins, paid, asked, overlapping):
    """Of 2 that are told, a person may be in both; with 3 rows they add 3 to each."""
    given = {"max_rows": 3} if "*" in asked else {}
    drawn = visits.top(2, asked, epsilon=1, counts_epsilon=EPSILON, **given, **paid)
    assert coins.drawn == [(each.noise_scale, 1) for each in drawn.counts]
    assert {each.noise_scale for each in drawn.counts} == {overlapping / EPSILON}


def test_synthetic_rows(visits, coins, paid):
    drawn = visits.synthetic(
        ["age", "town"], rounds=2, max_rows=3, rows=10, bins={"age": 4}, epsilon=EPSILON, **paid
    )
    told = [(each.scale, len(each.counts)) for each in drawn.measured]
    assert coins.drawn == told
    spent = sum(3 / scale for scale, _ in told)
    assert spent < EPSILON  # choosing what to measure in a round has the rest
    mechanism = drawn.plan.mechanism
    assert spent + 2 * mechanism.round_chooser.rate * 2 * 3 == EPSILON


def test_what_certifies_a_small_database(visits, coins, paid):
    given = {"questions": tacit.prefixes("age"), "rows": 4, "max_rows": 3}
    drawn = visits.small_db(**given, epsilon=1, certificate_epsilon=EPSILON, **paid)
    scale = drawn.off_by.noise_scale
    assert coins.drawn == [(scale, 1)]
    assert scale * drawn.off_by.grid == 3 / EPSILON
