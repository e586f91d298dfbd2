"""Nothing that was paid for is lost: releases are kept, and told again under their key."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analyst.children import RETRY_AT, die_counting
from tests.analyst.test_engine_failures import POISON, Failing
from tests.budget.children import run
from tests.budget.watched import nothing_happens, watch, watched

import tacit
from tacit import wire
from tacit.analyst.table import Table
from tacit.budget import Budget, RetryKey
from tacit.budget.answers import as_kept
from tacit.errors import BadParameter, EngineFailed, KeyReused, LedgerUnwritable, TableMismatch
from tacit.numbers import plain
from tacit.testing.watched_ledger import failing_at

TOWNS = "select count(distinct pid) from visits group by town"
RELEASES: dict[str, Any] = {
    "count": lambda table, **more: table.count("town = 'Ghent'", **more),
    "parameters": lambda table, **more: table.count("town = :town", town="Ghent", **more),
    "sum": lambda table, **more: table.sum("cost", where="town = 'Ghent'", **more),
    "histogram": lambda table, **more: table.histogram("town", max_rows=1, **more),
    "small_db": lambda table, **more: table.small_db(
        tacit.prefixes("age"), rows=20, max_rows=1, **more
    ),
    "ranges": lambda table, **more: table.ranges("age", max_rows=2, **more),
    "running": lambda table, **more: table.running("age", max_rows=2, **more),
    "top": lambda table, **more: table.top(2, TOWNS, **more),
    "top, listed": lambda table, **more: table.top(1, ["age > 3", "age > 50"], **more),
}
OTHERS: dict[str, Any] = {
    "count": lambda table, **more: table.count("town = 'Ypres'", **more),
    "parameters": lambda table, **more: table.count("town = :town", town="Ypres", **more),
    "sum": lambda table, **more: table.sum("cost", where="town = 'Ypres'", **more),
    "histogram": lambda table, **more: table.histogram("town", max_rows=2, **more),
    "small_db": lambda table, **more: table.small_db(
        tacit.prefixes("age"), rows=21, max_rows=1, **more
    ),
    "ranges": lambda table, **more: table.running("age", max_rows=2, **more),
    "running": lambda table, **more: table.running("age", max_rows=1, **more),
    "top": lambda table, **more: table.top(2, TOWNS, counts_epsilon=1, **more),
    "top, listed": lambda table, **more: table.top(1, ["age > 50", "age > 3"], **more),
}


@pytest.fixture
def engine(visits):
    return Failing(visits.engine)


@pytest.fixture
def table(engine):
    return Table(engine, people=300)


@pytest.fixture
def seen(budget):
    """The same budget on a ledger that can be made to fail."""
    return watched(budget)


def as_json(released: object) -> object:
    """What is kept of it: without both ends of its intervals, which follow from the rest."""
    told = wire.to_json(released).items()
    return {name: value for name, value in told if name not in ("lower", "upper", "told")}


def without_room(response: dict[str, Any] | None) -> dict[str, Any]:
    """What was told, without the spaces that bring a top to one length."""
    assert response is not None
    return {name: value for name, value in response.items() if name != "room"}


@pytest.mark.parametrize("kind", RELEASES)
def test_what_is_released_is_kept_as_it_was_told(table, budget, kind):
    released = RELEASES[kind](table, epsilon="1/2", budget=budget)
    (answer,) = budget.answers
    assert without_room(answer.response) == as_json(released)
    assert as_json(wire.from_json(answer.response)) == as_json(released)
    assert (answer.table, answer.analyst, answer.as_of) == ("visits", None, None)
    assert answer.charged == budget.spent
    assert answer.what == next(e.body["what"] for e in budget.history if e.kind == "charge")
    assert budget.answers[answer.number].response == answer.response
    budget.verify()


@pytest.mark.parametrize("kind", RELEASES)
def test_the_same_key_brings_the_same_release_and_costs_nothing(engine, table, budget, kind):
    options = {"epsilon": "1/2", "budget": budget, "retry_key": "monday"}
    first = RELEASES[kind](table, **options)
    looks = engine.calls
    for _ in range(3):
        again = RELEASES[kind](table, **options)
        assert as_json(again) == as_json(first)
        assert type(again) is type(first)
    assert engine.calls == looks
    assert budget.spent.epsilon == tacit.Privacy("1/2").epsilon
    head = budget.head
    for other in (
        OTHERS[kind],
        lambda table, **more: RELEASES[kind](table, **more | {"epsilon": 1}),
    ):
        with pytest.raises(KeyReused, match="nothing was spent"):
            other(table, **options)
    assert budget.head == head
    budget.verify()


def test_a_key_belongs_to_an_analyst(table, budget):
    budget.share("ana", epsilon=10)
    told = [
        table.count("age >= 0", epsilon=1, budget=budget, analyst=analyst, retry_key="monday")
        for analyst in (None, "ana", None, "ana")
    ]
    assert (told[0], told[1]) == (told[2], told[3])
    assert budget.spent.epsilon == 2
    assert [answer.analyst for answer in budget.answers] == [None, "ana"]
    assert [answer.analyst for answer in budget.answers.of("ana")] == ["ana"]
    assert [answer.analyst for answer in budget.answers.of(None)] == [None]


def test_a_key_with_a_scope_of_its_own(table, budget):
    retry = RetryKey("monday", "token 7", "visits.count", {"body": "as it was sent"})
    first = table.count("age >= 0", epsilon=1, budget=budget, retry_key=retry)
    assert table.count("age >= 0", epsilon=1, budget=budget, retry_key=retry) == first
    found = budget.answers.under(retry)
    assert found is not None
    assert wire.from_json(found.response) == first
    table.count("age >= 0", epsilon=1, budget=budget, retry_key="monday")
    assert budget.spent.epsilon == 2


def test_no_key_is_in_the_history(table, budget, tmp_path):
    table.count("age >= 0", epsilon=1, budget=budget, retry_key="a key nobody should see")
    budget.export(tmp_path / "history.jsonl")
    assert "nobody should see" not in (tmp_path / "history.jsonl").read_text()
    for file in tmp_path.iterdir():
        assert b"nobody should see" not in file.read_bytes()


@pytest.mark.parametrize("wrong", [5, "", b"x", "\ud800", object(), ["monday"]])
def test_a_key_is_text(table, budget, wrong):
    with pytest.raises(BadParameter, match="retry_key"):
        table.count("age >= 0", epsilon=1, budget=budget, retry_key=wrong)
    assert budget.spent.epsilon == 0


class Bare:
    """A mechanism that does not say how what it draws is kept."""

    needs: tuple[str, ...] = ()
    cost = tacit.Cost.pure(1)
    what = "a constant"

    def check(self, schema):
        pass

    def draw(self, engine, coins):
        return 7


def test_a_mechanism_that_is_not_kept_is_released_and_takes_no_key(table, budget):
    assert table.release(Bare(), budget=budget) == 7
    assert list(budget.answers) == []
    with pytest.raises(BadParameter, match=r"retry_key.*are not kept"):
        table.release(Bare(), budget=budget, retry_key="monday")
    assert budget.spent.epsilon == 1


# When something goes wrong in between -------------------------------------------------------------


class Killed(BaseException):
    """What ends a process, seen from inside it."""


def dying_at(point):
    def die(reached):
        if reached == point:
            raise Killed

    return die


@pytest.mark.parametrize("kind", RELEASES)
def test_it_is_drawn_anew_if_its_process_died_before_it_was_told(engine, table, seen, kind):
    options = {"epsilon": "1/2", "retry_key": "monday"}
    watch(seen, dying_at("answer: begun"))
    with pytest.raises(Killed):
        RELEASES[kind](table, budget=seen, **options)
    looks = engine.calls
    (owed,) = Budget(seen._ledger).answers
    assert owed.response is None
    assert "nothing was returned" in str(owed)
    watch(seen, nothing_happens)
    again = Budget(seen._ledger)  # as another process would have it
    told = RELEASES[kind](table, budget=again, **options)
    assert engine.calls == 2 * looks
    assert as_json(RELEASES[kind](table, budget=again, **options)) == as_json(told)
    assert engine.calls == 2 * looks
    assert again.spent.epsilon == tacit.Privacy("1/2").epsilon
    again.verify()


@pytest.mark.parametrize("point", RETRY_AT)
def test_killed_with_minus_nine(visits_file, tmp_path, point):
    path = tmp_path / "clinic.budget"
    Budget.create(path, epsilon=1, covers=["visits"]).close()
    assert run(die_counting, visits_file, path, point) == -signal.SIGKILL
    with Budget.open(path) as budget, tacit.open(visits_file, person="pid") as visits:
        before = [answer.response for answer in budget.answers]
        assert len(before) == (point not in ("charge: begun", "charge: written"))
        told = visits.count("age >= 60", epsilon="1/2", budget=budget, retry_key="monday")
        if point == "answer: committed":
            assert before == [as_json(told)]
        assert budget.spent.epsilon == tacit.Privacy("1/2").epsilon
        budget.verify()


def test_it_is_drawn_anew_about_the_same_data_only(engine, seen):
    first, second = (Table(engine, as_of=label) for label in ("2026-11-01", "2026-11-08"))
    options: dict[str, Any] = {"epsilon": 1, "budget": seen, "retry_key": "monday"}
    watch(seen, dying_at("charge: committed"))
    with pytest.raises(Killed):
        first.count("age >= 60", **options)
    watch(seen, nothing_happens)
    with pytest.raises(KeyReused, match=r"as of 2026-11-01.*this table is as of 2026-11-08"):
        second.count("age >= 60", **options)
    assert engine.calls == 0
    told = first.count("age >= 60", **options)
    assert second.count("age >= 60", **options) == told  # what was told is told again
    assert engine.calls == 1
    (answer,) = seen.answers
    assert answer.as_of == "2026-11-01"


def test_it_is_drawn_anew_about_the_same_people_only(visits_file, tmp_path):
    budget = watched(Budget.create(tmp_path / "b.budget", epsilon=1, covers=["visits"]))
    options: dict[str, Any] = {"epsilon": 1, "budget": budget, "retry_key": "monday"}
    watch(budget, dying_at("answer: begun"))
    with tacit.open(visits_file, person="pid") as visits, pytest.raises(Killed):
        visits.count("age >= 60", **options)
    watch(budget, nothing_happens)
    with (
        tacit.open(visits_file, person=tacit.EACH_ROW) as visits,
        pytest.raises(TableMismatch, match="by pid"),
    ):
        visits.count("age >= 60", **options)


@pytest.mark.parametrize("failure", [EngineFailed("no more memory"), MemoryError(POISON)])
@pytest.mark.parametrize("kind", RELEASES)
def test_nothing_is_drawn_after_an_engine_failed(engine, table, budget, kind, failure):
    options = {"epsilon": "1/2", "budget": budget, "retry_key": "monday"}
    engine.failure = failure
    said = set()
    for _ in range(3):
        with pytest.raises(EngineFailed) as caught:
            RELEASES[kind](table, **options)
        said.add(str(caught.value))
        engine.failure = None
    assert len(said) == 1
    assert POISON not in str(said)
    assert engine.calls == 1
    (answer,) = budget.answers
    kept = wire.from_json(answer.response)
    assert isinstance(kept, EngineFailed)
    assert {str(kept)} == said
    assert budget.spent.epsilon == tacit.Privacy("1/2").epsilon
    budget.verify()


@pytest.mark.parametrize("point", ["begun", "written", "committed"])
def test_what_could_not_be_kept_is_not_told_and_not_drawn_again(engine, table, seen, point):
    options: dict[str, Any] = {"epsilon": 1, "budget": seen, "retry_key": "monday"}
    watch(seen, failing_at(f"answer: {point}"))
    for _ in range(2):
        with pytest.raises(LedgerUnwritable):
            table.count("age >= 60", **options)
        if point == "committed":
            break  # it is on the disk, and the next time it is found there
    assert engine.calls == 1
    drawn = seen.drawn(next(iter(seen.answers)).number)
    watch(seen, nothing_happens)
    told = table.count("age >= 60", **options)
    assert as_json(told) == drawn
    assert engine.calls == 1
    seen.verify()


def test_a_failure_that_could_not_be_kept_does_not_show(engine, table, seen):
    """Else somebody could see it, and then have it drawn again."""
    engine.failure = MemoryError(POISON)
    watch(seen, failing_at("answer: begun"))
    with pytest.raises(LedgerUnwritable) as caught:
        table.count("age >= 60", epsilon=1, budget=seen, retry_key="monday")
    shown = caught.value
    assert not isinstance(shown.__cause__ or shown.__context__, EngineFailed | MemoryError)
    watch(seen, nothing_happens)
    engine.failure = None
    with pytest.raises(EngineFailed):
        table.count("age >= 60", epsilon=1, budget=seen, retry_key="monday")
    assert engine.calls == 1


def test_without_a_key_an_answer_that_cannot_be_kept_is_still_told(table, seen):
    watch(seen, failing_at("answer: written"))
    assert table.count("age >= 0", epsilon=100, budget=seen).value > 200
    watch(seen, nothing_happens)
    assert list(seen.answers) == []
    seen.verify()


def test_of_two_that_draw_at_once_only_one_is_told(engine, table, budget):
    options: dict[str, Any] = {"epsilon": "1/100", "budget": budget, "retry_key": "monday"}
    engine.go_on.clear()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(table.count, "age >= 60", **options) for _ in range(4)]
        assert engine.entered.wait(timeout=600)
        engine.go_on.set()
        told = {one.result(timeout=600) for one in asked}
    assert len(told) == 1
    assert budget.spent.epsilon == tacit.Privacy("1/100").epsilon
    budget.verify()


class Overtaken(Failing):
    """An engine under which somebody else is quicker."""

    def __init__(self, engine, quicker) -> None:
        super().__init__(engine)
        self.quicker = quicker

    def values(self, questions):
        if not self.calls:
            self.calls += 1
            self.quicker()
        return super().values(questions)


def test_two_processes_that_draw_at_once_tell_the_same(visits, tmp_path):
    """The one that is slower to keep its draw forgets it."""
    path = tmp_path / "clinic.budget"
    quick, slow = Budget.create(path, epsilon=1, covers=["visits"]), Budget.open(path)
    options: dict[str, Any] = {"epsilon": "1/100", "retry_key": "monday"}
    told = []
    engine: Any = Overtaken(
        visits.engine, lambda: told.append(visits.count("age >= 60", budget=quick, **options))
    )
    told.append(Table(engine).count("age >= 60", budget=slow, **options))
    assert len(told) == 2
    assert told[0] == told[1]
    assert quick.spent.epsilon == tacit.Privacy("1/100").epsilon
    quick.verify()


# The length of what is kept -----------------------------------------------------------------------


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=5, max_size=5))
def test_the_length_does_not_depend_on_the_counts(counts):
    empty = as_kept({"tacit histogram": 1, "counts": [0] * 5})
    assert len(as_kept({"tacit histogram": 1, "counts": counts})) == len(empty)


@given(st.lists(st.fractions(-(10**9), 10**9, max_denominator=1000), min_size=40, max_size=40))
def test_nor_on_the_values_on_a_finer_grid(values):
    written = {"exact": list(map(str, values)), "plain": [plain(value) for value in values]}
    empty = {"exact": ["0"] * 40, "plain": [0] * 40}
    assert len(as_kept(written)) == len(as_kept(empty))


def test_a_histogram_is_kept_at_a_length_that_is_public(table, budget):
    lengths = set()
    for epsilon in ("1/1000", "1/999", "1/998", 1):
        for _ in range(3):
            table.histogram("town", "age", max_rows=1, epsilon=epsilon, budget=budget)
    for answer in budget.answers:
        assert answer.kept.response is not None
        lengths.add(len(answer.kept.response))
    assert len(lengths) == 1


@pytest.mark.parametrize(
    "questions",
    [
        TOWNS,
        ["age > 1", "town = 'Ghent' and age between 1 and 2 and cost > 0.5" + " or age = 3" * 99],
    ],
)
def test_a_top_is_kept_at_a_length_that_does_not_tell_which_were_drawn(table, budget, questions):
    for _ in range(40):  # all of them in one order: with a probability of 2^(−39)
        table.top(2, questions, epsilon="1/1000", counts_epsilon=1, budget=budget)
    kept = [answer.kept.response for answer in budget.answers]
    assert len({without_room(json.loads(text))["questions"][0] for text in kept}) > 1
    assert len({len(text) for text in kept}) == 1
