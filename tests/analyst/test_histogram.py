"""Noisy histograms: every declared cell, one ε, noise of the stated scale, honest error bars."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fit import ACCEPT_REAL, chi_square_p
from tests.tables.engines import quick

import tacit
from tacit.analyst import histogram as module
from tacit.analyst.histogram import sum_error
from tacit.budget import Budget
from tacit.errors import BadParameter, BudgetExhausted, Infeasible, QuestionRefused
from tacit.tables import EACH_ROW, parse_batch
from tacit.tables.engine.points import one_each
from tacit.tables.engine.universe import count_elements
from tacit.tables.schema.schema import write_schema
from tacit.testing import meaning as brute
from tacit.testing.random_questions import tables

LOTS = 10**6
CUT = "± does not cover the rest"
CALM = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def rich():
    return Budget.in_memory(epsilon=100 * LOTS, covers=["visits", "people"])


def test_every_declared_cell_is_there_in_order(visits, rich):
    towns = visits.histogram("town", max_rows=1, epsilon=LOTS, budget=rich)
    assert towns.to_dict() == {
        "town": ["Bruges", "Ghent", "Ypres"],
        **{key: [200, 90, 10] for key in ("count", "count_lower", "count_upper")},
        "covers": [f"1 row of each person, chosen at random; {CUT}"] * 3,
    }
    both = visits.histogram("age", "town", max_rows=1, epsilon=LOTS, budget=rich)
    assert len(both) == 121 * 3
    assert both[5, "Bruges"].value == 2
    assert both[5, "Ghent"].value == 1
    assert both[105, "Ghent"].value == 0  # nobody is that old
    assert both.count("true").value == 300  # each person once, although each has two rows
    assert visits.histogram("town", epsilon=LOTS, max_rows=2, budget=rich)["Ypres"].value == 20


def test_it_costs_its_epsilon_once_and_first(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    visits.histogram("town", "age", max_rows=1, epsilon="3/4", budget=budget)
    assert budget.spent.epsilon == Fraction(3, 4)
    (charge,) = [entry.body for entry in budget.history if entry.kind == "charge"]
    assert charge["what"] == "histogram of town, age"
    with pytest.raises(BudgetExhausted, match="histogram of town on visits"):
        visits.histogram("town", max_rows=1, epsilon="1/2", budget=budget)


@pytest.mark.parametrize("max_rows", [1, 3])
def test_each_count_has_laplace_noise_of_the_stated_scale(tmp_path, rich, max_rows):
    (tmp_path / "people.csv").write_text("pid,n\n1,7\n")
    schema = '[columns.pid]\ntype = "text"\n[columns.n]\ntype = "integer"\nbounds = [0, 3999]\n'
    with tacit.open(tmp_path / "people.csv", person="pid", schema=schema) as table:
        drawn = table.histogram("n", epsilon="3/2", max_rows=max_rows, budget=rich)
    assert drawn.noise_scale == Fraction(2 * max_rows, 3)
    noise = (drawn.counts - (np.arange(4000) == 7)).tolist()

    def p(scale):
        q = exp(-1 / scale)
        cells = range(-5, 6)
        law = [q ** abs(x) * (1 - q) / (1 + q) for x in cells]
        counts = [noise.count(x) for x in cells]
        return chi_square_p([*counts, len(noise) - sum(counts)], [*law, 1 - sum(law)])

    assert p(2 * max_rows / 3) > ACCEPT_REAL
    assert p(2 * max_rows / 3 * 1.4) < ACCEPT_REAL
    assert p(2 * max_rows / 3 / 1.4) < ACCEPT_REAL
    missed = sum(abs(x) > drawn.error("1/10") for x in noise)
    assert missed <= 400 + 5 * 20
    assert max(map(abs, noise)) <= drawn.worst_error("1e-9")


NAMES = st.lists(
    st.sampled_from(["week", "town", "smoker", "age", "fee"]), min_size=1, max_size=3, unique=True
)


def true_counts(engine, names, max_rows):
    columns = [engine.schema.column(name) for name in names]
    return count_elements(one_each(engine.point_counts(names, max_rows=max_rows).rows()), columns)


@CALM
@given(rows=tables(), names=NAMES, max_rows=st.integers(1, 4))
def test_one_person_changes_all_counts_together_by_at_most_max_rows(rows, names, max_rows):
    everyone = true_counts(quick(rows, "pid"), names, max_rows)
    for pid in (1, 2, 3, 4):
        others = [row for row in rows if row["pid"] != pid]
        changes = everyone - true_counts(quick(others, "pid"), names, max_rows)
        assert (changes >= 0).all()
        assert changes.sum() <= max_rows


@CALM
@given(rows=tables(), names=NAMES)
def test_where_each_row_is_a_person_it_counts_as_group_by_does(rows, names):
    engine = quick(rows, EACH_ROW)
    keyed = [name for name in names if engine.schema.column(name).cells is not None]
    if keyed:
        by = ", ".join(keyed)
        batch = parse_batch(f"SELECT {by}, COUNT(*) FROM visits GROUP BY {by}", engine.schema)
        assert true_counts(engine, keyed, 1).tolist() == engine.values(batch.questions)


@CALM
@given(rows=tables())
def test_bounds_are_cells_where_no_keys_are_declared(rows):
    found = true_counts(quick(rows, EACH_ROW), ["age"], 1)
    ages = [brute.read_row(row)["age"] for row in rows]
    assert found.tolist() == [ages.count(age) for age in range(121)]


def exact_tail(scale, cells):
    """Pr[|sum| > m] for m = 0, 1, ..., by convolution."""
    q, reach = exp(-1 / scale), int(scale * 60) + 10
    one = np.array([q ** abs(x) for x in range(-reach, reach + 1)]) * (1 - q) / (1 + q)
    law = np.array([1.0])
    for _ in range(cells):
        law = np.convolve(law, one)
    middle = len(law) // 2
    inside = law[middle] + np.concatenate(([0], np.cumsum(2 * law[middle + 1 :])))
    return 1 - inside


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(15)])
@pytest.mark.parametrize("cells", [1, 2, 5, 40])
def test_the_error_bar_of_a_sum_holds_and_is_not_wasteful(scale, cells):
    tail = exact_tail(float(scale), cells)
    for beta, waste in (("1/3", 2.5), ("1/20", 1.8), ("1e-6", 1.4)):
        bound, allowed = sum_error(scale, cells, beta), float(Fraction(beta))
        assert tail[bound] <= allowed
        least = int(np.argmax(tail <= allowed))
        assert bound <= waste * least + 2


def test_sums_over_a_predicate(visits, rich):
    drawn = visits.histogram("age", "town", max_rows=1, epsilon=1, budget=rich)
    some = drawn.count("age between 30 and 39 and town <> 'Ypres'")
    assert some.cells == 20
    assert some.value == sum(drawn[a, t].value for a in range(30, 40) for t in ("Bruges", "Ghent"))
    assert some.error() == sum_error(Fraction(1), 20, "1/20")
    assert drawn.count("age = 3 and town = 'Ghent'").error() == drawn[3, "Ghent"].error()
    nothing = drawn.count("age < 0")
    assert (nothing.value, nothing.error()) == (0, 0)
    assert str(nothing) == f"0 ± 0 (95 %), {drawn.covers}"
    with pytest.raises(QuestionRefused, match="a question about it can name no other"):
        drawn.count("cost > 3")
    with pytest.raises(QuestionRefused, match="predicates"):
        drawn.count("count(age <= 3) - count(age > 5)")


def test_what_cannot_be_drawn_is_refused_before_paying(visits, rich):
    before = rich.left
    with pytest.raises(BadParameter, match="it must be one of pid, town, age, cost"):
        visits.histogram("agee", max_rows=1, epsilon=1, budget=rich)
    with pytest.raises(QuestionRefused, match="pid needs declared values"):
        visits.histogram("town", "pid", max_rows=1, epsilon=1, budget=rich)
    for columns in ((), ("age", "age"), ("age", "AGE")):
        with pytest.raises(BadParameter, match="none twice"):
            visits.histogram(*columns, max_rows=1, epsilon=1, budget=rich)
    for name, wrong in (("epsilon", {"epsilon": "1e-30"}), ("max_rows", {"max_rows": 0})):
        with pytest.raises(BadParameter, match=name):
            visits.histogram("age", **{"epsilon": 1, "max_rows": 1, **wrong}, budget=rich)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ELEMENTS", 100)
        with pytest.raises(Infeasible, match=r"age have 121 cells.*Nothing was spent"):
            visits.histogram("age", max_rows=1, epsilon=1, budget=rich)
    assert rich.left == before


def test_a_cell_is_named_by_its_values(tmp_path, rich):
    rows = "\n".join(f"{day},{flag},0.5" for day in ("2026-01-30", "2026-01-31") for flag in "10")
    (tmp_path / "people.csv").write_text(f"day,smoker,dose\n{rows}\n,1,0.5\n")
    schema = """
[columns.day]
type = "date"
bounds = ["2026-01-30", "2026-02-01"]
[columns.smoker]
type = "boolean"
[columns.dose]
type = "real"
grid = "0.25"
bounds = [0, 1]
"""
    with tacit.open(tmp_path / "people.csv", person=EACH_ROW, schema=schema) as table:
        drawn = table.histogram("day", "smoker", "dose", max_rows=1, epsilon=LOTS, budget=rich)
    assert len(drawn) == 3 * 2 * 5
    assert (
        drawn[date(2026, 1, 31), True, 0.5].value
        == drawn["2026-01-31", True, Fraction(1, 2)].value
        == 1
    )
    assert drawn["2026-02-01", True, 0.5].value == 0
    assert drawn.count("true").value == 4  # the row without a day counts nowhere
    for wrong in ("2026-01-31", ("2026-01-31", True, 0.3), ("2025-01-01", True, 0.5), (None,) * 3):
        with pytest.raises(BadParameter, match="one declared value for each of day, smoker, dose"):
            drawn[wrong]


def test_how_it_looks(visits, rich):
    towns = visits.histogram("town", max_rows=1, epsilon=LOTS, budget=rich)
    assert str(towns).splitlines() == [
        "town    count",
        "Bruges    200",
        "Ghent      90",
        "Ypres      10",
        f"3 cells, each ± 0 (95 %), (ε = 1000000, δ = 0); {towns.covers}",
    ]
    assert repr(towns).startswith("<Histogram of town: 3 cells")
    assert "<td style='text-align:left'>Bruges</td>" in towns._repr_html_()
    ages = visits.histogram("age", max_rows=1, epsilon=1, budget=rich)
    assert "... and 81 more" in str(ages)
    assert len(str(ages).splitlines()) == 43
    with pytest.raises(ValueError, match="read-only"):
        ages.counts[0] = 5


def test_its_shapes(visits, rich, tmp_path):
    towns = visits.histogram("town", max_rows=1, epsilon=1, budget=rich)
    names = ["town", "count", "count_lower", "count_upper", "covers"]
    assert towns.to_arrow().column_names == names
    assert towns.to_pandas().shape == towns.to_polars().shape == (3, 5)
    towns.to_csv(tmp_path / "towns.csv")
    assert (tmp_path / "towns.csv").read_text().splitlines()[0].startswith("town,count,")
    (tmp_path / "people.csv").write_text("count\n1\n")
    schema = '[columns.count]\ntype = "integer"\nbounds = [0, 2]\n'
    with tacit.open(tmp_path / "people.csv", person=EACH_ROW, schema=schema) as table:
        counts = table.histogram("count", max_rows=1, epsilon=LOTS, budget=rich)
    assert [*counts.to_dict().items()][:2] == [("count", [0, 1, 2]), ("count_", [0, 1, 0])]


# Which rows count ------------------------------------------------------------------------------


@pytest.fixture
def year(tmp_path):
    """600 people with a row in every week of a year: a flat year, whatever is counted of it."""
    lines = [f"{person},{week}" for person in range(600) for week in range(1, 53)]
    (tmp_path / "people.csv").write_text("pid,week\n" + "\n".join(lines) + "\n")
    schema = '[columns.pid]\ntype = "integer"\n[columns.week]\ntype = "integer"\nbounds = [1, 52]\n'
    with tacit.open(tmp_path / "people.csv", person="pid", schema=schema) as table:
        yield table


def test_there_is_no_default_but_the_schemas(tmp_path, year, rich):
    """A bound that nobody chose would bias the counts, as one row of 52 does."""
    for release in (year.histogram, year.small_db, year.plan_small_db):
        asked = "week" if release == year.histogram else tacit.prefixes("week")
        paid = {} if release == year.plan_small_db else {"budget": rich}
        rows = {} if release == year.histogram else {"rows": 4}
        with pytest.raises(BadParameter, match="how many rows of each person count"):
            release(asked, epsilon=1, **rows, **paid)
    assert rich.spent.epsilon == 0
    toml = "max_rows = 52\n" + write_schema(year.schema)
    with tacit.open(tmp_path / "people.csv", person="pid", schema=toml) as table:
        weeks = table.histogram("week", epsilon=LOTS, budget=rich)
        assert "up to 52 rows of each person" in repr(weeks)
        for week in (1, 52):  # everybody's rows count, so both say the same
            count = table.count(f"week = {week}", epsilon=LOTS, budget=rich)
            assert weeks[week].value == count.value == 600
        planned = table.plan_small_db(tacit.prefixes("week"), epsilon=1, rows=4)
        assert planned.max_rows == 52


@pytest.mark.parametrize("max_rows", [1, 5, 52])
def test_a_flat_year_looks_flat(year, rich, max_rows):
    """As count says: the rows that count are chosen at random, not by their values."""
    weeks = year.histogram("week", epsilon=LOTS, max_rows=max_rows, budget=rich)
    share = max_rows / 52
    deviation = (600 * share * (1 - share)) ** 0.5
    for week in (1, 26, 52):
        whole = year.count(f"week = {week}", epsilon=LOTS, budget=rich).value
        assert whole == 600
    assert weeks.counts.sum() == 600 * max_rows
    assert abs(weeks.counts - 600 * share).max() <= 7 * deviation
    assert weeks.rows_chosen == "at random"


def test_a_small_database_of_a_flat_year_is_flat(year, rich):
    asked = tacit.prefixes("week")
    release = year.small_db(asked, max_rows=1, epsilon=LOTS, rows=300, budget=rich)
    assert abs(release.answer("week <= 26") - Fraction(1, 2)) < Fraction(1, 5)
    assert str(release).endswith(f"; 1 row of each person, chosen at random; {CUT}")


def test_it_says_what_was_counted(year, rich):
    weeks = year.histogram("week", epsilon=LOTS, max_rows=5, budget=rich)
    assert str(weeks).endswith(
        f"(ε = 1000000, δ = 0); up to 5 rows of each person, chosen at random; {CUT}"
    )
    saved = weeks.as_json()
    assert module.histogram_from_json(saved).rows_chosen == "at random"
    del saved["rows_chosen"]  # as version 0.1 wrote it
    assert repr(module.histogram_from_json(saved)).endswith(
        f"; up to 5 rows of each person, the least; {CUT}>"
    )
