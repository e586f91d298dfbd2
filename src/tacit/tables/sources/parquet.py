"""Parquet files: what DuckDB is shown of one.

DuckDB never sees the file itself.  It is shown a copy of the pages of some columns, under a footer
that is written here, which has no statistics, no indexes and no Bloom filters, and does not say
that bytes are text and numbers instants.  So nothing that was noted about many rows can decide how
a value reads, and no value makes DuckDB refuse a column: texts come as bytes and instants as whole
numbers, and `normal` reads them value by value.

The footer is a Thrift structure, FileMetaData, in the compact protocol.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from tacit.errors import EngineFailed
from tacit.tables.schema.codes import INSTANTS, TEXT_BYTES

_MAGIC = b"PAR1"
_TRUE, _I32, _I64, _BINARY, _LIST, _STRUCT = 1, 5, 6, 8, 9, 12
_INT64, _BYTE_ARRAY, _FIXED = 2, 6, 7

# The fields of FileMetaData, SchemaElement, RowGroup, ColumnChunk and ColumnMetaData
_VERSION, _SCHEMA, _ROWS, _GROUPS, _ENCRYPTED = 1, 2, 3, 4, 8
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN = 1, 2, 3, 4, 5
_CONVERTED, _PRECISION, _LOGICAL = 6, 8, 10
_CHUNKS, _GROUP_BYTES, _GROUP_ROWS = 1, 2, 3
_ELSEWHERE, _CHUNK_OFFSET, _PAGES = 1, 2, 3
_PATH, _SIZE, _DATA, _DICTIONARY = 3, 7, 9, 11
_KEPT = (1, 2, 4, 5, 6, _SIZE)  # type, encodings, codec and sizes, but not what the values are

_REPEATED = 2
_CONVERTED_DECIMAL, _LOGICAL_DECIMAL = 5, 5
_CONVERTED_TEXT, _LOGICAL_TEXT = (0, 4), (1, 4)  # UTF8 or STRING, ENUM
_CONVERTED_INSTANTS = {9: "ms", 10: "us"}
_LOGICAL_INSTANT, _UNITS = 8, {1: "ms", 2: "us", 3: "ns"}

_PIECE = 2**22
_NOT_READ = "this Parquet file cannot be read: its footer is damaged, or from another format"

Fields = dict[int, tuple[int, bytes]]
"""The fields of a structure: by number, their Thrift type and their bytes."""


class ParquetFile:
    """A Parquet file: its columns, and files with the rows of some of them."""

    def __init__(self, path: Path, called: str) -> None:
        self._path = path
        self._stop, footer = _footer(path, called)
        whole = _structure(footer)
        if _ENCRYPTED in whole:
            raise EngineFailed(f"{called} is encrypted")
        self._root, *elements = map(_structure, _listed(whole[_SCHEMA][1]))
        self._columns = list(_columns(elements))
        groups = map(_structure, _listed(whole[_GROUPS][1]))
        # Some writers make groups without rows, which have no pages.
        self._groups = [group for group in groups if _number(group, _GROUP_ROWS, 0)]

    @property
    def names(self) -> list[str]:
        """The names of the columns as the file has them, even if two are equal."""
        return [_name(inside[0]) for inside in self._columns]

    @property
    def rows(self) -> int:
        """How many rows it has.  Privacy: this is secret."""
        return sum(_number(group, _GROUP_ROWS, 0) for group in self._groups)

    @property
    def kinds(self) -> dict[str, str]:
        """What bytes and numbers mean where DuckDB is not told."""
        meant = {_name(inside[0]): _meaning(inside[0]) for inside in self._columns}
        return {name: kind for name, kind in meant.items() if kind is not None}

    @property
    def unreadable(self) -> list[str]:
        """Decimals that are stored in more bytes than DuckDB uses, which it refuses."""
        return [_name(inside[0]) for inside in self._columns if _is_loose(inside[0])]

    def write_types(self, target: Path) -> None:
        """Write a file with all columns and no rows."""
        with target.open("wb") as file:
            file.write(_MAGIC)
            self._finish(file, self._columns, [])

    def write_columns(self, names: Collection[str], target: Path) -> None:
        """Write a file with the rows of these columns, which must have no others inside."""
        columns = [inside for inside in self._columns if _name(inside[0]) in names]
        groups = []
        with self._path.open("rb") as source, target.open("wb") as file:
            file.write(_MAGIC)
            for group, chunks in zip(self._groups, self._chunks, strict=True):
                copied = [
                    self._copied(source, file, _name(element), chunks[_name(element)])
                    for (element,) in columns
                ]
                groups.append({_CHUNKS: (_LIST, _list(copied)), _GROUP_BYTES: (_I64, _whole(0))})
                groups[-1][_GROUP_ROWS] = group[_GROUP_ROWS]
            self._finish(file, columns, groups)

    def _finish(
        self, file: BinaryIO, columns: Sequence[list[Fields]], groups: list[Fields]
    ) -> None:
        root = self._root | {_CHILDREN: (_I32, _whole(len(columns)))}
        elements = [_plain(element) for inside in columns for element in inside]
        rows = sum(_number(group, _GROUP_ROWS, 0) for group in groups)
        footer = _written(
            {
                _VERSION: (_I32, _whole(1)),
                _SCHEMA: (_LIST, _list(map(_written, [root, *elements]))),
                _ROWS: (_I64, _whole(rows)),
                _GROUPS: (_LIST, _list(map(_written, groups))),
            }
        )
        file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    @cached_property
    def _chunks(self) -> list[dict[str, bytes]]:
        """For each row group, the description of the pages of each column without others inside."""
        leaves = [
            _name(inside[0]) if len(inside) == 1 else ""
            for inside in self._columns
            for element in inside
            if _CHILDREN not in element
        ]
        return [
            dict(zip(leaves, _listed(group[_CHUNKS][1]), strict=True)) for group in self._groups
        ]

    def _copied(self, source: BinaryIO, target: BinaryIO, name: str, described: bytes) -> bytes:
        """Copy the pages of a column in a row group; gives how they are described then."""
        chunk = _structure(described)
        if _PAGES not in chunk or _ELSEWHERE in chunk:
            raise EngineFailed("this Parquet file has pages that are encrypted or in other files")
        pages = _structure(chunk[_PAGES][1])
        data, words = _number(pages, _DATA, 0), _number(pages, _DICTIONARY, 0)
        start, size = words if 0 < words < data else data, _number(pages, _SIZE, 0)
        if start < len(_MAGIC) or size < 0 or start + size > self._stop:
            raise EngineFailed(_NOT_READ)
        moved = target.tell() - start
        source.seek(start)
        while size:
            piece = source.read(min(size, _PIECE))
            if not piece:
                raise EngineFailed(_NOT_READ)
            target.write(piece)
            size -= len(piece)
        kept = {field: pages[field] for field in _KEPT}
        kept[_PATH] = _LIST, _list([_text(name)], _BINARY)
        kept[_DATA] = _I64, _whole(data + moved)
        if start != data:
            kept[_DICTIONARY] = _I64, _whole(words + moved)
        offset = _I64, _whole(start + moved)
        return _written({_CHUNK_OFFSET: offset, _PAGES: (_STRUCT, _written(kept))})


def _footer(path: Path, called: str) -> tuple[int, bytes]:
    """Where the footer starts, and the footer."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        if end >= 12:
            file.seek(end - 8)
            size, magic = int.from_bytes(file.read(4), "little"), file.read(4)
            if magic == _MAGIC and size <= end - 12:
                file.seek(end - 8 - size)
                return end - 8 - size, file.read(size)
    raise EngineFailed(f"{called} is not a Parquet file, or is encrypted")


def _columns(elements: list[Fields]) -> Iterator[list[Fields]]:
    """The outermost columns, each with those inside."""
    place = 0
    while place < len(elements):
        start, inside = place, 1
        while inside:
            inside += _number(elements[place], _CHILDREN, 0) - 1
            place += 1
        yield elements[start:place]


def _plain(element: Fields) -> Fields:
    """A column without what it means, where DuckDB could fail on that, and with a name in UTF-8."""
    hidden = () if _meaning(element) is None else (_CONVERTED, _LOGICAL)
    kept = {field: value for field, value in element.items() if field not in hidden}
    return kept | {_NAME: (_BINARY, _text(_name(element)))}


def _meaning(element: Fields) -> str | None:
    """What the bytes or numbers of a column mean, according to its logical type."""
    if _number(element, _REPETITION, 0) == _REPEATED:
        return None
    stored, converted = _number(element, _TYPE, -1), _number(element, _CONVERTED, -1)
    logical, inner = _union(element[_LOGICAL][1]) if _LOGICAL in element else (0, b"")
    if stored in (_BYTE_ARRAY, _FIXED):
        return TEXT_BYTES if converted in _CONVERTED_TEXT or logical in _LOGICAL_TEXT else None
    if stored != _INT64:
        return None
    unit, zone = _CONVERTED_INSTANTS.get(converted), ""
    if logical == _LOGICAL_INSTANT:
        told = [*_fields(inner, 0)]
        units = [inner[start:stop] for number, _, start, stop in told if number == 2]
        unit = _UNITS.get(_union(units[0])[0]) if units else unit
        zone = ", UTC" if (1, _TRUE) in {field[:2] for field in told} else ""
    return None if unit is None else f"{INSTANTS}({unit}{zone})"


def _is_loose(element: Fields) -> bool:
    """Whether a decimal is stored in more bytes than DuckDB uses for its digits."""
    logical = _union(element[_LOGICAL][1])[0] if _LOGICAL in element else 0
    stored, digits = _number(element, _TYPE, -1), _number(element, _PRECISION, 0)
    if stored not in (_BYTE_ARRAY, _FIXED) or digits > 38:
        return False
    if logical != _LOGICAL_DECIMAL and _number(element, _CONVERTED, -1) != _CONVERTED_DECIMAL:
        return False
    width = next(size for most, size in ((4, 2), (9, 4), (18, 8), (38, 16)) if digits <= most)
    return stored == _BYTE_ARRAY or _number(element, _LENGTH, 0) > width


def _union(data: bytes) -> tuple[int, bytes]:
    for number, _, start, stop in _fields(data, 0):
        return number, data[start:stop]
    return 0, b""


def _number(element: Fields, field: int, default: int) -> int:
    if field not in element:
        return default
    raw, _ = _varint(element[field][1], 0)
    return (raw >> 1) ^ -(raw & 1)


def _name(element: Fields) -> str:
    data = element[_NAME][1]
    size, start = _varint(data, 0)
    return data[start : start + size].decode(errors="replace")


# Reading the compact protocol


def _structure(data: bytes) -> Fields:
    return {number: (kind, data[start:stop]) for number, kind, start, stop in _fields(data, 0)}


def _listed(data: bytes) -> Iterator[bytes]:
    """The structures of a list."""
    count, place = _list_head(data, 0)
    for _ in range(count):
        start, place = place, _skip(data, place, _STRUCT)
        yield data[start:place]


def _fields(data: bytes, place: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a structure: number, type, and where its value starts and stops."""
    number = 0
    while data[place] != 0:
        step, kind = data[place] >> 4, data[place] & 15
        place += 1
        if step:
            number += step
        else:
            raw, place = _varint(data, place)
            number = (raw >> 1) ^ -(raw & 1)
        stop = _skip(data, place, kind)
        yield number, kind, place, stop
        place = stop


def _skip(data: bytes, place: int, kind: int) -> int:
    """Where a value ends."""
    match kind:
        case 1 | 2:  # the type of a boolean is its value
            return place
        case 3:
            return place + 1
        case 4 | 5 | 6:
            return _varint(data, place)[1]
        case 7:
            return place + 8
        case 8:
            size, place = _varint(data, place)
            return place + size
        case 9 | 10:
            inner = data[place] & 15
            count, place = _list_head(data, place)
            for _ in range(count):
                place = _skip(data, place, 3 if inner in (1, 2) else inner)
            return place
        case 12:
            for _, _, _, stop in _fields(data, place):
                place = stop
            return place + 1
    raise EngineFailed(_NOT_READ)


def _list_head(data: bytes, place: int) -> tuple[int, int]:
    count = data[place] >> 4
    return _varint(data, place + 1) if count == 15 else (count, place + 1)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[place]
        found |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return found, place


# Writing it


def _written(fields: Fields) -> bytes:
    """A structure, in which each field's number is less than 16 above the one before."""
    out, before = bytearray(), 0
    for number, (kind, data) in sorted(fields.items()):
        out.append((number - before) << 4 | kind)
        out += data
        before = number
    return bytes(out) + b"\0"


def _list(items: Iterable[bytes], kind: int = _STRUCT) -> bytes:
    listed = list(items)
    return bytes([15 << 4 | kind]) + _as_varint(len(listed)) + b"".join(listed)


def _text(value: str) -> bytes:
    return _as_varint(len(value.encode())) + value.encode()


def _whole(value: int) -> bytes:
    """A whole number that is not negative."""
    return _as_varint(2 * value)


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
