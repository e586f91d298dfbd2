"""HAVING COUNT(*) > T: a stream says which cells are told, and the rest is about those."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from tests.analyst.test_query import TOML, TestQueryContract
from tests.book.exact_law import pattern_law

import tacit
from tacit import wire
from tacit.analyst.query import Query
from tacit.analyst.query_plan import for_told, plan_query
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables.language.prepared import Reader
from tacit.tables.schema.schema import read_schema
from tacit.testing.releases import laplace_law

LOTS = 10**6
PEOPLE = "SELECT town, COUNT(DISTINCT pid) AS n FROM visits GROUP BY town HAVING {}"


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**9, delta="1/2", covers=["visits"])


@pytest.mark.parametrize(
    ("having", "towns"),
    [
        ("COUNT(DISTINCT pid) > 50", ["Bruges", "Ghent"]),
        ("50 < COUNT(DISTINCT pid)", ["Bruges", "Ghent"]),
        ("(n > 50)", ["Bruges", "Ghent"]),
        ("n > 90", ["Bruges"]),
        ("n > 89.5", ["Bruges", "Ghent"]),
        ("n >= 90", ["Bruges", "Ghent"]),
        ("90 <= n", ["Bruges", "Ghent"]),
        ("n >= 90.5", ["Bruges"]),
        ("SUM(cost) > 3000", ["Bruges"]),
        ("COUNT(*) > 20", ["Bruges", "Ghent"]),
        ("n > 1000", []),
    ],
)
def test_the_cells_above_are_told_and_no_others(visits, rich, having, towns):
    sql = PEOPLE.format(having)
    found = visits.query(sql, epsilon=LOTS, at_most=3, max_rows=2, budget=rich)
    people = {"Bruges": 200, "Ghent": 90, "Ypres": 10}
    assert found.to_dict()["town"] == towns
    # A value from the gap is shifted by a public constant, which its interval knows.
    for town, (low, high) in zip(towns, found.column("n").intervals(), strict=True):
        assert low <= people[town] <= high
        assert high - low <= 2
    assert not found.halted
    assert found.unanswered == []
    assert wire.from_json(wire.to_json(found)) == found
    assert "that HAVING found above" in str(found)


def test_what_the_stream_tells_is_about_all_cells_of_a_person(visits, rich):
    sql = PEOPLE.format("n > 50")
    asked = {"epsilon": LOTS, "at_most": 3, "max_rows": 2, "max_cells": 1, "budget": rich}
    assert visits.query(sql, **asked).covers == ""
    measured = sql.replace("AS n", "AS n, SUM(cost) AS s")
    assert "each person counts in 1 cell" in visits.query(measured, **asked).covers


@pytest.mark.parametrize(
    ("having", "least"),
    [
        ("n > 90", 91),
        ("90 < n", 91),
        ("n > 89.5", 90),
        ("n >= 90", 90),
        ("n >= 90.5", 91),
        ("n > 2 * 45", 91),
        ("SUM(cost) > 90", Fraction("90.5")),
        ("SUM(cost) >= 90.1", Fraction("90.5")),
    ],
)
def test_the_threshold_is_the_least_value_that_is_above(visits, having, least):
    planned = visits.plan_query(PEOPLE.format(having), epsilon=1, at_most=1)
    assert planned.select.above.threshold == least


def test_what_having_compares_is_told_by_the_stream_and_the_rest_is_measured(visits, rich):
    sql = """SELECT town, COUNT(DISTINCT pid) AS n, SUM(cost) AS s, AVG(cost) AS m
        FROM visits GROUP BY town HAVING n > 50"""
    planned = visits.plan_query(sql, epsilon=3, at_most=2, max_rows=1)
    assert planned.shares == (0, 1, 1)
    assert planned.all_shares == (1, 1, 1)
    assert planned.stream.cost.privacy == tacit.Privacy(1)
    assert planned.max_cells == 2
    assert planned.cost.privacy == tacit.Privacy(3)
    assert sum(count * each for count, each in planned.cost.parts) == 3
    found = visits.query(sql, epsilon=LOTS, at_most=2, max_rows=1, budget=rich)
    shown = found.to_dict()
    assert shown["s"] == [4200, 1890]
    assert shown["m"] == [pytest.approx(10.5, abs=0.01)] * 2
    again = visits.plan_query(sql, epsilon=3, at_most=2, max_rows=1, weights=planned.all_shares)
    assert again == planned
    weighed = visits.plan_query(sql, epsilon=4, at_most=2, max_rows=1, weights=[1, 1, 2])
    assert weighed.shares == (0, 1, 1)
    assert weighed.stream.cost.privacy == tacit.Privacy(2)


def test_the_keys_alone_may_be_asked_for(visits, rich):
    sql = "SELECT town FROM visits GROUP BY town HAVING COUNT(DISTINCT pid) > 50"
    found = visits.query(sql, epsilon=LOTS, at_most=3, budget=rich)
    assert found.to_dict() == {"town": ["Bruges", "Ghent"]}
    assert found.to_pandas().shape == (2, 1)
    assert wire.from_json(wire.to_json(found)) == found
    assert visits.plan_query(sql, epsilon=2, at_most=3).stream.cost.privacy == tacit.Privacy(2)


def test_cells_after_the_halt_are_unanswered_and_it_says_so(visits, rich):
    sql = PEOPLE.format("n > 5")
    found = visits.query(sql, epsilon=LOTS, at_most=1, budget=rich)
    assert found.to_dict()["town"] == ["Bruges"]
    assert found.halted
    assert found.unanswered == [{"town": "Ghent"}, {"town": "Ypres"}]
    said = "HAVING stopped after 1: 2 of 3 cells are unanswered, from town = 'Ghent' on"
    assert said in str(found)
    assert said in repr(found)
    assert "2 of 3 cells are unanswered" in found._repr_html_()
    every = visits.query(sql, epsilon=LOTS, at_most=9, budget=rich)
    assert every.having.at_most == 3  # more than there are would only cost
    assert every.halted
    assert every.unanswered == []
    for having in ({"at_most": 1, "answered": 2}, {"at_most": 0, "answered": 1}, {"answered": 1}):
        with pytest.raises(BadParameter):
            wire.from_json({**wire.to_json(found), "having": having})


def test_without_at_most_it_is_refused_and_without_having_so_is_at_most(visits, rich):
    with pytest.raises(BadParameter, match="how many cells may HAVING return"):
        visits.query(PEOPLE.format("n > 5"), epsilon=1, budget=rich)
    with pytest.raises(BadParameter, match="this query has none"):
        visits.query("SELECT COUNT(DISTINCT pid) FROM visits", epsilon=1, at_most=2, budget=rich)
    with pytest.raises(BadParameter, match="and then one for HAVING"):
        visits.query(PEOPLE.format("n > 5"), epsilon=1, at_most=2, weights=[1, 1], budget=rich)
    assert rich.spent.epsilon == 0


@pytest.mark.parametrize(
    ("having", "why"),
    [
        ("n < 5", "can only find cells above a threshold"),
        ("5 > n", "can only find cells above a threshold"),
        ("n = 5", "can only find cells above a threshold"),
        ("n > 5 AND n < 9", "a single comparison"),
        ("NOT n < 5", "a single comparison"),
        ("n BETWEEN 5 AND 9", "with a number"),
        ("n > COUNT(*)", "with a number"),
        ("m > 5", "needs a count or a sum"),
        ("town > 5", "needs a count or a sum"),
        ("AVG(cost) > 5", "one person can change AVG"),
        ("COUNT(*) - 2 * n > 5", "count or a sum is needed"),
        ("-COUNT(DISTINCT pid) > 5", "a person never lowers"),
        ("n > 5 ORDER BY n DESC LIMIT 1", "leave one of them out"),
    ],
)
def test_other_conditions_are_refused_with_the_reason(visits, rich, having, why):
    sql = f"""SELECT town, COUNT(DISTINCT pid) AS n, AVG(cost) AS m FROM visits
        GROUP BY town HAVING {having}"""
    with pytest.raises(QuestionRefused, match=why):
        visits.query(sql, epsilon=1, at_most=2, max_rows=1, budget=rich)
    with pytest.raises(QuestionRefused, match="add GROUP BY"):
        visits.query(
            "SELECT COUNT(DISTINCT pid) AS n FROM visits HAVING n > 5",
            epsilon=1,
            at_most=2,
            budget=rich,
        )
    assert rich.spent.epsilon == 0


def test_a_plan_says_the_errors_before(visits):
    sql = """SELECT town, COUNT(DISTINCT pid) AS n, SUM(cost) AS s
        FROM visits GROUP BY town HAVING n > 50"""
    planned = visits.plan_query(sql, epsilon=1, at_most=2)
    alpha = planned.stream.expected.alpha
    said = str(planned)
    assert "A query of up to 2 of 3 cells, (ε = 1, δ = 0)" in said
    assert (
        f"all cells of {51 + alpha} or more are returned, and none of {51 - alpha} or less" in said
    )
    assert "included in HAVING" in said
    assert planned.error("n") > 0
    assert planned.noise_scale(1) == 2 * 400 / Fraction(1, 2)  # two cells, totals up to 200 by 0.5
    fewer = visits.plan_query(sql, epsilon=1, at_most=2, max_cells=1)
    assert fewer.noise_scale(1) == 400 / Fraction(1, 2)
    assert fewer.choosing
    assert not planned.choosing
    assert for_told(planned, 1).noise_scale(1) == fewer.noise_scale(1)
    with_delta = visits.plan_query(sql, epsilon=1, delta="1/100", at_most=2)
    assert with_delta.cost.privacy == tacit.Privacy(1)  # what does not help is not charged


def test_delta_helps_where_many_cells_may_be_told():
    weeks = TOML.replace("keys = [7, 3]", "keys = {from = 1, to = 200}")
    reader = Reader(read_schema(weeks, name="visits", person="pid"))
    select = reader.select(
        "SELECT SUM(cost) FROM visits GROUP BY week HAVING COUNT(DISTINCT pid) > 50", {}
    )
    pure, helped = (
        plan_query(select, epsilon=1, delta=delta, weights=None, max_cells=1, at_most=150)
        for delta in (0, "1e-6")
    )
    assert pure.stream is not None
    assert helped.stream is not None
    assert helped.cost.privacy == tacit.Privacy(1, "1e-6")
    assert helped.stream.cost.privacy == tacit.Privacy("1/2", "1e-6")
    assert helped.stream.expected.alpha < pure.stream.expected.alpha
    assert helped.noise_scale(0) == pure.noise_scale(0)


def test_it_is_kept_and_told_again_under_its_key(visits, rich):
    given = {"epsilon": 1, "at_most": 1, "retry_key": "k", "budget": rich}
    first = visits.query(PEOPLE.format("n > 50"), **given)
    assert visits.query(PEOPLE.format("n > 50"), **given) == first
    assert rich.spent.epsilon == 1
    with pytest.raises(tacit.errors.KeyReused):
        visits.query(PEOPLE.format("n > 51"), **given)


def test_how_many_are_told_does_not_show_in_how_long_the_record_is(tmp_path):
    import json

    from tacit.budget.answers import as_kept

    schema = '[columns.town]\ntype = "text"\nkeys = ["A", "a town with a very long name", "C"]\n'
    lines = ["A"] * 4 + ["a town with a very long name"] * 4 + ["C"] * 3
    (tmp_path / "visits.csv").write_text("town\n" + "\n".join(lines) + "\n")
    sql = """SELECT town, COUNT(*) AS n, COUNT(*) FILTER (WHERE town <> 'C') AS m
        FROM visits GROUP BY town HAVING n > 3"""
    coins, seen = InsecureTestCoins(2), set()
    with tacit.open(tmp_path / "visits.csv", person=tacit.EACH_ROW, schema=schema) as table:
        drawn = Query(table.plan_query(sql, epsilon=1, at_most=2))
        for _ in range(60):
            told = drawn.draw(table.engine, coins)
            kept = as_kept(drawn.write_release(told))
            seen.add((len(told), told.places, len(kept)))
            assert drawn.read_release(json.loads(kept)) == told
    assert {count for count, _, _ in seen} == {0, 1, 2}
    assert len({size for _, _, size in seen}) == 1


def test_a_persons_cells_are_chosen_among_those_that_are_told(tmp_path, rich):
    towns = ["Bruges", "Ghent", "Ypres"]
    rows = [f"1,{town},7,1" for town in towns]
    rows += [f"{9 + pid},{town},7,1" for pid in range(30) for town in towns[1:]]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(rows) + "\n")
    sql = """SELECT town, COUNT(DISTINCT pid) FILTER (WHERE week = 7) AS m
        FROM visits GROUP BY town HAVING COUNT(DISTINCT pid) > 20"""
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        found = table.query(sql, epsilon=LOTS, at_most=3, max_cells=1, budget=rich)
    assert found.to_dict()["town"] == ["Ghent", "Ypres"]
    assert sum(found.to_dict()["m"]) == 31  # nobody's choice is lost to Bruges
    assert "each person counts in 1 cell, chosen at random" in str(found)


class TestHavingContract(TestQueryContract):
    """1 person in Bruges, 3 in Ghent: which are told, and the noisy number of those of 2 and over.

    If one cell is told, a person counts in one, and the noise is half of that for two.
    """

    SQL = """select town, count(distinct pid) filter (where age > 1) as m from people
        group by town having count(distinct pid) > 1"""
    AT_MOST = 2

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {})
        given = {"epsilon": 4, "weights": None, "max_cells": None, **given}
        return Query(plan_query(select, **{"at_most": self.AT_MOST, **given}))

    def wrong(self, schema):
        return [
            lambda: self.mechanism(schema, epsilon="1e-80"),
            lambda: self.mechanism(schema, at_most=None),
            lambda: self.mechanism(schema, at_most=0),
        ]

    def outcome(self, drawn):
        return drawn.places, tuple(min(max(steps, -4), 4) for steps in drawn.columns[0].steps)

    def law(self, engine):
        towns = ("Bruges", "Ghent")
        counts, old = (
            engine.values([tacit.tables.parse(f"town = '{t}'{more}", engine.schema) for t in towns])
            for more in ("", " and age > 1")
        )
        stream = self.mechanism(engine.schema).plan.stream.mechanism
        recipe, limit = stream.recipe, stream.threshold_in_steps(None)
        law: dict[object, float] = {}
        for pattern, chance in pattern_law(recipe, counts, limit - int(recipe.shift)).items():
            told = tuple(place for place, top in enumerate(pattern) if top)
            scale = Fraction(max(len(told), 1), 2)
            each = [laplace_law(old[place], scale, 4) for place in told]
            for values in product(*each):
                seen = chance
                for at, value in enumerate(values):
                    seen *= each[at][value]
                key = (told, values)
                law[key] = law.get(key, 0) + seen
        return law


class TestHavingThatHalts(TestHavingContract):
    AT_MOST = 1


def test_a_draw_in_the_one_cell_that_is_told_is_paid_for(visits):
    """Fewer cells than expected share ε: in a zCDP budget one draw then costs more than several."""
    sql = "SELECT town, MEDIAN(cost) AS m FROM visits GROUP BY town HAVING COUNT(DISTINCT pid) > 50"
    plan = visits.plan_query(sql, epsilon=1, at_most=3, max_rows=2, max_cells=3)
    share = plan.all_shares[0]
    for told in (1, 2, 3):
        then = for_told(plan, told)
        assert then.quantile(0).epsilon * then.max_cells == share
        spent = then.max_cells * then.quantile(0).epsilon ** 2
        assert sum(n * each**2 for n, each in plan.cost.ranges) >= spent
