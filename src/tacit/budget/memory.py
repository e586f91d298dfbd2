"""A ledger in memory, for trying things: the same rules, and gone with the process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.budget.chain import Entry, link
from tacit.budget.ledger import (
    WAIT_SECONDS,
    WHAT_IS_STORED,
    Contents,
    Fill,
    HistoryEnd,
    KeptAnswer,
    Share,
    StreamState,
    TableIdentity,
)
from tacit.budget.turns import Alone, Line
from tacit.errors import BudgetError, LedgerMissing, LedgerUnwritable
from tacit.support import Uncopyable


@dataclass
class _Contents(Uncopyable):
    """What is stored, and by what it is looked up: nothing is ever searched for."""

    entries: list[Entry] = field(default_factory=list)
    of_stream: dict[int, list[Entry]] = field(default_factory=dict)
    tables: dict[str, str | None] = field(default_factory=dict)
    ties: dict[str, TableIdentity] = field(default_factory=dict)
    shares: dict[str, Share] = field(default_factory=dict)
    streams: dict[int, StreamState] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    secrets: dict[int, bytes | None] = field(default_factory=dict)
    answers: dict[int, KeptAnswer] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    last_stream: int = 0


class _MemoryWriter(Uncopyable):
    """Writes go to a layer of their own, which is laid over the contents at the end."""

    def __init__(self, base: _Contents) -> None:
        self._base = base
        self._old = len(base.entries)
        self._old_of_stream: dict[int, int] = {}
        self._new = _Contents(last_stream=base.last_stream)

    def commit(self) -> None:
        """Lay it over the contents.  Twice does no harm: an interrupted one can be completed."""
        base, new = self._base, self._new
        base.entries[self._old :] = new.entries
        for stream, entries in new.of_stream.items():
            mine = base.of_stream.setdefault(stream, [])
            mine[self._old_of_stream[stream] :] = entries
        base.tables.update(new.tables)
        base.ties.update(new.ties)
        base.shares.update(new.shares)
        base.streams.update(new.streams)
        base.ids.update(new.ids)
        base.secrets.update(new.secrets)
        base.answers.update(new.answers)
        base.keys.update(new.keys)
        base.last_stream = new.last_stream

    def tail(self) -> HistoryEnd:
        last = (self._new.entries or self._base.entries)[-1:]
        return HistoryEnd(last[0].number, last[0].hash) if last else HistoryEnd()

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        if stream is not None:
            mine = self._base.of_stream.get(stream, []) + self._new.of_stream.get(stream, [])
            return [entry for entry in mine if entry.number > after][:most]
        old = self._old
        end = old + len(self._new.entries) if most is None else after + most
        return self._base.entries[after:end] + self._new.entries[max(0, after - old) : end - old]

    def tables(self) -> dict[str, str | None]:
        return self._base.tables | self._new.tables

    def covers(self, table: str) -> bool:
        return table in self._base.tables or table in self._new.tables

    def tie(self, table: str) -> TableIdentity | None:
        return self._new.ties.get(table) or self._base.ties.get(table)

    def ties(self) -> dict[str, TableIdentity]:
        return self._base.ties | self._new.ties

    def share(self, analyst: str | None) -> Share | None:
        name = analyst or ""
        return self._new.shares.get(name) or self._base.shares.get(name)

    def shares(self) -> list[Share]:
        every = self._base.shares | self._new.shares
        return [every[analyst] for analyst in sorted(every)]

    def stream(self, name: str) -> StreamState | None:
        number = self._new.ids.get(name) or self._base.ids.get(name, 0)
        return self._new.streams.get(number) or self._base.streams.get(number)

    def streams(self) -> list[StreamState]:
        every = self._base.streams | self._new.streams
        return [every[number] for number in sorted(every)]

    def secret(self, stream: int) -> bytes | None:
        layer = self._new if stream in self._new.secrets else self._base
        return layer.secrets.get(stream)

    def secrets(self) -> list[int]:
        every = self._base.secrets | self._new.secrets
        return sorted(stream for stream, secret in every.items() if secret is not None)

    def answers(self, *, after: int = 0, most: int | None = None) -> list[KeptAnswer]:
        every = self._base.answers | self._new.answers
        return [every[number] for number in sorted(every) if number > after][:most]

    def answer_under(self, key: str) -> KeptAnswer | None:
        number = self._new.keys.get(key) or self._base.keys.get(key, 0)
        return self._new.answers.get(number) or self._base.answers.get(number)

    def stored_and_due(self, due: Contents) -> Iterator[tuple[str, object, object]]:
        tables = list(self.tables().items())
        stored = (tables, self.ties(), self.shares(), self.streams(), self.secrets())
        answers = [answer.sealed for answer in self.answers()]
        return zip(WHAT_IS_STORED, (*stored, answers), due, strict=True)

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        entry = link(*self.tail(), kind, fields, stream)
        self._new.entries.append(entry)
        if stream is not None:
            self._old_of_stream.setdefault(stream, len(self._base.of_stream.get(stream, ())))
            self._new.of_stream.setdefault(stream, []).append(entry)
        return entry

    def add_table(self, table: str, people: str | None = None) -> None:
        self._new.tables[table] = people

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        self._new.ties[table] = identity

    def put_share(self, share: Share) -> None:
        self._new.shares[share.analyst or ""] = share

    def next_stream(self) -> int:
        return self._new.last_stream + 1

    def put_stream(self, state: StreamState) -> None:
        self._new.streams[state.id] = state
        self._new.ids[state.name] = state.id
        self._new.last_stream = max(self._new.last_stream, state.id)

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        self._new.secrets[stream] = secret

    def put_answer(self, answer: KeptAnswer) -> None:
        self._new.answers[answer.number] = answer
        if answer.key is not None:
            self._new.keys[answer.key] = answer.number


class MemoryHold(Uncopyable):
    """A stream's place among the held ones."""

    def __init__(self, held: dict[int, object], stream: int) -> None:
        self._held = held
        self._stream = stream
        self._key = object()

    def take(self) -> bool:
        """Take the place if it is free.  It is then ours for as long as this object lives."""
        return self._held.setdefault(self._stream, self._key) is self._key

    def release(self) -> None:
        """Give up the place."""
        if self._held.get(self._stream) is self._key:
            del self._held[self._stream]

    def __del__(self) -> None:
        if hasattr(self, "_key"):  # __init__ may be interrupted, too
            self.release()


class MemoryLedger(Uncopyable):
    """Everything in this process; a forked copy refuses, since nobody would see its charges."""

    place = "the budget in memory"
    engine = "memory"

    def __init__(self, wait: float = WAIT_SECONDS) -> None:
        self.wait = wait
        self.contents = _Contents()
        self.committed: _MemoryWriter | None = None  # and perhaps not yet laid over the contents
        self.line = Line()
        self._held: dict[int, object] = {}
        self._pid = os.getpid()
        self._closed = False

    @classmethod
    def create(cls, address: str, fill: Fill, *, wait: float = WAIT_SECONDS) -> MemoryLedger:
        """A new one each time, whatever the address."""
        ledger = cls(wait)
        with ledger.writing("create") as writer:
            fill(writer)
        return ledger

    @classmethod
    def open(
        cls, address: str, *, wait: float = WAIT_SECONDS, head: str | None = None
    ) -> MemoryLedger:
        """There is never one to open."""
        raise LedgerMissing(
            "a budget in memory belongs to the object that made it and cannot be opened again",
            advice="Budget.in_memory makes a new one, and Budget.create one that lasts",
        )

    def reading(self) -> Alone[_MemoryWriter]:
        """A consistent view: nobody writes meanwhile."""
        return _Use(self, None)

    def writing(self, what: str) -> Alone[_MemoryWriter]:
        """All or nothing."""
        return _Use(self, what)

    def refuse_if_unusable(self) -> None:
        """A forked copy, or one that was closed."""
        if self._pid != os.getpid():
            raise LedgerUnwritable(
                "a budget in memory cannot follow into a forked process, where its charges would "
                "be forgotten: use Budget.create, or open it in that process"
            )
        if self._closed:
            raise BudgetError(
                "this budget was closed, and a budget in memory is then gone: make a new one"
            )

    def hold(self, stream: int) -> MemoryHold | None:
        """One holder a stream."""
        hold = MemoryHold(self._held, stream)
        return hold if hold.take() else None

    def check(self) -> None:
        """Memory has no structure of its own to check."""

    def close(self) -> None:
        """Forget everything."""
        self._closed = True


class _Use(Alone[_MemoryWriter]):
    """One view or one write, by one thread at a time."""

    def __init__(self, ledger: MemoryLedger, what: str | None) -> None:
        ledger.refuse_if_unusable()
        super().__init__(ledger.line, ledger.wait)
        self._ledger = ledger
        self._what = what

    def where(self) -> str:
        return self._ledger.place

    def begin(self) -> _MemoryWriter:
        self._complete()
        self._writer = _MemoryWriter(self._ledger.contents)
        return self._writer

    def finish(self) -> None:
        if self._what is not None:
            self._ledger.committed = self._writer  # from this step on it has happened
            self._complete()

    def _complete(self) -> None:
        """Lay over what was committed, also if the one who committed it was interrupted."""
        if self._ledger.committed is not None:
            self._ledger.committed.commit()
            self._ledger.committed = None
