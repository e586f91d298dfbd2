"""Delimited text (CSV, TSV) read by fixed rules, so that a broken line affects no other line.

A record is a line of fields.  A field that begins with a quote ends at its closing quote, which may
be on a later line; a doubled quote stands for one quote, and spaces around the quotes are ignored.
After it comes a delimiter or the end of the line.  Every other field ends at the next delimiter or
line end, and quotes in it stand for themselves.  Empty lines are skipped, unless there is only one
column; empty fields after the last column are ignored.

If a line breaks these rules, the rest of it is lost and reading goes on with the next line; a
record with too many or too few fields is lost as a whole.  DuckDB reads files that keep the rules
in the same way, and faster.  It refuses other files, which are read and rewritten here.
"""

from __future__ import annotations

import gzip
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, IOBase
from pathlib import Path

from tacit.errors import SchemaMismatch
from tacit.tables.declared import clashing_names

LONGEST = 2**20
"""Bytes.  Longer text is NULL, whatever source it is in."""

PIECE = 2**24
"""Bytes that are checked at once."""

_END = re.compile(rb"\r\n|\n|\r")
_OPENING = re.compile(rb' *+"')
_QUOTED = re.compile(rb' *+"([^"]*+(?:""[^"]*+)*+)" *+')
_BOM = b"\xef\xbb\xbf"

Data = mmap.mmap | bytes


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a file is written: what separates its fields, and whether it is compressed."""

    delimiter: str
    compressed: bool


@dataclass(frozen=True, slots=True)
class Mended:
    """What is known about a file that was rewritten."""

    longest: int  # the bytes of its longest line
    lost: int  # how many lines could not be read


def header(path: Path, layout: LineFormat) -> list[str]:
    """The names in the first line, which are public."""
    with _opened(path, layout) as file:
        start = file.read(2**24)
    fields = next(_records(start, layout.delimiter.encode()), None)
    try:
        names = [field.decode() for field in fields or []]
    except UnicodeDecodeError:
        names = []
    if not names or "" in names:
        raise SchemaMismatch(f"{path.name} needs a header line with a name for every column")
    both = clashing_names(names)
    if both is not None:
        raise SchemaMismatch(
            f"the header of {path.name} has {both[0]!r} and {both[1]!r}, which SQL cannot tell "
            "apart: rename one of them"
        )
    return names


def is_plain(path: Path, layout: LineFormat) -> bool:
    """Whether DuckDB, if it reads the file at all, reads it as the rules here do.

    It may not if lines end in different ways, or if there are spaces before a quote.
    """
    counted = [0, 0, 0]
    with _opened(path, layout) as file:
        last = b""
        while chunk := file.read(PIECE):
            seen = last + chunk
            if b' "' in seen:
                return False
            if b"\r" in seen or counted[0]:
                if last and not counted[0]:
                    return False  # earlier lines ended without \r
                counted[0] += chunk.count(b"\r")
                counted[1] += chunk.count(b"\n")
                counted[2] += seen.count(b"\r\n")
            last = chunk[-1:]
    return len(set(counted)) == 1


def write_mended(path: Path, layout: LineFormat, target: Path) -> Mended:
    """Rewrite the records of a file so that DuckDB reads all of them.

    A field that is not UTF-8, or is too long, is left empty, which means NULL.
    """
    delimiter = layout.delimiter.encode()
    longest = lost = 0
    with _whole(path, layout, target) as data, target.open("wb") as file:
        records = _records(data, delimiter)
        width = len(next(records) or [])
        for fields in records:
            while fields and len(fields) > width and not fields[-1]:
                del fields[-1]
            if fields == [b""] and width > 1:
                continue
            if fields is None or len(fields) != width:
                lost += 1
                continue
            line = delimiter.join(_written(field) for field in fields) + b"\n"
            longest = max(longest, len(line))
            file.write(line)
    return Mended(longest, lost)


def _written(field: bytes) -> bytes:
    try:
        if len(field) <= LONGEST:
            field.decode()
            return b'"' + field.replace(b'"', b'""') + b'"'
    except UnicodeDecodeError:
        pass
    return b'""'


def _records(data: Data, delimiter: bytes) -> Iterator[list[bytes] | None]:
    """The fields of each record; None for a line that breaks the rules."""
    plain = re.compile(rb"[^\r\n" + re.escape(delimiter) + rb"]*+")
    start = len(_BOM) if data[: len(_BOM)] == _BOM else 0
    while start < len(data):
        end, after = _line_end(data, start)
        line = data[start:end]
        if b'"' not in line:
            yield line.split(delimiter)
            start = after
            continue
        fields, start = _fields(data, start, delimiter, plain)
        yield fields


def _fields(
    data: Data, start: int, delimiter: bytes, plain: re.Pattern[bytes]
) -> tuple[list[bytes] | None, int]:
    """A record that may have quotes, and where the next one starts."""
    fields: list[bytes] = []
    while True:
        if _OPENING.match(data, start):
            found = _QUOTED.match(data, start)
            stop = found.end() if found else start
            if not found or data[stop : stop + 1] not in (delimiter, b"\r", b"\n", b""):
                return None, _line_end(data, start)[1]
            fields.append(found[1].replace(b'""', b'"'))
        else:
            found = plain.match(data, start)
            assert found is not None
            stop = found.end()
            fields.append(found[0])
        if data[stop : stop + 1] != delimiter:
            return fields, _line_end(data, stop)[1]
        start = stop + 1


def _line_end(data: Data, start: int) -> tuple[int, int]:
    """Where the line ends, and where the next one starts."""
    found = _END.search(data, start)
    return (found.start(), found.end()) if found else (len(data), len(data))


def _opened(path: Path, layout: LineFormat) -> gzip.GzipFile | BufferedReader:
    return gzip.open(path, "rb") if layout.compressed else path.open("rb")


@contextmanager
def _whole(path: Path, layout: LineFormat, beside: Path) -> Iterator[Data]:
    """The contents of the file; of a compressed file, those of an unpacked copy without a name."""
    if not layout.compressed:
        with path.open("rb") as file, _mapped(file) as data:
            yield data
        return
    copy = beside.with_name(beside.name + ".whole")
    with copy.open("w+b") as unpacked:
        copy.unlink()
        with gzip.open(path, "rb") as packed:
            shutil.copyfileobj(packed, unpacked)
        unpacked.flush()
        with _mapped(unpacked) as data:
            yield data


def _mapped(file: IOBase) -> mmap.mmap:
    return mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size, access=mmap.ACCESS_READ)
