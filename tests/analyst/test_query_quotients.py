"""Percentages, ratios, means that are written as quotients, and variances."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from statistics import pstdev, pvariance, stdev, variance

import pytest
from tests.analyst.test_query import TOML, TestQueryContract

import tacit
from tacit import wire
from tacit.analyst.query import Query
from tacit.analyst.query_columns import (
    MeanColumn,
    QueryColumn,
    RatioColumn,
    ShareColumn,
    SpreadColumn,
)
from tacit.analyst.query_plan import plan_query
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import QuestionRefused
from tacit.tables.language.aggregate_kinds import Mean, Plain, Portion, Ratio, Spread
from tacit.tables.language.prepared import Reader
from tacit.testing.releases import laplace_law

HUGE = 10**12


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**18, covers=["visits", "people"])


@pytest.fixture
def several(tmp_path):
    """Sixty people with up to six rows, some without a cost."""
    coins, rows = Random(5), []
    for pid in range(60):
        for _ in range(coins.randrange(7)):
            town = coins.choice(["Bruges", "Ghent", "Ypres", "elsewhere"])
            cost = coins.choice([None, *range(-7, 12)])
            rows.append((pid, town, coins.choice([3, 7, 7, 8]), cost))
    lines = [",".join("" if each is None else str(each) for each in row) for row in rows]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(lines) + "\n")
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        yield table, rows


def clamped(cost, low=-5, high=9):
    return min(max(cost, low), high)


def of_town(rows, town):
    return [row for row in rows if row[1] == town]


TOWNS = ["Bruges", "Ghent", "Ypres"]


# What they are ------------------------------------------------------------------------------------


def test_each_quotient_is_read_in_the_way_that_has_the_least_noise(several):
    table, _ = several

    def kind(asked, person="pid"):
        planned = table.plan_query(f"SELECT {asked} FROM visits", epsilon=1, max_rows=2)
        (column,) = planned.select.columns
        return type(column.kind), planned.cost.parts, column.factor

    whole, half, third = ((1, Fraction(1)),), ((2, Fraction(1, 2)),), ((3, Fraction(1, 3)),)
    for asked, expected in {
        "100.0 * COUNT(*) FILTER (WHERE week = 3) / COUNT(*)": (Portion, whole, 100),
        "100 * (COUNT(*) FILTER (WHERE week = 3)::float / NULLIF(COUNT(*), 0))": (
            *(Portion, whole, 100),
        ),
        "COUNT(DISTINCT pid) FILTER (WHERE week = 3) / (2 * COUNT(DISTINCT pid))": (
            *(Portion, whole, Fraction(1, 2)),
        ),
        "SUM(CASE WHEN week = 3 THEN 1 ELSE 0 END) / COUNT(*)": (Portion, whole, 1),
        "SUM(cost) / COUNT(*)": (Mean, half, 1),
        "0.01 * SUM(cost) / COUNT(*)": (Mean, half, Fraction(1, 100)),
        "SUM(cost) / COUNT(DISTINCT pid)": (Mean, half, 1),
        "COUNT(*) / COUNT(DISTINCT pid)": (Mean, half, 1),
        "COUNT(*) FILTER (WHERE week = 3) / COUNT(*) FILTER (WHERE week = 7)": (Ratio, half, 1),
        "COUNT(DISTINCT pid) / COUNT(*)": (Ratio, half, 1),
        "(SUM(cost) + COUNT(*)) / COUNT(*)": (Ratio, half, 1),
        "STDDEV(cost)": (Spread, third, 1),
        "2 * AVG(cost)": (Mean, half, 2),
        "2 * COUNT(*)": (Plain, whole, 1),
    }.items():
        assert kind(asked) == expected, asked


def test_a_percentage_of_people_or_rows_is_that_of_plain_python(several, rich):
    table, rows = several
    sql = """SELECT town, 100.0 * COUNT(*) FILTER (WHERE week = 3) / COUNT(*) AS visits,
        100.0 * COUNT(DISTINCT pid) FILTER (WHERE week = 3) / COUNT(DISTINCT pid) AS people
        FROM visits WHERE week <> 8 GROUP BY town"""
    for cells in (2, 3):  # chosen or not: with three cells nothing can be left out
        found = table.query(sql, epsilon=HUGE, max_rows=9, max_cells=cells, budget=rich).to_dict()
        if cells == 2:
            assert all(0 <= each <= 100 for each in found["visits"] + found["people"])
            continue
        for place, town in enumerate(TOWNS):
            own = [row for row in of_town(rows, town) if row[2] != 8]
            third = [row for row in own if row[2] == 3]
            share = len({row[0] for row in third}) / len({row[0] for row in own})
            assert found["people"][place] == pytest.approx(100 * share)
            assert found["visits"][place] == pytest.approx(100 * len(third) / len(own))
            assert found["people_error"][place] < 1e-6


def test_people_who_are_inside_with_one_row_and_outside_with_another_are_inside(several):
    table, rows = several
    sql = "SELECT COUNT(DISTINCT pid) FILTER (WHERE week = 3) / COUNT(DISTINCT pid) FROM visits"
    drawn = Query(table.plan_query(sql, epsilon=1))
    assert not drawn.plan.by_person
    inside = {row[0] for row in rows if row[2] == 3}
    rest = {row[0] for row in rows} - inside
    assert inside & {row[0] for row in rows if row[2] != 3}
    true = [[[len(inside)], [len(rest)]]]
    assert drawn._whole(table.engine) == drawn._chosen(table.engine, InsecureTestCoins(1)) == true


def test_means_that_are_written_as_quotients(several, rich):
    table, rows = several
    sql = """SELECT town, SUM(cost) / COUNT(*) AS by_row,
        10 * SUM(cost) FILTER (WHERE week = 7) / COUNT(*) AS sevens,
        SUM(cost) / COUNT(DISTINCT pid) AS by_person,
        COUNT(*) FILTER (WHERE week = 3) / COUNT(DISTINCT pid) AS thirds
        FROM visits GROUP BY town"""
    found = table.query(sql, epsilon=HUGE, max_rows=9, max_cells=3, budget=rich).to_dict()
    for place, town in enumerate(TOWNS):
        own = of_town(rows, town)
        costs = [(row, 0 if row[3] is None else clamped(row[3])) for row in own]
        assert found["by_row"][place] == pytest.approx(sum(c for _, c in costs) / len(own))
        sevens = sum(cost for row, cost in costs if row[2] == 7)
        assert found["sevens"][place] == pytest.approx(10 * sevens / len(own))
        people = {row[0] for row in own}
        totals = [clamped(sum(c for row, c in costs if row[0] == each), -6, 12) for each in people]
        for each in people:
            assert any(row[0] == each for row in own)
        assert found["by_person"][place] == pytest.approx(sum(totals) / len(people))
        thirds = sum(row[2] == 3 for row in own)
        assert found["thirds"][place] == pytest.approx(thirds / len(people))


def test_a_ratio_of_two_numbers_and_variances(several, rich):
    table, rows = several
    sql = """SELECT town, COUNT(*) FILTER (WHERE week = 3) / COUNT(*) FILTER (WHERE week = 7) AS r,
        VAR_POP(cost) AS vp, VARIANCE(cost) AS vs, STDDEV_POP(cost) AS dp,
        STDDEV(cost) FILTER (WHERE week <> 8) AS ds FROM visits GROUP BY town"""
    found = table.query(sql, epsilon=HUGE, max_rows=9, max_cells=3, budget=rich).to_dict()
    for place, town in enumerate(TOWNS):
        own = of_town(rows, town)
        weeks = [row[2] for row in own]
        assert found["r"][place] == pytest.approx(weeks.count(3) / weeks.count(7))
        costs = [clamped(row[3]) for row in own if row[3] is not None]
        most = [clamped(row[3]) for row in own if row[3] is not None and row[2] != 8]
        for name, true in {
            "vp": pvariance(costs),
            "vs": variance(costs),
            "dp": pstdev(costs),
            "ds": stdev(most),
        }.items():
            assert found[name][place] == pytest.approx(true, abs=1e-5)
            assert 0 <= found[f"{name}_error"][place] < 1e-3


def test_each_row_is_a_person_too(visits_file, rich):
    with tacit.open(visits_file, person=tacit.EACH_ROW) as table:
        sql = """SELECT 100.0 * COUNT(*) FILTER (WHERE town = 'Ghent') / COUNT(*) AS p,
            SUM(cost) / COUNT(*) AS m, VAR_POP(cost) AS v FROM visits"""
        found = table.query(sql, epsilon=HUGE, budget=rich).to_dict()
    assert found["p"] == [pytest.approx(30)]
    assert found["m"] == [pytest.approx(10.5)]


def test_a_wide_column_is_added_up_exactly(tmp_path, rich):
    (tmp_path / "people.csv").write_text("n\n0\n4611686018427387903\n4611686018427387903\n")
    schema = '[columns.n]\ntype = "integer"\nbounds = [0, 4611686018427387903]\n'
    with tacit.open(tmp_path / "people.csv", person=tacit.EACH_ROW, schema=schema) as table:
        drawn = Query(table.plan_query("SELECT VAR_POP(n) FROM people", epsilon=1))
        [[count, total, squares]] = drawn._chosen(table.engine, InsecureTestCoins(1))
    width = 2**62 - 1
    assert (count, total, squares) == ([3], [width], [3 * width**2])


# Their errors -------------------------------------------------------------------------------------


def column(steps, scale, grid=1):
    return QueryColumn("c", tacit.Privacy(1), Fraction(grid), Fraction(scale), tuple(steps))


def test_what_is_told_lies_in_its_interval_whatever_the_noise_was():
    drawn = list(product((-9, -1, 0, 1, 2, 9), (-60, -1, 0, 1, 60), (-90, 0, 90)))
    count, total, squares = (column(steps, 3) for steps in zip(*drawn, strict=True))
    bounds = Fraction(-5), Fraction(9)
    for made in (
        MeanColumn("m", count, total, bounds),
        ShareColumn("s", count, total, Fraction(-100)),
        RatioColumn("r", total, count),
        *(
            SpreadColumn("v", count, total, squares, bounds, sample, root)
            for sample, root in product((False, True), repeat=2)
        ),
    ):
        for beta in ("1/2", "1/20", "1e-9"):
            told = zip(made.values, made.intervals(beta), made.errors(beta), strict=True)
            for value, (low, high), error in told:
                assert low <= value <= high
                assert error == max(value - low, high - value)


@pytest.mark.parametrize(("inside", "rest"), [(0, 1), (3, 2), (10, 0), (30, 60)])
def test_the_interval_of_a_share_holds_as_often_as_it_says(inside, rest):
    coins, size = InsecureTestCoins(7), 1000
    parts = [
        column([true + each for each in coins.laplaces(Fraction(2), size).tolist()], 2)
        for true in (inside, rest)
    ]
    share = ShareColumn("s", parts[0], parts[1], Fraction(100))
    ratio = RatioColumn("r", parts[0], parts[1])
    true = Fraction(100 * inside, inside + rest)
    for beta, most in (("1/20", 85), ("1/2", 580)):  # five standard deviations
        assert sum(not a <= true <= b for a, b in share.intervals(beta)) < most
        pairs = zip(share.values, share.errors(beta), strict=True)
        assert sum(abs(value - true) > error for value, error in pairs) < most
        if rest:
            wrong = sum(not a <= Fraction(inside, rest) <= b for a, b in ratio.intervals(beta))
            assert wrong < most


def test_the_interval_of_a_quotient_is_the_range_over_all_that_the_noise_allows():
    """By looking at every corner and many points of the box."""
    coins = Random(3)
    for _ in range(60):
        inside, rest = coins.randrange(-3, 12), coins.randrange(-3, 12)
        share = ShareColumn("s", column([inside], 1), column([rest], 1))
        (low, high), off = share.intervals("1/2")[0], column([0], 1).errors("1/4")[0]
        wide = range(-int(off), int(off) + 1)
        allowed = [
            Fraction(inside + a, inside + a + rest + b)
            for a, b in product(wide, wide)
            if inside + a >= 0 and rest + b >= 0 and inside + a + rest + b >= 1
        ]
        if allowed:
            assert low <= min(allowed)
            assert max(allowed) <= high
            if min(inside, rest) > off:
                assert (low, high) == (min(allowed), max(allowed))


@pytest.mark.parametrize("sample", [False, True])
def test_the_interval_of_a_variance_is_the_range_over_all_that_the_noise_allows(sample):
    coins = Random(4)
    for _ in range(80):
        count, total = coins.randrange(1, 30), coins.randrange(-60, 60)
        squares = coins.randrange(-400, 400)
        parts = (column([count], 1), column([total], 3, "1/2"), column([squares], 5, "1/8"))
        spread = SpreadColumn("v", *parts, (Fraction(-5), Fraction(5)), sample, False)
        (low, high), third = spread.intervals("1/3")[0], Fraction(1, 9)
        (n0, n1), (t0, t1), (s0, s1) = (part.intervals(third)[0] for part in parts)
        found = []
        for n in range(max(int(n0), 1 + sample), int(n1) + 1):
            for t, s in product((t0, (t0 + t1) / 2, t1, max(t0, min(t1, Fraction(0)))), (s0, s1)):
                value = s / n + Fraction(25, 2) - (t / n) ** 2
                if 0 <= value <= 25:
                    found.append(value * Fraction(n, n - 1) if sample else value)
        if found:
            assert low <= min(found) <= max(found) <= high
            rooted = SpreadColumn("v", *parts, spread.bounds, sample, True).intervals("1/3")[0]
            if low < spread.values[0] < high:  # as an end, its root is told as near as it goes
                assert rooted[0] ** 2 <= low <= high <= rooted[1] ** 2
            assert abs(rooted[1] ** 2 - high) < Fraction(1, 10**9)


def test_a_plan_says_no_less_than_the_result_will_say(several):
    """Whatever the noises are, within their errors."""
    table, _ = several
    sql = """SELECT 100.0 * COUNT(*) FILTER (WHERE week = 3) / COUNT(*) AS share,
        COUNT(*) FILTER (WHERE week = 3) / COUNT(*) FILTER (WHERE week = 7) AS ratio,
        VAR_POP(cost) AS vp, VARIANCE(cost) AS vs, STDDEV(cost) AS ds FROM visits"""
    planned = table.plan_query(sql, epsilon=10, max_rows=1)
    drawn, coins = Query(planned), Random(9)
    values = 400
    truths = {  # of 400 values of 2 and of -5..9
        "share": (100, 300),
        "ratio": (values, values),
        "vp": (values, values * 0, 0),
        "vs": (values, 14 * values, values * 196),
        "ds": (values, -14 * values, values * 196),
    }
    for place, asked in enumerate(planned.select.columns):
        claimed = planned.error(asked.name, values=values)
        assert planned.error(asked.name, values=10**6) < claimed
        for _ in range(40):
            noisy = []
            for at, (part, true) in enumerate(zip(asked.parts, truths[asked.name], strict=True)):
                scale = planned.noise_scale(place, at)
                reach = int(column([0], scale).intervals(Fraction(1, 20 * len(asked.parts)))[0][1])
                steps = (true + coins.choice([-reach, reach, coins.randint(-reach, reach)]),)
                noisy.append(QueryColumn(part.name, tacit.Privacy(1), part.grid, scale, steps))
            from tacit.analyst.query import _made_of

            assert _made_of(asked, noisy).errors()[0] <= claimed, asked.name
    told = str(planned)
    assert "for a share of 1000" in told
    assert "for a ratio of 1000 to 1000" in told
    assert "for the variance of 1000 values" in told
    assert drawn.plan is planned


# What they cost -----------------------------------------------------------------------------------


class TestShareContract(TestQueryContract):
    """Person 1 is in both towns; whoever has been in Bruges is inside."""

    SQL = """select count(distinct pid) filter (where town = 'Bruges') / count(distinct pid)
        from people"""

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, epsilon="1e-80")]

    def outcome(self, drawn):
        (share,) = drawn.columns
        return tuple(min(max(part.steps[0], -5), 5) for part in share.measured)

    def law(self, engine):
        [[(inside,), (rest,)]] = self.mechanism(engine.schema)._whole(engine)
        return self._law_of((inside, rest))


class TestShareOfRows(TestShareContract):
    """One row of each person counts, chosen before it is told apart."""

    SQL = "select 100.0 * count(*) filter (where town = 'Bruges') / count(*) from people"

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {}, 1)
        return Query(plan_query(select, **{"epsilon": 1, "weights": None, "max_cells": 1, **given}))

    def law(self, engine):
        """Person 1 is inside with one of their two rows."""
        values = engine.values(
            [
                tacit.tables.parse(asked, engine.schema)
                for asked in ("town = 'Bruges'", "town <> ''")
            ]
        )
        inside, everybody = values
        laws = [self._law_of((here, everybody - here)) for here in {inside, max(inside - 1, 0)}]
        return {told: sum(law[told] for law in laws) / len(laws) for told in laws[0]}


class TestVarianceContract(TestShareContract):
    SQL = "select var_pop(age) from people where town = 'Ghent'"
    DRAWS = 400

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {}, 1)
        return Query(plan_query(select, **{"epsilon": 9, "weights": None, "max_cells": 1, **given}))

    def outcome(self, drawn):
        (spread,) = drawn.columns
        return tuple(min(max(part.steps[0], -4), 4) for part in spread.measured)

    def law(self, engine):
        """A third of 9 each: noise of scale 1/3 on the count, 3/3 on Σ y, 9/3 on Σ (2y² − 9)."""
        select = Reader(engine.schema).select(self.SQL, {}, 1)
        (column,) = select.columns
        rows = engine.rows_by_person(select.where, ["age"], [column.question.terms[0].where])
        ys = [2 * age - 3 for age in rows.columns["age"].codes.tolist()]
        true = (len(ys), sum(ys), sum(2 * y * y - 9 for y in ys))
        laws = [
            laplace_law(value, Fraction(scale, 3), 4)
            for value, scale in zip(true, (1, 3, 9), strict=True)
        ]
        return {
            told: laws[0][told[0]] * laws[1][told[1]] * laws[2][told[2]] for told in product(*laws)
        }


# Forms and refusals -------------------------------------------------------------------------------


def test_all_of_them_are_kept_and_read_again(several, rich, tmp_path):
    table, _ = several
    sql = """SELECT town, 100.0 * COUNT(*) FILTER (WHERE week = 3) / COUNT(*) AS p,
        COUNT(DISTINCT pid) / COUNT(*) AS r, STDDEV(cost), VAR_POP(cost), 2 * SUM(cost) / COUNT(*)
        FROM visits GROUP BY town"""
    found = table.query(sql, epsilon=1, max_cells=1, budget=rich)
    names = ["p", "r", "stddev_cost", "variance_cost", "ratio"]
    assert [each.name for each in found.columns] == names
    assert wire.from_json(wire.to_json(found)) == found
    found.save(tmp_path / "q.json")
    assert tacit.load_query(tmp_path / "q.json") == found
    assert all(name in str(found) for name in names)
    assert list(found.to_pandas().columns)[1 : 2 * len(names) : 2] == names
    found.to_polars()
    found.to_arrow()
    fields = wire.to_json(found)
    for place, key, value in [
        *((0, "factor", "0"), (0, "inside", 3), (2, "sample", 1), (2, "spread of", ["3", "1"])),
        *((1, "above", {}), (4, "mean of", ["1"])),
    ]:
        broken = [dict(each) for each in fields["columns"]]
        broken[place][key] = value
        with pytest.raises(tacit.errors.BadParameter):
            wire.from_json({**fields, "columns": broken})


def test_parameters_are_filled_in_on_both_sides(several, rich):
    table, rows = several
    sql = """SELECT COUNT(*) FILTER (WHERE week = :w) / COUNT(*) AS p,
        COUNT(*) FILTER (WHERE week = :w) / COUNT(*) FILTER (WHERE week = :v) AS r,
        SUM(cost) FILTER (WHERE week = :w) / COUNT(DISTINCT pid) AS m FROM visits"""
    given = {"w": 3, "v": 7}
    found = table.query(sql, epsilon=HUGE, max_rows=9, params=given, budget=rich).to_dict()
    weeks = [row[2] for row in rows]
    assert found["p"] == [pytest.approx(weeks.count(3) / len(weeks))]
    assert found["r"] == [pytest.approx(weeks.count(3) / weeks.count(7))]
    with pytest.raises(QuestionRefused, match="has no value"):
        table.query(sql, epsilon=1, params={"w": 3}, budget=rich)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("COUNT(*) / 2", "a number is not an aggregate"),
        ("1 / COUNT(*)", "a constant cannot be added"),
        ("COUNT(*) / SUM(cost)", "may be zero or negative"),
        ("COUNT(*) / (COUNT(*) - COUNT(DISTINCT pid))", "may be zero or negative"),
        ("COUNT(*) / (COUNT(*) - COUNT(*))", "cancel out"),
        ("STDDEV(town)", "town is text"),
        ("STDDEV(pid)", "STDDEV needs bounds for pid"),
        ("VAR_POP(cost + 1)", "takes a column by name"),
        ("COUNT(*) / COUNT(*) / COUNT(*)", "division"),
        ("COUNT(*) / COUNT(*) + 1", "division"),
    ],
)
def test_what_is_no_quotient_is_refused(several, rich, asked, why):
    table, _ = several
    with pytest.raises(QuestionRefused, match=why):
        table.query(f"SELECT {asked} FROM visits", epsilon=1, max_rows=1, budget=rich)
    assert rich.spent.epsilon == 0
