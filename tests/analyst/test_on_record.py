"""What is on record is found before a coin is drawn; what somebody else does meanwhile is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow
import pytest
from tests.analyst.spellings import SCHEMA, THRESHOLD, rows

import tacit
from tacit import wire
from tacit.analyst.table import Table
from tacit.budget import Budget, RetryKey
from tacit.errors import Halted, StreamEnded

COUNT = "SELECT COUNT(DISTINCT pid) FROM visits"
TOWN_SMOKER = f"{COUNT} GROUP BY town, smoker"
PAIRS = {
    "the other order": (TOWN_SMOKER, f"{COUNT} GROUP BY smoker, town"),
    "a condition, then a key": (f"{COUNT} WHERE smoker GROUP BY town", TOWN_SMOKER),
    "a key, then a condition": (TOWN_SMOKER, f"{COUNT} WHERE smoker GROUP BY town"),
    "a list, then a GROUP BY": (["smoker and town = 'Bruges'", "smoker = false"], TOWN_SMOKER),
    "one call": ([], f"{COUNT} WHERE town = 'Ghent' AND town = 'Bruges' GROUP BY town"),
    "a date": (
        f"{COUNT} WHERE week = 1 GROUP BY EXTRACT(year FROM day), town",
        f"{COUNT} WHERE week = 1 GROUP BY town, EXTRACT(year FROM day)",
    ),
}
OPENED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "counts": ({"at_most": 90}, {}),
    "again": ({"at_most": 90, "rounds": 2}, {"again": True}),
    "directed": ({"at_most": 90, "kind": "directed"}, {}),
    "below": ({"at_most": 90, "kind": "directed"}, {"below": True}),
    "priced": ({"least_scale": "1/1000"}, {"scale": "1/100"}),
    "descending": ({"least_scale": "1/1000"}, {"scale": "1/100", "descending": True}),
}


def dated() -> pyarrow.Table:
    found = rows()
    days = ["2025-06-01", "2026-06-01"] * found.num_rows
    column = pyarrow.array(days[: found.num_rows]).cast(pyarrow.date32())
    return found.append_column("day", column)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    schema = f"{SCHEMA}\n[columns.day]\ntype = 'date'\nbounds = ['2025-01-01', '2026-12-31']"
    with tacit.open(dated(), person="pid", name="visits", schema=schema, people=133) as table:
        yield table


@pytest.fixture
def budget() -> Budget:
    return Budget.in_memory(epsilon=10**12, covers=["visits"])


def opened(table: Table, budget: Budget, **options: Any) -> Any:
    given = {"threshold": THRESHOLD, "epsilon": 10**6, "questions": 100, "name": "w"}
    return table.numeric_sparse(budget=budget, **{**given, **options})


@pytest.mark.parametrize("resumed", [False, True], ids=["", "resumed"])
@pytest.mark.parametrize("how", OPENED)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_cell_that_is_on_record_is_told_from_it(
    table: Table, budget: Budget, pair: str, how: str, resumed: bool
) -> None:
    """At a threshold that every cell passes."""
    (options, asking), (first, second) = OPENED[how], PAIRS[pair]
    far = 10**6 if asking.get("below") else -5
    stream = opened(table, budget, **options)
    assert all(stream.ask_all(first, threshold=far, **asking))
    if resumed:
        stream.suspend()
        stream = table.resume("w", budget=budget)
    answers = list(stream.ask_all(second, threshold=far, **asking))
    assert all(answers)
    assert any(answer.recorded for answer in answers)
    keys = [entry.body["question"] for entry in budget.history if entry.kind == "top"]
    assert len(set(keys)) == len(keys)
    assert stream.ask("smoker and town = 'Bruges'")  # it lives


# Another thread, just before our turn ----------------------------------------------------------


def just_before(stream: Any, number: int, act: Callable[[], object]) -> None:
    """Do something when this turn is about to begin, as a thread would that is ahead of us."""
    lease, turn, calls = stream._lease, stream._lease.turn, []

    def after_others(**options: Any) -> Any:
        calls.append(options)
        if len(calls) == number:
            lease.turn = turn
            act()
            lease.turn = after_others
        return turn(**options)

    lease.turn = after_others


BRUGES, SMOKER = "town = 'Bruges'", "smoker"


@pytest.mark.parametrize("key", [None, "one"])
@pytest.mark.parametrize("at_most", [1, 3])
def test_a_question_that_another_thread_has_just_asked(
    table: Table, budget: Budget, key: str | None, at_most: int
) -> None:
    stream = opened(table, budget, at_most=at_most)
    just_before(stream, 1, lambda: stream.ask(BRUGES))
    told = stream.ask(BRUGES, retry_key=key)
    assert told.value == stream.history[0].answer.value
    assert told.recorded is not None
    assert stream.tops_left == at_most - 1
    assert stream.live is (at_most > 1)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", [TOWN_SMOKER, [f"{BRUGES} and smoker", BRUGES, SMOKER]])
def test_a_batch_of_which_another_thread_has_just_asked_a_part(
    table: Table, budget: Budget, batch: Any, number: int
) -> None:
    """Before the first turn, in which all is counted, or before a later one."""
    stream = opened(table, budget, at_most=9)
    just_before(stream, number, lambda: list(stream.ask_all([f"smoker and {BRUGES}", SMOKER])))
    assert sum(map(bool, stream.ask_all(batch))) == 3
    tops = [entry.body["question"] for entry in budget.history if entry.kind == "top"]
    assert len(set(tops)) == len(tops) == 9 - stream.tops_left
    assert stream.live


def use_all(stream: Any) -> None:
    """Every ⊤ that is left, at the least scale."""
    with suppress(Halted):
        for number in range(10**4):
            stream.ask(BRUGES, threshold=-number)


@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("number", range(2, 8))
def test_a_batch_stops_when_another_thread_uses_the_last_top(
    table: Table, budget: Budget, number: int, priced: bool
) -> None:
    options = {"least_scale": "1/100000"} if priced else {"at_most": 3}
    stream = opened(table, budget, **options, epsilon=10**6)

    just_before(stream, number, lambda: use_all(stream))
    answers = stream.ask_all(TOWN_SMOKER)
    told = list(answers)
    assert stream.halted or (priced and not stream.tops_left)
    assert len(told) + len(stream.unanswered) == 6
    with pytest.raises(Halted):
        stream.ask_all(TOWN_SMOKER)


def test_a_question_in_the_midst_of_a_batch_may_be_the_last(table: Table, budget: Budget) -> None:
    stream = opened(table, budget, at_most=1)
    answers = stream.ask_all([f"{BRUGES} and smoker and week = 1", BRUGES, SMOKER])
    assert not next(answers)
    assert stream.ask(SMOKER)
    assert list(answers) == []
    assert len(stream.unanswered) == 2


def keys_of(name: str) -> Callable[[int], RetryKey]:
    return lambda start: RetryKey(name, None, f"from {start}", None)


@pytest.mark.parametrize("watched", [False, True])
def test_a_batch_under_a_key_that_somebody_else_uses_meanwhile(
    table: Table, budget: Budget, watched: bool
) -> None:
    """Two batches under one key: nothing is drawn for the second, and both are told the same."""
    stream = watch(table, budget, 9) if watched else opened(table, budget, at_most=9)
    options: dict[str, Any] = {"size": 2, "most": 9, "keys": keys_of("one")}
    one, other = (stream.ask_blocks(TOWN_SMOKER, **options) for _ in range(2))
    first = next(one)
    assert next(other) == first
    assert list(one) == list(other)
    assert stream.live


def test_a_block_that_cannot_be_paid_for_any_more(table: Table, budget: Budget) -> None:
    stream = opened(table, budget, least_scale="1/1000", epsilon=10**4)
    blocks = stream.ask_blocks(TOWN_SMOKER, size=1, most=9, keys=keys_of("one"))
    use_all(stream)
    with pytest.raises(Halted):
        next(blocks)


# Watched models --------------------------------------------------------------------------------


def watch(table: Table, budget: Budget, surprises: int) -> Any:
    """Its model knows only sixty people, who are all in Bruges."""
    model = dated().slice(0, 60)
    return table.watched_model(
        model=model, epsilon=10**6, surprises=surprises, questions=10, name="m", budget=budget
    )


@pytest.mark.parametrize("key", [None, "one"])
@pytest.mark.parametrize("same", [True, False])
def test_a_watched_model_whose_last_surprise_another_thread_uses(
    table: Table, budget: Budget, key: str | None, same: bool
) -> None:
    model = watch(table, budget, 1)
    just_before(model, 1, lambda: model.ask(SMOKER))
    told = model.ask(SMOKER if same else "town = 'Ghent'", retry_key=key)
    assert told.source == ("measured" if same else "unwatched")
    assert (told.recorded is not None) is same
    assert not model.watched


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_batch_of_a_watched_model_goes_on_unwatched(
    table: Table, budget: Budget, number: int
) -> None:
    model = watch(table, budget, 1)
    just_before(model, number, lambda: model.ask(SMOKER))
    told = list(model.ask_all(["smoker and week = 1 and town = 'Ypres'", "town = 'Ghent'", SMOKER]))
    assert [each.source for each in told][-1] in ("measured", "unwatched")
    assert {each.source for each in told[:-1]} <= {"model", "measured", "unwatched"}
    assert sum(each.source == "measured" for each in told) == 1
    again = watch(table, Budget.in_memory(epsilon=10**12, covers=["visits"]), 1)
    just_before(again, number, lambda: again.ask(SMOKER))
    (block,) = again.ask_blocks(["town = 'Ypres'"], size=9, most=9, keys=keys_of("one"))
    assert block.answers[0].source == ("measured" if number == 3 else "unwatched")


def test_a_used_up_model_that_was_resumed_marks_what_is_on_record(
    table: Table, budget: Budget
) -> None:
    model = watch(table, budget, 1)
    told = model.ask(SMOKER)
    model.suspend()
    again = table.resume_watched_model("m", budget=budget, model=dated().slice(0, 60))
    assert again.ask(SMOKER) == model_on_record(told, budget)


def model_on_record(told: Any, budget: Budget) -> Any:
    from dataclasses import replace

    from tacit.book.answer import Recorded

    (at,) = [entry.body["at"] for entry in budget.history if entry.kind == "top"]
    return replace(told, recorded=Recorded(at))


# Leaving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["suspend", "close"])
@pytest.mark.parametrize("halted", [False, True])
def test_whoever_has_left_a_stream_cannot_ask_it(
    table: Table, budget: Budget, how: str, halted: bool
) -> None:
    stream = opened(table, budget, at_most=1 if halted else 2)
    assert stream.ask(BRUGES, retry_key="one")
    assert stream.live is not halted
    getattr(stream, how)()
    assert not stream.live
    for asked in (
        lambda: stream.ask(BRUGES),
        lambda: stream.ask(BRUGES, retry_key="one"),
        lambda: stream.ask(SMOKER),
        lambda: stream.ask_all([BRUGES]),
        lambda: stream.ask_blocks([BRUGES], size=1, most=1, keys=keys_of("two")),
    ):
        with pytest.raises(Halted if halted else StreamEnded):
            asked()
    assert [asked.question for asked in stream.recorded] == [BRUGES]


@pytest.mark.parametrize("how", ["suspend", "close"])
@pytest.mark.parametrize("surprises", [1, 2])
def test_whoever_has_left_a_watched_model_cannot_ask_it(
    table: Table, budget: Budget, how: str, surprises: int
) -> None:
    model = watch(table, budget, surprises)
    assert model.ask(SMOKER, retry_key="one").source == "measured"
    getattr(model, how)()
    assert not model.live
    assert model.watched is (surprises == 2 and how == "suspend")
    for asked in (
        lambda: model.ask(SMOKER),
        lambda: model.ask(SMOKER, retry_key="one"),
        lambda: model.ask_all([SMOKER]),
        lambda: model.ask_blocks([SMOKER], size=1, most=1, keys=keys_of("two")),
    ):
        with pytest.raises(StreamEnded):
            asked()


# Labels ----------------------------------------------------------------------------------------


@pytest.fixture
def labelled(table: Table) -> tuple[Table, Table]:
    """The same people as of two months."""
    first, second = (
        Table(table.engine, people=133, as_of=label) for label in ("October", "November")
    )
    return first, second


def about(answer: Any) -> Any:
    return answer.recorded.as_of


def test_what_was_told_under_a_key_says_which_label_it_is_about(
    labelled: tuple[Table, Table], budget: Budget
) -> None:
    first, second = labelled
    asked = {BRUGES: "a ⊤", "town = 'Ypres'": "a ⊥"}
    stream = opened(first, budget, at_most=5)
    told = {key: stream.ask(question, retry_key=key) for question, key in asked.items()}
    again = {key: stream.ask(question, retry_key=key) for question, key in asked.items()}
    assert again == told
    assert {answer.recorded for answer in again.values()} == {None}
    batch: dict[str, Any] = {"size": 6, "most": 9, "keys": keys_of("one")}
    (block,) = stream.ask_blocks(["town = 'Ypres'", "town = 'Ghent'"], **batch)
    stream.suspend()
    stream = second.resume("w", budget=budget)
    for question, key in asked.items():
        answer = stream.ask(question, retry_key=key)
        assert answer == told[key]
        assert about(answer) == "October"
        assert str(answer).endswith("as of October")
    (later,) = stream.ask_blocks(["town = 'Ypres'", "town = 'Ghent'"], **batch)
    assert list(later.answers) == list(block.answers)
    assert [about(each) for each in later.answers] == ["October"] * 2
    assert wire.from_json(wire.to_json(later)) == later
    assert stream.ask("town = 'Ypres'").recorded is None


def test_what_a_watched_model_told_says_so_too(
    labelled: tuple[Table, Table], budget: Budget
) -> None:
    first, second = labelled
    model = watch(first, budget, 3)
    asked = [SMOKER, "town = 'Ghent'", "week = 1 and week = 2"]
    told = {question: model.ask(question, retry_key=question) for question in asked}
    assert model.ask(SMOKER, retry_key=SMOKER).recorded is None
    batch: dict[str, Any] = {"size": 6, "most": 9, "keys": keys_of("one")}
    (block,) = model.ask_blocks([SMOKER, "week = 1 and week = 2"], **batch)
    model.suspend()
    model = second.resume_watched_model("m", budget=budget, model=dated().slice(0, 60))
    for question in asked:
        answer = model.ask(question, retry_key=question)
        assert answer.value == told[question].value
        assert about(answer) == "October"
    (later,) = model.ask_blocks([SMOKER, "week = 1 and week = 2"], **batch)
    assert [each.value for each in later.answers] == [each.value for each in block.answers]
    assert [about(each) for each in later.answers] == ["October"] * 2
    assert wire.from_json(wire.to_json(later)) == later
