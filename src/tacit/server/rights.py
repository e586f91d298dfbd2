"""Who may touch what: decided here for all doors, when something is asked and when it is answered.

Rights and stops follow from the tables that something names.  A question names the table that it is
about, and those whose people it looks up.  A stream names its table, and those that its questions
could name when it was opened: they can name no others here.  An answer names what its history says.
So whoever may ask about one table learns nothing that was asked about another.

A token names the tables that it is for, or it is for all that are served, now and later.  A share
of the budget names none: whoever draws from it may spend it on any, and what it has is taken from
all.  So the shares of others are for stewards of all tables only, and so are counts of everything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.analyst.binding import tables_beside
from tacit.budget import StreamState
from tacit.errors import NotAuthorised, NotCovered
from tacit.server.tokens import TokenRecord, utc_now

if TYPE_CHECKING:
    from tacit.server.service import Service

T = TypeVar("T")

_CUT = re.compile(r"\.\.\.( \(\d+ characters\))?$")
_UNTOLD = re.compile(r"top \d+ of ")  # what 0.2 wrote of such a release has no question in it


def permit(
    service: Service, who: TokenRecord, tables: Collection[str], *, stream: str | None = None
) -> None:
    """Refuse a token that may not touch all these tables, or not any more, and what is stopped."""
    service.tokens.refuse_ended(who, utc_now())
    service.stopped.refuse("token", who.name)
    if not who.may_ask(*tables):
        raise NotCovered(
            "this is about a table that this token may not ask",
            advice="/v1/tables lists those that it may",
        )
    if stream is not None:
        service.stopped.refuse("stream", stream)
    for table in sorted(tables):
        service.stopped.refuse("table", table)


def permit_stream(service: Service, who: TokenRecord, state: StreamState) -> None:
    """The same for a stream."""
    permit(service, who, tables_of_stream(state), stream=state.name)


def while_permitted(
    service: Service, who: TokenRecord, state: StreamState, blocks: Iterator[T]
) -> Iterator[T]:
    """The blocks of a batch, for as long as its stream may be asked; each is checked twice."""
    while True:
        permit_stream(service, who, state)
        try:
            block = next(blocks)
        except StopIteration:
            return
        permit_stream(service, who, state)
        yield block


def stopped_streams(service: Service) -> list[str]:
    """The streams that are held and may not be asked, since they or one of their tables stopped."""
    stopped = {(one.kind, one.name) for one in service.stopped.records}
    return [
        state.name
        for state in map(service.budget.stream, service.streams.names)
        if ("stream", state.name) in stopped
        or any(("table", table) in stopped for table in tables_of_stream(state))
    ]


# What names no single table -----------------------------------------------------------------------


def reaches(who: TokenRecord, other: TokenRecord | None) -> bool:
    """Whether a steward may know of a token and end it: it is for no table that theirs is not for.

    Whoever presents no token (None) touches no table.
    """
    if who.tables is None or other is None:
        return True
    return other.tables is not None and who.may_ask(*other.tables)


def sees_share(who: TokenRecord, analyst: str | None) -> bool:
    """Whether a share is the token's own, or it may see everybody's."""
    return sees_all_shares(who) or (analyst is not None and analyst == who.share)


def sees_all_shares(who: TokenRecord) -> bool:
    """Whether a token is that of a steward of all tables."""
    return who.role == "steward" and who.tables is None


def permit_all_tables(who: TokenRecord, what: str) -> None:
    """Refuse a token for some tables what concerns every table."""
    if who.tables is not None:
        raise NotAuthorised(
            f"{what} concern every table, and this token is for some of them",
            advice="ask a steward whose token is for all tables",
        )


# Which tables something names ---------------------------------------------------------------------


def tables_of_stream(state: StreamState) -> frozenset[str]:
    """The table of a stream, and those that its questions may name."""
    return tables_beside(state.binding) | {state.table}


def tables_of_entry(
    said: Mapping[str, Any], stream: StreamState | None, covered: Collection[str]
) -> frozenset[str]:
    """The tables that a payment or an answer names, as the history has it (``said``).

    ``stream`` is that of an answer in a stream, and ``covered`` are all tables of the budget.  An
    entry that 0.2 wrote does not say what it names.  Then its words do, or it may name whatever
    could have been named.
    """
    own = {str(said["table"] if stream is None else stream.table)}
    if "names" in said:
        return frozenset(own.union(said["names"]))
    if stream is None:
        words, beside = said["what"], frozenset[str]()
    else:
        words, beside = said["answer"].get("text", "..."), tables_beside(stream.binding)
    if _CUT.search(words) or (stream is None and _UNTOLD.match(words)):
        return frozenset(own.union(covered, beside))
    return frozenset(own.union(beside, (table for table in covered if _names(words, table))))


def _names(words: str, table: str) -> bool:
    """Whether a question has a table's name among its words, as SQL writes it, in any case."""
    written = re.escape(table.casefold().replace('"', '""'))
    return re.search(rf"(?<!\w){written}(?!\w)", words.casefold()) is not None
