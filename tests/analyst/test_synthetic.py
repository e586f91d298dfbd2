"""Synthetic rows: the promise by the contract of releases, bins, answers, reports, forms."""

from __future__ import annotations

import json
from datetime import date, timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tacit
from tacit.analyst.binned import BinnedColumn, binned, places_of
from tacit.analyst.synthetic import SyntheticRows, plan_synthetic, synthetic_from_json
from tacit.book.coins import InsecureTestCoins
from tacit.errors import BadParameter, Infeasible, KeyReused, QuestionRefused
from tacit.tables import parse
from tacit.tables.schema.schema import EACH_ROW, read_schema
from tacit.testing.releases import ReleaseContract, laplace_law
from tacit.wire import from_json, to_json

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Ghent", "Bruges", "Aalst"]
[columns.smoker]
type = "boolean"
[columns.age]
type = "integer"
bounds = [0, 99]
[columns.day]
type = "date"
bounds = [2025-01-01, 2025-12-31]
[columns.step]
type = "integer"
keys = [5, 1, 3]
[columns.free]
type = "integer"
[columns.wide]
type = "integer"
bounds = [-9223372036854775807, 9223372036854775807]
"""
PEOPLE = 2000


def person(pid):
    """Smokers are old, and old people live in Ghent; the rest has nothing to do with it."""
    age = pid * 37 % 100
    town = "Ghent" if age >= 60 else ("Bruges", "Aalst")[pid % 2]
    return age, town, age >= 50, (1, 3, 5, 7)[pid % 4], date(2025, 1, 1) + timedelta(pid % 365)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    rows = []
    for pid in range(PEOPLE):
        age, town, smoker, step, day = person(pid)
        rows.append(f"{pid},{town},{smoker},{age},{day},{step},1,5")
    file = tmp_path_factory.mktemp("data") / "people.csv"
    file.write_text("\n".join(["pid,town,smoker,age,day,step,free,wide", *rows]) + "\n")
    with tacit.open(file, person="pid", people=PEOPLE, schema=SCHEMA) as table:
        yield table


@pytest.fixture
def budget():
    return tacit.Budget.in_memory(epsilon=10**9, covers=["people"])


# The promise ---------------------------------------------------------------------------------


class TestSyntheticRows(ReleaseContract):
    """Two columns of two values: four single counts and four of the pair: is each above 0?"""

    TOML = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.smoker]
type = "boolean"
"""
    ROWS = (
        {"pid": 1, "town": "Bruges", "smoker": True},
        {"pid": 1, "town": "Ghent", "smoker": False},
        {"pid": 2, "town": "Ghent", "smoker": True},
    )
    DRAWS = 600
    max_rows = 2

    def mechanism(self, schema, columns=("town", "smoker"), **given):
        options = {"epsilon": 2, "max_rows": self.max_rows, "rows": 5, **given}
        return SyntheticRows(plan_synthetic(schema, list(columns), **options))

    def wrong(self, schema):
        return [
            lambda: self.mechanism(schema, ["pid"]),
            lambda: self.mechanism(schema, []),
            lambda: self.mechanism(schema, ["town", "town"]),
            lambda: self.mechanism(schema, ["nowhere"]),
            lambda: self.mechanism(schema, epsilon=0),
            lambda: self.mechanism(schema, epsilon="1e-12"),
            lambda: self.mechanism(schema, max_rows=0),
            lambda: self.mechanism(schema, max_rows=None),
            lambda: self.mechanism(schema, rows=0),
            lambda: self.mechanism(schema, rows=10**9),
            lambda: self.mechanism(schema, rounds=-1),
            lambda: self.mechanism(schema, marginals=[["town", "nowhere"]]),
            lambda: self.mechanism(schema, marginals=[]),
            lambda: self.mechanism(schema, bins={"town": 1}),
        ]

    def outcome(self, drawn):
        return tuple(bool(count > 0) for marginal in drawn.measured for count in marginal.counts)

    def law(self, engine):
        kept: list[list[tuple[int, int]]] = [[]]
        for pid in (1, 2):
            cells = [(a, b) for a in range(2) for b in range(2)]
            asked = [
                parse(f"pid = {pid} and town = '{('Bruges', 'Ghent')[a]}' and {no}", engine.schema)
                for a, b in cells
                for no in (("not smoker", "smoker")[b],)
            ]
            rows = [cell for cell, there in zip(cells, engine.values(asked), strict=True) if there]
            choices = [rows] if len(rows) <= self.max_rows else [[row] for row in rows]
            kept = [[*before, *choice] for before in kept for choice in choices]
        law: dict[tuple[bool, ...], float] = {}
        for rows in kept:
            for told, chance in self._told(rows).items():
                law[told] = law.get(told, 0.0) + chance / len(kept)
        return law

    def _told(self, rows):
        """Of ε = 2 a quarter is for two single columns, the rest for the one pair."""
        single, pair = self.max_rows * 2 / Fraction(1, 2), self.max_rows / Fraction(3, 2)
        counts = [sum(row[at] == value for row in rows) for at in (0, 1) for value in (0, 1)]
        counts += [rows.count(cell) for cell in product(range(2), repeat=2)]
        laws = []
        for place, count in enumerate(counts):
            below = laplace_law(count - 1, single if place < 4 else pair, 1)[-1]
            laws.append({False: below, True: 1 - below})
        return {
            told: float(np.prod([law[above] for law, above in zip(laws, told, strict=True)]))
            for told in product((False, True), repeat=8)
        }


class TestSyntheticRowsOfOneRowEach(TestSyntheticRows):
    """Person 1 has two rows, of which one counts, chosen at random."""

    max_rows = 1


# Rows and answers ------------------------------------------------------------------------------

COLUMNS = ["age", "town", "smoker", "step"]


@pytest.fixture(scope="module")
def rows(people):
    budget = tacit.Budget.in_memory(epsilon=10**9, covers=["people"])
    return people.synthetic(
        COLUMNS, epsilon=10**6, max_rows=1, bins={"age": 10}, rows=3000, budget=budget
    )


def test_with_little_noise_rows_answer_as_the_table_does(rows):
    known = [person(pid) for pid in range(PEOPLE)]
    known = [each for each in known if each[3] != 7]  # whose step is not among the keys
    assert rows.people == len(known)
    for text, holds in {
        "age >= 60": lambda age, town, smoker, step: age >= 60,
        "town = 'Ghent'": lambda age, town, smoker, step: town == "Ghent",
        "town = 'Ghent' and age < 60": lambda age, town, smoker, step: town == "Ghent" and age < 60,
        "smoker and age >= 50": lambda age, town, smoker, step: smoker and age >= 50,
        "step = 5": lambda age, town, smoker, step: step == 5,
        "not smoker and town <> 'Aalst'": lambda age, town, smoker, step: (
            not smoker and town != "Aalst"
        ),
    }.items():
        true = sum(holds(*each[:4]) for each in known)
        assert float(rows.count(text)) == pytest.approx(true, abs=25), text
    assert rows.count("select count(*) from people") == rows.people


def test_rows_have_declared_values_only_and_bins_are_spread(rows):
    shown = rows.to_dict()
    assert list(shown) == COLUMNS
    assert len(rows) == len(shown["age"]) == 3000
    assert set(shown["town"]) == {"Ghent", "Bruges", "Aalst"}
    assert set(shown["step"]) == {1, 3, 5}
    assert set(shown["smoker"]) == {True, False}
    assert set(shown["age"]) == set(range(100))  # not only where bins start


def test_a_question_about_another_column_is_refused(rows):
    with pytest.raises(QuestionRefused):
        rows.count("day <= date '2025-06-30'")


def test_the_report_is_about_what_was_measured(rows):
    names = [each.columns for each in rows.report]
    assert names[:4] == [(name,) for name in COLUMNS]
    assert len(names) == 4 + 3 + rows.plan.mechanism.rounds
    for each, marginal in zip(rows.report, rows.measured, strict=True):
        assert each.cells == len(marginal.counts)
        assert 0 <= each.apart <= each.most_apart <= 20
        assert each.within() >= each.most_apart
    assert "95 %" in str(rows)


def test_the_report_bounds_the_error_on_what_was_measured(people, budget):
    """At an ε with much noise, by the truth: 95 % each, so of 70 hardly ten can miss."""
    known = [person(pid) for pid in range(PEOPLE)]
    missed = total = 0
    for _ in range(10):
        drawn = people.synthetic(
            ["town", "smoker", "age"], epsilon="1/2", max_rows=1, rows=500, budget=budget
        )
        columns = drawn.plan.columns
        values = {
            "town": np.array([("Ghent", "Bruges", "Aalst").index(each[1]) for each in known]),
            "smoker": np.array([int(each[2]) for each in known]),
            "age": np.array([each[0] for each in known]),
        }
        places = {each.name: each.places(values[each.name])[0] for each in columns}
        mine = places_of(drawn.codes, columns)
        for each in drawn.report:
            sizes = [column.size for column in columns if column.name in each.columns]
            at = [place for place, column in enumerate(columns) if column.name in each.columns]
            true = np.bincount(
                np.ravel_multi_index([places[columns[a].name] for a in at], sizes),
                minlength=each.cells,
            )
            found = np.bincount(
                np.ravel_multi_index([mine[:, a] for a in at], sizes), minlength=each.cells
            ) * (drawn.people / len(drawn))
            missed += bool(np.abs(true - found).max() > float(each.within()) + 1e-6)
            total += 1
    assert total >= 50
    assert missed <= 10


# Plans -------------------------------------------------------------------------------------------


def test_a_plan_says_what_is_measured_and_what_else_there_is(people):
    plan = people.plan_synthetic(COLUMNS, epsilon=1, max_rows=1)
    assert plan.mechanism.rounds == 0  # εn = 2000
    assert plan.cells == 20 * 3 * 2 * 3
    said = str(plan)
    assert "the tree alone (εn = 2000" in said
    assert "instead   table.histogram('age', 'town', 'smoker', 'step', ...)" in said
    assert plan.error() > plan.error(2)  # more is paid for pairs
    many = people.plan_synthetic(COLUMNS, epsilon=5, max_rows=1)
    assert many.mechanism.rounds == 6  # as many as there are pairs
    assert "6 times what the rows have most wrong of 6 marginals" in str(many)
    assert many.round_error() < many.error(2)
    assert people.plan_synthetic(COLUMNS, epsilon=5, max_rows=1, rounds=0).round_error() is None
    assert people.plan_synthetic(["age"], epsilon=50, max_rows=1).mechanism.rounds == 0
    for wrong in (0, 3, "one"):
        with pytest.raises(BadParameter):
            plan.error(wrong)


def test_a_plan_without_people_says_so():
    schema = read_schema(SCHEMA, name="people", person="pid")
    plan = plan_synthetic(schema, COLUMNS, epsilon=100, max_rows=1)
    assert plan.mechanism.rounds == 0
    assert "people=" in str(plan)


def test_given_marginals_are_what_rounds_choose_from(people, budget):
    drawn = people.synthetic(
        COLUMNS,
        epsilon=100,
        rounds=3,
        marginals=[["STEP", "smoker", "town"], ["town", "smoker", "step"], ["age"]],
        max_rows=1,
        rows=100,
        budget=budget,
    )
    assert drawn.plan.mechanism.candidates == ((1, 2, 3), (0,))
    assert {each.columns for each in drawn.measured[7:]} <= {(1, 2, 3), (0,)}
    assert len(drawn.measured) == 10


# Bins --------------------------------------------------------------------------------------------


def test_bins_are_equal_runs_or_start_where_they_are_told_to(people):
    schema = people.schema
    (age,) = binned(schema, ["AGE"], {"age": 3})
    assert age.starts == (0, 33, 66)
    (age,) = binned(schema, ["age"], {"Age": [0, 18, 65]})
    assert age.starts == (0, 18, 65)
    (day,) = binned(schema, ["day"], {"day": [date(2025, 7, 1)]})
    assert day.size == 2
    assert binned(schema, ["day"], None)[0].size == 20
    assert binned(schema, ["age"], {"age": 1000})[0].size == 100
    assert binned(schema, ["step"], None)[0].size == 3
    wide = binned(schema, ["wide"], {"wide": [-(2**62), 0, 1, 2**62]})[0]
    codes = wide.codes(np.arange(5).repeat(50), InsecureTestCoins(1))
    assert (wide.places(codes)[0] == np.arange(5).repeat(50)).all()


def test_every_code_has_the_place_of_its_bin():
    schema = read_schema(SCHEMA, name="people", person="pid")
    for name, wanted in (("age", 7), ("age", [1, 2, 50]), ("step", None), ("day", 12)):
        column = BinnedColumn.of(schema, name, wanted)
        domain = np.array(column.column.domain, np.int64)
        places, known = column.places(domain)
        assert known.all()
        assert sorted(set(places.tolist())) == list(range(column.size))
        again, _ = column.places(column.codes(places, InsecureTestCoins(1)))
        assert (again == places).all()
    assert not BinnedColumn.of(schema, "step", None).places(np.array([0, 2, 4, 6]))[1].any()
    assert not BinnedColumn.of(schema, "age", 3).places(np.array([-1, 100]))[1].any()


def test_wrong_bins_are_refused(people):
    for bins in (
        {"age": 0},
        {"age": "3"},
        {"age": 1.5},
        {"age": [5, 3]},
        {"age": [3, 3]},
        {"age": [200]},
        {"age": ["old"]},
        {"town": 2},
        {"smoker": 3},
        {"day": 3},
        {"nowhere": 3},
        {"wide": 1},
        ["age"],
    ):
        with pytest.raises(BadParameter, match=r"bins|column"):
            people.plan_synthetic(["age", "town", "wide"], epsilon=1, max_rows=1, bins=bins)
    with pytest.raises(QuestionRefused):
        people.plan_synthetic(["free"], epsilon=1, max_rows=1)
    with pytest.raises(Infeasible):
        people.plan_synthetic(["wide", "age"], epsilon=1, max_rows=1, bins={"wide": 10**5})


# Kept, saved, sent -----------------------------------------------------------------------------


def test_a_retry_key_brings_the_same_rows_for_nothing(people, budget):
    def drawn(**changed):
        given = {"epsilon": 1, "max_rows": 1, "rows": 50, "rounds": 1, **changed}
        return people.synthetic(COLUMNS, budget=budget, retry_key="k", **given)

    first = drawn()
    spent = budget.spent
    again = drawn()
    assert again.as_json() == first.as_json()
    assert budget.spent == spent
    for changed in (
        {"rows": 51},
        {"rounds": 2},
        {"bins": {"age": 3}},
        {"epsilon": 2},
        {"max_rows": 2},
        {"marginals": [["age", "town"]]},
    ):
        with pytest.raises(KeyReused):
            drawn(**changed)


def test_saved_rows_are_loaded_and_damaged_ones_refused(rows, tmp_path):
    file = tmp_path / "rows.json"
    rows.save(file)
    again = tacit.load_synthetic(file)
    assert again.as_json() == rows.as_json()
    assert again.to_dict() == rows.to_dict()
    assert str(again) == str(rows)
    assert from_json(to_json(rows)).as_json() == rows.as_json()
    whole = json.loads(file.read_text())

    def damaged(**changed):
        return synthetic_from_json({**whole, **changed})

    first, *rest = whole["codes"]
    for changed in (
        {"tacit synthetic": 2},
        {"codes": [[-1, *first[1:]], *rest]},
        {"codes": [first, [3, *rest[0][1:]], *rest[1:]]},
        {"codes": whole["codes"][:-1]},
        {"codes": [first[:-1], *rest]},
        {"people": 0},
        {"bins": [[0, 50, 20], *whole["bins"][1:]]},
        {"bins": [None, *whole["bins"][1:]]},
        {"measured": [{**whole["measured"][0], "scale": "1"}]},
        {"measured": [{**whole["measured"][0], "counts": [1]}]},
        {"epsilon": "0"},
    ):
        with pytest.raises((tacit.TacitError, ValueError, TypeError, LookupError)):
            damaged(**changed)


def test_one_row_each_needs_no_bound(tmp_path):
    file = tmp_path / "each.csv"
    file.write_text("age\n" + "\n".join(str(n % 5) for n in range(100)) + "\n")
    schema = '[columns.age]\ntype = "integer"\nbounds = [0, 4]\n'
    budget = tacit.Budget.in_memory(epsilon=10**6, covers=["each"])
    with tacit.open(file, person=EACH_ROW, schema=schema) as table:
        drawn = table.synthetic(["age"], epsilon=10**5, rows=100, budget=budget)
    assert drawn.to_dict()["age"].count(3) == 20
    assert drawn.people == 100
