"""Asking: a stream is planned, opened and asked; what was answered is shown again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from tacit.analyst.binding import mechanism_of, planned_of
from tacit.analyst.covering import check_in_stream
from tacit.analyst.plan import Plan
from tacit.analyst.watched_plan import is_watched
from tacit.book.answer import Answer
from tacit.budget import Amount, StreamState
from tacit.errors import BadParameter, TacitError
from tacit.numbers import exact, four_digits_up, positive, show
from tacit.page import examples
from tacit.page.grids import grids_of
from tacit.page.lines import last_lines, saved_as
from tacit.page.pictures import chance_curve
from tacit.page.prices import priced
from tacit.page.refusals import marked, or_refused
from tacit.page.rendering import amount, fragment, page
from tacit.server import live, messages, streams, watched
from tacit.server.endpoints import Content
from tacit.server.paid import StreamSource
from tacit.server.releases import spender
from tacit.server.service import Service, find_plan, list_tables, seen
from tacit.server.tokens import TokenRecord
from tacit.tables.language.show import name as written
from tacit.tables.schema.schema import Schema
from tacit.wire import from_json, stream_summary

MOST_ROWS = 150
_MOST_LINES = 500  # of which grids are made
_MOST_KEYS = 200  # of a column, to be completed


class Typed(Struct, forbid_unknown_fields=True):
    """A question to a stream that is being typed."""

    stream: str
    question: str


def ask_page(service: Service, who: TokenRecord) -> Content:
    """Choose a stream or open one; the newest that goes on is shown at once."""
    own = _own(service, who)
    going_on = [state for state in own if not state.ended]
    shown = _panel(service, who, going_on[-1]) if going_on else None
    return page(
        "ask.html",
        who,
        here="ask",
        tables=list_tables(service, who).tables,
        streams=[stream_summary(state) for state in reversed(own)],
        panel=shown,
        now=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _own(service: Service, who: TokenRecord) -> list[StreamState]:
    share = spender(who)
    return [state for state in seen(service, who) if state.analyst == share]


def stream_panel(service: Service, who: TokenRecord, asked: messages.StreamNamed) -> Content:
    """One stream: how it stands, a line for a question, and what was answered."""
    for state in _own(service, who):
        if state.name == asked.stream:
            return fragment("_stream.html", who=who, panel=_panel(service, who, state))
    raise BadParameter("stream", repr(asked.stream), "no stream of yours has this name")


def _panel(service: Service, who: TokenRecord, state: StreamState) -> dict[str, Any]:
    table = service.tables.get(state.table)
    answers = last_lines(service, who, most=_MOST_LINES, of=StreamSource(state.name))
    return {
        "stream": stream_summary(state),
        "watched": is_watched(state.binding),
        "terms": _terms(state),
        "example": "" if table is None else examples.question(table.schema),
        "columns": json.dumps([] if table is None else _completions(table.schema)),
        "answers": answers[:MOST_ROWS],
        "grids": [] if table is None else grids_of(answers, table, service.timing.block),
        "most": MOST_ROWS,
    }


def _terms(state: StreamState) -> str:
    """What was fixed when a stream was opened, in words."""
    try:
        recipe = mechanism_of(state.binding, state.name).recipe
        planned = planned_of(state.binding, state.name)
    except TacitError:  # a later version wrote it
        return ""
    told = f"ε = {show(recipe.privacy.epsilon)}, recipe {recipe.name}"
    if planned is None:
        return told
    return f"{told}, {planned}"


def _completions(schema: Schema) -> list[dict[str, Any]]:
    """Column names, and the declared keys of each, as a question writes them."""
    return [
        {
            "name": written(column.name),
            "keys": [column.literal(code) for code in (column.cells or ())[:_MOST_KEYS]],
        }
        for column in schema.columns
    ]


# Before anything is paid ----------------------------------------------------------------------


def check_typed(service: Service, who: TokenRecord, asked: Typed) -> Content:
    """What its stream promises about a question, or why it refuses it, the place underlined."""
    state = live.own_stream(service, who, asked.stream)
    table = service.asked_by(state)
    statement = table.check(asked.question)
    if statement.refusal is None and not is_watched(state.binding):
        statement = check_in_stream(table, state.binding, state.name, asked.question)
    keys = []
    if statement.refusal is None and statement.cells is not None:
        keys = [
            {"name": key.name, "keys": [key.gives.literal(code) for code in key.values]}
            for key in table.prepare(asked.question).keys
        ]
    refusal = None if statement.refusal is None else marked(statement.refusal)
    return fragment("_check.html", statement=statement, refusal=refusal, keys=json.dumps(keys))


@or_refused("plan")
def plan_stream(service: Service, who: TokenRecord, asked: messages.OpenOf) -> Content:
    """The plan of a stream that might be opened: recipe, α, price, what is left, and a picture."""
    found = find_plan(service, who, _planned(asked))
    plan = from_json(found.plan, Plan)
    best = plan.options[0]
    threshold = float(exact(asked.threshold, "threshold"))
    each = float(positive(asked.sensitivity, "sensitivity"))
    told = priced(service, who, best.recipe.cost)
    return fragment(
        "_plan.html",
        priced=told,
        best=best,
        alpha=four_digits_up(best.alpha * each),
        why=plan.why,
        curve=chance_curve(best.recipe, threshold, best.alpha, each),
        words=_price_in_words(asked, told.price) if told.price else "",
    )


def _planned(asked: messages.OpenOf) -> messages.PlanOf:
    told: dict[str, Any] = {"algorithm": asked.algorithm, "questions": asked.questions}
    if asked.algorithm != "above_threshold":
        told |= {"at_most": asked.at_most, "delta": asked.delta}
    if asked.algorithm == "numeric_sparse":
        told["values"] = asked.values
    return messages.PlanOf(**told, epsilon=asked.epsilon, beta=asked.beta, kind=asked.kind)


def _price_in_words(asked: messages.OpenOf, price: Amount) -> str:
    tops = "one answer" if asked.at_most in (1, "1") else f"{asked.at_most} answers"
    return (
        f"Opening this stream costs {amount(price)} of your share, now and in full, whatever is "
        f"asked. It then answers as many questions as you like, until {tops} came out above "
        f"{asked.threshold}. Nothing is refunded."
    )


# One question -----------------------------------------------------------------------------------


def ask(service: Service, who: TokenRecord, asked: messages.AskOf) -> Content:
    """The answer as a line of the table, and how the stream stands after it."""
    models = is_watched(live.own_stream(service, who, asked.stream).binding)
    if models:
        one = messages.AskWatchedOf(asked.key, asked.stream, asked.question, asked.parameters)
        value = from_json(watched.ask_watched(service, who, one).answer)
    else:
        value = from_json(streams.ask(service, who, asked).answer)
    told = streams.show_stream(service, who, messages.StreamNamed(asked.stream)).stream
    return fragment(
        "_answered.html",
        stream=from_json(told),
        watched=models,
        question=asked.question,
        answer=value if isinstance(value, Answer) else None,
        words="" if isinstance(value, Answer) else str(value),
        saved=saved_as(value),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
