"""A predicate means the same of public rows, such as elements of a universe, as of a table."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.tables.engines import quick

import tacit
from tacit.tables import EACH_ROW, parse
from tacit.tables.engine.public_rows import PublicRows, cell_codes, rows_schema
from tacit.testing import meaning as brute
from tacit.testing.random_questions import PREDICATES, ROWS

PRESENT = {"cost": 1.5, "fee": 2.5, "raw": 0.125, "town": "Z", "note": "a", "smoker": True}


def whole(row):
    """The row without NULL and without what is read as NULL: a universe has none."""
    missing = {
        name
        for name, value in row.items()
        if value is None or (isinstance(value, float) and not math.isfinite(value))
    }
    stand_in = {**PRESENT, "day": date(2026, 1, 31), "at": datetime(2026, 1, 31)}
    return {name: stand_in.get(name, 1) if name in missing else row[name] for name in row}


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(ROWS.map(whole), min_size=1, max_size=6), predicate=PREDICATES)
@example(
    rows=[whole(dict.fromkeys(brute.COLUMNS) | {"age": 2, "cost": 1.0, "fee": 1.0})],
    predicate=brute.Pred("age <= cost", lambda row: row["age"] <= row["cost"]),  # type: ignore[operator]
)
def test_a_predicate_holds_for_as_many_elements_as_the_engine_counts(rows, predicate):
    engine = quick(rows, EACH_ROW)
    question = parse(predicate.sql, engine.schema)
    read = [brute.read_row(row) for row in rows]
    columns = [with_keys(column, read) for column in engine.schema.columns]
    cells = [tuple(code(column, row[column.name]) for column in columns) for row in read]
    public = PublicRows(rows_schema(engine.schema, columns), cell_codes(columns, cells))
    found = public.matches(question.terms[0].where)
    assert found.tolist() == [predicate.test(row) is True for row in read]
    assert [int(found.sum())] == engine.values([question])


def with_keys(column, rows):
    if column.type != "text":
        return column
    return replace(column, keys=tuple(dict.fromkeys(row[column.name] for row in rows)))


def code(column, value):
    return value if column.type == "text" else int(column.place(value))


def test_a_release_compares_columns_of_different_grids(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("x,y\n" + "2,1.0\n" * 50 + "1,1.5\n" * 50)
    schema = """
[columns.x]
type = "integer"
bounds = [0, 3]
[columns.y]
type = "real"
grid = "0.5"
bounds = [0, 2]
"""
    budget = tacit.Budget.in_memory(epsilon=10**7, covers=["pairs"])
    with tacit.open(file, person=EACH_ROW, schema=schema) as table:
        release = table.small_db(["x <= y"], max_rows=1, epsilon=10**6, rows=2, budget=budget)
        assert release.answer("x <= y") == Fraction(1, 2)
        pairs = zip(*release.to_dict().values(), strict=True)
        assert sorted(x <= y for x, y in pairs) == [False, True]
