"""What streams and watched models share over HTTP: each belongs to the share that paid for it.

Opening and asking carry a key.  A question is read, answered, drawn and recorded by one function in
one thread, which nothing can cancel half-way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from tacit.analyst.blocks import Blocks, OneBlock, Told, told_blocks
from tacit.analyst.stream import Stream
from tacit.analyst.table import Table
from tacit.analyst.watched import WatchedModel
from tacit.budget import RetryKey
from tacit.budget.ledger import StreamState
from tacit.errors import BadParameter
from tacit.server import messages
from tacit.server.held import Kind
from tacit.server.releases import Paying, keyed, paid_by, spender, told_before
from tacit.server.rights import permit_stream, tables_of_stream, while_permitted
from tacit.server.service import Service
from tacit.server.tokens import TokenRecord
from tacit.wire import to_json, to_line

_RESUMING: dict[type[Stream] | type[WatchedModel], Callable[..., Any]] = {
    Stream: Table.resume,
    WatchedModel: Table.resume_watched_model,
}


def own_stream(service: Service, who: TokenRecord, name: str) -> StreamState:
    """A stream that the token's share paid for; whether there are others is not told."""
    service.check_name(name, "stream")
    return _own(service, who, service.budget.stream(name))


def _own(service: Service, who: TokenRecord, state: StreamState) -> StreamState:
    if state.analyst != spender(who) or not who.may_ask(*tables_of_stream(state)):
        raise BadParameter(
            "stream", repr(state.name), "no stream has this name", "budget.streams() lists them"
        )
    permit_stream(service, who, state)
    return state


def opened_as(state: StreamState) -> messages.StreamOpened:
    """What was fixed when a stream was opened."""
    return messages.StreamOpened(state.name, state.table, dict(state.binding))


def open_once(
    service: Service,
    who: TokenRecord,
    asked: messages.OpenOf | messages.WatchOf,
    call: str,
    opens: Callable[[Table, Paying], Stream | WatchedModel],
) -> messages.StreamOpened:
    """Pay for a stream and hold it; one that was opened under the same key is named again."""
    paying = paid_by(service, who, asked, call)
    before = service.budget.answers.under(paying["retry_key"])
    if before is not None and before.stream is not None:
        return opened_as(own_stream(service, who, before.stream))
    table = service.table(asked.table, who)
    if asked.name is not None:
        service.check_name(asked.name, "name")
    stream = opens(table, paying)
    service.streams.hold(stream)
    return opened_as(own_stream(service, who, stream.name))


def go_on(
    service: Service,
    who: TokenRecord,
    asked: messages.ResumeOf | messages.ResumeWatchedOf,
    kind: type[Kind],
    resume: Callable[[Table], Kind] | None = None,
) -> messages.StreamOpened:
    """Resume a stream, in the usual way or in this one; nothing changes while it is being asked."""
    state, table = own_stream(service, who, asked.stream), service.table(asked.table, who)
    if state.table == asked.table:
        table = service.asked_by(state)
    with service.streams.alone(state.name) as held:
        kept = held.stream
        if not isinstance(kept, kind) or not kept.live or state.table != asked.table:
            if resume is None:
                held.stream = resumed(service, table, state.name, kind)
            else:
                held.stream = resume(table)
    return opened_as(own_stream(service, who, state.name))


def resumed(service: Service, table: Table, name: str, kind: type[Kind]) -> Kind:
    """A stream of this kind, to be asked from now on; one of the other kind is refused."""
    stream: Kind = _RESUMING[kind](table, name, budget=service.budget)
    return stream


def in_use(service: Service, state: StreamState, kind: type[Kind]) -> AbstractContextManager[Kind]:
    """A stream for one request: as it is held, or else resumed."""

    def resume() -> Kind:
        return resumed(service, service.asked_by(state), state.name, kind)

    return service.streams.using(state.name, kind, resume)


# One question -----------------------------------------------------------------------------------


def ask_once(
    service: Service,
    who: TokenRecord,
    asked: messages.AskOf | messages.AskWatchedOf,
    *,
    call: str,
    kind: type[Kind],
    ask: Callable[[Kind, RetryKey], object],
    from_record: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> dict[str, Any]:
    """Ask one question; what was told under its key is told again, from the record."""
    retry = keyed(who, asked, call)
    opened = service.streams.opened(asked.stream)
    if opened is not None:  # the stream itself looks for the key
        state = _own(service, who, opened)
    else:
        state = own_stream(service, who, asked.stream)
        paid = service.budget.answers.under(retry)
        told = told_before(paid, service.label_of(state.table))
        if told is not None:
            return from_record(told)
    with in_use(service, state, kind) as stream:
        service.streams.note(state)
        answer = to_json(ask(stream, retry))
    permit_stream(service, who, state)
    return answer


# A batch ----------------------------------------------------------------------------------------


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


def asked_batch(
    service: Service,
    who: TokenRecord,
    asked: messages.AskAllOf | messages.AskAllWatchedOf,
    *,
    call: str,
    size: int,
    kind: type[Kind],
    block: type[Told],
    begin: Callable[[Kind, dict[str, Any]], Blocks[Told]],
) -> AskedBatch:
    """A batch, in blocks; those on record are told again, and the rest is asked.

    How many questions it counts for says when it leaves.  Of one that is all on record these are
    the ones that its blocks stand for, and how many they are is in the very response: whoever sees
    when it leaves learns nothing that it does not say.
    """
    whole = keyed(who, asked, call)
    body = whole.as_json()["request"]

    def keys(start: int) -> RetryKey:
        return RetryKey(whole.key, whole.caller, f"{call} from {start}", body)

    state = own_stream(service, who, asked.stream)
    as_of = service.label_of(state.table)
    stored = list(told_blocks(service.budget.answers.under, keys, block, as_of))
    if stored and stored[-1].done:
        again = while_permitted(service, who, state, iter(stored))
        return AskedBatch(sum(each.asked for each in stored), again, ExitStack(), service)
    with ExitStack() as stack:
        stream = stack.enter_context(in_use(service, state, kind))
        options: dict[str, Any] = {"size": size, "keys": keys, "skip": asked.skip}
        blocks = begin(stream, options | {"most": service.limits.questions})
        going_on = while_permitted(service, who, state, blocks)
        return AskedBatch(blocks.questions, going_on, stack.pop_all(), service)
