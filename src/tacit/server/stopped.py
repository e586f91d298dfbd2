"""What the steward has stopped: a stream, a token or a table, at once and until they say otherwise.

It stands in a file beside the tokens, so that it holds across restarts, and so that a steward can
stop something on the server's machine even if the server does not answer.  Every request looks at
the file again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import BadParameter, NotAuthorised, TacitError
from tacit.numbers import as_given
from tacit.server import messages
from tacit.server.owners_file import OwnersFile
from tacit.server.rights import reaches, stopped_streams, tables_of_stream
from tacit.server.tokens import TokenRecord, utc_now
from tacit.wire import StoppedThing, to_json
from tacit.wire.stopped import Stoppable, read_stopped

if TYPE_CHECKING:
    from tacit.budget import StreamState
    from tacit.server.service import Service

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
                raise not_stopped(kind, name)
            records[:] = left

    def refuse(self, kind: Stoppable, name: str) -> None:
        """Raise if it is stopped; why is for stewards."""
        if any((one.kind, one.name) == (kind, name) for one in self.records):
            what = "this token" if kind == "token" else f"{kind} {name!r}"
            raise NotAuthorised(f"{what} is stopped for now", advice="ask the steward")


def not_stopped(kind: Stoppable, name: str) -> BadParameter:
    """Why something cannot go on."""
    return BadParameter("name", as_given(name), f"no {kind} of this name is stopped")


def check_known(
    kind: Stoppable,
    name: str,
    *,
    tables: Iterable[str],
    tokens: Iterable[TokenRecord],
    streams: Iterable[StreamState],
) -> None:
    """Refuse a name that nothing has: a slip would leave running what was to be stopped."""
    known = {
        "table": lambda: list(tables),
        "token": lambda: [one.name for one in tokens if one.revoked is None],
        "stream": lambda: [state.name for state in streams],
    }[kind]()
    if name not in known:
        some = ", ".join(map(repr, known[:20])) or "none"
        raise BadParameter(kind, as_given(name), f"there is no such {kind}; there are {some}")


def suspend_stopped(service: Service) -> None:
    """Suspend the streams that are held and may not be asked, however they were stopped.

    They are refused anyway; so one that cannot be suspended is left to whoever sweeps next.
    """
    for name in stopped_streams(service):
        with suppress(TacitError):
            service.streams.suspend(name)


# What can be asked for --------------------------------------------------------------------------


def list_stopped(service: Service, who: TokenRecord) -> messages.StoppedList:
    """All that is stopped now, as far as a steward may know of it."""
    streams = {state.name for state in _streams(service, who)}
    last = {one.name: one for one in service.tokens.records}  # whose name it is still
    may_see: dict[Stoppable, Callable[[str], bool]] = {
        "stream": lambda name: name in streams,
        "table": who.may_ask,
        "token": lambda name: reaches(who, last.get(name)),
    }
    return messages.StoppedList(
        [to_json(one) for one in service.stopped.records if may_see[one.kind](one.name)]
    )


def stop(service: Service, who: TokenRecord, asked: messages.StopOf) -> messages.StoppedList:
    """Refuse a stream, a token or a table from now on; streams that are held are suspended."""
    check_known(
        asked.kind,
        asked.name,
        tables=filter(who.may_ask, service.tables),
        tokens=[one for one in service.tokens.records if reaches(who, one)],
        streams=_streams(service, who),
    )
    service.stopped.stop(asked.kind, asked.name, by=who.name, reason=asked.reason)
    suspend_stopped(service)
    return list_stopped(service, who)


def go_on(service: Service, who: TokenRecord, asked: messages.GoOnWith) -> messages.StoppedList:
    """Let it go on."""
    known = [(one["kind"], one["name"]) for one in list_stopped(service, who).stopped]
    if (asked.kind, asked.name) not in known:
        raise not_stopped(asked.kind, asked.name)
    service.stopped.go_on(asked.kind, asked.name)
    return list_stopped(service, who)


def _streams(service: Service, who: TokenRecord) -> Iterator[StreamState]:
    """The streams that a steward may know of."""
    every = service.budget.streams()
    return (state for state in every if who.may_ask(*tables_of_stream(state)))
