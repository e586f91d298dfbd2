"""A ledger in memory, for trying things: the same rules, and gone with the process."""

from __future__ import annotations

import os
import threading
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tacit.budget.chain import Entry, link
from tacit.budget.ledger import Pot, Reached, StreamState, Tail, nobody_watches
from tacit.errors import BudgetError, LedgerBusy, LedgerUnwritable
from tacit.uncopyable import Uncopyable

_WAIT_SECONDS = 10.0


@dataclass
class _Contents(Uncopyable):
    entries: list[Entry] = field(default_factory=list)
    tables: dict[str, None] = field(default_factory=dict)
    pots: dict[str, Pot] = field(default_factory=dict)
    streams: dict[int, StreamState] = field(default_factory=dict)
    secrets: dict[int, bytes | None] = field(default_factory=dict)


class _MemoryWriter:
    """Writes go to a layer of their own, which is laid over the contents at the end."""

    def __init__(self, base: _Contents) -> None:
        self._base = base
        self._new = _Contents()
        self._tables = ChainMap(self._new.tables, base.tables)
        self._pots = ChainMap(self._new.pots, base.pots)
        self._streams = ChainMap(self._new.streams, base.streams)
        self._secrets = ChainMap(self._new.secrets, base.secrets)

    def commit(self) -> None:
        base, new = self._base, self._new
        base.entries.extend(new.entries)
        base.tables.update(new.tables)
        base.pots.update(new.pots)
        base.streams.update(new.streams)
        base.secrets.update(new.secrets)

    def tail(self) -> Tail:
        last = (self._new.entries or self._base.entries)[-1:]
        return Tail(last[0].number, last[0].hash) if last else Tail()

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        every = self._base.entries[after:] + self._new.entries[max(0, after - self._old) :]
        wanted = every if stream is None else [entry for entry in every if entry.stream == stream]
        return wanted[:most]

    @property
    def _old(self) -> int:
        return len(self._base.entries)

    def tables(self) -> list[str]:
        return [*self._base.tables, *self._new.tables]

    def covers(self, table: str) -> bool:
        return table in self._tables

    def pot(self, analyst: str | None) -> Pot | None:
        return self._pots.get(analyst or "")

    def pots(self) -> list[Pot]:
        return [self._pots[analyst] for analyst in sorted(self._pots)]

    def stream(self, name: str) -> StreamState | None:
        return next((state for state in self._streams.values() if state.name == name), None)

    def streams(self) -> list[StreamState]:
        return [self._streams[number] for number in sorted(self._streams)]

    def secret(self, stream: int) -> bytes | None:
        return self._secrets.get(stream)

    def secrets(self) -> list[int]:
        return sorted(stream for stream, secret in self._secrets.items() if secret is not None)

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        entry = link(*self.tail(), kind, fields, stream)
        self._new.entries.append(entry)
        return entry

    def add_table(self, table: str) -> None:
        self._tables[table] = None

    def put_pot(self, pot: Pot) -> None:
        self._pots[pot.analyst or ""] = pot

    def next_stream(self) -> int:
        return max(self._streams, default=0) + 1

    def put_stream(self, state: StreamState) -> None:
        self._streams[state.id] = state

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        self._secrets[stream] = secret


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
