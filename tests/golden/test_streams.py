"""Streams of earlier versions go on: what is recorded is told again, lost ⊤ and ends stay so."""

from __future__ import annotations

import tomllib
from fractions import Fraction

import pyarrow as pa
import pytest
from tests.golden.stored import (
    ENDED,
    PEOPLE,
    every_budget,
    every_version,
    noted,
    opened_together,
    parameters,
    still_says,
    streams_of,
    told_by,
)

import tacit


def resumable(version, name):
    return [
        stream
        for stream in streams_of(version, name)
        if stream["status"] not in ENDED and stream["name"] != "live-with-its-only-top"
    ]


def check_recorded(stream, asked):
    """The very questions that were ⊤, asked again; returns how many there were."""
    told = 0
    for question in asked:
        if "as_of" in question:  # of another label than the table has now
            continue
        given, threshold = parameters(question), question["threshold"]
        given |= question.get("options", {})
        limit = None if threshold is None else Fraction(threshold)
        if "answers" in question:
            again = list(map(told_by, stream.ask_all(question["question"], **given)))
            assert again == question["answers"], question
            told += len(again)
        elif question["answer"]["above"]:
            again = stream.ask(question["question"], threshold=limit, **given)
            assert told_by(again) == question["answer"], question
            told += 1
    return told


@every_budget
def test_recorded_answers_are_told_again_without_a_coin(stored, name):
    budget, recorded = stored.budget(name), 0
    spent = budget.spent
    for told in resumable(stored.version, name):
        lost = budget.stream(told["name"]).reserved  # if its holder was killed
        assert bool(lost) is (told["status"] == "live")
        stream = stored.resume(told, budget)
        left = told["tops_left"] - lost
        assert budget.stream(told["name"]).tops_left == left, told["name"]
        assert budget.stream(told["name"]).lost == told["lost"] + lost
        if "recipe.least_scale" not in told["binding"]:
            assert len(stream.recorded) == told["tops"]
        recorded += check_recorded(stream, told["asked"])
        assert not stream.halted
        stream.suspend()
        assert budget.stream(told["name"]).tops_left == left, told["name"]
        assert budget.stream(told["name"]).tops == told["tops"]
    assert budget.spent == spent
    budget.verify()
    assert recorded or name in ("secrets", "watched", "served")


@every_version
def test_the_record_speaks_and_not_the_data(stored, version):
    """With nobody left in the tables a fresh answer would be another one."""
    for table in PEOPLE[version]:
        header = (stored.folder / f"{table}.csv").read_text().splitlines()[0]
        (stored.folder / f"{table}.csv").write_text(header + "\n")
    budget = stored.budget("clinic")
    for told in resumable(version, "clinic"):
        lost = budget.stream(told["name"]).reserved
        with stored.resume(told, budget) as stream:
            check_recorded(stream, told["asked"])
            assert budget.stream(told["name"]).tops_left == told["tops_left"] - lost


@every_version
def test_what_was_recorded_is_listed_with_its_question(stored, version):
    budget = stored.budget("clinic")
    tops = [entry.body for entry in budget.history if entry.kind == "top"]
    for told in resumable(version, "clinic"):
        with stored.resume(told, budget) as stream:
            listed = [(entry.question, told_by(entry.answer)) for entry in stream.recorded]
        then = [top["answer"] for top in tops if top["stream"] == told["name"]]
        assert [question for question, _ in listed] == [answer["text"] for answer in then]
        for part in ("value", "gap"):
            assert [now[part] for _, now in listed] == [answer.get(part) for answer in then]


def test_a_question_with_another_threshold_is_another_question(stored):
    (told,) = [told for told in resumable("0.1", "clinic") if told["name"] == "suspended twice"]
    with stored.resume(told, stored.budget("clinic")) as stream:
        assert not stream.ask("town = 'Ghent'", threshold=10**9)
        assert not stream.ask("town = 'Bruges'", threshold=10**9 + 1)
        assert stream.tops_left == told["tops_left"]


@every_budget
def test_what_has_ended_stays_ended(stored, name):
    budget = stored.budget(name)
    for told in streams_of(stored.version, name):
        if told["status"] in ENDED:
            with pytest.raises(tacit.errors.StreamEnded):
                stored.resume(told, budget)
            assert budget.stream(told["name"]).status == told["status"]
    assert budget.head == stored.noted(name)["head"]


@pytest.mark.parametrize(
    ("version", "name"), [("0.1", "killed"), ("0.2", "killed"), ("0.2", "ledger")]
)
def test_a_stream_killed_with_its_only_top_has_halted(stored, name):
    budget = stored.budget(name)
    for _ in range(2):
        with pytest.raises(tacit.errors.StreamEnded):
            stored.table().resume("live-with-its-only-top", budget=budget)
    state = budget.stream("live-with-its-only-top")
    assert (state.status, state.tops, state.lost, state.tops_left) == ("halted", 0, 1, 0)


@every_budget
def test_as_many_tops_come_as_were_left_and_no_more(stored, name):
    """Every question of another age is new, and every one of them passes so low a threshold."""
    budget = stored.budget(name)
    for told in resumable(stored.version, name):
        stream, left = stored.resume(told, budget), told["tops_left"] - (told["status"] == "live")
        if told["table"] != "visits" or left > 20:
            stream.suspend()
            continue
        for nth in range(left):
            assert stream.tops_left == left - nth
            assert stream.ask("age <> :a", threshold=-(10**14), a=100 + nth)
        assert stream.halted
        with pytest.raises(tacit.errors.Halted):
            stream.ask("age <> 99", threshold=-(10**14))
        assert budget.stream(told["name"]).status == "halted"
    budget.verify()


@every_budget
def test_it_is_the_recipe_and_the_threshold_that_were_paid_for(stored, name):
    budget = stored.budget(name)
    for told in resumable(stored.version, name):
        with stored.resume(told, budget) as stream:
            binding = told["binding"]
            assert stream.threshold == Fraction(binding["threshold"])
            assert str(stream.recipe.privacy.epsilon) == binding["recipe.epsilon"]
            assert str(stream.recipe.privacy.delta) == binding["recipe.delta"]
            assert stream.recipe.at_most == told["at_most"]
            of_recipe = {
                key.removeprefix("recipe."): text
                for key, text in binding.items()
                if key.startswith("recipe.")
            }
            assert still_says(stream.recipe.as_json(), of_recipe)


@every_version
def test_it_goes_on_where_the_types_of_columns_are_known(stored, version):
    """No version before 0.3 noted how columns are stored, and so they are not compared."""
    with open_typed(stored.folder, version) as table:
        budget = stored.budget("clinic")
        of_visits = [told for told in resumable(version, "clinic") if told["table"] == "visits"]
        for told in of_visits:
            table.resume(told["name"], budget=budget).suspend()
        assert len(of_visits) > 3


def open_typed(folder, version):
    """Nobody's visits, in a source that has types, and beside them what they were opened with."""
    types = {
        "integer": pa.int64(),
        "real": pa.float64(),
        "text": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    given = {}
    for name, person in PEOPLE[version].items():
        toml = folder / f"{name}.toml"
        declared = tomllib.loads(toml.read_text())["columns"]
        fields = [(column, types[facts["type"]]) for column, facts in declared.items()]
        source = pa.schema(fields).empty_table()
        given[name] = {"source": source, "person": person, "schema": toml}
    if version == "0.1":
        return tacit.open(**given["visits"], name="visits")
    return tacit.open_all({name: given[name] for name in ("visits", "labs")})["visits"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bounds = [0, 120]", "bounds = [0, 121]"),
        ("total = [0, 1000]", "total = [0, 1001]"),
        ("max_rows = 5", "max_rows = 6"),
        ('grid = "0.01"', 'grid = "0.02"'),
    ],
)
def test_it_is_not_resumed_where_the_promise_would_be_another(stored, before, after):
    schema = stored.folder / "visits.toml"
    assert before in schema.read_text()
    schema.write_text(schema.read_text().replace(before, after))
    budget = stored.budget("clinic")
    with pytest.raises(tacit.errors.StreamMismatch):
        stored.table().resume("above", budget=budget)
    assert budget.head == noted("clinic")["head"]


def test_nor_with_other_people(stored):
    budget = stored.budget("clinic")
    for person in (tacit.EACH_ROW, "order"):
        with (
            tacit.open(stored.folder / "visits.csv", person=person) as table,
            pytest.raises(tacit.TacitError),
        ):
            table.resume("above", budget=budget)
    with (
        tacit.open(stored.folder / "staff.csv", person=tacit.EACH_ROW) as table,
        pytest.raises(tacit.TacitError),
    ):
        table.resume("all questions about staff", budget=budget)
    assert budget.head == noted("clinic")["head"]


@pytest.mark.parametrize("version", ["0.2"])
def test_what_is_on_record_belongs_to_its_label(stored):
    """A stream that was asked about two states of the data finds the answer to each."""
    (told,) = [told for told in streams_of("0.2", "clinic") if told["name"] == "two labels"]
    before, now = told["asked"]
    budget = stored.budget("clinic")
    for asked, label in ((before, before["as_of"]), (now, "2026-11-01")):
        with opened_together(stored.folder, as_of=label) as tables:
            stream = tables["visits"].resume("two labels", budget=budget)
            again = stream.ask(asked["question"])
            assert again.recorded is not None
            assert told_by(again) == asked["answer"]
            assert stream.tops_left == told["tops_left"]
            stream.suspend()


@pytest.mark.parametrize("version", ["0.2"])
@pytest.mark.parametrize("name", ["killed", "ledger"])
def test_a_top_that_nobody_saw_is_told_from_the_record(stored, name):
    """Its process was killed between the record and the answer."""
    budget = stored.budget(name)
    assert budget.stream("killed while telling").tops == 1
    with stored.table().resume("killed while telling", budget=budget) as stream:
        (top,) = stream.recorded
        again = stream.ask("age >= 0")
        assert again.recorded is not None
        assert told_by(again) == told_by(top.answer)
        assert stream.tops_left == 2  # of 4: one on record, one lost
