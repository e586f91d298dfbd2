"""One domain for each column: a histogram and a class of questions are about the same values."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

import tacit
from tacit.analyst.question_class import FiniteClass, question_class
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import QuestionRefused
from tacit.tables import Column, read_schema

SCHEMA = """
[columns.week]
type = "integer"
keys = [3, 1, 7]
[columns.age]
type = "integer"
bounds = [0, 9]
keys = [5, 2]
[columns.height]
type = "integer"
bounds = [0, 2]
[columns.day]
type = "date"
keys = ["2026-01-02", "2026-01-01"]
[columns.smoker]
type = "boolean"
[columns.town]
type = "text"
keys = ["Ghent", "Bruges"]
[columns.pid]
type = "integer"
"""
QUESTIONS = ["week = 3", "age >= 5", "height = 1", "day = '2026-01-01'", "smoker", "town = 'Ghent'"]


@pytest.fixture
def table(tmp_path):
    lines = ["week,age,height,day,smoker,town,pid"]
    for n in range(240):
        week, age, day = n % 8, n % 10, f"2026-01-0{1 + n % 3}"
        lines.append(
            f"{week},{age},{n % 3},{day},{n % 2},{['Ghent', 'Bruges', 'Ypres'][n % 3]},{n}"
        )
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "visits.toml").write_text(SCHEMA)
    with tacit.open(tmp_path / "visits.csv", person="pid", people=240) as table:
        yield table


@pytest.fixture
def budget():
    return Budget.in_memory(epsilon=10**9, covers=["visits"])


def test_a_domain_is_the_keys_or_what_lies_within_the_bounds():
    schema = read_schema(SCHEMA, name="visits", person="pid")
    domains = {column.name: column.domain for column in schema.columns}
    assert domains == {
        "week": (3, 1, 7),
        "age": (5, 2),
        "height": range(3),
        "day": (20455, 20454),
        "smoker": (0, 1),
        "town": ("Ghent", "Bruges"),
        "pid": None,
    }
    assert [column.domain_size for column in schema.columns] == [3, 2, 3, 2, 2, 2, None]
    wide = Column("x", "integer", bounds=(-(2**63), 2**63 - 1))
    assert wide.domain_size == 2**64


def test_a_class_of_questions_has_the_domain_of_a_histogram(table, budget):
    for names, questions in (
        (["week"], ["week = 3"]),
        (["age"], ["age >= 5"]),
        (["day"], ["day = '2026-01-01'"]),
        (["age", "town", "week"], ["week = 3 and age = 2", "town = 'Ghent'"]),
    ):
        found = table.questions(questions)
        assert [column.name for column in found.columns] == names
        cells = table.histogram(*names, max_rows=1, epsilon=10**6, budget=budget)
        assert tuple(found.universe) == cells.cells
        assert found.data(table.engine, 1, InsecureTestCoins(1)).tolist() == cells.counts.tolist()
        elements = np.arange(len(found.universe))
        as_codes = [
            tuple(
                column.keys[code] if column.type == "text" else code
                for column, code in zip(found.columns, row, strict=True)
            )
            for row in found.codes(elements).tolist()
        ]
        assert as_codes == list(found.universe)


def test_rows_outside_the_keys_take_no_part(table, budget):
    release = table.small_db(["week = 3"], max_rows=1, epsilon=10**6, rows=300, budget=budget)
    assert set(release.to_dict()["week"]) <= {3, 1, 7}
    assert release.answer("week = 3") == pytest.approx(1 / 3, abs=0.02)


def test_a_column_without_a_domain_is_told_what_to_declare(table, budget):
    for ask in (
        lambda: table.questions(["pid < 3"]),
        lambda: table.histogram("pid", max_rows=1, epsilon=1, budget=budget),
    ):
        with pytest.raises(QuestionRefused, match=r"\[columns.pid\] bounds = \[...\], or keys"):
            ask()


def test_a_saved_release_keeps_its_domain(table, budget, tmp_path):
    """Also one that 0.1 saved, for which the bounds of a number were its domain."""
    path = tmp_path / "release.json"
    release = table.small_db(
        ["age >= 5", "height = 1"], max_rows=1, epsilon=10**5, rows=40, budget=budget
    )
    release.save(path)
    assert json.loads(path.read_text())["domains"] == "keys"
    again = tacit.load_release(path)
    assert again.guarantee() == release.guarantee()
    assert again.plan.question_class == release.plan.question_class
    assert again.answer("age >= 3") == again.answer("age >= 5")  # the same, of these two keys
    fields = json.loads(path.read_text())
    del fields["domains"]
    path.write_text(json.dumps(fields))
    old = tacit.load_release(path)
    assert isinstance(old.plan.question_class, FiniteClass)
    assert old.plan.question_class.universe == list(product(range(10), range(3)))
    with pytest.raises(QuestionRefused, match="this release answers"):
        old.answer("age >= 3")
    old.save(path)
    assert json.loads(path.read_text()) == fields


def test_only_a_release_by_keys_says_so(table, budget, tmp_path):
    for questions in (["height = 1", "town = 'Ghent'"], tacit.prefixes("age")):
        release = table.small_db(questions, max_rows=1, epsilon=10**5, rows=10, budget=budget)
        release.save(tmp_path / "release.json")
        assert "domains" not in json.loads((tmp_path / "release.json").read_text())


def test_as_version_0_1_read_it(table):
    stored = question_class(["age >= 5"], table.schema, stored=True, by_keys=False)
    assert isinstance(stored, FiniteClass)
    assert stored.universe == [(age,) for age in range(10)]
