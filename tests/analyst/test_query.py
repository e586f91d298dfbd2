"""Queries: several aggregates of every cell, one ε, at most so many cells of a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

import pytest
from tests.fit import ACCEPT, chi_square_p

import tacit
from tacit import wire
from tacit.analyst.query import Query
from tacit.analyst.query_columns import MeanColumn, QueryColumn
from tacit.analyst.query_plan import plan_query
from tacit.analyst.query_result import QueryResult
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import BadParameter, BudgetExhausted, QuestionRefused
from tacit.tables.language.prepared import Reader
from tacit.testing.releases import ReleaseContract, laplace_law

LOTS = 10**6
TOWNS = "SELECT town, COUNT(DISTINCT pid) AS people FROM visits GROUP BY town"
TOML = """
max_rows = 2
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Ypres"]
[columns.week]
type = "integer"
keys = [7, 3]
[columns.cost]
type = "integer"
bounds = [-5, 9]
total = [-6, 12]
"""


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**9, covers=["visits", "people"])


@pytest.fixture
def several(tmp_path):
    """Forty people with up to six rows in any of six cells, and others that are not declared."""
    coins, rows = Random(3), []
    for pid in range(40):
        for _ in range(coins.randrange(7)):
            town = coins.choice(["Bruges", "Ghent", "Ypres", "elsewhere"])
            rows.append((pid, town, coins.choice([3, 7, 7, 8]), coins.randrange(-7, 12)))
    lines = [",".join(map(str, row)) for row in rows]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(lines) + "\n")
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        yield table, rows


@pytest.mark.parametrize("max_cells", [1, 3])
def test_the_total_of_a_person_is_clamped_at_both_ends(tmp_path, rich, max_cells):
    """Whether the cells of a person are chosen, or everybody counts in all of them."""
    rows = [*[(1, "Ghent", -5)] * 3, *[(2, "Bruges", 9)] * 3, *[(3, "Ypres", -2)] * 2]
    lines = "".join(f"{pid},{town},7,{cost}\n" for pid, town, cost in rows)
    (tmp_path / "visits.csv").write_text(f"pid,town,week,cost\n{lines}")
    sql = "SELECT town, SUM(cost) FROM visits GROUP BY town"
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        found = table.query(sql, epsilon=LOTS, max_cells=max_cells, budget=rich)
    assert found.to_dict()["sum_cost"] == [12, -6, -4]


# What is in it ------------------------------------------------------------------------------------


def test_every_declared_cell_is_there_with_each_aggregate_and_its_error(visits, rich):
    sql = "SELECT town, COUNT(*) AS n, SUM(cost) FROM visits WHERE age < 200 GROUP BY town"
    found = visits.query(sql, epsilon=LOTS, max_rows=1, max_cells=1, budget=rich)
    assert found.to_dict() == {
        "town": ["Bruges", "Ghent", "Ypres"],
        "n": [200, 90, 10],
        "n_error": [0, 0, 0],
        "sum_cost": [4200, 1890, 210],
        "sum_cost_error": [0, 0, 0],
        **{key: [200, 90, 10] for key in ("n_lower", "n_upper")},
        **{key: [4200, 1890, 210] for key in ("sum_cost_lower", "sum_cost_upper")},
        "covers": [found.covers] * 3,
    }
    assert len(found) == 3
    column = found.column("n")
    assert isinstance(column, QueryColumn)
    assert [estimate.value for estimate in column.estimates] == [200, 90, 10]
    with pytest.raises(BadParameter, match="this query has n, sum_cost"):
        found.column("town")


def test_without_group_by_there_is_one_row(visits, rich):
    sql = "SELECT COUNT(DISTINCT pid), COUNT(DISTINCT pid) FILTER (WHERE age >= :a) FROM visits"
    found = visits.query(sql, epsilon=LOTS, budget=rich, params={"a": 90})
    assert found.to_dict() == {
        "count": [300],
        "count_error": [0],
        "count_": [30],
        "count__error": [0],
        **{key: [300] for key in ("count_lower", "count_upper")},
        **{key: [30] for key in ("count__lower", "count__upper")},
    }
    often = "SELECT COUNT(*) AS n FROM (SELECT pid FROM visits GROUP BY pid HAVING COUNT(*) >= 2)"
    assert visits.query(often, epsilon=LOTS, budget=rich).to_dict()["n"] == [300]


def test_each_row_is_in_one_cell_and_nothing_is_chosen(visits_file):
    with tacit.open(visits_file, person=tacit.EACH_ROW) as table:
        budget = Budget.in_memory(epsilon=2 * LOTS, covers=["visits"])
        sql = "SELECT town, COUNT(*), SUM(cost) FROM visits GROUP BY town"
        planned = table.plan_query(sql, epsilon=1)
        assert not planned.choosing
        assert [planned.noise_scale(place) for place in (0, 1)] == [2, 400]
        found = table.query(sql, epsilon=LOTS, budget=budget)
        assert found.to_dict()["count"] == [400, 180, 20]
        assert "cell" not in str(found)


def expected(rows, cells_of_person, keys, value):
    """What the cells count, by hand: ``value`` of each person's rows in each of their cells."""
    totals = dict.fromkeys(keys, 0)
    for pid, cells in cells_of_person.items():
        for cell in cells:
            totals[cell] += value([row for row in rows if (row[0], row[1], row[2]) == (pid, *cell)])
    return list(totals.values())


def test_without_a_bound_that_bites_the_answers_are_those_of_plain_python(several):
    """By the rows of each person, and by the engine's totals: the same numbers."""
    table, rows = several
    keys = list(product(["Bruges", "Ghent", "Ypres"], [7, 3]))
    sql = """SELECT town, week, COUNT(*) AS n, COUNT(DISTINCT pid) AS people, SUM(cost) AS total,
        SUM(cost) FILTER (WHERE cost > 0) - 2 * COUNT(*) AS odd
        FROM visits WHERE cost <> 3 GROUP BY town, week"""
    drawn = Query(table.plan_query(sql, epsilon=1, max_cells=6))
    assert not drawn.plan.choosing
    asked = [row for row in rows if row[3] != 3]
    where = {
        pid: {(row[1], row[2]) for row in asked if row[0] == pid} & set(keys) for pid in range(40)
    }

    def clamped(values, low=-6, high=12):
        return min(max(sum(min(max(each, -5), 9) for each in values), low), high) if values else 0

    told = [
        expected(asked, where, keys, lambda own: min(len(own), 2)),
        expected(asked, where, keys, lambda own: 1),
        expected(asked, where, keys, lambda own: clamped([row[3] for row in own])),
        expected(
            asked,
            where,
            keys,
            lambda own: clamped([row[3] for row in own if row[3] > 0]) - 2 * min(len(own), 2),
        ),
    ]
    assert drawn._whole(table.engine) == [[each] for each in told]
    assert drawn._chosen(table.engine, InsecureTestCoins(1)) == [[each] for each in told]


def test_a_person_counts_in_as_many_cells_as_said_chosen_at_random(tmp_path):
    rows = [f"1,{town},7,1" for town in ("Ghent", "Ghent", "Ghent", "Bruges", "Ypres")]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(rows) + "\n")
    coins, seen = InsecureTestCoins(1), Counter[tuple[int, ...]]()
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        drawn = Query(table.plan_query(TOWNS, epsilon=1, max_cells=2))
        for _ in range(900):
            [[counts]] = drawn._chosen(table.engine, coins)
            seen[tuple(counts)] += 1
        pairs = [tuple(int(at in pair) for at in range(3)) for pair in combinations(range(3), 2)]
        assert set(seen) == set(pairs)  # as often, however many rows there are in a cell
        assert chi_square_p([seen[pair] for pair in pairs], [1 / 3] * 3) > ACCEPT


def test_a_histogram_a_count_and_a_query_agree_where_people_have_many_rows(tmp_path, rich):
    """None of them takes the least rows: a flat year stays flat (rule 20)."""
    lines = [f"{pid},{week}" for pid in range(600) for week in range(1, 11)]
    (tmp_path / "visits.csv").write_text("pid,week\n" + "\n".join(lines) + "\n")
    schema = '[columns.pid]\ntype = "integer"\n[columns.week]\ntype = "integer"\n'
    schema += "keys = {from = 1, to = 10}\n"
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=schema) as table:
        true = table.count("week = 10", epsilon=LOTS, budget=rich).value
        sql = "SELECT week, COUNT(DISTINCT pid) AS people FROM visits GROUP BY week"
        weeks = table.query(sql, epsilon=LOTS, max_cells=2, budget=rich).to_dict()["people"]
        counted = table.histogram("week", epsilon=LOTS, max_rows=2, budget=rich).to_dict()["count"]
        every = table.query(sql, epsilon=LOTS, max_cells=10, budget=rich).to_dict()["people"]
    assert true == 600
    assert every == [600] * 10
    for chosen in (weeks, counted):
        assert sum(chosen) == 1200
        # each is 120 ± 10; seven standard deviations
        assert max(abs(each - 120) for each in chosen) < 70


# What it costs, and its noise ---------------------------------------------------------------------


def test_the_shares_add_up_and_the_noise_covers_all_cells_of_a_person(several):
    table, _ = several
    sql = "SELECT COUNT(*), COUNT(DISTINCT pid), SUM(cost) FROM visits GROUP BY town, week"
    planned = table.plan_query(sql, epsilon="1/2", weights=[2, 1, "1"], max_cells=3)
    assert planned.cost.privacy == tacit.Privacy("1/2")
    assert planned.cost.parts == ((1, Fraction(1, 4)), (1, Fraction(1, 8)), (1, Fraction(1, 8)))
    scales = [planned.noise_scale(place) for place in range(3)]
    assert scales == [3 * 2 / Fraction(1, 4), 3 * 8, 3 * 12 * 8]
    assert planned.error("count_", "1/10") > planned.error("count_", "1/2") > 0
    assert "count_" in str(planned)
    with pytest.raises(BadParameter, match="this query has"):
        planned.error("town")


@pytest.mark.parametrize("epsilon", ["1/3", Fraction(1, 2**55)])
def test_each_value_has_laplace_noise_of_the_stated_scale(tmp_path, rich, epsilon):
    """Also where it is too wide to be drawn in bulk."""
    (tmp_path / "people.csv").write_text("n\n7\n")
    schema = '[columns.n]\ntype = "integer"\nkeys = {from = 0, to = 499}\n'
    with tacit.open(tmp_path / "people.csv", person=tacit.EACH_ROW, schema=schema) as table:
        sql = "SELECT COUNT(*) FROM people GROUP BY n"
        (column,) = table.query(sql, epsilon=epsilon, budget=rich).columns
    assert isinstance(column, QueryColumn)
    assert column.noise_scale == 1 / Fraction(epsilon)
    half, rare = column.errors("1/2")[0], column.errors()[0]
    inside = sum(abs(steps) <= half for steps in column.steps)
    assert 175 < inside < 360  # 250, or 286 for whole numbers; 6.6 standard deviations are 74
    assert sum(abs(steps) > rare for steps in column.steps) < 60


def test_it_costs_its_epsilon_once_and_first(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    visits.query(TOWNS, epsilon="3/4", max_cells=1, budget=budget)
    assert budget.spent.epsilon == Fraction(3, 4)
    (charge,) = [entry.body for entry in budget.history if entry.kind == "charge"]
    assert charge["what"] == f"query: {TOWNS}"
    with pytest.raises(BudgetExhausted, match="query: SELECT town"):
        visits.query(TOWNS, epsilon="1/2", max_cells=1, budget=budget)


class TestQueryContract(ReleaseContract):
    """Person 1 is in both towns, and counts in one of them."""

    SQL = "select town, count(distinct pid) as n from people group by town"

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {})
        return Query(plan_query(select, **{"epsilon": 1, "weights": None, "max_cells": 1, **given}))

    def wrong(self, schema):
        return [
            lambda: self.mechanism(schema, epsilon=0),
            lambda: self.mechanism(schema, epsilon="1e-80"),
            lambda: self.mechanism(schema, max_cells=0),
            lambda: self.mechanism(schema, max_cells=None),
        ]

    def outcome(self, drawn):
        return tuple(min(max(steps, -5), 5) for steps in drawn.columns[0].steps)

    def law(self, engine):
        laws = [self._law_of(counts) for counts in self._counts(engine)]
        return {told: sum(law[told] for law in laws) / len(laws) for told in laws[0]}

    def _counts(self, engine):
        bruges, ghent = engine.values(
            [tacit.tables.parse(f"town = '{town}'", engine.schema) for town in ("Bruges", "Ghent")]
        )
        return [(bruges - 1, ghent), (bruges, ghent - 1)] if bruges else [(0, ghent)]

    def _law_of(self, counts, scale=Fraction(1)):
        cells = [laplace_law(count, scale, 5) for count in counts]
        return {(a, b): cells[0][a] * cells[1][b] for a, b in product(*cells)}


class TestQueryOfEveryCell(TestQueryContract):
    def mechanism(self, schema, **given):
        return super().mechanism(schema, **{"epsilon": 2, "max_cells": 2, **given})

    def law(self, engine):
        [[counts]] = self.mechanism(engine.schema)._whole(engine)
        return self._law_of(counts)

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, max_cells=None)]


class TestQueryOfTwo(TestQueryContract):
    """A count and a sum, for half of ε each."""

    SQL = "select count(*) as n, sum(age) from people where town = 'Ghent'"

    def mechanism(self, schema, **given):
        return super().mechanism(schema, **{"epsilon": 4, **given})

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, epsilon="1e-80")]

    def outcome(self, drawn):
        return tuple(min(max(column.steps[0], -5), 5) for column in drawn.columns)

    def law(self, engine):
        [[(n,)], [(age,)]] = self.mechanism(engine.schema)._whole(engine)
        first, second = laplace_law(n, Fraction(1), 5), laplace_law(age, Fraction(2), 5)
        return {(a, b): first[a] * second[b] for a, b in product(first, second)}


class TestMeanContract(TestQueryContract):
    """The mean age of one row of each person; person 1 has two, of which one is chosen."""

    SQL = "select avg(age) from people"
    DRAWS = 700

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {}, 1)
        return Query(plan_query(select, **{"epsilon": 4, "weights": None, "max_cells": 1, **given}))

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, epsilon="1e-80")]

    def outcome(self, drawn):
        (column,) = drawn.columns
        return tuple(min(max(part.steps[0], -6), 6) for part in (column.count, column.total))

    def law(self, engine):
        """Noise of scale 1/2 on the count and 3/2 on Σ (2·age − 3)."""
        others = engine.point_counts(["age"], max_rows=2).rows()[:, 0].tolist()
        chosen = [others]
        if len(others) == 4 or 2 in others:  # person 1 is there, with ages 3 and 2
            chosen = [
                [*others[: others.index(each)], *others[others.index(each) + 1 :]]
                for each in (2, 3)
            ]
        laws = []
        for ages in chosen:
            first = laplace_law(len(ages), Fraction(1, 2), 6)
            second = laplace_law(sum(2 * age - 3 for age in ages), Fraction(3, 2), 6)
            laws.append({(a, b): first[a] * second[b] for a, b in product(first, second)})
        return {told: sum(law[told] for law in laws) / len(laws) for told in laws[0]}


# Means --------------------------------------------------------------------------------------------


def test_a_mean_is_that_of_plain_python_where_nothing_is_chosen(several, rich):
    table, rows = several
    sql = (
        "SELECT town, AVG(cost), AVG(cost) FILTER (WHERE week = 3) AS third, COUNT(*) FROM visits "
    )
    found = table.query(
        sql + "WHERE cost <> 3 GROUP BY town", epsilon=10**8, max_rows=9, max_cells=3, budget=rich
    ).to_dict()
    for place, town in enumerate(["Bruges", "Ghent", "Ypres"]):
        own = [row for row in rows if row[1] == town and row[3] != 3]
        for name, weeks in (("avg_cost", {3, 7, 8}), ("third", {3})):
            costs = [min(max(row[3], -5), 9) for row in own if row[2] in weeks]
            assert found[name][place] == pytest.approx(sum(costs) / len(costs), abs=1e-3)
            assert found[f"{name}_error"][place] < 1e-3
        assert found["count"][place] == len(own)


def test_the_values_of_a_person_are_chosen_at_random(tmp_path, rich):
    lines = [f"{pid},Ghent,7,{cost}" for pid in range(2000) for cost in (0, 1, 8)]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(lines) + "\n")
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        mean = table.query("SELECT AVG(cost) FROM visits", epsilon=LOTS, max_rows=1, budget=rich)
    assert abs(mean.to_dict()["avg_cost"][0] - 3) < 0.6  # 3 ± 0.08: neither the least nor the first


def test_each_row_has_a_mean_too_and_without_values_only_the_bounds_are_known(visits_file, rich):
    with tacit.open(visits_file, person=tacit.EACH_ROW) as table:
        found = table.query("SELECT AVG(cost) FROM visits", epsilon=LOTS, budget=rich)
        assert found.to_dict()["avg_cost"] == [pytest.approx(10.5, abs=1e-3)]
        nobody = "SELECT AVG(cost) FROM visits WHERE age > 119"
        (column,) = table.query(nobody, epsilon=LOTS, budget=rich).columns
    assert isinstance(column, MeanColumn)
    assert column.intervals() == [(Fraction(0), Fraction(100))]
    assert column.values == column.errors() == [Fraction(50)]


@pytest.mark.parametrize("count", [1, 4, 60])
def test_the_interval_of_a_mean_holds_as_often_as_it_says(count):
    """By drawing both noises many times, also where there are hardly any values."""
    coins, size = InsecureTestCoins(7), 1000
    privacy, low, high = tacit.Privacy(1), Fraction(0), Fraction(10)
    for true in (Fraction(0), Fraction(7), Fraction(10)):
        total = int(count * (2 * true - 10))
        noises = [coins.laplaces(Fraction(scale), size).tolist() for scale in (1, 10)]
        steps = [
            tuple(value + each for each in noise)
            for value, noise in zip((count, total), noises, strict=True)
        ]
        parts = [
            QueryColumn("n", privacy, Fraction(1), Fraction(1), steps[0]),
            QueryColumn("s", privacy, Fraction(1, 2), Fraction(10), steps[1]),
        ]
        mean = MeanColumn("m", parts[0], parts[1], (low, high))
        for beta, most in (("1/20", 85), ("1/2", 580)):  # five standard deviations
            off = sum(not a <= true <= b for a, b in mean.intervals(beta))
            assert off < most
            pairs = zip(mean.values, mean.errors(beta), strict=True)
            assert sum(abs(value - true) > error for value, error in pairs) <= off


def test_the_plan_of_a_mean_says_how_far_it_may_be_off(several):
    table, _ = several
    planned = table.plan_query("SELECT AVG(cost) FROM visits", epsilon=1)
    assert planned.cost.parts == ((2, Fraction(1, 2)),)
    assert (planned.noise_scale(0), planned.noise_scale(0, 1)) == (
        Fraction(4),
        Fraction(2 * 14 * 2),
    )
    assert planned.error("avg_cost", values=10**6) < planned.error("avg_cost", values=1000) < 1
    assert planned.error("avg_cost", values=1) == 14
    with pytest.raises(BadParameter, match="of how many values"):
        planned.error("avg_cost")
    assert "for a mean of 1000 values" in str(planned)
    coins = InsecureTestCoins(5)
    claimed = planned.error("avg_cost", values=500)
    for _ in range(50):  # whatever the noises are, within their errors
        count, total = 500 + coins.laplace(Fraction(4)), coins.laplace(Fraction(56))
        parts = [
            QueryColumn("n", tacit.Privacy(1), Fraction(1), Fraction(4), (count,)),
            QueryColumn("s", tacit.Privacy(1), Fraction(1, 2), Fraction(56), (total,)),
        ]
        mean = MeanColumn("m", parts[0], parts[1], (Fraction(-5), Fraction(9)))
        if abs(count - 500) <= parts[0].errors("1/40")[0]:
            assert mean.errors()[0] <= claimed


# Forms --------------------------------------------------------------------------------------------


def test_it_is_kept_told_again_saved_and_loaded(visits, rich, tmp_path):
    def asked(**more):
        return visits.query(
            TOWNS, **{"epsilon": 1, "max_cells": 1, "budget": rich, "retry_key": "k", **more}
        )

    sql = "SELECT town, AVG(cost) FROM visits GROUP BY town"
    mean = visits.query(sql, epsilon=1, max_rows=1, max_cells=1, budget=rich)
    assert wire.from_json(wire.to_json(mean)) == mean
    first = asked()
    spent = rich.spent
    assert asked() == first
    assert rich.spent == spent
    assert wire.from_json(wire.to_json(first)) == first
    *_, kept = rich.answers
    assert wire.from_json(kept.response) == first
    with pytest.raises(tacit.errors.KeyReused):
        asked(max_cells=2)
    first.save(tmp_path / "q.json")
    assert tacit.load_query(tmp_path / "q.json") == first
    fields = wire.to_json(first)
    short = [{**each, "steps": each["steps"][:1]} for each in fields["columns"]]
    wrong = {"cells": [[]], "columns": [], "tacit query": 2, "max_cells": 0, "query": 3}
    for name, value in [*wrong.items(), ("columns", short)]:
        with pytest.raises(BadParameter):
            wire.from_json({**fields, name: value})


def test_frames_pages_and_print(visits, rich, tmp_path):
    found = visits.query(TOWNS, epsilon=LOTS, max_cells=1, budget=rich)
    assert found.to_pandas()["people"].tolist() == [200, 90, 10]
    assert found.to_polars()["people_error"].to_list() == [0, 0, 0]
    names = ["town", "people", "people_error", "people_lower", "people_upper", "covers"]
    assert found.to_arrow().column_names == names
    found.to_csv(tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_text().splitlines()[:2] == [
        ",".join(names),
        f'Bruges,200,0,200,200,"{found.covers}"',
    ]
    assert str(found).splitlines()[1] == "Bruges  200 ± 0"
    assert "each person counts in 1 cell, chosen at random" in str(found)
    assert "<td style='text-align:left'>Ghent</td>" in found._repr_html_()
    assert repr(found).startswith("<QueryResult: 3 rows, (ε = 1000000, δ = 0)")
    hostile = replace(found, columns=(replace(found.columns[0], name="<script>"),))
    assert "<script>" not in hostile._repr_html_()
    assert isinstance(found, QueryResult)


CUT = "± does not cover the rest"


def test_every_form_says_that_the_error_does_not_cover_what_was_cut(several, rich, tmp_path):
    table, _ = several
    sql = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town"
    found = table.query(sql, epsilon=1, max_cells=2, budget=rich)
    counted = "each person counts in up to 2 cells, chosen at random; "
    counted += f"n: up to 2 rows of each person in a cell; {CUT}"
    assert found.covers == counted
    told = wire.from_json(wire.to_json(found))
    for each in (found, told):
        assert counted in str(each).splitlines()[-1]
        assert counted in repr(each)
        assert counted in each._repr_html_()
        assert each.to_dict()["covers"] == [counted] * 3
        assert wire.to_json(each)["covers"] == counted
    found.to_csv(tmp_path / "q.csv")
    assert all(counted in line for line in (tmp_path / "q.csv").read_text().splitlines()[1:])
    named = table.query(sql.replace("AS n", "AS covers"), epsilon=1, max_cells=2, budget=rich)
    assert list(named.to_dict())[1:] == [
        *("covers", "covers_error", "covers_lower", "covers_upper", "covers_")
    ]
    whole = table.query(TOWNS, epsilon=1, max_cells=3, budget=rich)
    assert whole.covers == ""
    assert list(whole.to_dict())[1:] == [
        *("people", "people_error", "people_lower", "people_upper")
    ]
    assert "covers" not in wire.to_json(whole)


def test_a_number_about_some_rows_of_each_person_says_so(several, rich):
    table, _ = several
    two, one = f"up to 2 rows of each person; {CUT}", f"1 row of each person; {CUT}"
    counted = table.count("SELECT COUNT(*) FROM visits", epsilon=1, budget=rich)
    assert str(counted).endswith(f"(95 %), {two}")
    assert str(wire.from_json(wire.to_json(counted))) == str(counted)
    assert str(2 * counted + 1).endswith(two)
    assert wire.from_json(next(iter(rich.answers)).response).covers == two
    fewer = table.count("SELECT COUNT(*) FROM visits", epsilon=1, max_rows=1, budget=rich)
    assert fewer.covers == one
    assert table.count("week = 3", epsilon=1, budget=rich).covers == ""
    for drawn in (
        table.histogram("week", epsilon=1, budget=rich),
        table.ranges("week", epsilon=1, budget=rich),
        table.synthetic(["week"], rows=9, epsilon=1, budget=rich),
    ):
        assert CUT in str(drawn)
        assert CUT in wire.to_json(drawn)["covers"]
        if not isinstance(drawn, tacit.Synthetic):  # whose rows have no errors beside them
            assert {CUT in said for said in drawn.to_dict()["covers"]} == {True}
    assert CUT in str(table.histogram("week", epsilon=1, budget=rich)[7])
    assert CUT in str(table.ranges("week", epsilon=1, budget=rich).count("week <= 3"))
    by_town = "SELECT town, COUNT(*) FROM visits GROUP BY town"
    top = table.top(2, by_town, epsilon=1, counts_epsilon=1, budget=rich)
    for told in (top, wire.from_json(wire.to_json(top))):
        assert [line.endswith(two) for line in str(told).splitlines()] == [True, True]
        assert told.to_dict()["covers"] == [two, two]
    assert wire.to_json(top)["covers"] == two
    stream = table.numeric_sparse(threshold=-1000, at_most=5, epsilon=1, sensitivity=2, budget=rich)
    asked = stream.ask("SELECT COUNT(*) FROM visits")
    assert str(asked).endswith(two)
    assert wire.to_json(asked)["covers"] == two == wire.from_json(wire.to_json(asked)).covers
    stream.ask("SELECT COUNT(*) FROM visits WHERE week <= 3", retry_key="monday")
    kept = [each.response for each in rich.answers if "tacit answer" in (each.response or {})]
    assert [wire.from_json(each).covers for each in kept] == [two]
    everybody = stream.ask("week = 3")
    assert "cover" not in str(everybody)
    assert stream.history.to_dict()["covers"] == [two, two, ""]


def test_the_output_says_how_many_rows_were_counted(visits, rich):
    found = visits.query("SELECT COUNT(*) FROM visits", epsilon=1, max_rows=1, budget=rich)
    assert "count: 1 row of each person in a cell" in str(found)


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("age > 3", "a query must be a SELECT"),
        ("SELECT town FROM visits GROUP BY town", "nothing to count or add up"),
        ("SELECT town AS t, COUNT(*) FROM visits GROUP BY town", "keeps the name of its column"),
        ("SELECT COUNT(*) AS town FROM visits GROUP BY town", "another column called town"),
        ("SELECT COUNT(*) AS a, SUM(cost) AS a FROM visits", "another column called a"),
        ("SELECT COUNT(*) AS a, SUM(cost) AS a_error FROM visits", "another column called a_error"),
        ("SELECT age, COUNT(*) FROM visits GROUP BY town", "rows cannot be shown"),
        ("SELECT COUNT(*) FROM visits GROUP BY FLOOR(age / 10)", r"use table.ranges\('age', "),
        ("SELECT COUNT(*) FROM visits GROUP BY age % 10", r"use table.ranges\('age', "),
        ("SELECT COUNT(*) FROM visits GROUP BY age", "needs the key values of age"),
        ("SELECT COUNT(*) FROM elsewhere", "about the table visits only"),
        ("SELECT COUNT(*) - COUNT(*) FROM visits", "cancel out"),
        ("SELECT COUNT(*) FROM visits WHERE age > :a", "has no value"),
        ("SELECT AVG(town) FROM visits", "town is text, and has no mean"),
        ("SELECT AVG(pid) FROM visits", "AVG needs bounds for pid"),
        ("SELECT AVG(cost + 1) FROM visits", "AVG takes a column by name"),
        ("SELECT", "FROM is missing"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_it_is_paid(visits, sql, why):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    with pytest.raises(QuestionRefused, match=why):
        visits.query(sql, epsilon=1, max_rows=1, max_cells=1, budget=budget)
    assert budget.spent.epsilon == 0


def test_the_cells_of_a_person_have_no_default_but_the_schemas(visits, visits_file, rich):
    with pytest.raises(BadParameter, match=r"max_cells.*max_cells = 3"):
        visits.query(TOWNS, epsilon=1, budget=rich)
    with pytest.raises(QuestionRefused, match="max_rows = 10"):
        visits.query("SELECT COUNT(*) FROM visits", epsilon=1, budget=rich)
    assert rich.spent.epsilon == 0
    declared = "max_cells = 2\n" + visits_file.with_suffix(".toml").read_text()
    with tacit.open(visits_file, person="pid", schema=declared) as table:
        assert table.plan_query(TOWNS, epsilon=1).max_cells == 2
        assert table.plan_query(TOWNS, epsilon=1, max_cells=1).max_cells == 1
        assert table.plan_query(TOWNS, epsilon=1, max_cells=99).max_cells == 3
        assert "max_cells = 2" in tacit.tables.write_schema(table.schema)
        assert table.schema.digest == visits.schema.digest  # a stream of 0.1 is resumed


def test_one_row_of_a_person_lies_in_one_cell(visits_file, rich):
    declared = visits_file.with_suffix(".toml").read_text()
    rows = "SELECT town, COUNT(*) AS rows FROM visits GROUP BY town"
    towns = "SELECT COUNT(DISTINCT town) AS towns FROM visits"
    largest = f"{TOWNS} ORDER BY people DESC LIMIT 2"
    with tacit.open(visits_file, person="pid", schema="max_rows = 1\n" + declared) as table:
        assert table.query(rows, epsilon=1, budget=rich).max_cells == 1
        assert [table.plan_query(sql, epsilon=1).max_cells for sql in (TOWNS, largest)] == [1, 1]
        assert table.plan_query(towns, epsilon=1).select.columns[0].max_keys == 1
        assert table.plan_query(TOWNS, epsilon=1, max_cells=2).max_cells == 2
    both = "max_rows = 1\nmax_cells = 2\n" + declared
    with tacit.open(visits_file, person="pid", schema=both) as table:
        assert table.plan_query(TOWNS, epsilon=1).max_cells == 2
    with tacit.open(visits_file, person="pid", schema=declared) as table:
        assert table.plan_query(rows, epsilon=1, max_rows=1).max_cells == 1
        typed: dict[str, Any] = {"max_rows": "1"}  # as a form sends it
        assert table.plan_query(rows, epsilon=1, **typed).max_cells == 1
        assert table.plan_query(largest, epsilon=1, max_rows=1).max_cells == 2
        with pytest.raises(BadParameter, match="max_cells"):
            table.plan_query(rows, epsilon=1, max_rows=2)
    with tacit.open(visits_file, person=tacit.EACH_ROW, schema=declared) as table:
        assert table.plan_query(rows, epsilon=1).max_cells == 1


@pytest.mark.parametrize("weights", [[1], [1, 2, 3], [1, 0], [1, -1], ["x", 1]])
def test_a_weight_for_each_aggregate(visits, rich, weights):
    sql = "SELECT COUNT(DISTINCT pid), SUM(cost) FROM visits"
    with pytest.raises(BadParameter, match="weights"):
        visits.query(sql, epsilon=1, weights=weights, budget=rich)


def test_what_is_called_like_the_end_of_an_interval_keeps_its_name(visits, rich):
    """Of a mean, both sides of the interval differ; of a quantile, ranks alone are known."""
    sql = "SELECT AVG(cost) AS a, COUNT(*) AS a_lower, MEDIAN(age) AS m FROM visits"
    result = visits.query(sql, epsilon=1, max_rows=1, budget=rich)
    found, (mean, count, _) = result.to_dict(), result.columns
    assert found["a_lower"] == count.values
    assert [*found][6:-1] == ["a_lower_", "a_upper", "a_lower_lower", "a_lower_upper"]
    assert [(found["a_lower_"][0], found["a_upper"][0])] == [
        tuple(map(float, ends)) for ends in mean.intervals()
    ]
