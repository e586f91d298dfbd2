"""Reading the history: as a sequence, verified, under other theorems, and as JSON lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from io import IOBase, TextIOBase
from typing import Any, TextIO, overload

from tacit.arguments import file_path, kind_of
from tacit.budget.accountants import Amount, accountant_named, bounded
from tacit.budget.chain import (
    NOTHING_BEFORE,
    Entry,
    canonical,
    cost_from_json,
    damaged,
    digest,
    insist,
    readable,
)
from tacit.budget.ledger import (
    LIVE,
    Contents,
    Ledger,
    LedgerReader,
    Sealed,
    Share,
    StreamState,
    TableIdentity,
)
from tacit.budget.locks import appearing
from tacit.errors import BadParameter, LedgerDamaged
from tacit.numbers import show

_AT_OPENING = 1000  # entries that are verified when a budget is opened
_AT_ONCE = 1000  # entries, so that nobody who must record an answer waits for long
_KINDS = {
    *("created", "share", "cover", "tie", "charge", "answer", "request", "decline"),
    *("open", "top", "told", "reserve", "resume", "suspend", "close"),
}
_MOST_PARTS = 10**12  # composition is not computed beyond this
_MOST_KINDS = 2000  # a caption is worth a second or two


# As a sequence ------------------------------------------------------------------------------------


class LedgerHistory(Sequence[Entry]):
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


# Verified against everything that is stored beside it ---------------------------------------------


@dataclass(frozen=True, slots=True)
class Verified:
    """All entries are linked, and all totals follow from them.  Note the head elsewhere."""

    entries: int
    head: str

    def __str__(self) -> str:
        return f"{self.entries} entries, all in order; head {self.head}"


def check_at_opening(ledger: Ledger) -> None:
    """Refuse what is damaged, as far as it can be seen in well under a tenth of a second.

    A short history is verified as a whole.  Of a longer one the storage's own check is made, and
    the last entries must be linked: 30 µs each, so a million would take half a minute.
    """
    with ledger.reading() as reader:
        last = reader.tail().number
        recent = reader.entries(after=max(0, last - _AT_OPENING - 1))
    if last <= _AT_OPENING:
        verify(ledger, None)
        return
    ledger.check()
    previous = recent[0].hash
    for number, entry in enumerate(recent[1:], last - _AT_OPENING + 1):
        _checked_body(entry, number, previous)
        previous = entry.hash


def verify(ledger: Ledger, head: str | None) -> Verified:
    """Read the whole history again and compare it with everything stored beside it."""
    ledger.check()
    replay = _Replay()
    previous, count, found = NOTHING_BEFORE, 0, head is None
    more = True
    while more:
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
        raise _unsound(
            f"the head {head} that was noted is not in this history of {count} entries: its end "
            "was cut off, it was rewritten, or an old copy was put back"
        )
    return Verified(count, previous)


def _unsound(what: str) -> LedgerDamaged:
    """What verifying found, and what to do about it."""
    return LedgerDamaged(
        f"{what}. The budget was left as it is: use the newest copy that verifies. An older one "
        "would forget what was spent"
    )


def _checked_body(entry: Entry, number: int, previous: str) -> dict[str, Any]:
    """What an entry says, if it is the one that belongs here."""
    if entry.number != number:
        raise _unsound(f"entry {number} of the history is missing")
    if digest(entry.text) != entry.hash:
        raise _unsound(f"entry {number} of the history was edited: its hash does not match")
    body = entry.body
    if body.get("previous") != previous or body.get("number") != number:
        raise _unsound(
            f"entry {number} of the history does not follow the one before it: entries were "
            "removed, reordered or replaced"
        )
    return body


class _Replay:
    """The state that follows from the history, entry by entry."""

    def __init__(self) -> None:
        self._tables: dict[str, str | None] = {}
        self._ties: dict[str, TableIdentity] = {}
        self._shares: dict[str | None, Share] = {}
        self._streams: dict[str, StreamState] = {}
        self._amounts: dict[str, Amount] = {}
        self._charges: set[int] = set()
        self._keys: set[str] = set()
        self._answers: dict[int, Sealed] = {}
        self._requests: dict[int, tuple[str, Amount]] = {}  # that are not decided

    def apply(self, entry: Entry, body: dict[str, Any]) -> None:
        """One entry, by the same rules that were in force when it was written."""
        with readable(f"entry {entry.number} of the history makes no sense"):
            insist(body["kind"] in _KINDS)
            stream = getattr(self, f"_{body['kind']}")(body)
        if entry.stream != (None if stream is None else stream.id):
            raise _unsound(f"entry {entry.number} of the history is filed under another stream")

    def compare(self, reader: LedgerReader) -> None:
        """Everything stored beside the history must follow from it."""
        due = Contents(
            list(self._tables.items()),
            self._ties,
            sorted(self._shares.values(), key=lambda share: share.analyst or ""),
            list(self._streams.values()),
            [state.id for state in self._streams.values() if not state.ended],
            [self._answers[number] for number in sorted(self._answers)],
        )
        for what, stored, as_due in reader.stored_and_due(due):
            if stored != as_due:
                raise _unsound(
                    f"the budget's record of {what} does not follow from its history: one of the "
                    "two was changed"
                )
        for stream in due.with_secret:
            reader.secret(stream)  # which checks that it is the one that was stored

    def _created(self, body: dict[str, Any]) -> None:
        insist(not self._shares)
        limit = Amount.from_json(body["limit"])
        self._accountant = accountant_named(body["accountant"])
        self._tables = dict.fromkeys(body["covers"])
        insist(all(isinstance(table, str) for table in self._tables))
        self._shares[None] = Share(None, limit, limit.zero())

    def _cover(self, body: dict[str, Any]) -> None:
        table, people = body["table"], body.get("people")
        insist(isinstance(table, str) and table not in self._tables)
        insist(people is None or isinstance(people, str))
        self._tables[table] = people

    def _tie(self, body: dict[str, Any]) -> None:
        insist(body["table"] in self._tables)
        self._ties[body["table"]] = TableIdentity(body["person"], body["type"], body["schema"])

    def _share(self, body: dict[str, Any]) -> None:
        limit, rest = Amount.from_json(body["limit"]), self._shares[None]
        mine = self._shares.get(body["analyst"], Share(body["analyst"], limit.zero(), limit.zero()))
        change = limit - mine.limit
        if "of" in body:
            analyst, more = self._requests.pop(body["of"])
            insist(analyst == mine.analyst and more.fits_in(change))
        insist(change.fits_in(rest.left) and mine.spent.fits_in(limit))
        self._shares[None] = replace(rest, limit=rest.limit - change)
        self._shares[mine.analyst] = replace(mine, limit=limit)

    def _request(self, body: dict[str, Any]) -> None:
        insist(isinstance(body["analyst"], str) and isinstance(body["reason"], str))
        more = Amount.from_json(body["more"])
        insist(not more.negative and more.zero() == self._shares[None].limit.zero())
        self._requests[body["number"]] = (body["analyst"], more)

    def _decline(self, body: dict[str, Any]) -> None:
        insist(isinstance(body["reason"], str))
        del self._requests[body["of"]]

    def _charge(self, body: dict[str, Any]) -> None:
        share = self._shares[body["analyst"]]
        charged = bounded(self._amount(body["cost"]), share.spent)
        insist(body["charged"] == charged.as_json() and body["table"] in self._tables)
        spent = share.spent + charged
        self._shares[share.analyst] = Share(share.analyst, share.limit, spent)  # if it fits
        self._keyed(body)
        if body["kind"] == "charge":
            self._charges.add(body["number"])

    def _keyed(self, body: dict[str, Any]) -> None:
        """What was asked under a key, which stands for one request; a stream tells at once."""
        key, number = body.get("key"), body["number"]
        if key is None:
            return
        insist(isinstance(key, str) and isinstance(body["request"], str) and key not in self._keys)
        insist(isinstance(body.get("plan", ""), str))
        self._keys.add(key)
        told = body.get("response")
        insist(told is None or isinstance(told, str))
        self._answers[number] = (number, key, None if told is None else number, told)

    def _answer(self, body: dict[str, Any]) -> None:
        number, told = body["of"], body["response"]
        insist(number in self._charges and isinstance(told, str))
        _, key, recorded, _ = self._answers.get(number, (number, None, None, None))
        insist(recorded is None)
        self._answers[number] = (number, key, body["number"], told)

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
        after = state.after_top(body.get("price", 1))
        insist(body["top"] == after.tops)
        self._keyed(body)
        return self._move(after)

    def _reserve(self, body: dict[str, Any]) -> StreamState:
        state = self._live(body)
        insist(body["before"] == state.reserved)
        return self._move(state.after_reserve(body["reserved"]))

    def _told(self, body: dict[str, Any]) -> StreamState:
        insist("key" in body)
        self._keyed(body)
        return self._live(body)

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


# Under other theorems: a caption, never a decision ------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hypothetical:
    """What was spent, and its total ε had these amounts been fixed in advance.

    ``count`` pure parts of ``epsilon_each``, or of at most that where they differ (``equal`` is
    then False); ``basic`` is their sum.  The theorems behind ``advanced`` and ``optimal`` (which is
    for equal amounts, else None) do not cover amounts chosen as answers come in: no accountant uses
    them.
    """

    count: int
    epsilon_each: Fraction
    equal: bool
    delta: Fraction
    basic: Fraction
    advanced: float | None
    optimal: float | None

    def __str__(self) -> str:
        parts, each = f"{self.count} part{'s' * (self.count > 1)}", show(self.epsilon_each)
        most = "" if self.equal else "at most "
        lines = [
            f"Charged: {parts} of {most}ε = {each}, by basic composition ε = {show(self.basic)}."
        ]
        if self.advanced is not None:
            at = f"at δ = {show(self.delta)}"
            amounts = f"{parts} of ε = {each}" if self.equal else f"these {parts}"
            theorems = {"Theorem 3.20       ": self.advanced, "optimal composition": self.optimal}
            said = [
                f"  {theorem} ε = {total:.4g} {at}"
                for theorem, total in theorems.items()
                if total is not None
            ]
            lines += [
                f"Had {amounts} been fixed in advance:",
                *said,
                f"No accountant decides by {'these two' if self.equal else 'this theorem'}.",
            ]
        return "\n".join(lines)


def hypothetical(history: Iterable[Entry], delta: Fraction) -> Hypothetical | None:
    """From everything charged; None if nothing was, or if a cost does not name its pure parts."""
    parts: dict[Fraction, int] = {}
    for entry in history:
        body = entry.body
        if "cost" in body:
            with readable(f"entry {entry.number} of the history makes no sense"):
                cost = cost_from_json(body["cost"])
            if not cost.pieces:
                return None
            for count, each in cost.pieces:
                parts[each] = parts.get(each, 0) + count
    if not parts:
        return None
    count = sum(parts.values())
    covered = delta > 0 and count <= _MOST_PARTS
    advanced, optimal = _in_advance(parts, delta) if covered else (None, None)
    return Hypothetical(
        count=count,
        epsilon_each=max(parts),
        equal=len(parts) == 1,
        delta=delta,
        basic=sum((many * each for each, many in parts.items()), Fraction(0)),
        advanced=advanced,
        optimal=optimal,
    )


def _in_advance(parts: Mapping[Fraction, int], delta: Fraction) -> tuple[float, float | None]:
    """The total ε by Theorem 3.20 and by optimal composition, for parts fixed in advance."""
    # Here, because composition brings numpy, which no other work on a budget needs.
    from tacit.book import composition

    count, largest = sum(parts.values()), max(parts)
    if len(parts) == 1:
        optimal = composition.optimal_epsilon(count, largest, delta)
        return composition.advanced_epsilon(count, largest, delta), optimal
    if len(parts) <= _MOST_KINDS:
        try:
            return composition.mixed_advanced(parts, delta)[0], None
        except BadParameter:  # amounts beyond its range: true, if loose, at the largest of them
            pass
    return composition.advanced_epsilon(count, largest, delta), None


# As JSON lines, in a file that appears complete or not at all -------------------------------------
#
# Half a history would pass for one whose end was cut off.  So it is written to a draft beside its
# place and put there in one step that overwrites nothing.


def export(history: Iterable[Entry], file: str | os.PathLike[str] | TextIO) -> int:
    """Write every entry as a line of JSON with its hash; return how many.

    A path is created and never overwritten; an open text file is written to.  The hash is the
    SHA-256 of the entry in canonical JSON, so the chain can be checked without Tacit.
    """
    if isinstance(file, (str, bytes, os.PathLike)):
        with appearing(file_path(file, "file", "the path of a new file")) as opened:
            return _written(history, opened)
    return _written(history, _checked_file(file))


def _checked_file(file: Any) -> TextIO:
    """An open text file; what goes wrong when it is written to is its owner's business."""
    ours = callable(getattr(file, "write", None)) and not getattr(file, "closed", False)
    if not ours or (isinstance(file, IOBase) and not isinstance(file, TextIOBase)):
        raise BadParameter("file", kind_of(file), "give a path or a text file that is open")
    opened: TextIO = file
    return opened


def _written(history: Iterable[Entry], file: TextIO) -> int:
    count = 0
    for entry in history:
        with readable(f"entry {entry.number} of the history cannot be read"):
            line = canonical({"entry": entry.body, "hash": entry.hash})
        file.write(line + "\n")
        count += 1
    return count
