"""Shards: some people with all their rows, as codes in a file that is mapped into memory.

Totals over different people add up, so a table can be cut into shards as long as each person is in
exactly one of them: a person in two would count twice.

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

from tacit.tables.encoded.columns import EncodedColumn, is_dense, numbered, placed
from tacit.tables.encoded.layout import Layout, RowSlots, by_person, every_row, unpack
from tacit.tables.encoded.packed_words import PackedWords, packed
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    pass

FILE_MARK = b"tacit shard 1\n\0\0"
ALIGNED = 64

_NUMBERS = ("words", "one_row", "many_words", "inner_bits")
_ARRAYS = ("filled", "inner", "starts", "sizes", "size_ends")

Head = dict[str, Any]


FileStamp = list[int]
"""By what a file is recognised without reading it: which it is, its size, and its times."""


def file_stamp(status: os.stat_result) -> FileStamp:
    """The time of the last change cannot be set, unlike that of the last writing."""
    times = [status.st_mtime_ns, status.st_ctime_ns]
    return [status.st_dev, status.st_ino, status.st_size, *times]


class NotAShard(Exception):
    """A file that is not the shard that was written; it says nothing of the data."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some people with all their rows: where the rows are, and the columns by slot."""

    layout: Layout
    columns: Mapping[str, EncodedColumn]

    @classmethod
    def of(cls, schema: Schema, columns: Mapping[str, EncodedColumn]) -> Shard:
        """The shard of columns that are still by row."""
        return cls.from_rows(schema, dict(columns))

    @classmethod
    def from_rows(cls, schema: Schema, columns: dict[str, EncodedColumn]) -> Shard:
        """The same, one column after the other: ``columns`` is emptied, for memory's sake."""
        if isinstance(schema.person, str):
            layout, slots = layout_of(columns[schema.person])
        else:
            layout, slots = every_row(len(next(iter(columns.values())).codes)), None
        names = list(columns)
        return cls(layout, {name: placed(columns.pop(name), layout.slots, slots) for name in names})

    @property
    def rows(self) -> dict[str, EncodedColumn]:
        """Its columns by row, in some order that is the same for all of them."""
        there = unpack(self.layout.filled)
        return {name: replace(held, codes=held.codes[there]) for name, held in self.columns.items()}

    @property
    def nbytes(self) -> int:
        """What its codes take."""
        return sum(held.codes.nbytes for held in self.columns.values())

    def save(self, path: Path) -> str:
        """Write it to a new file that only its owner can read; gives the file's SHA-256."""
        head, arrays = self._described()
        text = json.dumps(head, separators=(",", ":")).encode()
        start = FILE_MARK + len(text).to_bytes(8, "little") + text
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
                words = packed(held.words)
                entry["ends"] = placed_at(words.ends)
                entry["texts"] = placed_at(words.texts)
            head["columns"].append(entry)
        return head, arrays


def map_shard(path: Path, sha256: str, noted: FileStamp | None = None) -> Shard:
    """The shard in a file, of which parts are read from the disk when they are needed.

    The bytes that are mapped are those whose digest is compared, unless the file is as it was
    when it was noted after its writing.
    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not status.st_size:
            raise NotAShard
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
    if file_stamp(status) != noted and hashlib.sha256(mapped).hexdigest() != sha256:
        raise NotAShard
    if mapped[: len(FILE_MARK)] != FILE_MARK:
        raise NotAShard
    begin = len(FILE_MARK) + 8
    end = begin + int.from_bytes(mapped[len(FILE_MARK) : begin], "little")
    head: Head = json.loads(mapped[begin:end])
    data = -(-end // ALIGNED) * ALIGNED

    def array(entry: Head) -> NDArray[Any]:
        return np.frombuffer(mapped, entry["type"], entry["count"], data + entry["at"])

    parts: dict[str, Any] = {name: array(head[name]) for name in _ARRAYS}
    layout = Layout(**parts, **{name: head[name] for name in _NUMBERS})
    return Shard(layout, {each["name"]: _held(each, array) for each in head["columns"]})


def _held(entry: Head, array: Callable[[Head], NDArray[Any]]) -> EncodedColumn:
    def read_texts() -> Sequence[str]:
        return PackedWords(array(entry["texts"]), array(entry["ends"]))

    def read_numbers() -> Sequence[int]:
        numbers: list[int] = array(entry["numbers"]).tolist()
        return numbers

    read = read_numbers if "numbers" in entry else read_texts
    return EncodedColumn(array(entry["codes"]), entry["top"], entry["base"], read)


def layout_of(person: EncodedColumn) -> tuple[Layout, RowSlots]:
    """Where the rows of these people lie; the column is still by row and has no NULL."""
    return by_person(person.codes if is_dense(person.codes) else numbered(person.codes))
