"""A ledger in memory, for trying things: the same rules, and gone with the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tacit.budget.chain import Entry, link
from tacit.budget.ledger import (
    WHAT_IS_STORED,
    Contents,
    Pot,
    Reached,
    StreamState,
    TableIdentity,
    Tail,
    nobody_watches,
)
from tacit.errors import BudgetError, LedgerBusy, LedgerUnwritable
from tacit.uncopyable import Uncopyable

_WAIT_SECONDS = 10.0


@dataclass
class _Contents(Uncopyable):
    """What is stored, and by what it is looked up: nothing is ever searched for."""

    entries: list[Entry] = field(default_factory=list)
    of_stream: dict[int, list[Entry]] = field(default_factory=dict)
    tables: dict[str, None] = field(default_factory=dict)
    ties: dict[str, TableIdentity] = field(default_factory=dict)
    pots: dict[str, Pot] = field(default_factory=dict)
    streams: dict[int, StreamState] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    secrets: dict[int, bytes | None] = field(default_factory=dict)
    last_stream: int = 0


class _MemoryWriter(Uncopyable):
    """Writes go to a layer of their own, which is laid over the contents at the end."""

    def __init__(self, base: _Contents) -> None:
        self._base = base
        self._new = _Contents(last_stream=base.last_stream)

    def commit(self) -> None:
        base, new = self._base, self._new
        base.entries.extend(new.entries)
        for stream, entries in new.of_stream.items():
            base.of_stream.setdefault(stream, []).extend(entries)
        base.tables.update(new.tables)
        base.ties.update(new.ties)
        base.pots.update(new.pots)
        base.streams.update(new.streams)
        base.ids.update(new.ids)
        base.secrets.update(new.secrets)
        base.last_stream = new.last_stream

    def tail(self) -> Tail:
        last = (self._new.entries or self._base.entries)[-1:]
        return Tail(last[0].number, last[0].hash) if last else Tail()

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        if stream is not None:
            mine = self._base.of_stream.get(stream, []) + self._new.of_stream.get(stream, [])
            return [entry for entry in mine if entry.number > after][:most]
        old = len(self._base.entries)
        end = old + len(self._new.entries) if most is None else after + most
        return self._base.entries[after:end] + self._new.entries[max(0, after - old) : end - old]

    def tables(self) -> list[str]:
        return [*self._base.tables, *self._new.tables]

    def covers(self, table: str) -> bool:
        return table in self._base.tables or table in self._new.tables

    def tie(self, table: str) -> TableIdentity | None:
        return self._new.ties.get(table) or self._base.ties.get(table)

    def ties(self) -> dict[str, TableIdentity]:
        return self._base.ties | self._new.ties

    def pot(self, analyst: str | None) -> Pot | None:
        name = analyst or ""
        return self._new.pots.get(name) or self._base.pots.get(name)

    def pots(self) -> list[Pot]:
        every = self._base.pots | self._new.pots
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

    def stored_and_due(self, due: Contents) -> Iterator[tuple[str, object, object]]:
        stored = (self.tables(), self.ties(), self.pots(), self.streams(), self.secrets())
        return zip(WHAT_IS_STORED, stored, due, strict=True)

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        entry = link(*self.tail(), kind, fields, stream)
        self._new.entries.append(entry)
        if stream is not None:
            self._new.of_stream.setdefault(stream, []).append(entry)
        return entry

    def add_table(self, table: str) -> None:
        self._new.tables[table] = None

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        self._new.ties[table] = identity

    def put_pot(self, pot: Pot) -> None:
        self._new.pots[pot.analyst or ""] = pot

    def next_stream(self) -> int:
        return self._new.last_stream + 1

    def put_stream(self, state: StreamState) -> None:
        self._new.streams[state.id] = state
        self._new.ids[state.name] = state.id
        self._new.last_stream = max(self._new.last_stream, state.id)

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        self._new.secrets[stream] = secret


class MemoryHold(Uncopyable):
    """A stream's place among the held ones."""

    def __init__(self, held: dict[int, object], stream: int, key: object) -> None:
        self._held = held
        self._stream = stream
        self._key = key

    def release(self) -> None:
        """Let go."""
        if self._held.get(self._stream) is self._key:
            del self._held[self._stream]

    def __del__(self) -> None:
        self.release()


class MemoryLedger(Uncopyable):
    """Everything in this process; a forked copy refuses, since nobody would see its charges."""

    place = "the budget in memory"

    def __init__(self) -> None:
        self.reached: Reached = nobody_watches
        self._contents = _Contents()
        self._held: dict[int, object] = {}
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._pid = os.getpid()
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[_MemoryWriter]:
        """A consistent view: nobody writes meanwhile."""
        with self._alone():
            yield _MemoryWriter(self._contents)

    @contextmanager
    def writing(self, what: str) -> Iterator[_MemoryWriter]:
        """All or nothing."""
        with self._alone():
            self.reached(f"{what}: begun")
            writer = _MemoryWriter(self._contents)
            yield writer
            self.reached(f"{what}: written")
            writer.commit()
            self.reached(f"{what}: committed")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._pid != os.getpid():
            raise LedgerUnwritable(
                "a budget in memory cannot follow into a forked process, where its charges would "
                "be forgotten: use Budget.create, or open it in that process"
            )
        if self._closed:
            raise BudgetError("this budget was closed, and a budget in memory is then gone")
        if self._owner == threading.get_ident():  # a finaliser, or a callback: do not wait for us
            raise LedgerBusy(f"{self.place} is in the middle of a transaction of this very thread")
        if not self._lock.acquire(timeout=_WAIT_SECONDS):
            raise LedgerBusy(f"{self.place} stayed busy for {_WAIT_SECONDS:g} seconds")
        self._owner = threading.get_ident()
        try:
            yield
        finally:
            self._owner = None
            self._lock.release()

    def hold(self, stream: int) -> MemoryHold | None:
        """One holder a stream."""
        key = object()
        if self._held.setdefault(stream, key) is not key:
            return None
        return MemoryHold(self._held, stream, key)

    def check(self) -> None:
        """Memory has no structure of its own to check."""

    def close(self) -> None:
        """Forget everything."""
        self._closed = True
