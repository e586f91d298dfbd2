"""A stream asked under retry keys: the same key brings the same answer, ⊥ or ⊤, after any crash."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from tests.analyst.test_answers import Killed, dying_at
from tests.analyst.test_engine_failures import Failing
from tests.budget.common import abandon
from tests.budget.watched import nothing_happens, watch, watched

from tacit import wire
from tacit.analyst.on_record import UnderWay
from tacit.analyst.table import Table
from tacit.book.answer import Answer
from tacit.budget import Budget, RetryKey
from tacit.budget.chain import canonical
from tacit.errors import (
    BadParameter,
    EngineFailed,
    Halted,
    KeyReused,
    LedgerUnwritable,
    StreamEnded,
)
from tacit.testing.watched_ledger import failing_at

ABOVE, BELOW = "town = 'Bruges'", "town = 'Ypres'"


@pytest.fixture
def engine(visits):
    return Failing(visits.engine)


@pytest.fixture
def table(engine):
    return Table(engine, people=300)


@pytest.fixture
def opened(table, calm):
    def open_it(budget, **more: Any):
        options: dict[str, Any] = {"threshold": 100, "at_most": 3, "name": "flu", **calm, **more}
        return table.sparse(budget=budget, **options)

    return open_it


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("question", [ABOVE, BELOW])
def test_the_same_key_brings_the_same_answer(engine, opened, budget, question, numeric):
    stream = opened(budget, numeric=numeric)
    first = stream.ask(question, retry_key="one")
    assert first.above is (question is ABOVE)
    looks, left, head = engine.calls, stream.tops_left, budget.head
    for _ in range(3):
        again = stream.ask(question, retry_key="one")
        assert again == first
        assert again.recorded is None  # as it was told
    assert (engine.calls, stream.tops_left, budget.head) == (looks, left, head)
    assert stream.ask(question, retry_key="two").above is first.above
    with pytest.raises(KeyReused):
        stream.ask("town = 'Ghent'", retry_key="one")
    with pytest.raises(KeyReused):
        stream.ask(question, retry_key="one", threshold=101)
    assert stream.ask(question, retry_key="one") == first  # and the stream goes on
    (told, *_) = budget.answers
    assert str(first) in told.entry.describe()
    assert wire.from_json(told.response) == first
    assert (told.stream, told.charged) == ("flu", None)
    budget.verify()


def test_a_question_with_parameters_and_a_key_made_elsewhere(opened, budget):
    stream = opened(budget)
    retry = RetryKey("one", "token 7", "flu.ask", {"body": "as it was sent"})
    first = stream.ask("town = :town", town="Bruges", retry_key=retry)
    assert stream.ask("town = :town", town="Bruges", retry_key=retry) == first
    found = budget.answers.under(retry)
    assert found is not None
    assert wire.from_json(found.response) == first
    assert stream.tops_left == 2


@pytest.mark.parametrize("question", [ABOVE, BELOW])
@pytest.mark.parametrize("point", ["begun", "written", "committed"])
def test_after_a_crash_what_was_recorded_is_told_and_nothing_else(
    table, opened, budget, question, point
):
    """Whoever dies before the record loses the reserved ⊤, and the question is a new one."""
    seen = watched(budget)
    stream = opened(seen)
    what = "record top" if question is ABOVE else "record told"
    watch(seen, dying_at(f"{what}: {point}"))
    with pytest.raises(Killed):
        stream.ask(question, retry_key="one")
    watch(seen, nothing_happens)
    kept = [answer.response for answer in seen.answers]
    assert len(kept) == (point == "committed")
    stream = table.resume("flu", budget=seen)
    state = seen.stream("flu")
    assert (state.tops, state.lost) == (int(bool(kept) and question is ABOVE), 1)
    told = stream.ask(question, retry_key="one")
    assert told.above is (question is ABOVE)
    if kept:
        assert kept == [wire.to_json(told)]
    assert seen.stream("flu").tops == int(question is ABOVE)
    seen.verify()


@pytest.mark.parametrize("question", [ABOVE, BELOW])
def test_a_record_that_fails_ends_the_stream_whatever_the_answer(opened, budget, question):
    seen = watched(budget)
    stream = opened(seen)
    watch(seen, lambda point: failing_at(point)(point) if "record" in point else None)
    with pytest.raises(LedgerUnwritable):
        stream.ask(question, retry_key="one")
    with pytest.raises(StreamEnded, match="could not be recorded"):
        stream.ask(question, retry_key="two")
    watch(seen, nothing_happens)
    assert seen.stream("flu").tops == 0


@pytest.mark.parametrize("grid", [1, "1/1000000007"])
@pytest.mark.parametrize("name", ["flu", "⊤ 😀 grippe"])
def test_the_record_of_a_top_is_as_long_as_that_of_a_bottom(table, budget, calm, grid, name):
    stream = table.numeric_sparse(
        threshold=130, at_most=15, budget=budget, name=name, grid=grid, **calm
    )
    for age in range(12):  # texts of one length
        assert stream.ask(f"town = 'Bruges' and age <= {99 - age}", retry_key=f"{age}")
        assert not stream.ask(f"town = 'Ghent' and age <= {100 + age}", retry_key=f"not {age}")
    lengths: dict[str, set[tuple[int, int]]] = {"top": set(), "told": set()}
    for answer in budget.answers:
        text, kept = answer.entry.text, answer.kept.response
        assert kept is not None
        lengths[answer.kind].add((len(text) - len(str(answer.number)), len(kept)))
    assert len(lengths["top"]) == 1
    assert lengths["top"] == lengths["told"]


@pytest.mark.parametrize("grid", [1, "1/1000000007", "1/1000000000000000000000000000057"])
def test_there_is_room_for_whatever_could_be_told(table, budget, calm, grid):
    step = Fraction(grid)
    stream = table.numeric_sparse(
        threshold=step, at_most=3, budget=budget, grid=grid, sensitivity=step, **calm
    )
    read = table._reader.read(ABOVE, {})
    retry = RetryKey("one", None, "flu.ask", None)
    far = -(2**63 + 2**210) * step
    scale = stream.recipe.value_scale
    longest = Answer(above=True, value=far, gap=far, noise_scale=scale, grid=step)
    lengths = set()
    for answer, kind in ((longest, "top"), (Answer(above=False, grid=step), "told")):
        telling = stream._telling(UnderWay(read, None, None), answer, retry)
        said = {
            "answer": {**answer.as_json(), "text": read.text},
            "top": 10**12,
            "stream": stream.name,
        }
        said["question"] = "2:" + "f" * 64
        lengths.add((len(canonical(telling.fields(said, kind))) + len(kind), len(telling.text)))
    assert len(lengths) == 1


def test_a_key_after_the_last_top(table, opened, budget):
    stream = opened(budget, at_most=1)
    first = stream.ask(ABOVE, retry_key="last")
    assert stream.halted
    assert stream.ask(ABOVE, retry_key="last") == first
    assert stream.ask(ABOVE, retry_key="again") == first  # it is on record
    with pytest.raises(Halted):
        stream.ask(BELOW, retry_key="another")
    with pytest.raises(StreamEnded):
        table.resume("flu", budget=budget)
    (told,) = budget.answers
    assert wire.from_json(told.response) == first
    budget.verify()


def test_what_was_on_record_is_told_under_a_key_as_it_was(visits, budget, calm):
    """Also when the table has another label by then, under which it would be a new question."""
    first, second = (Table(visits.engine, as_of=label) for label in ("October", "November"))
    stream = first.sparse(threshold=100, at_most=3, budget=budget, name="flu", **calm)
    stream.ask(ABOVE)
    told = stream.ask(ABOVE, retry_key="one")
    assert told.recorded is not None
    stream.suspend()
    stream = second.resume("flu", budget=budget)
    assert stream.ask(ABOVE, retry_key="one").recorded == told.recorded
    assert stream.tops_left == 2
    assert stream.ask(ABOVE, retry_key="two").recorded is None
    assert stream.tops_left == 1
    budget.verify()


def test_an_engine_that_fails_costs_the_reserved_top_and_keeps_nothing(
    engine, table, opened, budget
):
    stream = opened(budget)
    engine.failure = MemoryError("a row")
    with pytest.raises(EngineFailed, match="the ⊤ that was reserved is lost"):
        stream.ask(ABOVE, retry_key="one")
    engine.failure = None
    assert list(budget.answers) == []
    stream = table.resume("flu", budget=budget)
    assert (stream.tops_left, budget.stream("flu").lost) == (2, 1)
    assert stream.ask(ABOVE, retry_key="one")


def test_threads_that_share_a_key_are_told_the_same(engine, opened, budget):
    stream = opened(budget)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(stream.ask, ABOVE, retry_key="one") for _ in range(16)]
        asked += [pool.submit(stream.ask, BELOW, retry_key="two") for _ in range(16)]
        told = [one.result(timeout=600).above for one in asked]
    assert told == [True] * 16 + [False] * 16
    assert engine.calls == 2
    assert len(list(budget.answers)) == 2
    budget.verify()


# Opening ------------------------------------------------------------------------------------------


def test_a_stream_is_opened_once_under_a_key(opened, budget):
    stream = opened(budget, name=None, retry_key="open")
    spent, name = budget.spent, stream.name
    stream.ask(ABOVE)
    stream.suspend()
    again = opened(budget, name=None, retry_key="open")
    assert (again.name, again.tops_left, budget.spent) == (name, 2, spent)
    with pytest.raises(KeyReused):
        opened(budget, name=None, retry_key="open", threshold=101)
    with pytest.raises(KeyReused):
        opened(budget, name="other", retry_key="open")
    assert list(budget.answers) == []  # an opening is no answer
    budget.verify()


def test_a_stream_whose_opening_was_not_heard_of_goes_on_with_one_top_less(opened, budget):
    seen = watched(budget)
    watch(seen, dying_at("open: committed"))
    with pytest.raises(Killed):
        opened(seen, retry_key="open")
    watch(seen, nothing_happens)
    stream = opened(seen, retry_key="open")
    assert stream.tops_left == 2
    assert len([entry for entry in seen.history if entry.kind == "open"]) == 1
    seen.verify()


def test_the_key_of_an_opening_asks_nothing(opened, budget):
    retry = RetryKey("one", None, "anything", None)
    stream = opened(budget, retry_key=retry)
    with pytest.raises(BadParameter, match="not used to ask a question"):
        stream.ask(ABOVE, retry_key=retry)
    assert stream.ask(ABOVE)


def test_a_live_stream_left_behind_can_be_asked_for_its_key(table, opened, tmp_path):
    path = tmp_path / "served.budget"
    first = Budget.create(path, epsilon=1000, covers=["visits"])
    stream = opened(first)
    told = stream.ask(BELOW, retry_key="one")
    abandon(stream._lease)
    with Budget.open(path) as budget:
        again = table.resume("flu", budget=budget)
        assert again.ask(BELOW, retry_key="one") == told
        assert again.tops_left == 2
        budget.verify()
