"""Ranges: the promise by the contract of releases, answers against the truth, errors that hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import tacit
from tacit.analyst.ranges import NoisyRanges, plan_ranges
from tacit.book.coins import InsecureTestCoins
from tacit.book.range_tree import RangeTree
from tacit.errors import BadParameter, Infeasible, QuestionRefused
from tacit.tables import parse
from tacit.testing.releases import ReleaseContract, laplace_law

SCHEMA = """
[columns.pid]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 99]
[columns.day]
type = "date"
bounds = [2025-01-01, 2025-12-31]
[columns.step]
type = "integer"
keys = [5, 1, 3]
[columns.cost]
type = "real"
grid = "0.5"
bounds = [0, 20]
[columns.raw]
type = "real"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
"""
FIRST = date(2025, 1, 1)
AGES = [(pid * 37) % 83 for pid in range(500)]
DAYS = [FIRST + timedelta(days=(pid * pid) % 365) for pid in range(500)]


@pytest.mark.parametrize("most", [1, 3, 5])
def test_no_more_rows_of_a_person_count_than_said(tmp_path, most):
    rows = "".join(f"{n // 4},{n % 7}\n" for n in range(80))  # four rows of each of 20
    (tmp_path / "people.csv").write_text(f"pid,age\n{rows}")
    schema = '[columns.pid]\ntype="integer"\n[columns.age]\ntype="integer"\nbounds=[0, 99]\n'
    paid = tacit.Budget.in_memory(epsilon=10**7, covers=["people"])
    with tacit.open(tmp_path / "people.csv", person="pid", people=20, schema=schema) as table:
        found = table.ranges("age", max_rows=most, epsilon=10**6, budget=paid)
    assert round(found.count("age <= 99")) == found.curve[-1] == 20 * min(most, 4)


@pytest.fixture
def people(tmp_path):
    rows = [
        f"{pid},{AGES[pid]},{DAYS[pid]},{(1, 3, 5, 7)[pid % 4]},{pid % 40 / 2},1.5,Ghent"
        for pid in range(500)
    ]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["pid,age,day,step,cost,raw,town", *rows]) + "\n")
    with tacit.open(file, person="pid", people=500, schema=SCHEMA) as table:
        yield table


@pytest.fixture
def budget():
    return tacit.Budget.in_memory(epsilon=10**9, covers=["people"])


# The promise ---------------------------------------------------------------------------------


class TestRanges(ReleaseContract):
    """A tree of two levels over four ages; each count is told as less than 2, 2 or more."""

    max_rows = 2
    shape = RangeTree(4, 2, 2)

    def mechanism(self, schema):
        plan = plan_ranges(schema, "age", epsilon=1, max_rows=self.max_rows, people=None)
        return NoisyRanges(replace(plan, tree=self.shape))

    def wrong(self, schema):
        def ranges(column, **options):
            return lambda: NoisyRanges(
                plan_ranges(schema, column, **{"epsilon": 1, "max_rows": 1, "people": 3, **options})
            )

        return [
            ranges("town"),
            ranges("pid"),
            ranges("nowhere"),
            ranges("age", epsilon=0),
            ranges("age", epsilon="1e-12"),
            ranges("age", max_rows=0),
        ]

    def outcome(self, drawn):
        return tuple(int(np.sign(count - 2)) for level in drawn.measured for count in level)

    def law(self, engine):
        """All rows count, or of two rows each as often; a person's ages are asked one by one."""
        kept: list[list[int]] = [[]]
        for pid in (1, 2, 3):
            asked = [parse(f"pid = {pid} and age = {age}", engine.schema) for age in range(4)]
            ages = [age for age, there in enumerate(engine.values(asked)) if there]
            choices = [ages] if len(ages) <= self.max_rows else [[age] for age in ages]
            kept = [[*ages, *choice] for ages in kept for choice in choices]
        law: dict[tuple[int, ...], float] = {}
        for ages in kept:
            counts = np.bincount(np.array(ages, np.int64), minlength=4).astype(np.int64)
            for told, chance in self._told(counts).items():
                law[told] = law.get(told, 0.0) + chance / len(kept)
        return law

    def _told(self, counts):
        scale = Fraction(self.max_rows * self.shape.levels)
        each = []
        for level in self.shape.nodes(counts):
            for count in level:
                far = laplace_law(int(count) - 2, scale, 1)  # -1, 0 and 1, beyond all together
                each.append(far)
        return {
            told: float(np.prod([law[sign] for law, sign in zip(each, told, strict=True)]))
            for told in product((-1, 0, 1), repeat=len(each))
        }


class TestRangesOfOneRowEach(TestRanges):
    """Patient 1 has two rows, of which one counts, chosen at random."""

    max_rows = 1


# Answers ---------------------------------------------------------------------------------------


def true_count(question, values):
    return sum(map(question, values))


def test_with_little_noise_every_range_is_right(people, budget):
    ages = people.ranges("age", epsilon=10**5, max_rows=1, budget=budget)
    for text, holds in {
        "age <= 39": lambda a: a <= 39,
        "age < 40": lambda a: a < 40,
        "age between 30 and 39": lambda a: 30 <= a <= 39,
        "age >= 7 and age < 70": lambda a: 7 <= a < 70,
        "not age <= 50": lambda a: a > 50,
        "age = 4": lambda a: a == 4,
        "age between 9 and 3": lambda a: False,
        "age > 200": lambda a: False,
        "age >= 0": lambda a: True,
    }.items():
        assert ages.count(text).value == true_count(holds, AGES), text
    assert ages.curve.tolist() == [sum(a <= v for a in AGES) for v in range(100)]
    ordered = sorted(AGES)
    for share, place in (("1/2", 249), ("1/10", 49), (0.99, 494)):
        found = ages.quantile(share)
        assert found.value == ordered[place]
        assert found.low <= ordered[place] <= found.high


def test_running_counts_of_days(people, budget, tmp_path):
    days = people.running("day", epsilon=10**5, max_rows=1, budget=budget)
    told = days.to_dict()
    assert told["day"][:2] == [FIRST, FIRST + timedelta(days=1)]
    assert told["up_to"] == [sum(d <= v for d in DAYS) for v in told["day"]]
    assert days.count("day <= date '2025-03-01'").value == sum(d <= date(2025, 3, 1) for d in DAYS)
    assert days.quantile("1/2").value == sorted(DAYS)[249]
    assert budget.history[-2].body["what"] == "running count of day"
    days.plot(tmp_path / "days.png")
    assert (tmp_path / "days.png").stat().st_size > 1000


def test_keys_are_a_domain_in_the_order_of_their_values(people, budget):
    steps = people.ranges("step", epsilon=10**5, max_rows=1, budget=budget)
    assert steps.to_dict() == {
        "step": [1, 3, 5],
        **{key: [125, 250, 375] for key in ("up_to", "up_to_lower", "up_to_upper")},
        "covers": [steps.covers] * 3,
    }
    assert "1 row of each person, chosen at random; ± does not cover the rest" in steps.covers
    assert steps.covers in steps._repr_html_()
    assert steps.count("step between 2 and 5").value == 250
    assert steps.count("step <= 100").value == 375
    costs = people.ranges("cost", epsilon=10**5, max_rows=1, budget=budget)
    assert costs.count("cost <= 1").value == sum(pid % 40 <= 2 for pid in range(500))


def test_an_error_said_beforehand_is_the_error_of_the_answer(people, budget):
    plan = people.plan_ranges("age", epsilon="1/2", max_rows=3)
    ages = people.ranges("age", epsilon="1/2", max_rows=3, budget=budget)
    for question in ("age <= 39", "age between 30 and 39", "age = 4"):
        assert plan.error(question) == ages.count(question).error()
        assert plan.error(question, "1/100") > plan.error(question)
    assert plan.worst_error() == ages.worst_error() > plan.error("age <= 39")
    text = str(plan)
    assert f"± {plan.worst_error()}" in text
    assert "noise of scale 12 on each count" in text
    assert "table.histogram('age', ...)" in text


def test_a_tree_of_one_level_errs_as_a_histogram_does(people, budget):
    """With one level there are no weights, so that its error bars are exact."""
    steps = people.ranges("step", epsilon="1/2", max_rows=1, budget=budget)
    cells = people.histogram("step", max_rows=1, epsilon="1/2", budget=budget)
    assert steps.plan.tree.levels == 1
    assert steps.count("step = 3").error() == cells[3].error() == steps.plan.error("step = 3")
    assert steps.count("step <= 3").error() == cells.count("step <= 3").error()
    assert "it errs less" not in str(steps.plan)


def test_the_errors_hold():
    """The curve, single ranges and the median, over 300 draws; as often as they say."""
    draws, counts = 300, np.bincount(AGES, minlength=100).astype(np.int64)
    schema = tacit.tables.read_schema(SCHEMA, name="people", person="pid")
    plan = plan_ranges(schema, "age", epsilon="1/2", max_rows=1, people=500)
    truth, median = np.cumsum(counts), sorted(AGES)[249]
    coins, wrong = InsecureTestCoins(4), np.zeros(4)
    for _ in range(draws):
        drawn = tacit.Ranges(plan, plan.tree.measure(counts, epsilon="1/2", coins=coins))
        few = drawn.count("age between 30 and 39")
        found = drawn.quantile("1/2")
        wrong += [
            abs(drawn.curve - truth).max() > drawn.worst_error(),
            abs(few.value - counts[30:40].sum()) > few.error(),
            not found.low <= median <= found.high,
            abs(few.value - counts[30:40].sum()) > few.error() / 3,
        ]
    assert (wrong[:3] <= 0.05 * draws).all()
    assert wrong[3] > 0.05 * draws  # a third of the error bar would be too little


def test_what_holds_together_is_the_union_of_what_holds_alone():
    """Of 100 counts each may miss with β/100; of the three that a quantile needs, with β/3."""
    schema = tacit.tables.read_schema(SCHEMA, name="people", person="pid")
    plan = plan_ranges(schema, "age", epsilon="1/2", max_rows=1, people=500)
    ages, beta = range(100), Fraction(1, 20)
    assert plan.tree.levels > 1
    worst = [max(plan.error(f"age <= {a}", beta / n) for a in ages) for n in (100, 3)]
    assert plan.worst_error(beta) >= worst[0]
    counts = np.bincount(AGES, minlength=100).astype(np.int64)
    coins = InsecureTestCoins(5)
    drawn = tacit.Ranges(plan, plan.tree.measure(counts, epsilon="1/2", coins=coins))
    up_to = [drawn.count(f"age <= {a}").value for a in ages]
    for share in (Fraction(1, 2), Fraction(1, 10)):
        goal, slack = share * up_to[-1], worst[1] + share * plan.error("age <= 99", beta / 3)
        found = drawn.quantile(share, beta)
        may_be = [
            a for a in ages if up_to[a] + slack - 1 >= goal > (a and up_to[a - 1]) - slack + 1
        ]
        assert found.low <= may_be[0]
        assert found.high >= may_be[-1]


# Kept, shown, refused --------------------------------------------------------------------------


def test_it_is_saved_and_read_again(people, budget, tmp_path):
    ages = people.ranges("age", epsilon=1, max_rows=2, budget=budget)
    ages.save(tmp_path / "ages.json")
    again = tacit.load_ranges(tmp_path / "ages.json")
    assert again.as_json() == ages.as_json()
    assert again.to_dict() == ages.to_dict()
    assert str(again) == str(ages)
    assert again.count("age <= 39") == ages.count("age <= 39")
    again.to_csv(tmp_path / "ages.csv")
    assert len((tmp_path / "ages.csv").read_text().splitlines()) == 101
    with pytest.raises(BadParameter, match="path"):
        tacit.load_release(tmp_path / "ages.json")
    (tmp_path / "cut.json").write_text((tmp_path / "ages.json").read_text()[:-9])
    with pytest.raises(BadParameter, match="path"):
        tacit.load_ranges(tmp_path / "cut.json")


def test_the_curve_stays_within_the_public_number_of_people(people, budget):
    for _ in range(5):
        curve = people.ranges("age", epsilon="1/50", max_rows=1, budget=budget).curve
        assert (np.diff(curve) >= 0).all()
        assert curve.min() >= 0
        assert curve.max() <= 500


def test_how_many_rows_count_must_be_said(people, tmp_path):
    with pytest.raises(BadParameter, match="max_rows"):
        people.plan_ranges("age", epsilon=1)
    limited = tacit.tables.read_schema("max_rows = 4\n" + SCHEMA, name="people", person="pid")
    assert plan_ranges(limited, "age", epsilon=1, max_rows=None, people=None).max_rows == 4
    rows = tacit.tables.read_schema(SCHEMA, name="people", person=tacit.EACH_ROW)
    assert plan_ranges(rows, "age", epsilon=1, max_rows=None, people=None).max_rows == 1
    with pytest.raises(BadParameter, match="each row is a person"):
        plan_ranges(rows, "age", epsilon=1, max_rows=2, people=None)


def test_what_cannot_be_asked_is_refused(people, budget):
    with pytest.raises(QuestionRefused, match="text"):
        people.plan_ranges("town", epsilon=1, max_rows=1)
    with pytest.raises(QuestionRefused, match="declared values"):
        people.plan_ranges("raw", epsilon=1, max_rows=1)
    with pytest.raises(QuestionRefused, match="over dates or whole numbers"):
        people.running("cost", epsilon=1, max_rows=1, budget=budget)
    wide = SCHEMA.replace("[0, 99]", "[0, 5_000_000]")
    schema = tacit.tables.read_schema(wide, name="people", person="pid")
    with pytest.raises(Infeasible, match="narrower bounds"):
        plan_ranges(schema, "age", epsilon=1, max_rows=1, people=None)
    ages = people.ranges("age", epsilon=1, max_rows=1, budget=budget)
    for question in ("town = 'Ghent'", "age <= 3 or age >= 9", "true", "day <= date '2025-03-01'"):
        with pytest.raises(QuestionRefused, match="ranges of age"):
            ages.count(question)
    with pytest.raises(QuestionRefused, match="predicates"):
        ages.count("count(age >= 3) - count(age >= 5)")
