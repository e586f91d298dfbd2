"""``stream.check``: what a stream would take, found without asking."""

from __future__ import annotations

import pytest

from tacit.errors import QuestionRefused

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
