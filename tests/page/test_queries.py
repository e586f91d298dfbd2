"""Queries of every kind: their plans, and their figures with the errors that they really have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.page.test_release import choose, release, saved
from tests.server.clinic import write_clinic
from tests.server.conftest import Running, started

import tacit
from tacit import Budget
from tacit.analyst.query_columns import StreamColumn
from tacit.page.figures import Bars, HeatMap, OneNumber, figures
from tacit.server.tokens import TokenFile
from tacit.wire import from_json, to_json

SCHEMA = """
max_rows = 1
max_cells = 1

[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Namur"]
[columns.smoker]
type = "boolean"
[columns.came]
type = "date"
bounds = ["2026-01-01", "2026-12-31"]
[columns.cost]
type = "integer"
bounds = [0, 100]
total = [0, 100]
"""
# In each of them are so many that noise cannot hide all of them.
TOWNS = ["Bruges", "Ghent", "Bruges", "Ghent", "Namur"]


def write_visits(folder: Path) -> None:
    lines = [
        f"{pid},{TOWNS[pid % 5]},{pid % 3 == 0},2026-{1 + pid % 12:02}-15,{pid % 101}"
        for pid in range(3000)
    ]
    (folder / "visits.csv").write_text("\n".join(["pid,town,smoker,came,cost", *lines, ""]))
    (folder / "visits.toml").write_text(SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Iterator[tacit.Table]:
    folder = tmp_path_factory.mktemp("queries")
    write_visits(folder)
    with tacit.open(folder / "visits.csv", person="pid") as opened:
        yield opened


def released(table: tacit.Table, query: str) -> Any:
    """What is released, as it is kept and read again."""
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    return from_json(to_json(table.query(query, epsilon=1, budget=budget)))


def _reach(bar: Any, bars: Bars, ends: list[tuple[float, float]]) -> tuple[float, float]:
    """Where an interval lies in the picture of some bars that begin at 0."""
    assert bar.error is not None
    most = max(max(high for _, high in ends), 0.0)
    least = min(min(low for low, _ in ends), 0.0)
    low, high = ends[bars.bars.index(bar)]
    return (low - least) / (most - least) * 1000, (high - least) / (most - least) * 1000


DIVIDED = [
    "AVG(cost)",
    "100.0 * COUNT(DISTINCT pid) FILTER (WHERE smoker) / COUNT(DISTINCT pid)",
    "SUM(cost) / COUNT(DISTINCT pid)",
    "VARIANCE(cost)",
    "STDDEV(cost)",
]


@pytest.mark.parametrize("aggregate", DIVIDED)
def test_what_is_divided_has_the_error_bar_of_its_interval(table: tacit.Table, aggregate):
    told = released(table, f"SELECT town, {aggregate} AS x FROM visits GROUP BY town")
    (drawn,) = figures(told)
    assert isinstance(drawn, Bars)
    ends = [(float(low), float(high)) for low, high in told.column("x").intervals()]
    for bar in drawn.bars:
        assert bar.error is not None
        assert bar.error == pytest.approx(_reach(bar, drawn, ends), abs=0.2)
        assert bar.error[0] - 0.2 <= bar.start + bar.width <= bar.error[1] + 0.2
    assert [bar.label for bar in drawn.bars] == ["Bruges", "Ghent", "Namur"]


@pytest.mark.parametrize("aggregate", ["MEDIAN(cost)", "QUANTILE(cost, 0.9)", "MIN(cost)"])
def test_what_is_off_by_ranks_has_no_error_bar(table: tacit.Table, aggregate):
    told = released(table, f"SELECT town, {aggregate} AS x FROM visits GROUP BY town")
    (drawn,) = figures(told)
    assert isinstance(drawn, Bars)
    assert all(bar.error is None for bar in drawn.bars)
    assert "ranks" in drawn.error
    off = told.column("x").errors()[0]
    assert all(bar.number.endswith(f"± {off} ranks") for bar in drawn.bars)
    most = max(map(float, told.column("x").values))
    for bar, value in zip(drawn.bars, told.column("x").values, strict=True):
        assert bar.start + bar.width == pytest.approx(float(value) / most * 1000, abs=0.2)


def test_dates_lie_between_the_ends_of_what_is_declared(table: tacit.Table):
    told = released(table, "SELECT town, MEDIAN(came) FROM visits GROUP BY town")
    (drawn,) = figures(told)
    assert isinstance(drawn, Bars)
    for bar, value in zip(drawn.bars, told.columns[0].values, strict=True):
        assert bar.number.startswith(f"{value} ± ")
        assert bar.error is None
        assert bar.start == pytest.approx(
            min((value - date(2026, 1, 1)).days / 364 * 1000, 988), abs=0.2
        )


def test_the_cells_that_having_tells_are_bars_with_their_intervals(table: tacit.Table):
    budget = Budget.in_memory(epsilon=10**6, covers=["visits"])
    above = """SELECT town, smoker, COUNT(DISTINCT pid) AS n FROM visits
        GROUP BY town, smoker HAVING n > {}"""
    told = table.query(above.format(700), epsilon=100, at_most=4, budget=budget)
    (drawn,) = figures(from_json(to_json(told)))  # two of six cells: no heat map has only those
    assert isinstance(drawn, Bars)
    assert [bar.label for bar in drawn.bars] == ["Bruges, false", "Ghent, false"]
    (column,) = told.columns
    assert isinstance(column, StreamColumn)
    ends = [(float(low), float(high)) for low, high in column.intervals()]
    for bar in drawn.bars:
        assert bar.error == pytest.approx(_reach(bar, drawn, ends), abs=0.2)
    none = table.query(above.format(9000), epsilon=100, at_most=4, budget=budget)
    assert len(none) == 0
    assert figures(none) == []
    assert "0 cells that HAVING found above" in str(none)


def test_the_largest_cells_come_in_the_order_of_draw(table: tacit.Table):
    by_two = "GROUP BY town, smoker ORDER BY many DESC LIMIT 3"
    told = released(table, f"SELECT town, smoker, COUNT(DISTINCT pid) AS many FROM visits {by_two}")
    (drawn,) = figures(told)  # of six cells three are known: no heat map has only those
    assert isinstance(drawn, Bars)
    assert drawn.name == "town, smoker"
    columns = told.to_dict()
    assert [bar.label for bar in drawn.bars] == [
        f"{place}. {town}, {str(smoker).lower()}"
        for place, (town, smoker) in enumerate(
            zip(columns["town"], columns["smoker"], strict=True), 1
        )
    ]


def test_two_keys_are_a_heat_map_whatever_is_selected(table: tacit.Table):
    query = "SELECT COUNT(DISTINCT pid), MEDIAN(came), AVG(cost) FROM visits GROUP BY town, smoker"
    count, median, mean = figures(released(table, query))
    for drawn in (count, median, mean):
        assert isinstance(drawn, HeatMap)
        assert [line[0] for line in drawn.lines] == ["Bruges", "Ghent", "Namur"]
        assert drawn.heads == ("false", "true")
    assert isinstance(median, HeatMap)
    assert isinstance(mean, HeatMap)
    assert "ranks" in median.error
    assert " at most (95 %); each person counts in 1 cell" in mean.error


def test_three_keys_are_bars(tmp_path, table: tacit.Table):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    told = table.histogram("town", "smoker", "cost", epsilon=1, budget=budget)
    (drawn,) = figures(told)
    assert isinstance(drawn, Bars)
    assert drawn.bars[0].label == "Bruges, false, 0"
    assert "only the first 60 of 606 cells are drawn" in drawn.error


def test_without_keys_each_number_says_what_it_is(table: tacit.Table):
    query = "SELECT COUNT(DISTINCT town) AS towns, MEDIAN(came), MAX(cost) FROM visits"
    drawn = figures(released(table, query))
    assert all(isinstance(one, OneNumber) for one in drawn)
    assert [one.title for one in drawn] == ["towns", "median_came", "max_cost"]


# In a browser -------------------------------------------------------------------------------------


@pytest.fixture
def dated(tmp_path: Path, table: tacit.Table) -> Iterator[Running]:
    """A clinic with dates and two keys."""
    config = write_clinic(tmp_path)
    write_visits(tmp_path)
    with Budget.open(tmp_path / "clinic.budget") as budget:
        budget.share("ana", epsilon=9)
    tokens = {"ana": TokenFile(tmp_path / "clinic.budget-tokens").add("ana", share="ana")}
    with started(config, tokens) as running:
        yield running


KINDS = {
    "a percentage": ("for a share of 1000", "percent: "),
    "the largest": ("order", "1. "),
    "how many keys": ("each person counts for 1 value", "± "),
    "mean and deviation": ("for a mean of 1000 values", "stddev_cost"),
    "median and ends": ("ranks each (95 %)", "th least value, not the least"),
}


def test_every_example_is_planned_and_released(dated: Running, visit, tmp_path):
    ana = visit(dated, "ana")
    for name, (planned, told) in KINDS.items():
        choose(ana, "Query", "query")
        ana.page.get_by_role("button", name=name).click()
        ana.page.locator("#plan", has_text=planned).wait_for()
        shown = release(ana).replace("\xa0", " ")
        assert told in shown, (name, shown)
        assert saved(ana, "CSV", tmp_path).stat().st_size > 0
    assert ana.console == []


QUERIES = {
    "SELECT town, MEDIAN(came) FROM visits GROUP BY town": "2026-",
    "SELECT smoker, MAX(came) FROM visits GROUP BY town, smoker": "2026-",
    "SELECT MEDIAN(cost), QUANTILE(cost, 0.9) FROM visits": "median_cost: ",
}


def test_dates_and_several_quantiles_are_shown_and_saved(dated: Running, visit, tmp_path):
    ana = visit(dated, "ana")
    for query, told in QUERIES.items():
        choose(ana, "Query", "query")
        ana.page.locator("#release [name=query]").fill(query)
        ana.page.locator("#plan", has_text="ranks each").wait_for()
        if "QUANTILE" in query:  # which a tree of counts tells better, or worse
            ana.page.locator("#plan th", has_text="drawn one by one").wait_for()
        shown = release(ana)
        assert told in shown
        assert "ranks" in shown
        for form in ("CSV", "Parquet", "JSON"):
            assert saved(ana, form, tmp_path).stat().st_size > 0
    assert ana.console == []


def test_a_delta_is_planned_as_it_is_paid(dated: Running, visit):
    ana = visit(dated, "ana")
    choose(ana, "Query", "query")
    ana.page.locator("#release [name=delta]").fill("1e-9")
    ana.page.locator("#plan .wrong", has_text="it helps only to choose cells").wait_for()
