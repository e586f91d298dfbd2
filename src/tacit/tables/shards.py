"""Shards: some people with all their rows, as codes in a file that is mapped into memory.

Totals over different people add up, so a table can be cut into shards as long as each person is in
exactly one of them: a person in two would count twice.  A `ShardedEngine` adds up what its shards
say.

A file is one shard.  It is the data, in the clear, and is laid out so that other programs can read
it (``docs/reference/files.md``): a mark, the length of the head, the head as JSON, then arrays,
little-endian, each at a multiple of 64 bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter
from tacit.tables.bitmaps import BitmapEngine
from tacit.tables.columns import Held, Layout, by_person, every_row, numbered, placed, unpack
from tacit.tables.engine import Answering, in_order, withheld
from tacit.tables.question import Term
from tacit.tables.schema import Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins

MARK = b"tacit shard 1\n\0\0"
ALIGNED = 64

_NUMBERS = ("words", "one_row", "many_words", "inner_bits")
_ARRAYS = ("filled", "inner", "starts", "sizes", "size_ends")

Head = dict[str, Any]


class NotAShard(Exception):
    """A file that is not the shard that was written; it says nothing of the data."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some people with all their rows: where the rows are, and the columns by slot."""

    layout: Layout
    columns: Mapping[str, Held]

    @classmethod
    def of(cls, schema: Schema, columns: Mapping[str, Held]) -> Shard:
        """The shard of columns that are still by row."""
        slot_of_row = None
        if isinstance(schema.person, str):
            layout, slot_of_row = by_person(numbered(columns[schema.person].codes))
        else:
            layout = every_row(len(next(iter(columns.values())).codes))
        return cls(
            layout,
            {name: placed(held, layout.slots, slot_of_row) for name, held in columns.items()},
        )

    @property
    def rows(self) -> dict[str, Held]:
        """Its columns by row, in some order that is the same for all of them."""
        there = unpack(self.layout.filled)
        return {name: replace(held, codes=held.codes[there]) for name, held in self.columns.items()}

    @property
    def nbytes(self) -> int:
        """What its codes take."""
        return sum(held.codes.nbytes for held in self.columns.values())

    def engine(
        self, schema: Schema, limit: int, release: Callable[[], None] = lambda: None
    ) -> BitmapEngine:
        """Answers from this shard alone; its bitmaps stay within the limit."""
        return BitmapEngine(schema, self.layout, self.columns, limit=limit, release=release)

    def save(self, path: Path) -> str:
        """Write it to a new file that only its owner can read; gives the file's SHA-256."""
        head, arrays = self._described()
        text = json.dumps(head, separators=(",", ":")).encode()
        start = MARK + len(text).to_bytes(8, "little") + text
        digest = hashlib.sha256()
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "wb") as file:
            for piece in (np.frombuffer(start, dtype=np.uint8), *arrays):
                for written in (piece.view(np.uint8).data, bytes(-piece.nbytes % ALIGNED)):
                    file.write(written)
                    digest.update(written)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _described(self) -> tuple[Head, list[NDArray[Any]]]:
        """What the head says, and the arrays in the order in which they are written."""
        arrays: list[NDArray[Any]] = []

        def placed_at(array: NDArray[Any]) -> Head:
            at = sum(-(-before.nbytes // ALIGNED) for before in arrays) * ALIGNED
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            arrays.append(little)
            return {"at": at, "type": little.dtype.str, "count": len(little)}

        head: Head = {name: getattr(self.layout, name) for name in _NUMBERS}
        head |= {name: placed_at(getattr(self.layout, name)) for name in _ARRAYS}
        head["columns"] = []
        for name, held in self.columns.items():
            entry: Head = {"name": name, "top": held.top, "base": held.base}
            entry["codes"] = placed_at(held.codes)
            if held.base is None and held.top >= 0 and isinstance(held.words[0], int):
                entry["numbers"] = placed_at(np.array(held.words, dtype=np.int64))
            elif held.base is None:
                texts = [word.encode() for word in held.words]
                ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
                entry["ends"] = placed_at(ends)
                entry["texts"] = placed_at(np.frombuffer(b"".join(texts), dtype=np.uint8))
            head["columns"].append(entry)
        return head, arrays


def map_shard(path: Path, sha256: str) -> Shard:
    """The shard in a file, of which parts are read from the disk when they are needed.

    The bytes that are mapped are those whose digest is compared.
    """
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise NotAShard
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
    if hashlib.sha256(mapped).hexdigest() != sha256 or mapped[: len(MARK)] != MARK:
        raise NotAShard
    begin = len(MARK) + 8
    end = begin + int.from_bytes(mapped[len(MARK) : begin], "little")
    head: Head = json.loads(mapped[begin:end])
    data = -(-end // ALIGNED) * ALIGNED

    def array(entry: Head) -> NDArray[Any]:
        return np.frombuffer(mapped, entry["type"], entry["count"], data + entry["at"])

    parts: dict[str, Any] = {name: array(head[name]) for name in _ARRAYS}
    layout = Layout(**parts, **{name: head[name] for name in _NUMBERS})
    return Shard(layout, {each["name"]: _held(each, array) for each in head["columns"]})


def _held(entry: Head, array: Callable[[Head], NDArray[Any]]) -> Held:
    def read_texts() -> Sequence[str]:
        ends, texts = array(entry["ends"]).tolist(), array(entry["texts"]).tobytes()
        return [texts[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]

    def read_numbers() -> Sequence[int]:
        numbers: list[int] = array(entry["numbers"]).tolist()
        return numbers

    read = read_numbers if "numbers" in entry else read_texts
    return Held(array(entry["codes"]), entry["top"], entry["base"], read)


class ShardedEngine(Answering):
    """Adds up what its shards say.  Each person must be in exactly one of them."""

    def __init__(self, schema: Schema, shards: Sequence[Shard], *, limit: int) -> None:
        if not shards:
            raise BadParameter("shards", "none", "give at least one shard")
        self.schema = schema
        self._shards = [shard.engine(schema, limit // len(shards)) for shard in shards]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.schema.name}>"

    def held(self) -> list[Shard]:
        """The shards, as they were given.  They are the data."""
        return [Shard(*shard.held()) for shard in self._shards]

    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        found = [shard.totals(terms) for shard in self._shards]
        return [sum(each) for each in zip(*found, strict=True)]

    @withheld("reading the points")
    def points(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> NDArray[np.int64]:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        found = [shard.points(columns, max_rows=max_rows, coins=coins) for shard in self._shards]
        return in_order(np.concatenate(found))

    def close(self) -> None:
        """Release the data."""
        for shard in self._shards:
            shard.close()
