"""Releases over HTTP: paid for once under a key, and told again as they were told.

A request that may spend carries a key.  What it stands for is looked up first: a response that was
told is told again, whatever became of the table since.  A release whose process died before it was
kept is drawn anew under its charge, since nobody has seen the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import msgspec

from tacit.analyst.on_record import as_told_then
from tacit.analyst.table import Table
from tacit.budget import Budget, PaidAnswer, RetryKey
from tacit.errors import EngineFailed, NotAuthorised
from tacit.server import messages
from tacit.server.arguments import (
    Arguments,
    of_count,
    of_histogram,
    of_query,
    of_ranges,
    of_small_db,
    of_sum,
    of_synthetic,
    of_top,
)
from tacit.server.rights import permit, tables_of_entry
from tacit.server.service import Service
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json, to_json
from tacit.wire.sizes import refuse_too_many

OneShot = (
    messages.CountOf
    | messages.SumOf
    | messages.HistogramOf
    | messages.QueryOf
    | messages.RangesOf
    | messages.TopOf
    | messages.SmallDbOf
    | messages.SyntheticOf
)
Asked = TypeVar("Asked", bound=OneShot)


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


def paid_by(service: Service, who: TokenRecord, asked: Any, call: str) -> Paying:
    """The budget, the token's share and the request's key."""
    return Paying(budget=service.budget, analyst=spender(who), retry_key=keyed(who, asked, call))


def told_before(before: PaidAnswer | None, as_of: str | None) -> dict[str, Any] | None:
    """What was told under a key, in the words of today; None if nothing was.

    It says so if it is about another label than the one that the table has now.
    """
    if before is None or before.response is None:
        return None
    if "tacit error" in before.response:
        raise EngineFailed(before.response["message"])
    return to_json(as_told_then(from_json(before.response), before, as_of))


def _released(
    service: Service,
    who: TokenRecord,
    call: str,
    asked: Asked,
    arguments: Callable[[Asked], Arguments],
    refuse: Callable[[Table], None] | None = None,
) -> messages.Released:
    """What was told under the key, or else what the table's method of this name draws."""
    paying = paid_by(service, who, asked, call)
    told = told_before(_on_record(service, who, paying), service.label_of(asked.table))
    if told is None:
        table = service.table(asked.table, who)
        if refuse is not None:
            refuse(table)
        positional, named = arguments(asked)
        told = to_json(getattr(table, call)(*positional, **named, **paying))
        _on_record(service, who, paying)
    return messages.Released(told)


def _on_record(service: Service, who: TokenRecord, paying: Paying) -> PaidAnswer | None:
    """What is paid for under a key, if anything is, once it is clear that it may be told now."""
    paid = service.budget.answers.under(paying["retry_key"])
    if paid is not None:
        permit(service, who, tables_of_entry(paid.entry.body, None, service.budget.covers))
    return paid


def count(service: Service, who: TokenRecord, asked: messages.CountOf) -> messages.Released:
    """A noisy answer to one question."""
    return _released(service, who, "count", asked, of_count)


def add_up(service: Service, who: TokenRecord, asked: messages.SumOf) -> messages.Released:
    """A noisy sum of a column."""
    return _released(service, who, "sum", asked, of_sum)


def histogram(service: Service, who: TokenRecord, asked: messages.HistogramOf) -> messages.Released:
    """A noisy count for every declared cell."""
    return _released(service, who, "histogram", asked, of_histogram)


def query(service: Service, who: TokenRecord, asked: messages.QueryOf) -> messages.Released:
    """Several aggregates of every declared cell."""
    return _released(service, who, "query", asked, of_query)


def ranges(service: Service, who: TokenRecord, asked: messages.RangesOf) -> messages.Released:
    """Every prefix, interval and quantile of a column."""
    return _released(service, who, "ranges", asked, of_ranges)


def running(service: Service, who: TokenRecord, asked: messages.RangesOf) -> messages.Released:
    """The running count of a column."""
    return _released(service, who, "running", asked, of_ranges)


def top(service: Service, who: TokenRecord, asked: messages.TopOf) -> messages.Released:
    """The n largest cells."""

    def refuse(table: Table) -> None:
        several = [] if isinstance(asked.questions, messages.QuestionSent) else asked.questions
        service.check_questions(several)

    return _released(service, who, "top", asked, of_top, refuse)


def small_db(service: Service, who: TokenRecord, asked: messages.SmallDbOf) -> messages.Released:
    """A small database."""
    return _released(service, who, "small_db", asked, of_small_db)


def synthetic(service: Service, who: TokenRecord, asked: messages.SyntheticOf) -> messages.Released:
    """Invented rows."""

    def refuse(table: Table) -> None:
        positional, named = of_synthetic(asked)
        refuse_too_many(table.plan_synthetic(*positional, **named))

    return _released(service, who, "synthetic", asked, of_synthetic, refuse)
