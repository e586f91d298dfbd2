"""A Parquet file without its logical types: texts as bytes, instants as whole numbers.

DuckDB refuses a whole Parquet column because of one text that is not UTF-8, or one instant that
does not fit into its own unit.  A file in which it found such a value is read from a copy whose
footer no longer says that the bytes are text and the numbers instants; `normal` then reads value by
value.

The footer is a Thrift structure, FileMetaData, in the compact protocol.  Its second field lists
the columns; everything after it is copied as it is.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from tacit.errors import EngineFailed
from tacit.tables.codes import INSTANTS, TEXT_BYTES

_MAGIC = b"PAR1"
_LIST, _STRUCT = 9, 12
_INT64, _BYTE_ARRAY, _FIXED = 2, 6, 7
_TYPE, _LENGTH, _NAME, _CHILDREN, _CONVERTED, _PRECISION, _LOGICAL = 1, 2, 4, 5, 6, 8, 10
_CONVERTED_DECIMAL, _LOGICAL_DECIMAL = 5, 5
_CONVERTED_TEXT, _LOGICAL_TEXT = (0, 4), (1, 4)  # UTF8 or STRING, ENUM
_CONVERTED_INSTANTS = {9: "ms", 10: "us"}
_LOGICAL_INSTANT, _UNITS = 8, {1: "ms", 2: "us", 3: "ns"}

Element = dict[int, tuple[int, bytes]]
"""The fields of a column: by number, their Thrift type and their bytes."""


def described(path: Path, called: str) -> tuple[list[str], list[str]]:
    """The names of the columns as the file has them, and those that DuckDB cannot read.

    DuckDB makes equal names different, and refuses decimals that are stored in too many bytes.
    """
    columns = list(_columns(_elements(_footer(path, called)[1])[0]))
    names = [_name(element) for element in columns]
    return names, [_name(element) for element in columns if _is_loose(element)]


def write_bare(path: Path, target: Path) -> dict[str, str]:
    """Write a copy without the logical types of texts and instants, and return these types."""
    start, footer = _footer(path, "this")
    elements, first, last = _elements(footer)
    bare: dict[str, str] = {}
    for element in _columns(elements):
        kind = _meaning(element)
        if kind is not None:
            bare[_name(element)] = kind
            element.pop(_CONVERTED, None)
            element.pop(_LOGICAL, None)
    written = b"".join(_written(element) for element in elements)
    footer = footer[:first] + written + footer[last:]
    shutil.copyfile(path, target)
    with target.open("r+b") as file:
        file.truncate(start)
        file.seek(start)
        file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
    return bare


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


def _elements(footer: bytes) -> tuple[list[Element], int, int]:
    """The list of columns, with those nested in them, and where it is in the footer."""
    for number, kind, start, stop in _fields(footer, 0):
        if number == 2 and kind == _LIST:
            count, place = _list_head(footer, start)
            elements, first = [], place
            for _ in range(count):
                element: Element = {}
                for field, of, begin, end in _fields(footer, place):
                    element[field] = of, footer[begin:end]
                place = _skip(footer, place, _STRUCT)
                elements.append(element)
            return elements, first, stop
    raise EngineFailed("this Parquet file has no list of columns")


def _columns(elements: list[Element]) -> Iterator[Element]:
    """The outermost columns: the children of the first element, without their own children."""
    place = 1
    while place < len(elements):
        yield elements[place]
        inside = 1
        while inside:
            inside += _number(elements[place], _CHILDREN, 0) - 1
            place += 1


def _meaning(element: Element) -> str | None:
    """What the bytes or numbers of a column mean, according to its logical type."""
    stored, converted = _number(element, _TYPE, -1), _number(element, _CONVERTED, -1)
    logical, inner = _union(element[_LOGICAL][1]) if _LOGICAL in element else (0, b"")
    if stored == _BYTE_ARRAY:
        return TEXT_BYTES if converted in _CONVERTED_TEXT or logical in _LOGICAL_TEXT else None
    if stored != _INT64:
        return None
    unit = _CONVERTED_INSTANTS.get(converted)
    if logical == _LOGICAL_INSTANT:
        units = [inner[start:stop] for number, _, start, stop in _fields(inner, 0) if number == 2]
        unit = _UNITS.get(_union(units[0])[0]) if units else unit
    return None if unit is None else f"{INSTANTS}({unit})"


def _is_loose(element: Element) -> bool:
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


def _number(element: Element, field: int, default: int) -> int:
    if field not in element:
        return default
    raw, _ = _varint(element[field][1], 0)
    return (raw >> 1) ^ -(raw & 1)


def _name(element: Element) -> str:
    data = element[_NAME][1]
    size, start = _varint(data, 0)
    return data[start : start + size].decode(errors="replace")


# The compact protocol


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
    raise EngineFailed("the footer of this Parquet file cannot be read")


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


def _written(element: Element) -> bytes:
    """A structure, in which each field's number is less than 16 above the one before."""
    out, before = bytearray(), 0
    for number, (kind, data) in sorted(element.items()):
        out.append((number - before) << 4 | kind)
        out += data
        before = number
    return bytes(out) + b"\0"
