"""A ledger in one JSON file: small, slow and true to the contract."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from threading import get_ident
from typing import Any

from tacit.budget.accountants import Amount
from tacit.budget.chain import Entry, link, readable
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
from tacit.budget.locks import FileHold, open_private
from tacit.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerMissing,
    LedgerUnwritable,
)
from tacit.support import Uncopyable

EMPTY: dict[str, Any] = {
    "entries": [],
    "tables": [],
    "ties": {},
    "shares": {},
    "streams": {},
    "secrets": {},
    "answers": {},
}


class JsonWriter(Uncopyable):
    """What the file says, in memory: a view of it, or a write that is in progress."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    # Reading

    def tail(self) -> HistoryEnd:
        last = self.entries()[-1:]
        return HistoryEnd(last[0].number, last[0].hash) if last else HistoryEnd()

    def entries(
        self, *, after: int = 0, most: int | None = None, stream: int | None = None
    ) -> list[Entry]:
        every = (Entry(*row) for row in self.content["entries"])
        return [one for one in every if one.number > after and stream in (None, one.stream)][:most]

    def tables(self) -> dict[str, str | None]:
        return dict(self.content["tables"])

    def covers(self, table: str) -> bool:
        return table in self.tables()

    def tie(self, table: str) -> TableIdentity | None:
        return self.ties().get(table)

    def ties(self) -> dict[str, TableIdentity]:
        return {table: TableIdentity(**tie) for table, tie in self.content["ties"].items()}

    def share(self, analyst: str | None) -> Share | None:
        row = self.content["shares"].get(analyst or "")
        return row and Share(analyst, *map(Amount.from_json, row))

    def shares(self) -> list[Share]:
        return [
            share for name in sorted(self.content["shares"]) if (share := self.share(name or None))
        ]

    def stream(self, name: str) -> StreamState | None:
        return next((state for state in self.streams() if state.name == name), None)

    def streams(self) -> list[StreamState]:
        rows = self.content["streams"]
        return [StreamState(**rows[number]) for number in sorted(rows, key=int)]

    def secret(self, stream: int) -> bytes | None:
        row = self.content["secrets"].get(str(stream))
        return None if row is None else bytes.fromhex(row)

    def secrets(self) -> list[int]:
        return sorted(map(int, self.content["secrets"]))

    def answers(self, *, after: int = 0, most: int | None = None) -> list[KeptAnswer]:
        rows = self.content["answers"].values()
        kept = sorted((KeptAnswer(*row) for row in rows), key=lambda one: one.number)
        return [one for one in kept if one.number > after][:most]

    def answer_under(self, key: str) -> KeptAnswer | None:
        return next((one for one in self.answers() if one.key == key), None)

    def stored_and_due(self, due: Contents) -> Iterable[tuple[str, object, object]]:
        tables = list(self.tables().items())
        stored = (tables, self.ties(), self.shares(), self.streams(), self.secrets())
        answers = [one.sealed for one in self.answers()]
        return zip(WHAT_IS_STORED, (*stored, answers), due, strict=True)

    # Writing

    def append(self, kind: str, fields: Mapping[str, Any], stream: int | None = None) -> Entry:
        entry = link(*self.tail(), kind, fields, stream)
        self.content["entries"].append([entry.number, entry.text, entry.hash, entry.stream])
        return entry

    def add_table(self, table: str, people: str | None = None) -> None:
        self.content["tables"].append([table, people])

    def put_tie(self, table: str, identity: TableIdentity) -> None:
        self.content["ties"][table] = asdict(identity)

    def put_share(self, share: Share) -> None:
        self.content["shares"][share.analyst or ""] = [share.limit.as_json(), share.spent.as_json()]

    def next_stream(self) -> int:
        return len(self.content["streams"]) + 1

    def put_stream(self, state: StreamState) -> None:
        self.content["streams"][str(state.id)] = asdict(state)

    def put_secret(self, stream: int, secret: bytes | None) -> None:
        self.content["secrets"].pop(str(stream), None)
        if secret is not None:
            self.content["secrets"][str(stream)] = secret.hex()

    def put_answer(self, answer: KeptAnswer) -> None:
        self.content["answers"][str(answer.number)] = astuple(answer)


class JsonLedger(Uncopyable):
    """``json:///clinic.json``: all of a budget in one file, which every write replaces."""

    engine = "JSON"

    def __init__(self, address: str, wait: float) -> None:
        self.path = Path(address.removeprefix("json:///")).resolve()
        self.place = str(self.path)
        self.wait = wait
        self._writing: int | None = None  # the thread that is at work

    @classmethod
    def create(cls, address: str, fill: Fill, *, wait: float = WAIT_SECONDS) -> JsonLedger:
        ledger = cls(address, wait)
        with ledger._alone():
            if ledger.path.exists():
                raise LedgerExists(f"{ledger.place} exists and is never overwritten")
            content = json.loads(json.dumps(EMPTY))
            fill(JsonWriter(content))
            ledger._replace(content)
        return ledger

    @classmethod
    def open(
        cls, address: str, *, wait: float = WAIT_SECONDS, head: str | None = None
    ) -> JsonLedger:
        ledger = cls(address, wait)
        with ledger.reading() as reader:
            if head is not None and all(entry.hash != head for entry in reader.entries()):
                raise LedgerDamaged(f"the head that was noted is not in {ledger.place}")
        return ledger

    @contextmanager
    def reading(self) -> Iterator[JsonWriter]:
        self._refuse_nested()
        yield JsonWriter(self._content())

    @contextmanager
    def writing(self, what: str) -> Iterator[JsonWriter]:
        with self._alone():
            writer = JsonWriter(self._content())
            yield writer
            self._replace(writer.content)

    def hold(self, stream: int) -> FileHold | None:
        return FileHold.take(self._beside(f"held-{stream}"))

    def check(self) -> None:
        self._content()

    def close(self) -> None:
        """Nothing stays open."""

    def _content(self) -> dict[str, Any]:
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            raise LedgerMissing(f"{self.place}: there is no such file") from None
        with readable(f"{self.place} is not JSON"):
            return dict(json.loads(text))

    def _replace(self, content: dict[str, Any]) -> None:
        """The old file or the new one, whatever happens in between."""
        draft = self._beside("new")
        try:
            with open_private(draft) as file:
                file.truncate(0)
                file.write(json.dumps(content).encode())
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except OSError as error:
            raise LedgerUnwritable(f"{self.place} could not be written: {error.strerror}") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, by a lock that the kernel drops when its process is gone."""
        self._refuse_nested()
        deadline = time.monotonic() + self.wait
        with open_private(self._beside("lock")) as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise LedgerBusy(f"{self.place} stayed locked; try again") from None
                    time.sleep(0.001)
            self._writing = get_ident()
            try:
                yield
            finally:
                self._writing = None

    def _refuse_nested(self) -> None:
        if self._writing == get_ident():
            raise LedgerBusy(f"{self.place} is in the middle of a transaction of this very thread")

    def _beside(self, end: str) -> Path:
        return self.path.with_name(f"{self.path.name}-{end}")
