"""Streams over HTTP: opened, resumed, asked, suspended and closed by those whose share paid.

Opening and asking carry a key.  Resuming, suspending and closing cost nothing and may be repeated
as they are.  A question is read, answered, drawn and recorded by one function in one thread, which
nothing can cancel half-way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from tacit.analyst.blocks import Block, Blocks, OneBlock, Told, told_blocks
from tacit.analyst.stream import Stream, turned_back
from tacit.analyst.watched_plan import is_watched
from tacit.book.answer import Answer
from tacit.budget import RetryKey
from tacit.budget.ledger import StreamState
from tacit.errors import BadParameter
from tacit.server import messages
from tacit.server.releases import keyed, spender, told_before
from tacit.server.service import Service, given
from tacit.server.stopped import unless_stopped
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json, stream_summary, to_json, to_line


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
        return opened_as(service.budget.stream(before.stream))
    table = service.table(asked.table, who)
    if asked.name is not None:
        service.check_name(asked.name, "name")
    fixed = ("threshold", "epsilon", "delta", "name", "kind", "sensitivity", "grid")
    planned = ("questions", "beta", "recipe", "values", "rounds")
    options: dict[str, Any] = {name: getattr(asked, name) for name in (*fixed, *planned)}
    if asked.algorithm != "above_threshold":
        options |= _which_tops(asked)
    elif asked.at_most != 1 or asked.least_scale is not None:
        raise BadParameter("algorithm", asked.algorithm, "it has neither at_most nor least_scale")
    if asked.algorithm != "numeric_sparse":
        options["numeric"] = asked.numeric
    opens = getattr(table, asked.algorithm)
    stream: Stream = opens(**options, budget=service.budget, analyst=share, retry_key=retry)
    service.streams.hold(stream)
    return opened_as(service.budget.stream(stream.name))


def _which_tops(asked: messages.OpenOf) -> dict[str, Any]:
    """So many ⊤, or a price for each; a request has 1 as ``at_most`` where it names none."""
    if asked.least_scale is None:
        return {"at_most": asked.at_most}
    if asked.at_most != 1:
        raise BadParameter("least_scale", asked.least_scale, "it stands in place of at_most")
    return {"least_scale": asked.least_scale}


def opened_as(state: StreamState) -> messages.StreamOpened:
    """What was fixed when a stream was opened."""
    return messages.StreamOpened(state.name, state.table, dict(state.binding))


def resume_stream(
    service: Service, who: TokenRecord, asked: messages.ResumeOf
) -> messages.StreamOpened:
    """Go on with a stream; if it is being asked here already, nothing changes."""
    state, table = own_stream(service, who, asked.stream), service.table(asked.table, who)
    with service.streams.alone(state.name) as held:
        kept = held.stream
        if not isinstance(kept, Stream) or not kept.live or state.table != asked.table:
            held.stream = table.resume(state.name, budget=service.budget)
    return opened_as(state)


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
                watched = is_watched(state.binding)
                resume = table.resume_watched_model if watched else table.resume
                held.stream = resume(state.name, budget=service.budget)
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
    with in_use(service, who, state.name, state.table) as stream:
        return messages.RecordedTops(to_json(stream.recorded))


def ask(service: Service, who: TokenRecord, asked: messages.AskOf) -> messages.Told:
    """Ask one question; what was told under its key is told again."""
    retry = keyed(who, asked, "ask")
    values = given(asked.parameters)
    table = held_table(service, who, asked.stream)
    if table is None:  # else the stream itself looks for the key
        told = told_before(service.budget.answers.under(retry))
        if told is not None:
            return messages.Told(_as_asked(told, asked))
        table = own_stream(service, who, asked.stream).table
    with in_use(service, who, asked.stream, table) as stream:
        service.streams.note(asked.stream, who.share, table)
        answer = stream.ask(
            asked.question,
            threshold=asked.threshold,
            below=asked.below,
            scale=asked.scale,
            retry_key=retry,
            params=values,
        )
        stream.history.clear()  # whoever asks has their own
    return messages.Told(to_json(answer))


def _as_asked(told: dict[str, Any], asked: messages.AskOf) -> dict[str, Any]:
    """What is on record about minus a value, as an answer about the value."""
    return to_json(turned_back(from_json(told, Answer))) if asked.below else told


@dataclass(eq=False)
class AskedBatch:
    """A batch that is being answered: how many questions, and its blocks as lines of JSON."""

    questions: int
    blocks: Iterator[OneBlock]
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
    names = ("threshold", "below", "again", "only", "scale", "descending", "round_number")

    def begin(stack: ExitStack, table: str, options: dict[str, Any]) -> Blocks[Block]:
        stream = stack.enter_context(in_use(service, who, asked.stream, table))
        options |= {name: getattr(asked, name) for name in names}
        questions, params = sent(asked.questions)
        return stream.ask_blocks(questions, params=params, **options)

    # All is evaluated before the first block; drawing and recording take far less.
    return asked_batch(service, who, asked, "ask_all", service.timing.block, Block, begin)


def sent(
    questions: messages.QuestionSent | list[messages.QuestionSent],
) -> tuple[Any, dict[str, object] | None]:
    """Questions and parameters as ``ask_blocks`` takes them."""
    if isinstance(questions, messages.QuestionSent):
        return questions.question, given(questions.parameters)
    return [(one.question, given(one.parameters)) for one in questions], None


def asked_batch(
    service: Service,
    who: TokenRecord,
    asked: messages.AskAllOf | messages.AskAllWatchedOf,
    call: str,
    size: int,
    kind: type[Told],
    begin: Callable[[ExitStack, str, dict[str, Any]], Blocks[Told]],
) -> AskedBatch:
    """A batch for a stream or a watched model: what is on record of it, and what begins then."""
    whole = keyed(who, asked, call)
    body = whole.as_json()["request"]

    def keys(start: int) -> RetryKey:
        return RetryKey(whole.key, whole.caller, f"{call} from {start}", body)

    stored = list(told_blocks(service.budget.answers.under, keys, kind))
    if stored and stored[-1].done:
        return AskedBatch(sum(block.asked for block in stored), iter(stored), ExitStack(), service)
    state = own_stream(service, who, asked.stream)
    with ExitStack() as stack:
        options: dict[str, Any] = {"size": size, "keys": keys, "skip": asked.skip}
        blocks = begin(stack, state.table, options | {"most": service.limits.questions})
        going_on = unless_stopped(service, who, blocks, stream=state.name, table=state.table)
        return AskedBatch(blocks.questions, going_on, stack.pop_all(), service)


def held_table(service: Service, who: TokenRecord, name: str) -> str | None:
    """The table of a stream that is held and may be asked, without a look at the budget."""
    whose = service.streams.whose(name)
    if whose is None or who.share is None or whose[0] != who.share or not who.may_ask(whose[1]):
        return None
    stopped = {(one.kind, one.name) for one in service.stopped.records}
    return None if stopped & {("stream", name), ("table", whose[1])} else whose[1]


def in_use(
    service: Service, who: TokenRecord, name: str, table: str
) -> AbstractContextManager[Stream]:
    """A stream for one request: as it is held, or else resumed."""

    def resume() -> Stream:
        return service.table(table, who).resume(name, budget=service.budget)

    return service.streams.using(name, Stream, resume)
