"""A watched model under retry keys: on the disk before it is told, in one shape whatever it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.analyst.test_answers import Killed, dying_at
from tests.analyst.test_engine_failures import Failing
from tests.analyst.test_watched import PEOPLE, SCHEMA, frame
from tests.budget.watched import nothing_happens, watch, watched

import tacit
from tacit import wire
from tacit.analyst.table import Table
from tacit.analyst.watched_answer import WatchedBlock
from tacit.budget import Budget, RetryKey
from tacit.errors import BadParameter, EngineFailed, KeyReused, LedgerUnwritable, StreamEnded
from tacit.testing.watched_ledger import failing_at

SURPRISE, EXPECTED = "smoker and age >= 5", "town = 'Ghent'"  # the model has smoking wrong


@pytest.fixture(scope="module")
def opened_engine():
    with tacit.open(frame(), person="pid", name="people", people=PEOPLE, schema=SCHEMA) as table:
        yield table.engine


@pytest.fixture
def engine(opened_engine) -> Any:
    return Failing(opened_engine)


@pytest.fixture
def people(engine):
    return Table(engine, people=PEOPLE)


@pytest.fixture
def seen(tmp_path):
    path = tmp_path / "seen.budget"
    with Budget.create(path, epsilon=10**6, covers=["people"]) as budget:
        yield watched(budget)


def opened(people: Table, budget: Budget, **more: Any) -> Any:
    """Without noise, as far as can be seen."""
    options: dict[str, Any] = {"epsilon": 1000, "surprises": 6, "questions": 100, "name": "w"}
    return people.watched_model(budget=budget, model=frame(flip=True), **(options | more))


def resumed(people: Table, budget: Budget) -> Any:
    return people.resume_watched_model("w", budget=budget, model=frame(flip=True))


def keys(name: str, request: object = "it"):
    return lambda start: RetryKey(name, "ana", f"ask_all from {start}", request)


@pytest.mark.parametrize("question", [SURPRISE, EXPECTED])
def test_the_same_key_brings_the_same_answer(people, engine, seen, question):
    model = opened(people, seen)
    first = model.ask(question, retry_key="one")
    assert first.source == ("measured" if question is SURPRISE else "model")
    looks, left, head = engine.calls, model.surprises_left, seen.head
    for _ in range(3):
        again = model.ask(question, retry_key="one")
        assert again == first
        assert again.recorded is None  # as it was told
    assert (engine.calls, model.surprises_left, seen.head) == (looks, left, head)
    with pytest.raises(KeyReused):
        model.ask("age = 3", retry_key="one")
    (told,) = seen.answers
    assert wire.from_json(told.response) == first
    assert told.question == question
    model.suspend()
    assert resumed(people, seen).ask(question, retry_key="one") == first
    seen.verify()


def test_keys_are_found_when_all_surprises_are_used(people, seen):
    model = opened(people, seen, surprises=1)
    expected = model.ask(EXPECTED, retry_key="before")
    last = model.ask(SURPRISE, retry_key="last")
    assert (last.source, last.surprises_left, model.watched) == ("measured", 0, False)
    for each in (model, resumed(people, seen)):
        assert each.ask(EXPECTED, retry_key="before") == expected
        assert each.ask(SURPRISE, retry_key="last") == last
        assert each.ask("age = 3", retry_key="new").source == "unwatched"
        with pytest.raises(KeyReused):
            each.ask("age = 3", retry_key="last")


@pytest.mark.parametrize("question", [SURPRISE, EXPECTED])
@pytest.mark.parametrize("point", ["begun", "written", "committed"])
def test_after_a_crash_what_was_recorded_is_told_and_nothing_else(people, seen, question, point):
    """Whoever dies before the record loses the reserved surprise, and it is a new question."""
    model = opened(people, seen)
    what = "record top" if question is SURPRISE else "record told"
    watch(seen, dying_at(f"{what}: {point}"))
    with pytest.raises(Killed):
        model.ask(question, retry_key="one")
    watch(seen, nothing_happens)
    kept = [answer.response for answer in seen.answers]
    assert len(kept) == (point == "committed")
    model = resumed(people, seen)
    state = seen.stream("w")
    assert (state.tops, state.lost) == (int(bool(kept) and question is SURPRISE), 1)
    told = model.ask(question, retry_key="one")
    assert told.source == ("measured" if question is SURPRISE else "model")
    if kept:
        assert kept == [wire.to_json(told)]
    assert seen.stream("w").tops == int(question is SURPRISE)
    seen.verify()


@pytest.mark.parametrize("question", [SURPRISE, EXPECTED])
@pytest.mark.parametrize("batch", [False, True])
def test_a_record_that_fails_ends_the_watch_whatever_the_answer(people, seen, question, batch):
    model = opened(people, seen)
    watch(seen, lambda point: failing_at(point)(point) if "record" in point else None)
    ways = {
        False: lambda: model.ask(question, retry_key="one"),
        True: lambda: next(model.ask_blocks([question], size=2, most=9, keys=keys("k"))),
    }
    with pytest.raises(LedgerUnwritable):
        ways[batch]()
    with pytest.raises(StreamEnded, match="could not be recorded"):
        model.ask(EXPECTED, retry_key="two")
    watch(seen, nothing_happens)
    assert seen.stream("w").tops == 0


def test_a_failure_of_the_engine_is_not_free(people, engine, seen):
    model = opened(people, seen)
    engine.failure = RuntimeError("a row")
    with pytest.raises(EngineFailed):
        model.ask(EXPECTED, retry_key="one")
    engine.failure = None
    with pytest.raises(StreamEnded):
        model.ask(EXPECTED, retry_key="one")
    assert resumed(people, seen).surprises_left == 5


def written(budget: Budget) -> list[tuple[str, int, int]]:
    """What each write under a key was: its kind, and the lengths of its entry and response."""
    found = []
    for paid in budget.answers:
        assert paid.kept.response is not None
        entry = paid.entry
        told = len(entry.text) - len(str(entry.body["top"])) - len(str(entry.number))
        found.append((entry.kind, told, len(paid.kept.response)))
    return found


@pytest.mark.parametrize("name", ["w", "⊤ 😀 smoke"])
def test_the_record_of_a_surprise_is_as_long_as_any(people, seen, name):
    model = opened(people, seen, name=name)
    asked = [f"age = {age} and {smokes}smoker" for age in (1, 7) for smokes in ("", "not ")]
    for number, question in enumerate([*asked, *asked]):  # then they are on record
        model.ask(f"{question:<40}", retry_key=f"{number}")
    lengths: dict[int, set[tuple[int, int]]] = {}
    for number, (paid, (_, told, kept)) in enumerate(zip(seen.answers, written(seen), strict=True)):
        assert paid.entry.body["room"]  # it has filled up what was left
        lengths.setdefault(len(asked[number % 4]), set()).add((told, kept))
    assert {kind for kind, *_ in written(seen)} == {"top", "told"}
    assert all(len(each) == 1 for each in lengths.values()), lengths


def test_every_block_is_one_write_of_one_size(people, seen):
    model = opened(people, seen)
    points: list[str] = []
    rows = set()
    watch(seen, points.append)
    all_smokers = "smoker and age <= 9"  # whose number the model has right
    for number, batch in enumerate(
        [
            ["town = 'Ghent'", "age = 8", "town = 'Bruges'"],
            ["smoker and age = 8", "age = 8", "town = 'Ghent'"],
            ["town = 'Bruges'", "town = 'Ghent'", "smoker and age = 1"],
            ["age < 9", "smoker and age = 5", "town = 'Ghent'"],
        ]
    ):
        points.clear()
        next(model.ask_blocks([*batch, all_smokers], size=4, most=9, keys=keys(f"k{number}")))
        rows.add(tuple(point.split(": ")[1] for point in points))
    assert len(rows) == 1
    assert [kind for kind, *_ in written(seen)] == ["told", "top", "top", "top"]
    assert len({(entry, response) for _, entry, response in written(seen)}) == 1


def test_a_batch_ends_with_its_first_surprise_and_is_repeated(people, engine, seen):
    model = opened(people, seen)
    several = ["town = 'Ghent'", "age = 3", "smoker and age = 7", EXPECTED, "smoker and age = 7"]
    looks = engine.calls
    blocks = list(model.ask_blocks(several, size=2, most=9, keys=keys("k")))
    assert [[each.source for each in block.answers] for block in blocks] == [
        ["model", "model"],
        ["measured"],
    ]
    assert [(block.asked, block.done) for block in blocks] == [(2, False), (2, True)]
    assert engine.calls == looks + 1
    head = seen.head
    assert list(model.ask_blocks(several, size=3, most=9, keys=keys("k"))) == blocks
    assert (seen.head, engine.calls) == (head, looks + 1)
    (rest,) = model.ask_blocks(several, size=9, most=9, keys=keys("rest"), skip=3)
    assert [each.source for each in rest.answers] == ["model", "measured"]
    assert rest.answers[1].recorded is not None
    assert rest.done
    assert model.surprises_left == 5
    for block in (*blocks, rest):
        assert wire.from_json(wire.to_json(block), WatchedBlock) == block
    with pytest.raises(BadParameter, match="at most 4"):
        model.ask_blocks(several, size=9, most=4, keys=keys("most"))
    assert list(model.ask_blocks([], size=2, most=9, keys=keys("none"))) == []


def test_blocks_without_a_watch_follow_from_what_is_public(people, engine, seen):
    model = opened(people, seen, surprises=1)
    model.ask(SURPRISE)
    looks, head = engine.calls, seen.head
    (block,) = model.ask_blocks([SURPRISE, "age = 3"], size=9, most=9, keys=keys("k"))
    assert [each.source for each in block.answers] == ["measured", "unwatched"]
    assert wire.from_json(wire.to_json(block), WatchedBlock) == block
    assert (engine.calls, seen.head) == (looks, head)


def test_many_threads_under_one_key_ask_once(people, seen):
    model = opened(people, seen)
    with ThreadPoolExecutor(4) as threads:
        told = list(threads.map(lambda _: model.ask(SURPRISE, retry_key="one"), range(8)))
    assert len({wire.to_line(each) for each in told}) == 1
    assert model.surprises_left == 5


def test_a_name_that_is_taken_costs_nothing(people, seen):
    opened(people, seen).suspend()
    spent = seen.spent
    with pytest.raises(BadParameter, match="a stream of this name exists"):
        people.watched_model(epsilon=1, max_rows=1, columns=["age"], name="w", budget=seen)
    assert seen.spent == spent
