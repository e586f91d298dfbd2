"""However a question comes in, the same limits hold, before anything is read or paid."""

from __future__ import annotations

import json

import pytest

import tacit
from tacit import tables
from tacit.arguments import LONGEST_QUESTION
from tacit.budget import Budget
from tacit.cli import conversation
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables.language import sql
from tacit.tables.language.parsing import parsed

TOO_LONG = "age >= 60 or " + " " * LONGEST_QUESTION + "age < 3"
LONGEST = "age >= 60" + " " * (LONGEST_QUESTION - len("age >= 60"))


@pytest.fixture
def purse():
    return Budget.in_memory(epsilon=10_000, covers=["visits"])


@pytest.fixture
def ways(visits, purse):
    """Every way in, as functions of a text."""
    stream = visits.sparse(threshold=1000, at_most=1, epsilon=1, budget=purse)
    release = visits.small_db(["age >= 60", "age < 3"], max_rows=1, epsilon=1, rows=5, budget=purse)
    histogram = visits.histogram("age", max_rows=1, epsilon=1, budget=purse)
    cost = {"epsilon": 1, "budget": purse}
    return {
        "prepare": visits.prepare,
        "count": lambda text: visits.count(text, **cost),
        "sum": lambda text: visits.sum("cost", where=text, **cost),
        "ask": stream.ask,
        "ask_all, a text": lambda text: list(stream.ask_all(text)),
        "ask_all, a list": lambda text: list(stream.ask_all(["age >= 60", text])),
        "ask_all, a pair": lambda text: list(stream.ask_all([(text, {})])),
        "questions": lambda text: visits.questions(["age < 3", text]),
        "plan_small_db": lambda text: visits.plan_small_db([text], max_rows=1, epsilon=1, rows=5),
        "small_db": lambda text: visits.small_db([text], rows=5, max_rows=1, **cost),
        "release.answer": release.answer,
        "release.count": release.count,
        "histogram.count": histogram.count,
        "tables.prepare": lambda text: tables.prepare(text, visits.schema),
        "tables.parse": lambda text: tables.parse(text, visits.schema),
        "tables.parse_batch": lambda text: tables.parse_batch(text, visits.schema),
    }


def stream_of(ways):
    return ways["ask"].__self__


def test_a_text_that_is_too_long_is_refused_every_way_unread_and_unpaid(
    ways, purse, visits, monkeypatch
):
    spent, texts = purse.spent, []
    read = parsed
    monkeypatch.setattr(sql, "parsed", lambda text: texts.append(text) or read(text))
    for ask in ways.values():
        with pytest.raises(QuestionRefused, match="at most 10000 characters"):
            ask(TOO_LONG)
    for check in (visits.check, stream_of(ways).check):
        assert "at most 10000 characters" in check(TOO_LONG).refusal
    assert purse.spent == spent
    assert max(map(len, texts), default=0) < LONGEST_QUESTION


def test_a_text_as_long_as_it_may_be_is_answered_every_way(ways):
    for way, ask in ways.items():
        assert ask(LONGEST) is not None, way


def test_a_group_by_has_the_same_limit(visits, purse):
    stream = visits.sparse(threshold=1000, at_most=1, epsilon=1, budget=purse)
    text = "select count(distinct pid) from visits group by town"
    assert len(list(stream.ask_all(text.ljust(LONGEST_QUESTION)))) == 3
    with pytest.raises(QuestionRefused, match="at most 10000 characters"):
        stream.ask_all(text.ljust(LONGEST_QUESTION + 1))


def test_the_limit_does_not_count_what_parameters_bring(visits, purse):
    towns = [f"town {number}" for number in range(LONGEST_QUESTION)]
    assert visits.count("town in :towns", towns=towns, epsilon=1, budget=purse)


def test_a_line_of_the_command_has_the_same_limit(visits):
    asked = conversation.read(TOO_LONG)
    with pytest.raises(QuestionRefused, match="at most 10000 characters"):
        visits.prepare(asked.question)
    with_list = json.dumps({"question": "age in :ages", "parameters": {"ages": [7] * 20_000}})
    assert len(with_list) > LONGEST_QUESTION
    assert conversation.read(with_list).parameters["ages"] == [7] * 20_000
    with pytest.raises(QuestionRefused, match=f"at most {conversation.LONGEST} characters"):
        conversation.read(" " * (conversation.LONGEST + 1))


def test_a_release_of_0_1_with_a_longer_question_is_still_read(visits, purse, tmp_path):
    path = tmp_path / "release.json"
    visits.small_db(["age >= 60", "age < 3"], max_rows=1, epsilon=1, rows=5, budget=purse).save(
        path
    )
    stored = json.loads(path.read_text())
    stored["questions"][0] = stored["questions"][0].ljust(2 * LONGEST_QUESTION)
    path.write_text(json.dumps(stored))
    assert tacit.load_release(path).rows == 5


# The condition of a sum ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        "age > 3 group by town",
        "age > 3) + count(*",
        "count(age > 3)",
        "select count(*) from visits",
        "age > 3; age > 4",
        "age > 3 limit 1",
    ],
)
def test_the_condition_of_a_sum_is_one_predicate(visits, purse, where):
    with pytest.raises(QuestionRefused):
        visits.sum("cost", where=where, epsilon=1, budget=purse)
    assert purse.spent.as_text() == Budget.in_memory(epsilon=1, covers=["visits"]).spent.as_text()


def test_a_sum_is_the_same_question_as_its_sql(visits):
    for where, values in (("age > 3 or town = :town", {"town": "Ghent"}), (None, {}), ("true", {})):
        asked = visits._reader.sum("cost", where)
        text = 'SELECT SUM("cost") FROM "visits"' + (f" WHERE {where}" if where else "")
        assert asked.text == text
        assert asked.bind(values) == visits.prepare(text).bind(values)


# Parameters ------------------------------------------------------------------------------------


def test_two_spellings_of_a_parameter_are_refused(visits, purse):
    stream = visits.sparse(threshold=1000, at_most=1, epsilon=1, budget=purse)
    for ask in (
        lambda: stream.ask("town = :town or town = :Town", town="Ghent", Town="Bruges"),
        lambda: stream.ask("town = :town", town="Ghent", Town="Bruges"),
        lambda: stream.ask("town = :town", Town="Bruges"),
        lambda: list(stream.ask_all([("town = :town", {"Town": "Bruges"})], town="Ghent")),
        lambda: visits.count("town = :TOWN", Town="x", epsilon=1, budget=purse),
        lambda: visits.sum("cost", where="town = :t or town > :T", epsilon=1, budget=purse, t="x"),
    ):
        with pytest.raises(QuestionRefused, match=r"(?i):town|:t and :T"):
            ask()
    assert not visits.check("town = :straße or town = :STRASSE")


@pytest.mark.parametrize(
    "line",
    [
        '{"question": "age > 3", "question": "age > 4"}',
        '{"question": "town = :t", "parameters": {"t": "a", "t": "b"}}',
        '{"question": "age > 3", "threshold": 1, "threshold": 2}',
    ],
)
def test_what_stands_twice_in_a_line_is_refused(line):
    with pytest.raises(QuestionRefused, match="stands twice"):
        conversation.read(line)


def test_no_question_at_all_is_refused_in_our_own_words(visits, purse):
    for nothing in (7, None, b"age > 3", object(), ["age > 3"]):
        with pytest.raises((QuestionRefused, BadParameter)):
            visits.count(nothing, epsilon=1, budget=purse)
        assert not tables.check(nothing, visits.schema)  # type: ignore[arg-type]
