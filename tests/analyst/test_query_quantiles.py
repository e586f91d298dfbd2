"""Medians, percentiles, and what stands for the least and the greatest value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from datetime import date
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from tests.analyst.test_query import TOML, TestQueryContract

import tacit
from tacit import wire
from tacit.analyst.query import Query
from tacit.analyst.query_columns import QuantileColumn
from tacit.analyst.query_plan import plan_query
from tacit.analyst.query_quantiles import QuantileTree, groups
from tacit.book.coins import InsecureTestCoins
from tacit.book.quantile import QuantileMechanism
from tacit.budget import Budget
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables.language.prepared import Reader

HUGE = 10**9
SCHEMA = (
    TOML
    + '[columns.day]\ntype = "date"\nbounds = ["2026-01-01", "2026-12-31"]\n'
    + '[columns.weight]\ntype = "real"\ngrid = "0.5"\nbounds = [0, 10]\n'
)


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=10**18, covers=["visits"])


@pytest.fixture
def several(tmp_path):
    """Three hundred people with up to three rows."""
    coins, rows = Random(5), []
    for pid in range(300):
        for _ in range(coins.randrange(4)):
            town = coins.choice(["Bruges", "Ghent", "elsewhere"])
            cost = coins.choice([None, *range(-9, 14)])
            day = date.fromordinal(date(2026, 1, 1).toordinal() + coins.randrange(365))
            rows.append((pid, town, coins.choice([3, 7, 7, 8]), cost, day, coins.randrange(21) / 2))
    lines = [",".join("" if each is None else str(each) for each in row) for row in rows]
    head = "pid,town,week,cost,day,weight\n"
    (tmp_path / "visits.csv").write_text(head + "\n".join(lines) + "\n")
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=SCHEMA) as table:
        yield table, rows


def is_quantile(value, values, share):
    less, more = sum(x < value for x in values), sum(x > value for x in values)
    return less <= share * len(values) and more <= (1 - share) * len(values)


def test_every_spelling_gives_that_quantile_of_plain_python(several, rich):
    table, rows = several
    asked = {
        "MEDIAN(cost)": Fraction(1, 2),
        "QUANTILE(cost, 0.9)": Fraction(9, 10),
        "quantile_cont(cost, 0.9)": Fraction(9, 10),
        "QUANTILE_DISC(cost, 0.1)": Fraction(1, 10),
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost)": Fraction(1, 4),
        "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY cost DESC)": Fraction(3, 4),
        "PERCENTILE_CONT(cost, 1/3)": Fraction(1, 3),
        "MEDIAN(cost) FILTER (WHERE week = 7)": Fraction(1, 2),
    }
    sql = f"SELECT town, {', '.join(asked)} FROM visits WHERE week <> 8 GROUP BY town"
    found = table.query(sql, epsilon=HUGE, max_rows=9, max_cells=3, budget=rich)
    names = ["median_cost", "quantile_cost", "quantile_cost_", "quantile_cost__"]
    assert [column.name for column in found.columns][:4] == names
    for place, town in enumerate(["Bruges", "Ghent"]):
        for column, (text, share) in zip(found.columns, asked.items(), strict=True):
            weeks = {7} if "FILTER" in text else {3, 7}
            own = [row[3] for row in rows if row[1] == town and row[2] in weeks]
            costs = [min(max(cost, -5), 9) for cost in own if cost is not None]
            assert is_quantile(column.values[place], costs, share), text
            assert column.errors()[place] == 1
    assert found.columns[0].values[2] in range(-5, 10)  # nobody lives in Ypres


def test_dates_keys_and_reals_have_quantiles_too(several, rich):
    table, rows = several
    sql = "SELECT MEDIAN(day) AS d, MEDIAN(weight) AS w, MEDIAN(week) AS k FROM visits"
    found = table.query(sql, epsilon=HUGE, max_rows=9, budget=rich)
    shown = found.to_dict()
    assert is_quantile(shown["d"][0], [row[4] for row in rows], Fraction(1, 2))
    assert is_quantile(shown["w"][0], [row[5] for row in rows], Fraction(1, 2))
    assert shown["k"] == [7]  # of 3 and 7: what is not declared counts nowhere
    assert list(shown)[1] == "d_rank_error"
    assert f"{shown['d'][0]} ± 1 ranks" in str(found)
    for frame in (found.to_pandas(), found.to_polars(), found.to_arrow()):
        assert frame.shape[0] == 1
    assert wire.from_json(wire.to_json(found)) == found


def test_of_each_person_some_rows_are_chosen_at_random(tmp_path):
    lines = ["1,Ghent,7,0", "1,Ghent,7,5", "1,Ghent,7,9"]
    (tmp_path / "visits.csv").write_text("pid,town,week,cost\n" + "\n".join(lines) + "\n")
    seen: Counter[int] = Counter()
    coins = InsecureTestCoins(2)
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=TOML) as table:
        drawn = Query(table.plan_query("SELECT MEDIAN(cost) FROM visits", epsilon=1, max_rows=1))
        for _ in range(300):
            [[places]] = drawn._chosen(table.engine, coins)
            seen[places.tolist()[0]] += 1
            assert len(places) == 1
    assert set(seen) == {5, 10, 14}  # from -5 on
    assert min(seen.values()) > 60


def test_the_least_and_the_greatest_are_said_to_be_others(several, rich):
    table, rows = several
    sql = "SELECT MIN(cost), MAX(cost), QUANTILE(cost, 0) AS q FROM visits"
    found = table.query(sql, epsilon=3, max_rows=1, budget=rich)
    least, most, other = found.columns
    assert isinstance(least, QuantileColumn)
    assert isinstance(other, QuantileColumn)
    assert other.mechanism == least.mechanism
    assert isinstance(most, QuantileColumn)
    assert isinstance(least.mechanism, QuantileMechanism)
    rank = least.mechanism.rank
    assert rank == 13  # ⌈2 ln(15 · 20)⌉ + 1
    assert "min_cost: the 13th least value, not the least" in str(found)
    assert "max_cost: the 13th greatest value, not the greatest" in repr(found)
    costs = sorted(min(max(row[3], -5), 9) for row in rows if row[3] is not None)
    assert costs[0] <= least.values[0] <= costs[8 * rank]
    assert costs[-8 * rank] <= most.values[0] <= costs[-1]


def test_a_person_in_several_cells_divides_epsilon_and_the_plan_says_the_ranks(several):
    table, _ = several
    sql = "SELECT town, MEDIAN(cost) AS m, COUNT(*) FROM visits GROUP BY town"
    planned = table.plan_query(sql, epsilon=1, max_rows=2, max_cells=3)
    drawn = planned.quantile(0)
    assert (drawn.epsilon, drawn.max_rows, drawn.domain_size) == (Fraction(1, 6), 2, 15)
    assert drawn.rate == Fraction(1, 6) / (2 * 1 * 2)
    assert planned.cost.parts == ((1, Fraction(1, 2)),)
    assert planned.cost.ranges == ((3, Fraction(1, 6)),)
    assert planned.error("m") == drawn.error() == 69  # ⌈ln(300) · 24 / 2⌉
    assert "m      ± 69 ranks each (95 %)" in str(planned)


def deciles(column):
    return ", ".join(f"QUANTILE({column}, 0.{each}) AS q{each}" for each in range(1, 10))


def test_many_quantiles_share_a_tree_and_few_are_drawn_by_themselves(several):
    table, _ = several
    sql = f"SELECT {deciles('day')}, COUNT(DISTINCT pid) AS n FROM visits"
    planned = table.plan_query(sql, epsilon=10, max_rows=2)
    assert planned.trees == (tuple(range(9)),)
    shared = planned.quantile(3)
    assert isinstance(shared, QuantileTree)
    assert (shared.epsilon, shared.max_rows, shared.share) == (Fraction(9), 2, Fraction(4, 10))
    assert shared.error() < max(planned.alone(place).error() for place in range(9))
    # One mechanism of ε = 9, and not nine of ε = 1, which a zCDP budget would charge less.
    assert sorted(planned.cost.parts) == [(1, Fraction(1)), (1, Fraction(9))]
    assert "for a tree of counts that is shared" in str(planned)
    assert "9 quantiles of day from one tree of counts (drawn one by one: ±" in str(planned)
    two = "SELECT QUANTILE(day, 0.2), QUANTILE(day, 0.8) FROM visits"
    apart = table.plan_query(two, epsilon=1, max_rows=1)
    assert apart.trees == ()
    assert "2 quantiles of day, drawn one by one (from one tree of counts: ±" in str(apart)
    filtered = "SELECT MEDIAN(day), MEDIAN(day) FILTER (WHERE week = 7), MEDIAN(cost) FROM visits"
    assert groups(table.plan_query(filtered, epsilon=1, max_rows=1).select) == []


def test_few_quantiles_divide_epsilon_so_that_each_errs_alike(several):
    table, _ = several
    sql = "SELECT QUANTILE(day, 0.25) AS a, MEDIAN(day) AS b, QUANTILE(day, 0.75) AS c FROM visits"
    even = table.plan_query(sql, epsilon=1, max_rows=1)
    assert even.shares == (Fraction(3, 8), Fraction(1, 4), Fraction(3, 8))
    assert len({even.error(name) for name in "abc"}) == 1
    given = table.plan_query(sql, epsilon=1, max_rows=1, weights=[1, 1, 1])
    assert given.shares == (Fraction(1, 3),) * 3
    assert even.error("a") < given.error("a")
    again = table.plan_query(sql, epsilon=1, max_rows=1, weights=even.all_shares)
    assert again == even  # as a remote table sends them


def test_a_tree_in_each_cell_divides_epsilon_among_the_cells_of_a_person(several):
    table, _ = several
    sql = f"SELECT town, {deciles('day')} FROM visits GROUP BY town"
    planned = table.plan_query(sql, epsilon=3, max_rows=2, max_cells=3)
    assert planned.trees == (tuple(range(9)),)
    shared = planned.quantile(0)
    assert shared.epsilon == 1
    assert shared.tree.scale(shared.epsilon, 2) == 2 * shared.tree.levels
    assert planned.cost.parts == ((1, Fraction(3)),)


@pytest.mark.parametrize("epsilon", [3, 30, 300])
def test_what_is_read_from_a_tree_is_within_its_error(several, rich, epsilon):
    table, rows = several
    sql = f"SELECT town, {deciles('day')} FROM visits GROUP BY town"
    found = table.query(sql, epsilon=epsilon, max_rows=9, max_cells=3, budget=rich)
    assert all(isinstance(column.mechanism, QuantileTree) for column in found.columns)
    assert wire.from_json(wire.to_json(found)) == found
    for place, town in enumerate(["Bruges", "Ghent"]):
        days = sorted(row[4] for row in rows if row[1] == town)
        told = [column.values[place] for column in found.columns]
        assert told == sorted(told)
        for column in found.columns:
            share, value = column.mechanism.share, column.values[place]
            less, up_to = bisect_left(days, value), bisect_right(days, value)
            off = max(0, less - share * len(days), share * len(days) - up_to)
            assert off <= column.errors("1e-12")[place]  # of real coins


def test_a_tree_errs_as_little_as_it_says_with_ties():
    values = np.sort(np.array([0] * 550 + [90] * 300 + list(range(50, 80)) * 5, np.int64))
    tree = QuantileTree(Fraction(3, 4), 101, Fraction(1), 1)
    coins, worst = InsecureTestCoins(6), 0
    for _ in range(200):
        y = tree.read(tree.measure(values, coins))
        less, up_to = bisect_left(values, y), bisect_right(values, y)
        worst = max(worst, less - 750, 750 - up_to)
    assert worst <= tree.error("1/10000")
    assert tree.error() <= tree.error("1/10000")


class TestMedianContract(TestQueryContract):
    """One row of each person; person 1 has an age of 3 in Bruges and of 2 in Ghent."""

    SQL = "select median(age) from people"
    DRAWS = 500

    def mechanism(self, schema, **given):
        select = Reader(schema).select(self.SQL, {}, 1)
        return Query(plan_query(select, **{"epsilon": 2, "weights": None, "max_cells": 1, **given}))

    def wrong(self, schema):
        return [lambda: self.mechanism(schema, epsilon="1e-80")]

    def outcome(self, drawn):
        return int(drawn.columns[0].values[0])

    def law(self, engine):
        from tests.book.test_quantile import law

        ages = engine.point_counts(["age"], max_rows=2).rows()[:, 0].tolist()
        chosen = [ages]
        if 2 in ages:
            chosen = [[*ages[: ages.index(x)], *ages[ages.index(x) + 1 :]] for x in (2, 3)]
        mechanism = self.mechanism(engine.schema).plan.quantile(0)
        laws = [law(each, mechanism) for each in chosen]
        return {y: sum(each[y] for each in laws) / len(laws) for y in range(4)}


def test_what_was_kept_is_read_again_and_nothing_else(several, rich):
    table, _ = several
    found = table.query("SELECT MEDIAN(cost) FROM visits", epsilon=1, max_rows=1, budget=rich)
    fields = wire.to_json(found)
    for key, value in [
        *(("codes", [99]), ("codes", []), ("codes", ["1"]), ("quantile of", "pid"), ("end", 5)),
        *(("share", "2"), ("max_rows", 0), ("name", 3)),
    ]:
        with pytest.raises(BadParameter):
            wire.from_json({**fields, "columns": [{**fields["columns"][0], key: value}]})


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("MEDIAN(town)", "town is text, and has no quantiles"),
        ("MEDIAN(pid)", "needs the values that pid may have"),
        ("MEDIAN(cost + 1)", "takes a column by name"),
        ("QUANTILE(cost, 2)", "between 0 and 1"),
        ("QUANTILE(cost, week)", "between 0 and 1"),
        ("PERCENTILE_CONT(0.5)", "WITHIN GROUP is missing"),
        ("2 * MEDIAN(cost)", "one person can change MEDIAN"),
        ("MEDIAN(cost) AS a, COUNT(*) AS a_rank_error", "another column called a_rank_error"),
    ],
)
def test_what_has_no_quantile_is_refused(several, rich, asked, why):
    table, _ = several
    with pytest.raises(QuestionRefused, match=why):
        table.query(f"SELECT {asked} FROM visits", epsilon=1, max_rows=1, budget=rich)
    assert rich.spent.epsilon == 0
