"""Streams over HTTP: opened, resumed, asked, suspended and closed by those whose share paid.

Opening and asking carry a key.  Resuming, suspending and closing cost nothing and may be repeated
as they are.
"""

from __future__ import annotations

from typing import Any

from tacit.analyst.blocks import Block, Blocks
from tacit.analyst.stream import Stream, turned_back
from tacit.analyst.table import Table
from tacit.analyst.watched import WatchedModel
from tacit.analyst.watched_plan import is_watched
from tacit.book.answer import Answer
from tacit.budget import RetryKey
from tacit.errors import BadParameter
from tacit.server import messages
from tacit.server.arguments import of_questions
from tacit.server.live import (
    AskedBatch,
    ask_once,
    asked_batch,
    go_on,
    in_use,
    open_once,
    own_stream,
    resumed,
)
from tacit.server.releases import Paying
from tacit.server.service import Service, given
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json, stream_summary, to_json


def open_stream(
    service: Service, who: TokenRecord, asked: messages.OpenOf
) -> messages.StreamOpened:
    """Pay for a stream and hold it; one that was opened under the same key is named again."""

    def opens(table: Table, paying: Paying) -> Stream:
        stream: Stream = getattr(table, asked.algorithm)(**_options(asked), **paying)
        return stream

    return open_once(service, who, asked, "open", opens)


def _options(asked: messages.OpenOf) -> dict[str, Any]:
    """What the table's method takes; each of the three algorithms takes something else."""
    fixed = ("threshold", "epsilon", "delta", "name", "kind", "sensitivity", "grid")
    planned = ("questions", "beta", "recipe", "values", "rounds")
    options: dict[str, Any] = {name: getattr(asked, name) for name in (*fixed, *planned)}
    if asked.algorithm != "above_threshold":
        options |= _which_tops(asked)
    elif asked.at_most != 1 or asked.least_scale is not None:
        raise BadParameter(
            "algorithm", asked.algorithm, "it has neither at_most nor least_scale: leave them out"
        )
    if asked.algorithm != "numeric_sparse":
        options["numeric"] = asked.numeric
    return options


def _which_tops(asked: messages.OpenOf) -> dict[str, Any]:
    """So many ⊤, or a price for each; a request has 1 as ``at_most`` where it names none."""
    if asked.least_scale is None:
        return {"at_most": asked.at_most}
    if asked.at_most != 1:
        raise BadParameter(
            "least_scale", asked.least_scale, "it stands in place of at_most: give one of them"
        )
    return {"least_scale": asked.least_scale}


def resume_stream(
    service: Service, who: TokenRecord, asked: messages.ResumeOf
) -> messages.StreamOpened:
    """Go on with a stream; if it is being asked here already, nothing changes."""
    return go_on(service, who, asked, Stream)


def suspend_stream(
    service: Service, who: TokenRecord, asked: messages.StreamNamed
) -> messages.StreamFacts:
    """Leave a stream for later: whoever asks it next resumes it."""
    state = own_stream(service, who, asked.stream)
    service.streams.suspend(state.name)
    return show_stream(service, who, asked)


def close_stream(
    service: Service, who: TokenRecord, asked: messages.StreamNamed
) -> messages.StreamFacts:
    """End a stream for ever; nothing is refunded."""
    state = own_stream(service, who, asked.stream)
    with service.streams.alone(state.name) as held:
        if not service.budget.stream(state.name).ended:
            table = service.asked_by(state)
            if held.stream is None:
                held.stream = (
                    resumed(service, table, state.name, WatchedModel)
                    if is_watched(state.binding)
                    else resumed(service, table, state.name, Stream)
                )
            held.stream.close()
        held.stream = None
    return show_stream(service, who, asked)


def show_stream(
    service: Service, who: TokenRecord, asked: messages.StreamNamed
) -> messages.StreamFacts:
    """How a stream stands."""
    # It comes after all that was asked of the stream before, and leaves after it: so what it tells
    # depends on the order of arrival, and not on when work was done.
    return messages.StreamFacts(to_json(stream_summary(own_stream(service, who, asked.stream))))


def recorded(
    service: Service, who: TokenRecord, asked: messages.StreamNamed
) -> messages.RecordedTops:
    """Every answer above the threshold, also of earlier runs."""
    state = own_stream(service, who, asked.stream)
    with in_use(service, state, Stream) as stream:
        return messages.RecordedTops(to_json(stream.recorded))


def ask(service: Service, who: TokenRecord, asked: messages.AskOf) -> messages.Told:
    """Ask one question; what was told under its key is told again."""
    values = given(asked.parameters)

    def put(stream: Stream, retry: RetryKey) -> Answer:
        answer = stream.ask(
            asked.question,
            threshold=asked.threshold,
            below=asked.below,
            scale=asked.scale,
            retry_key=retry,
            params=values,
        )
        stream.history.clear()  # whoever asks has their own
        return answer

    def from_record(told: dict[str, Any]) -> dict[str, Any]:
        """What is on record about minus a value, as an answer about the value."""
        return to_json(turned_back(from_json(told, Answer))) if asked.below else told

    told = ask_once(service, who, asked, call="ask", kind=Stream, ask=put, from_record=from_record)
    return messages.Told(told)


def ask_all(service: Service, who: TokenRecord, asked: messages.AskAllOf) -> AskedBatch:
    """Ask a batch, in blocks; those on record are told again, and the rest is asked."""
    names = ("threshold", "below", "again", "only", "scale", "descending", "round_number")

    def begin(stream: Stream, options: dict[str, Any]) -> Blocks[Block]:
        options |= {name: getattr(asked, name) for name in names}
        questions, params = of_questions(asked.questions)
        return stream.ask_blocks(questions, params=params, **options)

    # All is evaluated before the first block; drawing and recording take far less.
    size = service.timing.block
    return asked_batch(
        service, who, asked, call="ask_all", size=size, kind=Stream, block=Block, begin=begin
    )
