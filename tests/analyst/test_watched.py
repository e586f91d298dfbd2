"""A watched model: every answer a number, surprises on record first, the same after a crash."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pytest

import tacit
from tacit import kernel
from tacit.analyst.public_model import ByRow, ByWeight, ModelRows, PublicModel, model_rows
from tacit.analyst.question_class import predicate_of
from tacit.analyst.watched import from_watch_secret
from tacit.analyst.watched_answer import WatchedAnswer
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    EngineFailed,
    LedgerDamaged,
    QuestionRefused,
    StreamEnded,
    StreamMismatch,
    TacitError,
)
from tacit.privacy import Privacy
from tacit.tables.schema.schema import read_schema
from tacit.wire import from_json, to_json

SCHEMA = """
max_rows = 3
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Ghent", "Bruges"]
[columns.age]
type = "integer"
bounds = [0, 9]
total = [0, 20]
[columns.smoker]
type = "boolean"
[columns.free]
type = "integer"
"""
THREE_COLUMNS = """
[columns.age]
type = "integer"
bounds = [0, 99]
[columns.job]
type = "integer"
bounds = [0, 15]
[columns.town]
type = "text"
keys = ["b", "a"]
"""
PEOPLE = 10_000


def frame(flip=False):
    """Half in Ghent; smokers are those of 5 and more, or if flipped mostly the others."""
    pids = np.arange(PEOPLE)
    ages = pids % 10
    return pyarrow.table(
        {
            "pid": pids,
            "town": ["Ghent" if pid // 10 % 2 else "Bruges" for pid in pids.tolist()],
            "age": ages,
            "smoker": (ages >= 5) != (flip & (pids // 100 % 10 > 0)),
            "free": pids,
        }
    )


@pytest.fixture(scope="module")
def people():
    with tacit.open(frame(), person="pid", name="people", people=PEOPLE, schema=SCHEMA) as table:
        yield table


@pytest.fixture
def budget():
    return tacit.Budget.in_memory(epsilon=10**6, covers=["people"])


def watched(people, budget, **given):
    """A model that has smoking the wrong way round."""
    options = {"epsilon": 1, "surprises": 5, "model": frame(flip=True), "questions": 100}
    options |= {"beta": "1e-9", **given}  # noise alone makes no surprise
    return people.watched_model(budget=budget, **options)


# Answers -----------------------------------------------------------------------------------------


def test_a_good_model_answers_for_nothing_and_a_wrong_one_is_noticed(people, budget):
    with watched(people, budget) as model:
        right = model.ask("town = 'Ghent'")
        assert (right.value, right.source, right.surprises_left) == (5000, "model", 5)
        low, high = right.interval
        assert (low, high) == (5000 - model.plan.error(), 5000 + model.plan.error())
        wrong = model.ask("smoker and age >= :age", age=5)  # 5000, where the model has 500
        assert (wrong.source, wrong.surprises_left) == ("measured", 4)
        assert wrong.value == pytest.approx(5000, abs=400)
        assert wrong.interval[0] - 300 <= 5000 <= wrong.interval[1] + 300
        again = model.ask("age >= :params and smoker", params={"params": 5})
        assert (again.value, again.source) == (wrong.value, "measured")
        assert again.recorded is not None
        assert model.surprises_left == 4


def test_the_model_learns_from_a_surprise(people, budget):
    with watched(people, budget) as model:
        model.ask("smoker and age >= 5")
        model.ask("not smoker and age >= 5")  # none, where the model has many
        told = model.ask("smoker and age = 7")
        assert told.source == "model"
        assert told.value == pytest.approx(1000, abs=300)


def test_a_batch_is_answered_as_one_by_one(people, budget):
    with watched(people, budget) as model:
        cells = model.ask_all("select count(distinct pid) from people group by town")
        assert [float(each.value) for each in cells] == [5000, 5000]
        told = list(model.ask_all(["smoker and age >= 5", ("town = :town", {"town": "Ghent"})]))
        assert [each.source for each in told] == ["measured", "model"]
        assert model.surprises_left == 4
        assert next(model.ask_all(["smoker and age >= 5"])).recorded is not None


def test_when_surprises_are_used_up_answers_go_on_unwatched(people, budget):
    model = watched(people, budget, surprises=1)
    assert model.ask("smoker and age >= 5").source == "measured"
    assert not model.watched
    for told in (model.ask("smoker and age = 1"), *model.ask_all(["smoker and age = 1"])):
        assert (told.source, told.surprises_left, told.interval) == ("unwatched", 0, None)
        assert "unwatched" in str(told)
    again = people.resume_watched_model(model.name, budget=budget, model=frame(flip=True))
    assert again.ask("smoker and age = 1").value == told.value
    assert again.ask("smoker and age >= 5").source == "measured"


def test_what_cannot_be_answered_is_refused_before_any_coin(people, budget):
    with watched(people, budget) as model:
        for question in (
            "free > 3",  # not declared, so not in the model
            "age >= 5 and free > 3",
            "age >= 5 or free > 3",
            "age >= 5 and not (smoker and free > 3)",
            "age >= 5 and free is null",
            "select sum(age) from people",
            "select count(*) from people",  # up to three rows of a person
            "select count(distinct pid) - count(distinct pid) from people",
            "nowhere = 1",
        ):
            with pytest.raises(QuestionRefused):
                model.ask(question)
            with pytest.raises(QuestionRefused):
                model.ask_all([question])
        assert model.surprises_left == 5


def test_columns_that_the_model_does_not_know_are_named(people, budget):
    with watched(people, budget) as model:
        for question in ("free > 3", "smoker and free > 3", "age = 3 and not (free > 3 or smoker)"):
            with pytest.raises(QuestionRefused, match="knows nothing about free: it has town, age"):
                model.ask(question)


def test_true_counts_decide_and_not_the_model(people, budget):
    """Whatever is asked, an answer that is watched is within its interval, all but β."""
    missed = 0
    for _ in range(10):
        with watched(people, budget, surprises=8, questions=20) as model:
            for age in range(10):
                for text, true in (("smoker", 1000 * (age >= 5)), ("not smoker", 1000 * (age < 5))):
                    told = model.ask(f"{text} and age = {age}")
                    if told.interval is not None:
                        missed += not told.interval[0] <= true <= told.interval[1]
    assert missed <= 40  # of 80 that are measured; misses come together, since they share ρ


# The record --------------------------------------------------------------------------------------


def test_what_another_thread_was_told_meanwhile_is_told_again(people, budget, monkeypatch):
    """One looks at the record, another gets a surprise for the same, and then it is one's turn."""
    model = watched(people, budget)
    look, told = model._recorded, list[Any]()

    def look_slowly(asked):
        known = look(asked)
        if not told:
            told.append(None)
            told.append(model.ask("smoker and age >= 5"))
        return known

    monkeypatch.setattr(model, "_recorded", look_slowly)
    mine = model.ask("smoker and age >= 5")
    assert mine.recorded is not None
    assert (mine.value, mine.source) == (told[1].value, "measured")
    assert (mine.surprises_left, model.surprises_left) == (4, 4)


def test_whoever_sees_the_state_after_a_surprise_finds_it_on_record(people, budget):
    """Or a thread that looks between the two would draw again for what is on record."""
    model = watched(people, budget)
    before, states = model._state, []

    class Noting(dict[Any, Any]):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            states.append(model._state)

    model._tops = Noting()
    assert model.ask("smoker and age >= 5").source == "measured"
    assert states == [before]
    assert model._state is not before


def test_a_surprise_is_on_record_before_it_is_told(people, budget, monkeypatch):
    model = watched(people, budget)
    seen = []
    lease = model._lease
    record = lease.record_top

    def noted(*given, **options):
        seen.append(model.surprises_left)
        record(*given, **options)

    monkeypatch.setattr(lease, "record_top", noted)
    model.ask("smoker and age >= 5")
    assert seen == [5]
    model.suspend()
    tops = [entry.body for entry in budget.history if entry.body["kind"] == "top"]
    assert len(tops) == 1
    assert tops[0]["answer"]["where"] == "smoker and age >= 5"


def test_a_record_that_fails_loses_the_surprise_and_tells_nothing(people, budget, monkeypatch):
    model = watched(people, budget)

    def fail(*given, **options):
        raise tacit.errors.BudgetError("the disk is full")

    monkeypatch.setattr(model._lease, "record_top", fail)
    with pytest.raises(TacitError):
        model.ask("smoker and age >= 5")
    with pytest.raises(StreamEnded):
        model.ask("town = 'Ghent'")
    again = people.resume_watched_model(model.name, budget=budget, model=frame(flip=True))
    assert again.surprises_left == 4


def test_a_failing_engine_costs_a_surprise_and_says_nothing(people, budget, monkeypatch):
    model = watched(people, budget)

    def fail(questions):
        raise ValueError("patient 4711")

    monkeypatch.setattr(people.engine, "values", fail)
    with pytest.raises(EngineFailed) as raised:
        model.ask("town = 'Ghent'")
    assert "4711" not in str(raised.value)
    assert raised.value.__cause__ is raised.value.__context__ is None
    monkeypatch.undo()
    again = people.resume_watched_model(model.name, budget=budget, model=frame(flip=True))
    assert again.surprises_left == 4


QUESTIONS = [
    *(f"smoker and age = {age}" for age in range(10)),
    "smoker",
    "town = 'Bruges' and not smoker",
]


@pytest.mark.parametrize("kind", ["synthetic", "independent", "frame"])
def test_after_a_resume_the_model_is_exactly_the_same(people, tmp_path, kind):
    path = tmp_path / "b.budget"
    given = frame(flip=True) if kind == "frame" else kind
    options = {} if kind == "frame" else {"max_rows": 1, "columns": ["age", "smoker", "town"]}
    with tacit.Budget.create(path, epsilon=4, covers=["people"]) as budget:
        with people.watched_model(
            epsilon=2, surprises=20, model=given, budget=budget, name="w", **options
        ) as model:
            for question in QUESTIONS[:6]:
                model.ask(question)
            weights = model._model._weights.copy()
            left, state = model.surprises_left, model._state
        assert budget.spent.epsilon == 2
    with tacit.Budget.open(path) as budget:
        again = people.resume_watched_model(
            "w", budget=budget, model=given if kind == "frame" else None
        )
        assert (again._model._weights == weights).all()
        assert again.surprises_left == left
        assert (again._state.up, again._state.down) == (state.up, state.down)
        assert str(again.plan) == str(model.plan)
        again.close()
        assert budget.spent.epsilon == 2


def test_an_unclean_end_loses_the_reserved_surprise(people, tmp_path):
    from multiprocessing import get_context

    path = tmp_path / "b.budget"
    tacit.Budget.create(path, epsilon=4, covers=["people"]).close()
    child = get_context("spawn").Process(target=dies, args=(str(path),))
    child.start()
    child.join(240)
    assert child.exitcode == 9
    with tacit.Budget.open(path) as budget:
        again = people.resume_watched_model("w", budget=budget, model=frame(flip=True))
        assert again.surprises_left == 5 - 1 - 1  # one is on record, one was reserved
        assert again.ask("smoker and age >= 5").recorded is not None
        assert again.ask("smoker and age = 7").source == "model"
        again.suspend()


def dies(path):
    import os

    budget = tacit.Budget.open(path)
    table = tacit.open(frame(), person="pid", name="people", people=PEOPLE, schema=SCHEMA)
    model = watched(table, budget, name="w")
    model.ask("smoker and age >= 5")
    os._exit(9)


def test_a_watched_model_and_a_stream_are_not_taken_for_each_other(people, budget):
    watched(people, budget, name="w").suspend()
    people.sparse(threshold=5, at_most=2, epsilon=1, budget=budget, name="s").suspend()
    with pytest.raises(StreamMismatch, match="resume_watched_model"):
        people.resume("w", budget=budget)
    with pytest.raises(StreamMismatch, match="is a stream"):
        people.resume_watched_model("s", budget=budget)
    with pytest.raises(BadParameter, match="give it again"):
        people.resume_watched_model("w", budget=budget)
    with pytest.raises(StreamMismatch, match="another model"):
        people.resume_watched_model("w", budget=budget, model=frame())
    people.resume_watched_model("w", budget=budget, model=frame(flip=True)).close()


def test_a_damaged_record_is_refused_without_quoting_it(people, budget):
    for secret in (b"[1, 2]", b"[1, 2, -1]", b'[1, "4711", 3]', b"4711", b"\xff"):
        with pytest.raises(LedgerDamaged) as raised:
            from_watch_secret(secret)
        assert "4711" not in str(raised.value)
    model = watched(people, budget)
    for record in ({}, {"above": "⊤", "grid": "1", "where": "smoker", "side": "1"}):
        with pytest.raises(LedgerDamaged):
            model._learn("k", record)


# Paying ------------------------------------------------------------------------------------------


def test_both_parts_are_paid_for_or_neither(people):
    options = {"max_rows": 1, "columns": ["age", "smoker"]}
    little = tacit.Budget.in_memory(epsilon="3/4", covers=["people"])
    with pytest.raises(BudgetExhausted):
        people.watched_model(epsilon=1, budget=little, **options)
    assert little.spent.epsilon == 0
    enough = tacit.Budget.in_memory(epsilon=1, covers=["people"])
    people.watched_model(epsilon=1, budget=enough, **options).close()
    assert enough.left.epsilon == 0
    charges = [entry.body["what"] for entry in enough.history if entry.body["kind"] == "charge"]
    assert charges[0] == "synthetic rows of age, smoker"


@pytest.mark.parametrize("epsilon", [1, "2/7"])
def test_a_plan_has_the_price_of_the_model_and_of_the_watch(people, epsilon):
    asked = {"epsilon": epsilon, "surprises": 3, "max_rows": 1, "columns": ["age", "smoker"]}
    whole = people.plan_watched_model(**asked)
    assert whole.synthetic is not None
    assert whole.cost == whole.synthetic.mechanism.cost + whole.watch.mechanism.recipe.cost
    assert whole.cost.privacy == Privacy(epsilon)
    for accountant in ("sum", "zcdp"):
        paid = tacit.Budget.in_memory(
            epsilon=9, delta="1e-6", covers=["people"], accountant=accountant
        )
        people.watched_model(**asked, name="m", budget=paid).close()
        assert paid.spent == paid.accountant.charge(whole.cost)


def test_a_retry_key_opens_one_model_and_pays_once(people, budget):
    def opened(**changed):
        given = {"max_rows": 1, "columns": ["age", "smoker"], "epsilon": 1, **changed}
        return people.watched_model(budget=budget, retry_key="k", **given)

    first = opened()
    first.suspend()
    spent = budget.spent
    again = opened()
    assert again.name == first.name
    assert budget.spent == spent
    again.suspend()
    with pytest.raises(tacit.errors.KeyReused):
        opened(surprises=3)


def test_a_plan_says_the_threshold_and_the_errors(people):
    plan = people.plan_watched_model(epsilon=1, max_rows=1)
    assert plan.synthetic.privacy.epsilon == Fraction(1, 2)
    assert [column.name for column in plan.synthetic.columns] == ["town", "age", "smoker"]
    assert plan.error() > plan.threshold == 578
    assert "T′ = 578" in str(plan)
    public = people.plan_watched_model(epsilon=1, model=frame())
    assert public.threshold < plan.threshold
    assert "public already" in str(public)
    for wrong in (
        {"model": frame(), "columns": ["age"]},
        {"surprises": 0},
        {"epsilon": 0},
        {"columns": ["nowhere"], "max_rows": 1},
    ):
        with pytest.raises(BadParameter):
            people.plan_watched_model(**{"epsilon": 1, **wrong})


# Models ------------------------------------------------------------------------------------------


def test_every_release_is_a_model(people, budget):
    rows = people.synthetic(["age", "smoker"], epsilon=50, max_rows=1, rows=500, budget=budget)
    histogram = people.histogram("age", "smoker", max_rows=1, epsilon=50, budget=budget)
    small = people.small_db(["age >= 5", "smoker"], max_rows=1, epsilon=50, rows=30, budget=budget)
    for model, exactly in ((rows, 60), (histogram, 60), (small, 1500)):
        with watched(people, budget, model=model) as found:
            told = found.ask("smoker and age >= 5")
            assert float(told.value) == pytest.approx(5000, abs=exactly + 400)
    with pytest.raises(BadParameter, match="model"):
        watched(people, budget, model="uniform")
    with pytest.raises(TacitError):
        watched(people, budget, model=7)


def test_a_model_needs_people_to_stand_for():
    schema = read_schema(SCHEMA, name="people", person="pid")
    with pytest.raises(BadParameter, match="people"):
        model_rows(frame(), schema, None)
    with pytest.raises(BadParameter, match="no row"):
        model_rows(frame().slice(0, 0), schema, 10)


def test_weights_are_whole_and_counts_are_sums_of_them():
    schema = read_schema(
        '[columns.age]\ntype = "integer"\nbounds = [0, 9]\n', name="t", person=tacit.EACH_ROW
    )
    codes = (np.arange(1000) * 7 % 10)[:, np.newaxis]
    model = PublicModel(ModelRows(schema, codes, np.full(1000, 3.3)))
    for text, share in (("age >= 5", 0.5), ("age = 3", 0.1), ("age < 0", 0.0), ("age >= 0", 1.0)):
        where = predicate_of(text, schema)
        assert model.count(where) == round(3300 * share)
    for text, people in (("age >= 5", 3000), ("age = 7", 10), ("age >= 0", 5000), ("age < 0", 9)):
        model.learn(predicate_of(text, schema), people)
    weights = model._weights
    assert (weights == np.rint(weights)).all()
    assert model.count(predicate_of("age >= 0", schema)) == pytest.approx(5000, rel=0.01)
    assert model.count(predicate_of("age = 7", schema)) == pytest.approx(10, abs=5)
    inside = codes[:, 0] >= 5
    assert model.count(predicate_of("age >= 5", schema)) == round(weights[inside].sum() / 2**20)


def test_both_ways_of_counting_are_sums_of_weights():
    """Of rows of the same weight the bits are counted; where all differ, sums are looked up."""
    schema = read_schema(
        '[columns.age]\ntype = "integer"\nbounds = [0, 9]\n', name="t", person=tacit.EACH_ROW
    )
    rng = np.random.default_rng(5)
    asked = [("age >= 5", 5, 9), ("age = 3", 3, 3), ("age < 0", 1, 0), ("age >= 0", 0, 9)]
    for size in (1, 63, 64, 65, 1000):
        codes = rng.integers(0, 10, size)
        rows = ModelRows(schema, codes[:, np.newaxis], np.ones(size))
        for kinds in (1, 2, 5, size):
            values = np.sort(rng.choice(10**6, kinds, replace=False)).astype(float)
            weights = rng.choice(values, size) if kinds != size else rng.permutation(values)
            for text, low, high in asked:
                truth = int(weights[(codes >= low) & (codes <= high)].sum())
                where = predicate_of(text, schema)
                assert ByWeight(rows, weights).units(where) == truth
                assert ByRow(rows, weights).units(where) == truth
    assert ByWeight.suits(np.ones(100))
    assert not ByWeight.suits(np.arange(100_000.0))


@pytest.mark.parametrize("loops", ["compiled", "numpy"])
def test_any_predicate_is_counted_as_brute_force_counts_it(monkeypatch, loops):
    """Asked again and again: bitmaps are made for the second time, and counted from then on."""
    if loops == "numpy":
        monkeypatch.setattr(kernel, "compiled", None)
    schema = read_schema(THREE_COLUMNS, name="t", person=tacit.EACH_ROW)
    rng = np.random.default_rng(7)
    for size in (1, 64, 100, 5000):
        age, job, town = (rng.integers(0, most, size) for most in (100, 16, 2))
        codes = np.stack([age, job, town], axis=1)
        one, two = np.full(size, 3.0), np.where(age % 3, 3.0, 5.0)
        models = [
            (ByWeight(ModelRows(schema, codes, np.ones(size)), each), each) for each in (one, two)
        ]
        for _ in range(3):
            for low in (0, 30, 99):
                asked = {
                    f"age >= {low}": age >= low,
                    f"age >= {low} and job = 3 and town = 'b'": (age >= low)
                    & (job == 3)
                    & (town == 0),
                    f"age >= {low} and age < 50 and job < 9": (age >= low) & (age < 50) & (job < 9),
                    f"age >= {low} or job = 3": (age >= low) | (job == 3),
                    f"not (age >= {low} and job = 3)": ~((age >= low) & (job == 3)),
                    f"age in (1, {low}) and not job = 3": np.isin(age, (1, low)) & (job != 3),
                    f"age >= {low} and job > 15": np.zeros(size, bool),
                    f"age >= {low} and job is not null": age >= low,
                }
                for text, inside in asked.items():
                    where = predicate_of(text, schema)
                    for model, weights in models:
                        assert model.units(where) == int(weights[inside].sum()), text


def test_a_learning_model_goes_on_counting_what_its_weights_say():
    schema = read_schema(
        '[columns.age]\ntype = "integer"\nbounds = [0, 99]\n', name="t", person=tacit.EACH_ROW
    )
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 100, 3000)
    model = PublicModel(ModelRows(schema, codes[:, np.newaxis], np.full(3000, 2.0)))
    for _ in range(25):  # more and more weights differ
        low, high = sorted(rng.integers(0, 100, 2).tolist())
        model.learn(predicate_of(f"age between {low} and {high}", schema), int(rng.integers(4000)))
        for place in (0, 40, low):
            found = model.count(predicate_of(f"age >= {place}", schema))
            assert found == round(float(model._weights[codes >= place].sum()) / 2**20)


# Forms -------------------------------------------------------------------------------------------


def test_an_answer_is_the_same_after_the_wire(people, budget):
    with watched(people, budget, surprises=1) as model:
        told = [model.ask("age = 3"), model.ask("smoker and age >= 5"), model.ask("age = 4")]
        told.append(model.ask("smoker and age >= 5"))
    assert [each.source for each in told] == ["model", "measured", "unwatched", "measured"]
    for each in told:
        fields = json.loads(json.dumps(to_json(each)))
        assert from_json(fields) == each
        assert isinstance(from_json(fields, WatchedAnswer), WatchedAnswer)
        assert "95 %" in str(each) or each.source == "unwatched"
