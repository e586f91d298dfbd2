"""``stream.check``: what a stream would take, found without asking."""

from __future__ import annotations

import inspect

import pytest

from tacit.analyst.stream import Stream
from tacit.analyst.table import Table
from tacit.errors import BadParameter, QuestionRefused
from tacit.remote.stream import RemoteStream
from tacit.remote.table import RemoteTable
from tacit.tables.language.prepared import RESERVED

BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"


@pytest.fixture
def stream(visits, budget, calm):
    with visits.sparse(threshold=100, at_most=3, budget=budget, name="watch", **calm) as opened:
        yield opened


def test_what_it_takes_is_promised_and_nothing_is_asked(stream, visits, budget):
    head = budget.head
    assert str(stream.check("age >= 60")) == str(visits.check("age >= 60"))
    assert stream.check("age >= :a", a=60, threshold="1/3").text == "count(age >= 60)"
    assert stream.check(visits.prepare("age >= 60"))
    cells = stream.check(BY_TOWN)
    assert (cells.cells, cells.text) == (3, BY_TOWN)
    assert (budget.head, stream.tops_left, len(stream.history)) == (head, 3, 0)


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("age / 2 > 1", {}),
        ("2 * count(age >= 0)", {}),
        ("count(age < 3) - count(age > 3)", {}),
        ("sum(cost)", {}),
        ("age >= :a", {}),
        ("age >= 0", {"b": 3}),
        ("age >= 0", {"threshold": "many"}),
        ("age >= 0", {"threshold": 10**30}),
        (3, {}),
    ],
)
def test_what_it_would_refuse_is_refused_in_the_same_words(stream, question, options):
    told = stream.check(question, **options)
    assert not told
    with pytest.raises((QuestionRefused, ValueError)) as refusal:
        stream.ask(question, **options)
    assert told.refusal == str(refusal.value)


def test_it_says_what_a_stream_of_another_kind_would_take(visits, budget, calm):
    kind = {"kind": "any", "sensitivity": 200, "grid": "1/2"}
    with visits.sparse(threshold=0, at_most=1, budget=budget, **calm, **kind) as stream:
        assert stream.check("count(age < 3) - count(age > 3)").direction == 0
        assert stream.check("sum(cost)").sensitivity == 200
        assert not stream.check("0.25 * count(age < 3)")


def calls_with_parameters():
    """Every method that takes the parameters of a question by name."""
    for owner in (Table, Stream, RemoteTable, RemoteStream):
        for name, call in inspect.getmembers(owner, inspect.isfunction):
            taken = inspect.signature(call).parameters.values()
            if not name.startswith("_") and any(each.kind is each.VAR_KEYWORD for each in taken):
                yield name, [each for each in taken if each.kind is not each.VAR_KEYWORD]


def test_every_option_beside_parameters_is_reserved():
    calls = dict(calls_with_parameters())
    assert {"ask", "ask_all", "check", "count", "sum", "top", "plan_top"} <= calls.keys()
    for name, taken in calls.items():
        options = {each.name for each in taken if each.kind is each.KEYWORD_ONLY}
        assert options <= RESERVED, name
        assert "params" in options, name


@pytest.mark.parametrize("name", sorted(RESERVED - {"where"}))  # :where is no SQL
def test_a_parameter_called_as_an_option_is_refused_unless_it_stands_in_params(
    stream, visits, budget, name
):
    question, values = f"age >= :{name}", {name: 60}
    for refused in (visits.check(question), stream.check(question)):
        assert not refused
        assert f"params={{'{name}': ...}}" in refused.refusal
    meant = "count(age >= 60)"
    assert visits.check(question, params=values).text == meant
    assert stream.check(question, params=values).text == meant
    stream.ask(question, params=values)
    list(stream.ask_all([question], params=values))
    list(stream.ask_all([(question, values)]))
    assert [asked.question for asked in stream.history] == [meant] * 3
    assert visits.count(question, epsilon="1/100", budget=budget, params=values)
    total = {"where": question, "epsilon": "1/100", "budget": budget}
    assert visits.sum("cost", **total, params=values)
    assert visits.plan_top(1, [question, f"age < :{name}"], epsilon=1, params={name: 60})
    if name != "params":
        assert "option" in visits.check(question, **values).refusal


def test_values_by_keyword_and_in_params_are_taken_together_and_once(stream, visits):
    both = visits.check("age >= :scale and town = :town", town="a", params={"scale": 3})
    assert both.text == "count(age >= 3 and town = 'a')"
    told = stream.check("age >= :a", a=1, params={"a": 1})
    assert "give it once" in told.refusal
    with pytest.raises(BadParameter, match="params"):
        visits.check("age >= :a", params=[3])
