"""Watched models over HTTP: opened, resumed and asked by those whose share paid.

As with streams, opening and asking carry a key, and what is told is on the disk before it leaves;
suspending and closing are those of streams.
"""

from __future__ import annotations

from typing import Any

from tacit.analyst.blocks import Blocks
from tacit.analyst.table import Table
from tacit.analyst.watched import WatchedModel
from tacit.analyst.watched_answer import WatchedAnswer, WatchedBlock
from tacit.budget import RetryKey
from tacit.server import messages
from tacit.server.arguments import model_sent, of_questions, of_watched_model
from tacit.server.live import AskedBatch, ask_once, asked_batch, go_on, open_once
from tacit.server.releases import Paying
from tacit.server.service import Service, given
from tacit.server.tokens import TokenRecord


def open_watched(
    service: Service, who: TokenRecord, asked: messages.WatchOf
) -> messages.StreamOpened:
    """Pay for a watched model and hold it; one that was opened under the same key is named."""

    def opens(table: Table, paying: Paying) -> WatchedModel:
        _, named = of_watched_model(asked, table.schema)
        return table.watched_model(**named, name=asked.name, **paying)

    return open_once(service, who, asked, "watch", opens)


def resume_watched(
    service: Service, who: TokenRecord, asked: messages.ResumeWatchedOf
) -> messages.StreamOpened:
    """Go on with a watched model; if it is being asked here already, nothing changes."""

    def resume(table: Table) -> WatchedModel:
        model = model_sent(asked.model, table.schema)
        return table.resume_watched_model(asked.stream, budget=service.budget, model=model)

    return go_on(service, who, asked, WatchedModel, resume)


def ask_watched(service: Service, who: TokenRecord, asked: messages.AskWatchedOf) -> messages.Told:
    """A number for one count; what was told under its key is told again."""

    def put(model: WatchedModel, retry: RetryKey) -> WatchedAnswer:
        return model.ask(asked.question, retry_key=retry, params=given(asked.parameters))

    told = ask_once(service, who, asked, call="ask watched", kind=WatchedModel, ask=put)
    return messages.Told(told)


def ask_all_watched(
    service: Service, who: TokenRecord, asked: messages.AskAllWatchedOf
) -> AskedBatch:
    """A number for each of a batch, in blocks, up to its first new surprise."""

    def begin(model: WatchedModel, options: dict[str, Any]) -> Blocks[WatchedBlock]:
        questions, params = of_questions(asked.questions)
        return model.ask_blocks(questions, params=params, **options)

    return asked_batch(
        service,
        who,
        asked,
        call="ask_all watched",
        size=service.timing.questions,  # each block is evaluated when its turn comes
        kind=WatchedModel,
        block=WatchedBlock,
        begin=begin,
    )
