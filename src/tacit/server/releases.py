"""Releases over HTTP: paid for once under a key, and told again as they were told.

A request that may spend carries a key.  What it stands for is looked up first: a response that was
told is told again, whatever became of the table since.  A release whose process died before it was
kept is drawn anew under its charge, since nobody has seen the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

from tacit.analyst.question_class import Ordered, Questions
from tacit.analyst.table import Table
from tacit.budget import Budget, PaidAnswer, RetryKey
from tacit.errors import EngineFailed, NotAuthorised
from tacit.server import messages
from tacit.server.problems import refused
from tacit.server.service import Service, given
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json, to_json
from tacit.wire.sizes import refuse_too_many

Asked = (
    messages.CountOf
    | messages.SumOf
    | messages.HistogramOf
    | messages.QueryOf
    | messages.RangesOf
    | messages.TopOf
    | messages.SmallDbOf
    | messages.SyntheticOf
)


class Paying(TypedDict):
    """From what a release is paid, and under which key."""

    budget: Budget
    analyst: str
    retry_key: RetryKey


def spender(who: TokenRecord) -> str:
    """The share that the token draws from."""
    if who.share is None:
        raise NotAuthorised(
            "this token draws from no share of the budget",
            advice="its steward can make one that does: tacit token add NAME --share 1/2",
        )
    return who.share


def keyed(who: TokenRecord, asked: Any, call: str) -> RetryKey:
    """The key of a request: it belongs to a token and a call, and stands for one body."""
    request = msgspec.to_builtins(asked)
    return RetryKey(request.pop("key"), who.sha256, call, request)


def told_before(before: PaidAnswer | None) -> dict[str, Any] | None:
    """What was told under a key, in the words of today; None if nothing was."""
    if before is None or before.response is None:
        return None
    if "tacit error" in before.response:
        raise EngineFailed(before.response["message"])
    return to_json(from_json(before.response))


def _released(
    service: Service,
    who: TokenRecord,
    call: str,
    asked: Asked,
    draw: Callable[[Table, Paying], Any],
) -> messages.Released:
    paying = Paying(
        budget=service.budget,
        analyst=spender(who),
        retry_key=keyed(who, asked, call),
    )
    before = told_before(service.budget.answers.under(paying["retry_key"]))
    if before is not None:
        return messages.Released(before)
    return messages.Released(to_json(draw(service.table(asked.table, who), paying)))


def count(service: Service, who: TokenRecord, asked: messages.CountOf) -> messages.Released:
    """A noisy answer to one question."""

    def draw(table: Table, paying: Paying) -> Any:
        values = given(asked.parameters)
        return table.count(asked.question, epsilon=asked.epsilon, **paying, params=values)

    return _released(service, who, "count", asked, draw)


def add_up(service: Service, who: TokenRecord, asked: messages.SumOf) -> messages.Released:
    """A noisy sum of a column."""

    def draw(table: Table, paying: Paying) -> Any:
        where, values = asked.where, given(asked.parameters)
        return table.sum(asked.column, where=where, epsilon=asked.epsilon, **paying, params=values)

    return _released(service, who, "sum", asked, draw)


def histogram(service: Service, who: TokenRecord, asked: messages.HistogramOf) -> messages.Released:
    """A noisy count for every declared cell."""

    def draw(table: Table, paying: Paying) -> Any:
        rows: Any = asked.max_rows
        return table.histogram(*asked.columns, epsilon=asked.epsilon, max_rows=rows, **paying)

    return _released(service, who, "histogram", asked, draw)


def query(service: Service, who: TokenRecord, asked: messages.QueryOf) -> messages.Released:
    """Several aggregates of every declared cell."""

    def draw(table: Table, paying: Paying) -> Any:
        return table.query(**query_options(asked), **paying)

    return _released(service, who, "query", asked, draw)


def query_options(asked: messages.QueryOf) -> dict[str, Any]:
    """What is asked, as `Table.query` and `Table.plan_query` take it."""
    return {
        "sql": asked.query,
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "weights": asked.weights,
        "max_rows": asked.max_rows,
        "max_cells": asked.max_cells,
        "at_most": asked.at_most,
        "params": given(asked.parameters),
    }


def ranges(service: Service, who: TokenRecord, asked: messages.RangesOf) -> messages.Released:
    """Every prefix, interval and quantile of a column."""

    def draw(table: Table, paying: Paying) -> Any:
        rows: Any = asked.max_rows
        return table.ranges(asked.column, epsilon=asked.epsilon, max_rows=rows, **paying)

    return _released(service, who, "ranges", asked, draw)


def running(service: Service, who: TokenRecord, asked: messages.RangesOf) -> messages.Released:
    """The running count of a column."""

    def draw(table: Table, paying: Paying) -> Any:
        rows: Any = asked.max_rows
        return table.running(asked.column, epsilon=asked.epsilon, max_rows=rows, **paying)

    return _released(service, who, "running", asked, draw)


def top(service: Service, who: TokenRecord, asked: messages.TopOf) -> messages.Released:
    """The n largest cells."""

    def draw(table: Table, paying: Paying) -> Any:
        places: Any = asked.n
        numbers: dict[str, Any] = {
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "counts_epsilon": asked.counts_epsilon,
        }
        if isinstance(asked.questions, messages.QuestionSent):
            values = given(asked.questions.parameters)
            return table.top(places, asked.questions.question, **numbers, **paying, params=values)
        if len(asked.questions) > service.limits.questions:
            raise refused(413, f"a request brings at most {service.limits.questions} questions")
        listed = [(one.question, given(one.parameters)) for one in asked.questions]
        return table.top(places, listed, **numbers, **paying)

    return _released(service, who, "top", asked, draw)


def small_db(service: Service, who: TokenRecord, asked: messages.SmallDbOf) -> messages.Released:
    """A small database."""

    def draw(table: Table, paying: Paying) -> Any:
        rows: Any = asked.rows
        most: Any = asked.max_rows
        return table.small_db(
            class_of(asked),
            epsilon=asked.epsilon,
            alpha=asked.alpha,
            rows=rows,
            max_rows=most,
            certificate_epsilon=asked.certificate_epsilon,
            **paying,
        )

    return _released(service, who, "small_db", asked, draw)


def synthetic(service: Service, who: TokenRecord, asked: messages.SyntheticOf) -> messages.Released:
    """Invented rows."""

    def draw(table: Table, paying: Paying) -> Any:
        sizes: dict[str, Any] = {
            name: getattr(asked, name) for name in ("rows", "rounds", "max_rows")
        }
        bins = None if asked.bins is None else given(asked.bins)
        chosen: dict[str, Any] = {"epsilon": asked.epsilon, "marginals": asked.marginals}
        chosen |= {"bins": bins, **sizes}
        refuse_too_many(table.plan_synthetic(asked.columns, **chosen))
        return table.synthetic(asked.columns, **chosen, **paying)

    return _released(service, who, "synthetic", asked, draw)


def class_of(asked: messages.SmallDbOf) -> Questions:
    """The questions that a small database is for."""
    if isinstance(asked.questions, messages.OrderedOf):
        return Ordered(asked.questions.column, asked.questions.kind)
    return asked.questions
