"""Made-up tables: of the schema's values alone, the same for the same schema, and about nobody."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import BadParameter
from tacit.tables.schema.schema import Column, Schema, read_schema

SCHEMA = """
max_rows = 3
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Ypres", "Bruges", "Ghent"]
[columns.note]
type = "text"
[columns.age]
type = "integer"
bounds = [18, 96]
[columns.cost]
type = "real"
grid = "0.01"
bounds = [0, 200]
total = [0, 1000]
[columns.weight]
type = "real"
[columns.smoker]
type = "boolean"
[columns.day]
type = "date"
[columns.at]
type = "timestamp"
[columns.code]
type = "integer"
keys = [3, 5, 900]
"""

CERTAIN = {  # so many counts at such an ε are as good as exact
    "town in ('Ypres', 'Bruges', 'Ghent') or town is null": 1.0,
    "note like 'made up%' or note is null": 1.0,
    "age between 18 and 96 or age is null": 1.0,
    "cost between 0 and 200 or cost is null": 1.0,
    "weight between 0 and 100 or weight is null": 1.0,
    "smoker or not smoker or smoker is null": 1.0,
    "day between '2026-01-01' and '2026-12-31' or day is null": 1.0,
    "\"at\" between '2026-01-01' and '2027-01-01' or \"at\" is null": 1.0,
    "code in (3, 5, 900) or code is null": 1.0,
    "pid is not null": 1.0,
    "pid between 1 and 300": 1.0,
    "town not in ('Ypres', 'Bruges', 'Ghent')": 0.0,
    "code not in (3, 5, 900)": 0.0,
}


@pytest.fixture(scope="module")
def table():
    with tacit.dummy(SCHEMA, person="pid", name="visits", people=300) as made:
        yield made


@pytest.mark.parametrize("question", CERTAIN)
def test_its_values_are_those_that_are_declared(table, question):
    told = table.count(question, epsilon=1, budget=table.budget)
    assert abs(told.value - 300 * CERTAIN[question]) < 60  # e^-60 otherwise


def test_counts_differ_and_the_first_keys_are_likeliest(table):
    told = [
        float(table.count(f"town = '{town}'", epsilon=20, budget=table.budget).value)
        for town in ("Ypres", "Bruges", "Ghent")
    ]
    assert told == sorted(told, reverse=True)
    assert told[-1] > 10


def test_everything_can_be_tried_on_it(table):
    pays: dict[str, Any] = {"budget": table.budget, "epsilon": 2}
    table.histogram("town", max_rows=1, **pays)
    table.sum("cost", **pays)
    table.ranges("age", max_rows=1, **pays)
    table.small_db(tacit.prefixes("age"), rows=5, max_rows=1, **pays)
    stream = table.numeric_sparse(threshold=100, at_most=2, **pays)
    assert stream.ask("pid is not null")  # 300 against 100, at noise of a few
    stream.close()
    with pytest.raises(tacit.errors.BudgetExhausted):
        table.count("smoker", epsilon=2000, budget=table.budget)


def test_it_follows_from_the_schema_the_people_and_the_seed_alone():
    def fingerprint(text: str = SCHEMA, **given: Any) -> bytes:
        options: dict[str, Any] = {"person": "pid", "name": "visits", "people": 50} | given
        with tacit.dummy(text, **options) as made:
            return made.engine.point_counts(["town", "age", "code"], max_rows=3).rows().tobytes()

    first = fingerprint()
    assert fingerprint() == first
    others = [
        fingerprint(seed=1),
        fingerprint(people=51),
        fingerprint(name="labs"),
        fingerprint(SCHEMA.replace("[18, 96]", "[18, 97]")),
    ]
    assert len({first, *others}) == 5
    # Rows must stay as they are from one version to the next, or examples would change.
    with tacit.dummy(SCHEMA, person="pid", name="visits", people=5) as made:
        ages = [age for (age,) in made.engine.point_counts(["age"], max_rows=3).rows().tolist()]
        assert ages == [18, 18, 20, 21, 23, 25, 34, 40, 49, 51, 56]


def test_each_row_may_be_a_person_and_a_person_a_text():
    text = SCHEMA.replace('type = "integer"', 'type = "text"', 1)
    with tacit.dummy(text, person="pid", name="v", people=40) as made:
        told = made.count("pid like 'person %'", epsilon=20, budget=made.budget)
        assert abs(told.value - 40) < 5
    with tacit.dummy(text, person=tacit.EACH_ROW, name="v", people=40) as made:
        told = made.count("age is null or age > 0", epsilon=20, budget=made.budget)
        assert abs(told.value - 40) < 5


BOUNDS = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)).map(sorted)


@given(BOUNDS, st.sampled_from(["integer", "real"]), st.integers(1, 40))
@settings(max_examples=50, deadline=None)
def test_bounds_of_any_width_are_kept(bounds, kind, people):
    low, high = bounds
    grid = 'grid = "0.5"\n' if kind == "real" else ""
    toml = f'[columns.x]\ntype = "{kind}"\n{grid}bounds = [{low}, {high}]'
    try:
        schema = read_schema(toml, name="t", person=tacit.EACH_ROW)
    except BadParameter:  # such bounds cannot be declared at all
        return
    with tacit.dummy(schema, people=people) as made:
        (column,) = schema.columns
        codes = made.engine.point_counts(["x"]).rows().ravel()
        assert column.bounds is not None
        assert all(column.bounds[0] <= int(code) <= column.bounds[1] for code in codes)


def test_what_is_given_wrongly_is_named():
    schema = Schema("t", tacit.EACH_ROW, (Column("x", "integer"),))
    cases: list[tuple[str, dict[str, Any]]] = [
        ("schema", {"schema": 3}),
        ("person", {"schema": SCHEMA, "name": "v"}),
        ("name", {"schema": SCHEMA, "person": "pid"}),
        ("person", {"schema": schema, "person": "x"}),
        ("people", {"schema": schema, "people": 0}),
        ("people", {"schema": schema, "people": 10**7}),
        ("seed", {"schema": schema, "seed": -1}),
        ("seed", {"schema": schema, "seed": 2**64}),
        ("as_of", {"schema": schema, "as_of": 3}),
    ]
    for name, wrong in cases:
        with pytest.raises(BadParameter, match=name):
            tacit.dummy(**wrong)
