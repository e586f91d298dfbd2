"""COUNT(DISTINCT key): how many declared cells have anybody."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from tests.analyst.test_query import TOML, TestQueryContract
from tests.fit import ACCEPT, chi_square_p

import tacit
from tacit import wire
from tacit.analyst.query import Query
from tacit.analyst.query_plan import plan_query
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables.language.prepared import Reader
from tacit.testing.releases import laplace_law

LOTS = 10**6


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**9, covers=["visits", "people"])


@pytest.fixture
def three(tmp_path):
    """Person 1 is everywhere, two others in Ghent; one is elsewhere, and one has no town."""
    rows = ["1,Bruges,7,1", "1,Ghent,7,5", "1,Ypres,3,5", "1,Ypres,7,5", "2,Ghent,7,0"]
    rows += ["3,Ghent,8,2", "4,elsewhere,7,1", "5,,7,1"]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(rows) + "\n")
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        yield table


def test_it_is_the_number_of_declared_keys_that_somebody_has(three, rich):
    sql = """SELECT COUNT(DISTINCT town) AS towns, COUNT(DISTINCT town) FILTER (WHERE cost < 2),
        COUNT(DISTINCT town, week) AS both, COUNT(DISTINCT week) AS weeks,
        COUNT(DISTINCT pid) AS people FROM visits WHERE cost < :most"""
    told = three.query(sql, epsilon=LOTS, max_cells=9, params={"most": 5}, budget=rich)
    assert wire.from_json(wire.to_json(told)) == told
    assert "towns: each person counts for up to 3 values, chosen at random" in str(told)
    found = told.to_dict()
    assert found["towns"] == [2]  # Bruges and Ghent; person 1's others cost 5
    assert found["count"] == [2]
    assert found["both"] == [2]
    assert found["weeks"] == [1]
    assert found["people"] == [5]


def test_a_person_counts_for_as_many_as_may_chosen_at_random(three):
    drawn = Query(
        three.plan_query("SELECT COUNT(DISTINCT town) FROM visits", epsilon=1, max_cells=1)
    )
    coins = InsecureTestCoins(3)
    seen = Counter(drawn._chosen(three.engine, coins)[0][0][0] for _ in range(600))
    assert set(seen) == {1, 2}  # Ghent, and perhaps another one of person 1's three
    assert chi_square_p([seen[1], seen[2]], [1 / 3, 2 / 3]) > ACCEPT


def test_the_noise_grows_with_how_many_a_person_may_add_and_with_nothing_else(three):
    sql = "SELECT COUNT(DISTINCT town) AS t, COUNT(DISTINCT pid) AS p FROM visits"
    planned = three.plan_query(sql, epsilon=1, max_cells=2)
    assert [planned.noise_scale(place) for place in (0, 1)] == [4, 2]
    assert three.plan_query(sql, epsilon=1, max_cells=9).noise_scale(0) == 6  # there are 3 towns
    assert "t: each person counts for up to 2 values, chosen at random" in str(planned)
    for given, name in ((None, "may one person count"), (0, "max_cells")):
        with pytest.raises(BadParameter, match=name):
            three.plan_query(sql, epsilon=1, max_cells=given)


def test_each_row_has_one_key(visits_file, rich):
    with tacit.open(visits_file, person=tacit.EACH_ROW) as table:
        sql = "SELECT COUNT(DISTINCT town) AS n FROM visits"
        assert table.plan_query(sql, epsilon=1).noise_scale(0) == 1
        assert table.query(sql, epsilon=LOTS, budget=rich).to_dict()["n"] == [3]


class TestDistinctContract(TestQueryContract):
    """Person 1 counts for Bruges or for Ghent; the two others are in Ghent."""

    SQL = "select count(distinct town) from people"

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {})
        return Query(plan_query(select, **{"epsilon": 1, "weights": None, "max_cells": 1, **given}))

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, max_cells=None)]

    def outcome(self, drawn):
        return min(max(drawn.columns[0].steps[0], -5), 5)

    def law(self, engine):
        bruges, ghent = engine.values(
            [tacit.tables.parse(f"town = '{town}'", engine.schema) for town in ("Bruges", "Ghent")]
        )
        counts = [int(bool(ghent))]
        if bruges:  # person 1 is there, and chosen in either town
            counts = [1 + (ghent > 1), 1]
        laws = [laplace_law(count, Fraction(1), 5) for count in counts]
        return {told: sum(law[told] for law in laws) / len(laws) for told in laws[0]}


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("COUNT(DISTINCT cost)", "can count only people"),
        ("COUNT(DISTINCT town, pid)", "can count only people"),
        ("2 * COUNT(DISTINCT town)", "can count only people"),
        ("town, COUNT(DISTINCT week)", "cannot be grouped"),
    ],
)
def test_what_has_no_declared_keys_is_refused(three, rich, asked, why):
    grouped = " GROUP BY town" if asked.startswith("town") else ""
    with pytest.raises(QuestionRefused, match=why):
        three.query(f"SELECT {asked} FROM visits{grouped}", epsilon=1, max_cells=1, budget=rich)
    assert rich.spent.epsilon == 0
