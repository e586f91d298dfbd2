"""Watched models over HTTP: opened, resumed and asked by those whose share paid.

As with streams, opening and asking carry a key, and what is told is on the disk before it leaves;
suspending and closing are those of streams.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from tacit.analyst.blocks import Blocks
from tacit.analyst.public_model import ModelRows, rows_of_codes
from tacit.analyst.watched import WatchedModel
from tacit.analyst.watched_answer import WatchedBlock
from tacit.server import messages
from tacit.server.releases import keyed, spender, told_before
from tacit.server.service import Service, given
from tacit.server.streams import (
    AskedBatch,
    asked_batch,
    held_table,
    opened_as,
    own_stream,
    sent,
)
from tacit.server.tokens import TokenRecord
from tacit.tables.schema import Schema
from tacit.wire import to_json


def open_watched(
    service: Service, who: TokenRecord, asked: messages.WatchOf
) -> messages.StreamOpened:
    """Pay for a watched model and hold it; one that was opened under the same key is named."""
    share, retry = spender(who), keyed(who, asked, "watch")
    before = service.budget.answers.under(retry)
    if before is not None and before.stream is not None:
        return opened_as(service.budget.stream(before.stream))
    table = service.table(asked.table, who)
    if asked.name is not None:
        service.check_name(asked.name, "name")
    names = ("epsilon", "surprises", "columns", "max_rows", "questions", "beta", "name")
    options: dict[str, Any] = {name: getattr(asked, name) for name in names}
    options["bins"] = None if asked.bins is None else given(asked.bins)
    options["model"] = _model(asked.model, table.schema)
    model = table.watched_model(**options, budget=service.budget, analyst=share, retry_key=retry)
    service.streams.hold(model)
    return opened_as(service.budget.stream(model.name))


def _model(sent: str | messages.ModelSent | None, schema: Schema) -> str | ModelRows | None:
    if isinstance(sent, messages.ModelSent):
        return rows_of_codes(schema, sent.columns, sent.codes, sent.people)
    return sent


def resume_watched(
    service: Service, who: TokenRecord, asked: messages.ResumeWatchedOf
) -> messages.StreamOpened:
    """Go on with a watched model; if it is being asked here already, nothing changes."""
    state, table = own_stream(service, who, asked.stream), service.table(asked.table, who)
    with service.streams.alone(state.name) as held:
        kept = held.stream
        if not isinstance(kept, WatchedModel) or not kept.live or state.table != asked.table:
            model = _model(asked.model, table.schema)
            held.stream = table.resume_watched_model(state.name, budget=service.budget, model=model)
    return opened_as(state)


def ask_watched(service: Service, who: TokenRecord, asked: messages.AskWatchedOf) -> messages.Told:
    """A number for one count; what was told under its key is told again."""
    retry = keyed(who, asked, "ask watched")
    table = held_table(service, who, asked.stream)
    if table is None:  # else the model itself looks for the key
        told = told_before(service.budget.answers.under(retry))
        if told is not None:
            return messages.Told(told)
        table = own_stream(service, who, asked.stream).table
    with _in_use(service, who, asked.stream, table) as model:
        service.streams.note(asked.stream, who.share, table)
        answer = model.ask(asked.question, retry_key=retry, params=given(asked.parameters))
    return messages.Told(to_json(answer))


def ask_all_watched(
    service: Service, who: TokenRecord, asked: messages.AskAllWatchedOf
) -> AskedBatch:
    """A number for each of a batch, in blocks, up to its first new surprise."""

    def begin(stack: ExitStack, table: str, options: dict[str, Any]) -> Blocks[WatchedBlock]:
        model = stack.enter_context(_in_use(service, who, asked.stream, table))
        questions, params = sent(asked.questions)
        return model.ask_blocks(questions, params=params, **options)

    # Each block is evaluated when its turn comes: a surprise changes the model.
    size = service.timing.questions
    return asked_batch(service, who, asked, "ask_all watched", size, WatchedBlock, begin)


def _in_use(
    service: Service, who: TokenRecord, name: str, table: str
) -> AbstractContextManager[WatchedModel]:
    """A watched model for one request: as it is held, or else resumed."""

    def resume() -> WatchedModel:
        return service.table(table, who).resume_watched_model(name, budget=service.budget)

    return service.streams.using(name, WatchedModel, resume)
