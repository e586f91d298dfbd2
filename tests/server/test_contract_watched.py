"""Watched models, local and on a server: one contract for both."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest
from tests.server.faces import Face, refused
from tests.server.test_contract import MUCH, TOWNS, calm_server, face, local, remote

from tacit import wire
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    KeyReused,
    QuestionRefused,
    StreamEnded,
    StreamMismatch,
)

__all__ = ["calm_server", "face", "local", "remote"]  # fixtures

CALM: dict[str, Any] = {"epsilon": 10**6, "surprises": 3, "questions": 10}  # noise is 0 here


def wrong_model() -> pyarrow.Table:
    """Half of the 300 people in each town, where the table has 100 in Ghent and 200 in Bruges."""
    return pyarrow.table({"town": ["Ghent", "Bruges"], "age": [3, 4], "cost": [1.5, 1.5]})


def watched(face: Face, **more: Any) -> Any:
    return face.watched_model(**{**CALM, "model": wrong_model(), **more})


def shown(answers: Any) -> list[Any]:
    """What was told, but for the moment at which it was."""
    told = [wire.to_json(answer) for answer in answers]
    return [{**each, "recorded": each["recorded"] and each["recorded"]["as_of"]} for each in told]


def asked(face: Face) -> list[Any]:
    """The same questions to either."""
    model = watched(face)
    told = [model.ask("town = 'Ghent'"), model.ask("town = :town", town="Ghent")]
    told += [model.ask("town = 'Bruges'"), *model.ask_all(TOWNS)]
    told += model.ask_all(["age < 50", ("age < :a", {"a": 10}), "age < 50", "age < 20"])
    assert (model.surprises_left, model.watched) == (0, False)
    told.append(model.ask(face.prepare("age < :age and cost >= 0"), age=7))
    return told


def test_every_answer_is_the_same(local, remote):
    here, there = shown(asked(local)), shown(asked(remote))
    assert here == there
    assert [each["source"] for each in here] == [
        *("measured", "measured", "model", "model", "measured"),
        *("measured", "measured", "measured", "unwatched", "unwatched"),
    ]
    assert [each["surprises_left"] for each in here] == [2, 2, 2, 2, 2, 1, 0, 0, 0, 0]
    label = "2026-11-01"
    assert [each["recorded"] for each in here[:5]] == [None, label, None, None, label]
    assert here[0]["value"] == 100


def test_what_is_planned_is_the_same(local, remote):
    for given in (
        {"epsilon": 1, "max_rows": 1},
        {"epsilon": "1/2", "max_rows": 1, "surprises": 5, "columns": ["town"], "beta": "1/10"},
        {"epsilon": 1, "model": wrong_model()},
    ):
        here, there = local.plan_watched_model(**given), remote.plan_watched_model(**given)
        assert str(here) == str(there)
        assert here.error("1/10") == there.error("1/10")


@pytest.mark.parametrize("kind", ["synthetic", "independent"])
def test_a_model_that_is_paid_for(face, kind):
    spent = face.budget.spent.epsilon
    given = {"columns": ["town", "age"], "bins": {"age": [0, 50]}, "max_rows": 1}
    options = {**CALM, "model": kind, "name": f"{kind} {face.table!r:.5}", "retry_key": kind}
    model = face.watched_model(**options, **given)
    assert face.budget.spent.epsilon == spent + 10**6
    assert model.ask("town = 'Bruges'").value == 200
    model.suspend()
    assert refused(model.ask, "age < 3")[0] is StreamEnded
    again = face.resume_watched_model(model.name)
    assert str(again.plan) == str(model.plan)
    assert again.ask("town = 'Bruges'").value == 200
    again.suspend()
    retried = face.watched_model(**options, **given)
    assert retried.name == model.name
    assert face.budget.spent.epsilon == spent + 10**6
    assert refused(face.watched_model, **{**options, **given, "name": "other"})[0] is KeyReused


def test_a_release_is_a_model(face):
    counts = face.histogram("town", max_rows=1, epsilon=1000)
    with watched(face, model=counts) as model:
        assert [each.source for each in model.ask_all(TOWNS)] == ["model", "model"]
        assert refused(model.ask, "age < 3")[0] is QuestionRefused


def test_a_given_model_is_given_again(face):
    name = f"given {face.table!r:.5}"
    with watched(face, name=name) as model:
        first = model.ask("town = 'Ghent'")
    assert refused(face.resume_watched_model, name)[0] is BadParameter
    other = pyarrow.table({"town": ["Ghent"], "age": [3], "cost": [1.5]})
    assert refused(face.resume_watched_model, name, model=other)[0] is StreamMismatch
    again = face.resume_watched_model(name, model=wrong_model())
    assert again.surprises_left == 2
    assert again.ask("town = 'Ghent'").value == first.value
    assert again.ask("town = 'Bruges'").source == "model"  # as it was learnt
    again.close()
    ended = face.resume_watched_model(name, model=wrong_model())
    assert (ended.watched, ended.surprises_left) == (False, 0)
    assert ended.ask("age < 50").source == "unwatched"


def test_a_server_that_let_go_of_a_model_is_given_it_again(remote):
    model = watched(remote, name="let go")
    for use in (
        lambda: model.ask("town = 'Ghent'").source,
        lambda: next(model.ask_all(["town = 'Ghent'"])).source,
        model.close,
    ):
        remote.resume_watched_model("let go", model=wrong_model()).suspend()
        assert use() in ("measured", None)
    assert remote.budget.streams()[-1].status == "closed"


def test_the_same_key_asks_once(face):
    model = watched(face)
    keyed = {"a": "town = 'Ghent'", "b": "town = 'Bruges'"}
    first = [model.ask(question, retry_key=key) for key, question in keyed.items()]
    for _ in range(2):
        again = [model.ask(question, retry_key=key) for key, question in keyed.items()]
        assert [wire.to_json(each) for each in again] == [wire.to_json(each) for each in first]
    assert [each.source for each in first] == ["measured", "model"]
    assert refused(model.ask, "town = 'Bruges'", retry_key="a")[0] is KeyReused
    assert model.ask("town = 'Ghent'", retry_key="c").recorded is not None
    assert model.surprises_left == 2


def test_the_same_batch_is_asked_once(remote):
    model = watched(remote)
    several = ["town = 'Ghent'", "town = 'Bruges'", "age < 50", "age < 51", "town = 'Ghent'"]
    first = list(model.ask_all(several, retry_key="k"))
    assert [each.source[0] for each in first] == list("mmmmm")
    left = model.surprises_left
    again = list(model.ask_all(several, retry_key="k"))
    assert [wire.to_json(each) for each in again] == [wire.to_json(each) for each in first]
    assert model.surprises_left == left
    assert refused(lambda: list(model.ask_all(several[:2], retry_key="k")))[0] is KeyReused


def test_errors_are_the_same(local, remote):
    for name, given in (
        ("watched_model", {"epsilon": 0}),
        ("watched_model", {"epsilon": 1}),
        ("watched_model", {"epsilon": 1, "max_rows": 1, "surprises": 0}),
        ("watched_model", {"epsilon": 1, "max_rows": 1, "columns": ["pid"]}),
        ("watched_model", {"epsilon": 1, "max_rows": 1, "questions": 10**13}),
        ("watched_model", {"epsilon": 1, "model": "nothing"}),
        ("watched_model", {"epsilon": 1, "model": 3}),
        ("watched_model", {"epsilon": 1, "model": wrong_model(), "max_rows": 1}),
        ("watched_model", {"epsilon": 1, "max_rows": 1, "name": ""}),
        ("watched_model", {"epsilon": 1, "max_rows": 1, "name": 3}),
        ("watched_model", {"epsilon": 1, "max_rows": 1, "retry_key": ""}),
    ):
        assert local.refused(name, **given) == remote.refused(name, **given), given
    for called in ("nothing", 3):
        words = [each.refused("resume_watched_model", called) for each in (local, remote)]
        assert words[0] == words[1]


def test_what_is_asked_wrongly_is_refused_in_the_same_words(local, remote):
    here, there = watched(local, name="refusing"), watched(remote, name="refusing")
    for question in ("age >", "pid > 3", TOWNS, "select sum(cost) from visits", 3, "age > :a"):
        assert refused(here.ask, question) == refused(there.ask, question)
        if question != TOWNS:
            assert refused(here.ask_all, [question]) == refused(there.ask_all, [question])
    assert list(there.ask_all([])) == list(here.ask_all([])) == []
    both = [watched_as_a_stream(each) for each in (local, remote)]
    assert both[0] == both[1]
    assert both[0][0][0] is StreamMismatch
    for model in (here, there):
        model.close()
        model.close()
    assert refused(here.ask, "age < 3") == refused(there.ask, "age < 3")


def watched_as_a_stream(face: Face) -> list[Any]:
    """A watched model is not resumed as a stream, nor a stream as one."""
    stream = face.sparse(threshold=1, at_most=1, epsilon=1000, questions=10, name="plain")
    stream.suspend()
    return [face.refused("resume", "refusing"), face.refused("resume_watched_model", "plain")]


def test_a_name_that_is_taken_and_too_little_budget_cost_nothing(face):
    watched(face, name="taken").suspend()
    spent = face.budget.spent
    given = {"max_rows": 1, "columns": ["town"]}
    assert face.refused("watched_model", epsilon=1, name="taken", **given)[0] is BadParameter
    assert face.refused("watched_model", epsilon=MUCH, **given)[0] is BudgetExhausted
    assert face.budget.spent == spent
