"""What the steward has stopped: a stream, a token or a table, at once and until they say otherwise.

It stands in a file beside the tokens, so that it holds across restarts, and so that a steward can
stop something on the server's machine even if the server does not answer.  Every request looks at
the file again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tacit.budget import Budget
from tacit.errors import BadParameter, NotAuthorised
from tacit.numbers import as_given
from tacit.server import messages
from tacit.server.owners_file import OwnersFile
from tacit.server.tokens import TokenFile, TokenRecord, utc_now
from tacit.wire import StoppedThing, to_json
from tacit.wire.stopped import Stoppable, read_stopped

if TYPE_CHECKING:
    from tacit.budget import StreamState
    from tacit.server.service import Service

T = TypeVar("T")

FORM = "tacit stopped"


class StoppedFile:
    """All that is stopped now."""

    def __init__(self, tokens: Path) -> None:
        """``tokens`` is the file of tokens, beside which this one lies."""
        path = tokens.with_name(f"{tokens.name.removesuffix('-tokens')}-stopped")
        self._file = OwnersFile(path, form=FORM, called="stopped", read=read_stopped, write=asdict)

    @property
    def records(self) -> tuple[StoppedThing, ...]:
        """In the order in which they were stopped."""
        return self._file.records

    def stop(self, kind: Stoppable, name: str, *, by: str, reason: str = "") -> None:
        """Refuse it from now on; stopping twice is stopping once."""
        at = utc_now().isoformat(timespec="seconds")
        with self._file.changing() as records:
            if not any((one.kind, one.name) == (kind, name) for one in records):
                records.append(StoppedThing(kind=kind, name=name, at=at, by=by, reason=reason))

    def go_on(self, kind: Stoppable, name: str) -> None:
        """Take it back."""
        with self._file.changing() as records:
            left = [one for one in records if (one.kind, one.name) != (kind, name)]
            if len(left) == len(records):
                raise BadParameter("name", as_given(name), f"no {kind} of this name is stopped")
            records[:] = left

    def refuse(self, kind: Stoppable, name: str) -> None:
        """Raise if it is stopped; why is for stewards."""
        if any((one.kind, one.name) == (kind, name) for one in self.records):
            what = "this token" if kind == "token" else f"{kind} {name!r}"
            raise NotAuthorised(f"{what} is stopped for now", advice="ask the steward")


def check_known(
    kind: Stoppable, name: str, *, tables: list[str], tokens: TokenFile, budget: Budget
) -> None:
    """Refuse a name that nothing has: a slip would leave running what was to be stopped."""
    known = {
        "table": lambda: tables,
        "token": lambda: [one.name for one in tokens.records if one.revoked is None],
        "stream": lambda: [state.name for state in budget.streams()],
    }[kind]()
    if name not in known:
        some = ", ".join(map(repr, known[:20])) or "none"
        raise BadParameter(kind, as_given(name), f"there is no such {kind}; there are {some}")


# What can be asked for --------------------------------------------------------------------------


def list_stopped(service: Service, who: TokenRecord) -> messages.StoppedList:
    """All that is stopped now."""
    return messages.StoppedList([to_json(one) for one in service.stopped.records])


def stop(service: Service, who: TokenRecord, asked: messages.StopOf) -> messages.StoppedList:
    """Refuse a stream, a token or a table from now on; streams that are held are suspended."""
    check_known(
        asked.kind,
        asked.name,
        tables=list(service.tables),
        tokens=service.tokens,
        budget=service.budget,
    )
    service.stopped.stop(asked.kind, asked.name, by=who.name, reason=asked.reason)
    for state in service.budget.streams():
        if asked.name in _stopped_by(service, asked.kind, state):
            service.streams.suspend(state.name)
    return list_stopped(service, who)


def _stopped_by(service: Service, kind: str, state: StreamState) -> list[str]:
    """What of this kind a stream is about: its table, and those that its questions may name."""
    if kind != "table":
        return [state.name] if kind == "stream" else []
    table = service.tables.get(state.table)
    beside = () if table is None else table.schema.beside
    return [state.table, *(other.name for other in beside)]


def go_on(service: Service, who: TokenRecord, asked: messages.GoOnWith) -> messages.StoppedList:
    """Let it go on."""
    service.stopped.go_on(asked.kind, asked.name)
    return list_stopped(service, who)


def unless_stopped(
    service: Service, who: TokenRecord, blocks: Iterator[T], *, stream: str, table: str
) -> Iterator[T]:
    """The blocks of a batch, until its stream, its table or its token is stopped."""
    while True:
        for kind, name in (("stream", stream), ("table", table), ("token", who.name)):
            service.stopped.refuse(kind, name)  # type: ignore[arg-type]
        try:
            block = next(blocks)
        except StopIteration:
            return
        yield block
