"""ORDER BY ... DESC LIMIT n: the largest cells, and what is told of them."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import exp

import numpy as np
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
from tacit.tables.engine.person_rows import only_cells
from tacit.tables.language.prepared import Reader

LOTS = 10**6
TOP = (
    "SELECT town, COUNT(DISTINCT pid) AS n, AVG(cost) FROM visits GROUP BY town ORDER BY {} LIMIT 2"
)


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**9, delta="1/2", covers=["visits"])


@pytest.mark.parametrize("by", ["n DESC", "COUNT(DISTINCT pid) DESC", "2 DESC", "SUM(cost) DESC"])
def test_the_largest_cells_come_first_with_all_that_was_selected(visits, rich, by):
    found = visits.query(TOP.format(by), epsilon=LOTS, max_rows=2, budget=rich)
    shown = found.to_dict()
    assert shown["town"] == ["Bruges", "Ghent"]
    assert shown["n"] == [200, 90]
    assert shown["avg_cost"] == [pytest.approx(10.5, abs=0.01)] * 2
    assert found.places == (0, 1)
    assert "2 cells that were drawn as the largest" in str(found)
    assert wire.from_json(wire.to_json(found)) == found
    assert found.to_pandas().shape == (2, 10)
    for places in ([0, 0], [-1, 0], ["0", 1], [0]):
        with pytest.raises(BadParameter):
            wire.from_json({**wire.to_json(found), "places": places})


def test_they_come_in_the_order_of_draw_and_not_of_the_schema(tmp_path, rich):
    lines = [f"{pid},{town},7,1" for pid, town in enumerate(["Ypres"] * 9 + ["Ghent"] * 5)]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(lines) + "\n")
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        sql = "SELECT town, COUNT(DISTINCT pid) FROM visits GROUP BY town ORDER BY 2 DESC LIMIT 2"
        for cells in (1, 2):
            found = table.query(sql, epsilon=LOTS, max_cells=cells, budget=rich).to_dict()
            assert found["town"] == ["Ypres", "Ghent"]
            assert found["count"] == [9, 5]


def test_epsilon_is_divided_and_a_person_is_in_no_more_cells_than_are_told(visits):
    sql = TOP.format("n DESC")
    planned = visits.plan_query(sql, epsilon=1, max_rows=1)
    assert planned.shares == (Fraction(1, 3),) * 2
    assert planned.top.privacy == tacit.Privacy("1/3")
    assert planned.max_cells == 2
    assert not planned.choosing
    assert planned.noise_scale(0) == 2 * 3
    assert planned.cost.privacy == tacit.Privacy(1)
    assert planned.cost.parts == ((1, Fraction(1, 3)), (2, Fraction(1, 6)))
    assert planned.cost.ranges == ((2, Fraction(1, 6)),)
    assert sum(count * each for count, each in planned.cost.pieces) == 1
    fewer = visits.plan_query(sql, epsilon=1, max_rows=1, max_cells=1)
    assert fewer.choosing
    assert fewer.noise_scale(0) == 3
    assert "below the largest left (95 %)" in str(planned)
    weighed = visits.plan_query(sql, epsilon=1, max_rows=1, weights=[1, 1, 2])
    assert weighed.top.privacy.epsilon == Fraction(1, 2)
    with pytest.raises(BadParameter, match="one for the order"):
        visits.plan_query(sql, epsilon=1, max_rows=1, weights=[1, 1])


def test_delta_helps_the_order_alone(visits, rich):
    sql = TOP.format("n DESC")
    pure = visits.plan_query(sql, epsilon=1, max_rows=1)
    with_delta = visits.plan_query(sql, epsilon=1, delta="1/100", max_rows=1)
    assert with_delta.top.epsilon_each > pure.top.epsilon_each
    assert with_delta.noise_scale(0) == pure.noise_scale(0)
    assert with_delta.cost.privacy == tacit.Privacy(1, "1/100")
    found = visits.query(sql, epsilon=1, delta="1/100", max_rows=1, budget=rich)
    assert rich.spent.delta == Fraction(1, 100)
    assert wire.from_json(wire.to_json(found)) == found
    with pytest.raises(BadParameter, match=r"ORDER BY .* LIMIT n: leave it out"):
        visits.query("SELECT COUNT(DISTINCT pid) FROM visits", epsilon=1, delta=0.1, budget=rich)


def test_cells_of_a_person_are_chosen_among_those_that_are_told(tmp_path):
    towns = ["Bruges", "Ghent", "Ypres"]
    rows = [f"1,{town},7,1" for town in towns]
    rows += [f"{9 + pid},{town},7,1" for pid in range(30) for town in towns[:2]]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(rows) + "\n")
    sql = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town ORDER BY 1 DESC LIMIT 2"
    coins = InsecureTestCoins(1)
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        drawn = Query(table.plan_query(sql, epsilon=1, max_cells=1))
        seen = [drawn._chosen(table.engine, coins, (1, 0))[0][0] for _ in range(50)]
    assert all(sum(counts) == 31 for counts in seen)  # nobody's choice is lost to Ypres
    assert len({tuple(counts) for counts in seen}) > 3
    assert only_cells(np.array([0, 1, 2, -1]), (2, 0), 3).tolist() == [1, -1, 0, -1]


class TestLargestContract(TestQueryContract):
    """Which of two towns was drawn, and its count: 1 person in Bruges, 3 in Ghent."""

    SQL = """select town, count(distinct pid) as n from people group by town
        order by n desc limit 1"""

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {})
        given = {"epsilon": 2, "weights": None, "max_cells": None, **given}
        return Query(plan_query(select, **given))

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, epsilon="1e-80")]

    def outcome(self, drawn):
        return drawn.places[0], min(max(drawn.columns[0].steps[0], -5), 5)

    def law(self, engine):
        from tacit.testing.releases import laplace_law

        counts = engine.values(
            [tacit.tables.parse(f"town = '{town}'", engine.schema) for town in ("Bruges", "Ghent")]
        )
        weights = [exp(count) for count in counts]
        laws = [laplace_law(count, Fraction(1), 5) for count in counts]
        return {
            (place, told): weights[place] / sum(weights) * laws[place][told]
            for place, told in product(range(2), laws[0])
        }


def test_what_was_drawn_does_not_show_in_how_long_its_record_is(tmp_path):
    schema = '[columns.town]\ntype = "text"\nkeys = ["A", "a town with a very long name"]\n'
    import json

    from tacit.budget.answers import room_of

    (tmp_path / "visits.csv").write_text("town\nA\na town with a very long name\n")
    sql = "SELECT town, COUNT(*) FROM visits GROUP BY town ORDER BY 2 DESC LIMIT 1"
    coins, seen = InsecureTestCoins(2), Counter[tuple[int, int]]()
    with tacit.open(tmp_path / "visits.csv", person=tacit.EACH_ROW, schema=schema) as table:
        drawn = Query(table.plan_query(sql, epsilon=1))
        for _ in range(20):
            told = drawn.draw(table.engine, coins)
            assert told.places is not None
            seen[told.places[0], room_of(json.dumps(drawn.write_release(told)))] += 1
    assert len({place for place, _ in seen}) == 2
    assert len({size for _, size in seen}) == 1


def test_each_pair_is_as_likely_as_the_exponential_mechanism_says(visits_file):
    with tacit.open(visits_file, person=tacit.EACH_ROW) as table:
        sql = "SELECT COUNT(*) FROM visits WHERE pid < 4 GROUP BY town ORDER BY 1 DESC LIMIT 2"
        drawn = Query(table.plan_query(sql, epsilon=2))
        coins = InsecureTestCoins(4)
        counts = table.engine.values(
            drawn.plan.select.of_each_cell(drawn.plan.select.columns[0].question)
        )
        seen = Counter(drawn.draw(table.engine, coins).places for _ in range(900))
    weights = [exp(count / 2) for count in counts]  # half of 2 for two places
    law = {
        (a, b): weights[a] / sum(weights) * weights[b] / (sum(weights) - weights[a])
        for pair in combinations(range(3), 2)
        for a, b in (pair, pair[::-1])
    }
    assert chi_square_p([seen[pair] for pair in law], list(law.values())) > ACCEPT


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("GROUP BY town ORDER BY n DESC", "remove ORDER BY"),
        ("GROUP BY town LIMIT 2", "remove LIMIT"),
        ("GROUP BY town ORDER BY n LIMIT 2", "only the largest"),
        ("GROUP BY town ORDER BY n DESC, town DESC LIMIT 2", "only the largest"),
        ("GROUP BY town ORDER BY town DESC LIMIT 2", "needs a count or a sum"),
        ("GROUP BY town ORDER BY m DESC LIMIT 2", "needs a count or a sum"),
        ("GROUP BY town ORDER BY 9 DESC LIMIT 2", "no such column"),
        ("GROUP BY town ORDER BY -COUNT(*) DESC LIMIT 2", "never lowers"),
        ("GROUP BY town ORDER BY n DESC LIMIT 4", "only 3 cells"),
        ("GROUP BY town ORDER BY n DESC LIMIT 0", "a whole number of its cells"),
        ("ORDER BY n DESC LIMIT 1", "needs a GROUP BY"),
        ("GROUP BY town ORDER BY n DESC LIMIT 2 OFFSET 1", "not part of"),
    ],
)
def test_what_has_no_largest_is_refused(visits, rich, after, why):
    sql = f"SELECT COUNT(DISTINCT pid) AS n, AVG(cost) AS m FROM visits {after}"
    with pytest.raises(QuestionRefused, match=why):
        visits.query(sql, epsilon=1, max_rows=1, max_cells=1, budget=rich)
    assert rich.spent.epsilon == 0
