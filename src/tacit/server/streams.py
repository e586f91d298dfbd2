"""Streams over HTTP: opened, resumed, asked, suspended and closed by those whose share paid.

Opening and asking carry a key.  Resuming, suspending and closing cost nothing and may be repeated
as they are.  A question is read, answered, drawn and recorded by one function in one thread, which
nothing can cancel half-way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from tacit.analyst.blocks import Block, told_blocks
from tacit.analyst.stream import Stream
from tacit.budget import RetryKey
from tacit.budget.ledger import StreamState
from tacit.errors import BadParameter
from tacit.server import messages
from tacit.server.releases import keyed, spender, told_before
from tacit.server.service import Service, given
from tacit.server.stopped import unless_stopped
from tacit.server.tokens import TokenRecord
from tacit.wire import stream_summary, to_json, to_line


def own_stream(service: Service, who: TokenRecord, name: str) -> StreamState:
    """A stream that the token's share paid for; whether there are others is not told."""
    share = spender(who)
    service.check_name(name, "stream")
    state = service.budget.stream(name)
    if state.analyst != share or not who.may_ask(state.table):
        raise BadParameter(
            "stream", repr(name), "no stream has this name", "budget.streams() lists them"
        )
    service.stopped.refuse("stream", name)
    service.stopped.refuse("table", state.table)
    return state


def open_stream(
    service: Service, who: TokenRecord, asked: messages.OpenOf
) -> messages.StreamOpened:
    """Pay for a stream and hold it; one that was opened under the same key is named again."""
    share, retry = spender(who), keyed(who, asked, "open")
    before = service.budget.answers.under(retry)
    if before is not None and before.stream is not None:
        return _opened(service.budget.stream(before.stream))
    table = service.table(asked.table, who)
    if asked.name is not None:
        service.check_name(asked.name, "name")
    names = ("threshold", "epsilon", "delta", "name", "kind", "sensitivity", "grid")
    options: dict[str, Any] = {name: getattr(asked, name) for name in names}
    options |= {name: getattr(asked, name) for name in ("questions", "beta", "recipe", "values")}
    if asked.algorithm != "above_threshold":
        options["at_most"] = asked.at_most
    elif asked.at_most != 1:
        raise BadParameter("algorithm", asked.algorithm, "it has no at_most")
    if asked.algorithm != "numeric_sparse":
        options["numeric"] = asked.numeric
    opens = getattr(table, asked.algorithm)
    stream: Stream = opens(**options, budget=service.budget, analyst=share, retry_key=retry)
    service.streams.hold(stream)
    return _opened(service.budget.stream(stream.name))


def _opened(state: StreamState) -> messages.StreamOpened:
    return messages.StreamOpened(state.name, state.table, dict(state.binding))


def resume_stream(
    service: Service, who: TokenRecord, asked: messages.ResumeOf
) -> messages.StreamOpened:
    """Go on with a stream; if it is being asked here already, nothing changes."""
    state, table = own_stream(service, who, asked.stream), service.table(asked.table, who)
    with service.streams.alone(state.name) as held:
        if held.stream is None or not held.stream.live or state.table != asked.table:
            held.stream = table.resume(state.name, budget=service.budget)
    return _opened(state)


def suspend_stream(
    service: Service, who: TokenRecord, asked: messages.StreamNamed
) -> messages.StreamFacts:
    """Leave a stream for later: whoever asks it next resumes it."""
    state = own_stream(service, who, asked.stream)
    with service.streams.alone(state.name) as held:
        if held.stream is not None:
            held.stream.suspend()
            held.stream = None
    return show_stream(service, who, asked)


def close_stream(
    service: Service, who: TokenRecord, asked: messages.StreamNamed
) -> messages.StreamFacts:
    """End a stream for ever; nothing is refunded."""
    state = own_stream(service, who, asked.stream)
    with service.streams.alone(state.name) as held:
        if not service.budget.stream(state.name).ended:
            table = service.table(state.table, who)
            if held.stream is None:
                held.stream = table.resume(state.name, budget=service.budget)
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
    with _in_use(service, who, own_stream(service, who, asked.stream)) as stream:
        return messages.RecordedTops(to_json(stream.recorded))


def ask(service: Service, who: TokenRecord, asked: messages.AskOf) -> messages.Told:
    """Ask one question; what was told under its key is told again."""
    retry = keyed(who, asked, "ask")
    values = given(asked.parameters)
    told = told_before(service.budget.answers.under(retry))
    if told is not None:
        return messages.Told(told)
    with _in_use(service, who, own_stream(service, who, asked.stream)) as stream:
        limit = asked.threshold
        answer = stream.ask(asked.question, threshold=limit, retry_key=retry, params=values)
        stream.history.clear()  # whoever asks has their own
    return messages.Told(to_json(answer))


@dataclass(eq=False)
class AskedBatch:
    """A batch that is being answered: how many questions, and its blocks as lines of JSON."""

    questions: int
    blocks: Iterator[Block]
    stack: ExitStack  # holds the stream until all of it was told
    service: Service

    def next_line(self) -> bytes | None:
        """The next block, which is on the disk by now; None if there is none."""
        block = next(self.blocks, None)
        self.service.note_head()
        return None if block is None else (to_line(block) + "\n").encode()

    def close(self) -> None:
        """Let others ask the stream."""
        self.stack.close()


def ask_all(service: Service, who: TokenRecord, asked: messages.AskAllOf) -> AskedBatch:
    """Ask a batch, in blocks; those on record are told again, and the rest is asked."""
    whole = keyed(who, asked, "ask_all")
    body = whole.as_json()["request"]

    def keys(start: int) -> RetryKey:
        return RetryKey(whole.key, whole.caller, f"ask_all from {start}", body)

    stored = list(told_blocks(service.budget.answers.under, keys))
    if stored and stored[-1].done:
        return AskedBatch(sum(block.asked for block in stored), iter(stored), ExitStack(), service)
    state = own_stream(service, who, asked.stream)
    with ExitStack() as stack:
        stream = stack.enter_context(_in_use(service, who, state))
        most = service.limits.questions
        options: dict[str, Any] = {"size": service.block, "most": most, "keys": keys}
        options |= {"threshold": asked.threshold, "skip": asked.skip}
        if isinstance(asked.questions, messages.QuestionSent):
            values = given(asked.questions.parameters)
            blocks = stream.ask_blocks(asked.questions.question, **options, params=values)
        else:
            listed = [(one.question, given(one.parameters)) for one in asked.questions]
            blocks = stream.ask_blocks(listed, **options)
        going_on = unless_stopped(service, who, blocks, stream=state.name, table=state.table)
        return AskedBatch(blocks.questions, going_on, stack.pop_all(), service)


def _in_use(
    service: Service, who: TokenRecord, state: StreamState
) -> AbstractContextManager[Stream]:
    """A stream for one request: as it is held, or else resumed."""

    def resume() -> Stream:
        return service.table(state.table, who).resume(state.name, budget=service.budget)

    return service.streams.using(state.name, resume)
