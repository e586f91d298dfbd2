"""An engine that fails: whether it does may depend on somebody's row, so it is never free."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pandas
import pytest

import tacit
from tacit.analyst.table import Table
from tacit.budget import Budget
from tacit.errors import EngineFailed, QuestionRefused, StreamEnded
from tacit.server.log import why_it_happened

POISON = "patient 4711 has a row of 2 MB"
FAILURES = [EngineFailed, MemoryError]


class Failing:
    """An engine that fails on demand, and counts how often it was asked."""

    cannot: frozenset[str] = frozenset()

    def __init__(self, engine) -> None:
        self._engine = engine
        self.schema = engine.schema
        self.failure: BaseException | None = None
        self.calls = 0
        self.entered, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def _fail_if_told(self) -> None:
        self.calls += 1
        self.entered.set()
        assert self.go_on.wait(timeout=600)
        if self.failure is not None:
            raise self.failure

    def values(self, questions):
        self._fail_if_told()
        return self._engine.values(questions)

    def cell_values(self, questions):
        self._fail_if_told()
        return self._engine.cell_values(questions)

    def point_counts(self, columns, *, max_rows=1, coins=None):
        self._fail_if_told()
        return self._engine.point_counts(columns, max_rows=max_rows, coins=coins)

    def close(self) -> None:
        self._engine.close()


@pytest.fixture
def engine(visits):
    return Failing(visits.engine)


@pytest.fixture
def table(engine):
    return Table(engine, people=300)


@pytest.fixture
def stream(table, budget, calm):
    return table.sparse(threshold=100, at_most=4, budget=budget, name="flu", **calm)


WAYS = {
    "one": lambda stream: stream.ask("town = 'Ghent'"),
    "many": lambda stream: list(stream.ask_all(["town = 'Ghent'", "town = 'Ypres'"])),
    "cells": lambda stream: list(stream.ask_all("SELECT COUNT(DISTINCT pid) FROM visits "
                                                "GROUP BY town")),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_a_failure_costs_the_reserved_top(engine, table, stream, budget, failure, ask):
    assert stream.ask("town = 'Bruges'")
    engine.failure = failure(POISON if failure is MemoryError else "answering failed")
    with pytest.raises(EngineFailed, match="'flu' has ended and the ⊤ that was reserved is lost"):
        ask(stream)
    engine.failure = None
    with pytest.raises(StreamEnded, match="at the price of the answer that was reserved"):
        stream.ask("town = 'Ghent'")
    stream.suspend()  # which cannot mend it
    again = table.resume("flu", budget=budget)
    assert budget.stream("flu").lost == 1
    assert again.tops_left == 2
    assert not again.ask("town = 'Ghent'")
    budget.verify()


def test_what_the_engine_said_is_withheld(engine, stream):
    engine.failure = ValueError(POISON)
    with pytest.raises(EngineFailed) as raised:
        stream.ask("town = 'Ghent'")
    assert POISON not in str(raised.value)
    assert raised.value.__context__ is None


def test_failures_use_up_a_stream(engine, table, stream, budget):
    engine.failure = ValueError(POISON)
    for lost in range(1, 5):
        with pytest.raises(EngineFailed):
            stream.ask(f"age >= {lost}")
        if lost < 4:
            stream = table.resume("flu", budget=budget)
            assert budget.stream("flu").lost == lost
    with pytest.raises(StreamEnded):
        table.resume("flu", budget=budget)


def test_threads_cannot_have_several_failures_for_one_top(engine, stream):
    engine.failure = ValueError(POISON)

    def ask(age):
        try:
            stream.ask("age >= :age", age=age)
        except (EngineFailed, StreamEnded) as error:
            return type(error)

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(ask, range(40)))
    assert ends.count(EngineFailed) == 1
    assert ends.count(StreamEnded) == 39
    assert engine.calls == 1


@pytest.mark.parametrize("leave", ["suspend", "close"])
def test_nobody_leaves_cleanly_while_a_question_is_evaluated(engine, table, stream, budget, leave):
    """Else the reserved ⊤ would be returned before the failure that it pays for."""
    engine.failure = ValueError(POISON)
    engine.go_on.clear()
    with ThreadPoolExecutor(2) as pool:
        asking = pool.submit(stream.ask, "town = 'Ghent'")
        assert engine.entered.wait(timeout=600)
        leaving = pool.submit(getattr(stream, leave))
        threading.Event().wait(0.2)  # time to leave too early, for code that lets one
        engine.go_on.set()
        assert isinstance(asking.exception(), EngineFailed)
        leaving.exception()
    assert budget.stream("flu").reserved
    table.resume("flu", budget=budget)
    assert budget.stream("flu").lost == 1


def test_an_interrupt_while_a_question_is_evaluated_costs_nothing(engine, stream, budget):
    """When it comes depends on whoever sent it, not on the data."""
    engine.failure = KeyboardInterrupt()
    for ask in WAYS.values():
        with pytest.raises(KeyboardInterrupt):
            ask(stream)
    engine.failure = None
    assert stream.ask("town = 'Bruges'")
    stream.suspend()
    assert (budget.stream("flu").lost, budget.stream("flu").tops_left) == (0, 3)


def test_what_is_refused_before_it_is_accepted_stays_free(engine, stream, table):
    assert stream.ask("town = 'Bruges'")
    engine.failure, asked = ValueError(POISON), engine.calls
    assert not table.check("agee > 1")
    for question in ("agee > 1", "2 * count(age < 3)"):
        with pytest.raises(QuestionRefused):
            stream.ask(question)
        with pytest.raises(QuestionRefused):
            stream.ask_all(["age > 1", question])
    assert stream.ask("town = 'Bruges'").recorded  # needs no engine
    assert (engine.calls, stream.tops_left) == (asked, 3)


def test_a_closed_table_is_refused_before_and_costs_nothing(visits_file, budget, calm):
    with tacit.open(visits_file, person="pid") as visits:
        stream = visits.sparse(threshold=100, at_most=4, budget=budget, name="flu", **calm)
        closed_before = visits.closed
    assert not closed_before
    assert visits.closed
    for ask in WAYS.values():
        with pytest.raises(EngineFailed, match="has been closed"):
            ask(stream)
    stream.suspend()
    assert (budget.stream("flu").lost, budget.stream("flu").status) == (0, "suspended")


PAID = {
    "count": lambda table, **paid: table.count("age > 3", **paid),
    "sum": lambda table, **paid: table.sum("cost", **paid),
    "histogram": lambda table, **paid: table.histogram("town", max_rows=1, **paid),
    "prefixes": lambda table, **paid: table.small_db(
        tacit.prefixes("age"), rows=5, max_rows=1, **paid
    ),
    "small_db": lambda table, **paid: table.small_db(["age > 3"], rows=5, max_rows=1, **paid),
}


@pytest.mark.parametrize("look", PAID.values(), ids=PAID)
def test_single_answers_are_paid_before_the_engine_is_asked(engine, table, look):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    engine.failure = EngineFailed("answering failed")
    with pytest.raises(EngineFailed):
        look(table, epsilon="1/4", budget=budget)
    assert engine.calls == 1
    assert budget.spent.epsilon * 4 == 1


FULL = OSError(errno.ENOSPC, POISON)


def in_a_release(table, budget, calm):
    table.count("town = 'Ghent'", epsilon=1, budget=budget, retry_key="k")


def in_a_stream(table, budget, calm):
    stream = table.sparse(threshold=100, at_most=4, budget=budget, name="flu", **calm)
    stream.ask("town = 'Ghent'")


def in_a_watched_model(table, budget, calm):
    rows = pandas.DataFrame(
        {"pid": [1, 2], "town": ["Ghent", "Ypres"], "age": [1, 2], "cost": [1.0, 2.0]}
    )
    watched = table.watched_model(model=rows, epsilon=1, questions=10, budget=budget)
    watched.ask("town = 'Ghent'")


@pytest.mark.parametrize("fail", [in_a_release, in_a_stream, in_a_watched_model])
@pytest.mark.parametrize("failure", [FULL, EngineFailed("answering failed", reason="disk is full")])
def test_the_reason_goes_on_to_whoever_writes_the_log(engine, table, budget, calm, fail, failure):
    engine.failure = failure
    words = failure.reason if isinstance(failure, EngineFailed) else os.strerror(errno.ENOSPC)
    with pytest.raises(EngineFailed) as raised:
        fail(table, budget, calm)
    assert words in raised.value.reason
    assert words not in str(raised.value)
    assert words in str(why_it_happened(raised.value))
    for entry in budget.history:
        assert words not in str(entry.body)
