"""Answers that were paid for are told again, for nothing; what was never told is told once."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tests.golden.stored import BUDGETS, called, noted, still_says

import tacit
from tacit import wire

WITH = {
    part: [name for name in BUDGETS["0.2"] if part in noted(name, "0.2")]
    for part in ("answers", "unanswered", "requests", "keyed", "watched")
}


@pytest.fixture
def version():
    return "0.2"


@pytest.mark.parametrize("name", WITH["answers"])
def test_under_its_key_an_answer_is_told_again(stored, name):
    budget = stored.budget(name)
    head = budget.head
    for told in stored.noted(name)["answers"]:
        again = called(stored.table(), told, budget)
        assert still_says(wire.to_json(again), told["again"]), told["key"]
    assert budget.head == head


@pytest.mark.parametrize("name", WITH["answers"])
def test_it_is_told_from_the_record_and_not_from_the_data(stored, name):
    for table in ("visits", "labs"):
        header = (stored.folder / f"{table}.csv").read_text().splitlines()[0]
        (stored.folder / f"{table}.csv").write_text(header + "\n")
    test_under_its_key_an_answer_is_told_again(stored, name)


@pytest.mark.parametrize("name", WITH["answers"])
def test_every_kept_answer_is_listed_and_read(stored, name):
    budget, told = stored.budget(name), stored.noted(name)
    kept = [answer for answer in budget.answers if answer.kind == "charge"]
    read = [wire.from_json(answer.response) for answer in kept if answer.response is not None]
    said = [as_released(value) for value in read]
    for answer in told["answers"]:
        assert any(still_says(each, without_facts(answer["first"])) for each in said), answer["key"]


def test_a_draw_that_failed_has_failed(stored):
    budget = stored.budget("clinic")
    (failed,) = stored.noted("clinic")["failed"]
    head = budget.head
    with pytest.raises(tacit.errors.EngineFailed):
        called(stored.table(), failed, budget)
    assert budget.head == head


@pytest.mark.parametrize("name", WITH["unanswered"])
def test_what_was_paid_and_never_told_is_told_once_or_refused(stored, name):
    """It is drawn if today's charge for it is at most the one on record, and refused otherwise."""
    budget, table = stored.budget(name), stored.table()
    spent, waiting = budget.spent, stored.noted(name)["unanswered"]
    never_told = [one for one in budget.answers if one.kind == "charge" and one.response is None]
    for asked, paid in zip(waiting, never_told, strict=True):
        if charged_today(table, asked, budget).fits_in(paid.charged):
            told = as_released(called(table, asked, budget))
            assert as_released(called(table, asked, budget)) == told, asked["key"]
            assert as_released(wire.from_json(budget.answers[paid.number].response)) == told
        else:
            with pytest.raises(tacit.errors.KeyReused):
                called(table, asked, budget)
    assert budget.spent == spent
    budget.verify()


def charged_today(table, asked, budget):
    """What somebody would pay who asked for it now."""
    paid = tacit.Budget.in_memory(
        epsilon=10**6, delta="1e-4", covers=budget.covers, accountant=budget.accountant.name
    )
    called(table, asked, paid)
    return paid.spent


def as_released(value):
    return without_facts(wire.to_json(value))


def without_facts(told):
    """But for when it was told and what it is about."""
    facts = ("recorded", "question", "at", "as_of", "table")
    return {key: each for key, each in told.items() if key not in facts}


def test_another_request_under_a_used_key_is_refused(stored):
    budget, told = stored.budget("clinic"), stored.noted("clinic")
    head = budget.head
    for asked in (told["answers"][0], told["unanswered"][0], told["failed"][0]):
        method, given, options = asked["call"]
        other = {**asked, "call": [method, given, {**options, "epsilon": "1/11"}]}
        with pytest.raises(tacit.errors.KeyReused):
            called(stored.table(), other, budget)
    assert budget.head == head


def test_a_stream_opened_under_a_key_and_never_told_is_resumed(stored):
    budget = stored.budget("clinic")
    spent, (state,) = budget.spent, [each for each in budget.streams() if each.status == "live"]
    asked = {"threshold": 10, "at_most": 3, "epsilon": 1, "retry_key": "opened, never told"}
    stream = stored.table().sparse(**asked, budget=budget)
    assert (stream.name, stream.tops_left) == (state.name, 2)  # the reserved ⊤ is lost
    assert budget.spent == spent


@pytest.mark.parametrize("name", WITH["keyed"])
def test_a_stream_tells_again_what_it_told_under_a_key(stored, name):
    budget = stored.budget(name)
    spent = budget.spent
    for keyed in stored.noted(name)["keyed"]:
        stream = stored.table().sparse(
            **keyed["options"], budget=budget, retry_key=keyed["opening"]
        )
        left = stream.tops_left
        for told in keyed["asked"]:
            again = stream.ask(told["question"], threshold=told["threshold"], retry_key=told["key"])
            before = without_facts(told["answer"])
            assert still_says(without_facts(wire.to_json(again)), before)
        with pytest.raises(tacit.errors.KeyReused):
            stream.ask("age >= 44", retry_key=keyed["asked"][0]["key"])
        assert stream.tops_left == left
        stream.suspend()
    assert budget.spent == spent


@pytest.mark.parametrize("name", WITH["requests"])
def test_requests_for_more_stand_as_they_were_decided(stored, name):
    budget, told = stored.budget(name), stored.noted(name)["requests"]
    assert still_says([wire.to_json(one) for one in budget.requests], told)
    for one in told:
        if one["status"] == "open":
            assert budget.requests.approve(one["number"]).status == "approved"
        else:
            approved = one["status"] == "approved"
            otherwise = budget.requests.decline if approved else budget.requests.approve
            with pytest.raises(tacit.errors.BadParameter):
                otherwise(one["number"])
    budget.verify()


# Watched models -----------------------------------------------------------------------------------


def given_to(told, stored):
    """The model that was given when it was opened, if one was."""
    given = told["options"].get("model")
    return stored.folder / given if given == "model.csv" else None


@pytest.mark.parametrize("name", WITH["watched"])
def test_a_watched_model_goes_on_from_its_record(stored, name):
    budget = stored.budget(name)
    spent = budget.spent
    for told in stored.noted(name)["watched"]:
        model = stored.table().resume_watched_model(
            told["name"], budget=budget, model=given_to(told, stored)
        )
        assert model.surprises_left == told["surprises_left"], told["name"]
        for question, before in zip(told["questions"], told["answers"], strict=True):
            again = wire.to_json(model.ask(question))
            if before["source"] == "measured":
                then = without_facts({**before, "surprises_left": told["surprises_left"]})
                assert still_says(again, then)
            elif again["source"] != "measured":  # else it was a surprise only now
                assert again["value"] == pytest.approx(before["value"], abs=1e-6)
        if told["keyed"] is not None:
            question, key, before = told["keyed"]
            assert still_says(wire.to_json(model.ask(question, retry_key=key)), before)
    assert budget.spent == spent
    budget.verify()


def test_a_watched_model_is_opened_once_under_its_key(stored):
    budget = stored.budget("watched")
    spent = budget.spent
    for told in stored.noted("watched")["watched"]:
        options = dict(told["options"])
        if (given := given_to(told, stored)) is not None:
            options["model"] = given
        model = stored.table().watched_model(
            **options, name=told["name"], budget=budget, retry_key=f"open {told['name']}"
        )
        assert model.surprises_left == told["surprises_left"]
    assert budget.spent == spent


def test_a_watched_model_that_was_half_paid_pays_for_the_rest(stored):
    """Under its key the model's rows are drawn or told, and only the watch is paid for."""
    budget = stored.budget("watched")
    for told in stored.noted("watched")["half_opened"]:
        before = budget.spent
        model = stored.table().watched_model(
            **told["options"], budget=budget, retry_key=told["key"]
        )
        watch = budget.spent - before
        assert 0 < watch.epsilon < Fraction(told["options"]["epsilon"])
        assert model.surprises_left == told["options"]["surprises"]
    budget.verify()


# Shards -------------------------------------------------------------------------------------------


def test_shards_hold_the_same_people_or_are_made_anew(stored):
    """Whoever opens the table finds the same values, whether or not the shards still serve."""
    told, values = stored.noted("shards"), []
    for shards in (stored.folder / "shards", None):
        with tacit.open(
            stored.folder / "visits.csv", person="pid", as_of="2026-11-01", shards=shards
        ) as visits:
            asked = [visits.prepare(text).question() for text in told["questions"]]
            values.append([int(value) for value in visits.engine.values(asked)])
    assert values == [told["values"]] * 2
