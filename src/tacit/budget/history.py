"""Reading the history: as a sequence, and to verify everything that is stored beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from tacit.budget.accountants import accountant_named
from tacit.budget.amounts import Amount, bounded
from tacit.budget.chain import NOTHING_BEFORE, Entry, cost_from_json, digest
from tacit.budget.damage import damaged, insist, readable
from tacit.budget.ledger import LIVE, Contents, Ledger, Pot, Reader, StreamState, TableIdentity
from tacit.errors import LedgerDamaged

_AT_ONCE = 1000


class History(Sequence[Entry]):
    """Every entry, read when it is asked for.  Append-only: it grows, it never changes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __len__(self) -> int:
        with self._ledger.reading() as reader:
            return reader.tail().number

    def __iter__(self) -> Iterator[Entry]:
        last = 0
        while True:
            some = self._from(last, _AT_ONCE)
            if not some:
                return
            yield from some
            last += len(some)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        wanted = range(len(self))[index]
        if isinstance(wanted, int):
            return self._all_from(wanted, 1)[0]
        if not wanted:
            return []
        low, high = min(wanted), max(wanted)
        found = self._all_from(low, high - low + 1)
        return [found[position - low] for position in wanted]

    def _from(self, position: int, most: int) -> list[Entry]:
        with self._ledger.reading() as reader:
            return _in_order(reader.entries(after=position, most=most), position)

    def _all_from(self, position: int, most: int) -> list[Entry]:
        found = self._from(position, most)
        if len(found) < most:
            raise damaged(f"entry {position + len(found) + 1} of the history is missing")
        return found

    def __repr__(self) -> str:
        return f"<History of {len(self)} entries>"

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in self)


def _in_order(entries: list[Entry], after: int) -> list[Entry]:
    """The entries, if their numbers go up one by one."""
    for number, entry in enumerate(entries, after + 1):
        if entry.number != number:
            raise damaged(f"entry {number} of the history is missing")
    return entries


@dataclass(frozen=True, slots=True)
class Verified:
    """All entries are linked, and all totals follow from them.  Note the head elsewhere."""

    entries: int
    head: str

    def __str__(self) -> str:
        return f"{self.entries} entries, all in order; head {self.head}"


def verify(ledger: Ledger, head: str | None) -> Verified:
    """Read the whole history again and compare it with everything stored beside it."""
    ledger.check()
    replay = _Replay()
    previous, count, found = NOTHING_BEFORE, 0, head is None
    more = True
    while more:  # piece by piece, so that nobody who must record an answer waits for long
        with ledger.reading() as reader:
            some = reader.entries(after=count, most=_AT_ONCE)
            for entry in some:
                count += 1
                replay.apply(entry, _checked_body(entry, count, previous))
                previous = entry.hash
                found = found or entry.hash == head
            more = len(some) == _AT_ONCE
            if not more:
                replay.compare(reader)
    if not found:
        raise LedgerDamaged(
            f"the head {head} that was noted is not in this history of {count} entries: its end "
            "was cut off, it was rewritten, or an old copy was put back"
        )
    return Verified(count, previous)


def _checked_body(entry: Entry, number: int, previous: str) -> dict[str, Any]:
    """What an entry says, if it is the one that belongs here."""
    if entry.number != number:
        raise LedgerDamaged(f"entry {number} of the history is missing")
    if digest(entry.text) != entry.hash:
        raise LedgerDamaged(f"entry {number} of the history was edited: its hash does not match")
    body = entry.body
    if body.get("previous") != previous or body.get("number") != number:
        raise LedgerDamaged(
            f"entry {number} of the history does not follow the one before it: entries were "
            "removed, reordered or replaced"
        )
    return body


_KINDS = {"created", "share", "cover", "tie", "charge", "open", "top", "resume", "suspend", "close"}


class _Replay:
    """The state that follows from the history, entry by entry."""

    def __init__(self) -> None:
        self._tables: list[str] = []
        self._ties: dict[str, TableIdentity] = {}
        self._pots: dict[str | None, Pot] = {}
        self._streams: dict[str, StreamState] = {}
        self._amounts: dict[str, Amount] = {}

    def apply(self, entry: Entry, body: dict[str, Any]) -> None:
        """One entry, by the same rules that were in force when it was written."""
        with readable(f"entry {entry.number} of the history makes no sense"):
            insist(body["kind"] in _KINDS)
            stream = getattr(self, f"_{body['kind']}")(body)
        if entry.stream != (None if stream is None else stream.id):
            raise LedgerDamaged(
                f"entry {entry.number} of the history is filed under another stream"
            )

    def compare(self, reader: Reader) -> None:
        """Everything stored beside the history must follow from it."""
        due = Contents(
            self._tables,
            self._ties,
            sorted(self._pots.values(), key=lambda pot: pot.analyst or ""),
            list(self._streams.values()),
            [state.id for state in self._streams.values() if not state.ended],
        )
        for what, stored, as_due in reader.stored_and_due(due):
            if stored != as_due:
                raise LedgerDamaged(
                    f"the budget's record of {what} does not follow from its history: one of the "
                    "two was changed"
                )
        for stream in due.with_secret:
            reader.secret(stream)  # which checks that it is the one that was stored

    def _created(self, body: dict[str, Any]) -> None:
        insist(not self._pots)
        limit = Amount.from_json(body["limit"])
        self._accountant = accountant_named(body["accountant"])
        self._tables = list(body["covers"])
        insist(all(isinstance(table, str) for table in self._tables))
        self._pots[None] = Pot(None, limit, limit.zero())

    def _cover(self, body: dict[str, Any]) -> None:
        insist(isinstance(body["table"], str) and body["table"] not in self._tables)
        self._tables.append(body["table"])

    def _tie(self, body: dict[str, Any]) -> None:
        insist(body["table"] in self._tables)
        self._ties[body["table"]] = TableIdentity(body["person"], body["type"], body["schema"])

    def _share(self, body: dict[str, Any]) -> None:
        limit, rest = Amount.from_json(body["limit"]), self._pots[None]
        mine = self._pots.get(body["analyst"], Pot(body["analyst"], limit.zero(), limit.zero()))
        change = limit - mine.limit
        insist(change.fits_in(rest.left) and mine.spent.fits_in(limit))
        self._pots[None] = replace(rest, limit=rest.limit - change)
        self._pots[mine.analyst] = replace(mine, limit=limit)

    def _charge(self, body: dict[str, Any]) -> None:
        pot = self._pots[body["analyst"]]
        charged = bounded(self._amount(body["cost"]), pot.spent)
        insist(body["charged"] == charged.as_json() and charged.fits_in(pot.left))
        insist(body["table"] in self._tables)
        self._pots[pot.analyst] = replace(pot, spent=pot.spent + charged)

    def _amount(self, cost: dict[str, Any]) -> Amount:
        """What a cost comes to; long histories repeat the same few costs."""
        key = repr(cost)
        if key not in self._amounts:
            self._amounts[key] = self._accountant.charge(cost_from_json(cost))
        return self._amounts[key]

    def _open(self, body: dict[str, Any]) -> StreamState:
        self._charge(body)
        insist(body["stream"] not in self._streams)
        facts = {key: body[key] for key in ("table", "analyst", "at_most", "binding")}
        state = StreamState(len(self._streams) + 1, body["stream"], **facts)
        return self._move(state)

    def _top(self, body: dict[str, Any]) -> StreamState:
        state = self._live(body)
        insist(state.reserved and body["top"] == state.tops + 1)
        return self._move(state.after_top())

    def _resume(self, body: dict[str, Any]) -> StreamState:
        state = self._streams[body["stream"]]
        insist(not state.ended and body["lost"] == int(state.reserved))
        return self._move(state.after_resume())

    def _suspend(self, body: dict[str, Any]) -> StreamState:
        return self._move(self._live(body).after_suspend())

    def _close(self, body: dict[str, Any]) -> StreamState:
        return self._move(self._live(body).after_close())

    def _live(self, body: dict[str, Any]) -> StreamState:
        state = self._streams[body["stream"]]
        insist(state.status == LIVE)
        return state

    def _move(self, state: StreamState) -> StreamState:
        self._streams[state.name] = state
        return state
