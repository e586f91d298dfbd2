"""Delimited text (CSV, TSV) read by fixed rules: whatever stands in a line, every file can be read.

A record is a line of fields.  A field that begins with a quote ends at its closing quote, which may
be on a later line unless the format says otherwise; a doubled quote stands for one quote, and
spaces around the quotes are ignored.  After it comes a delimiter or the end of the line.  Every
other field ends at the next delimiter or line end, and quotes in it stand for themselves.  So does
a quote at the beginning of a field that is not closed like this: the field is read as if it had
none.  Empty lines are skipped, unless there is only one column.  Fields that are missing at the end
of a record are empty, and those after the last column are ignored.

If a line end always ends a record (``quoted_newlines = false``), no line affects another one.
Otherwise a quote that is not closed may reach to a quote in a later line.

DuckDB reads files that keep the rules in the same way, and faster.  It refuses other files, which
are read and rewritten here.
"""

from __future__ import annotations

import gzip
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, IOBase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import SchemaMismatch
from tacit.tables.schema.declarations import clashing_names
from tacit.tables.schema.text_format import decoded

LONGEST_FIELD = 2**20
"""Bytes.  Longer text is NULL, whatever source it is in."""

PIECE = 2**24
"""Bytes that are checked at once."""

FEW_LINES = 5
"""Of what does not fit, so many lines are told to the steward."""

_END = re.compile(rb"\r\n|\n|\r")
_OPENING = re.compile(rb' *+"')
_QUOTED = re.compile(rb' *+"([^"]*+(?:""[^"]*+)*+)" *+')
_BOM = b"\xef\xbb\xbf"

Data = mmap.mmap | bytes


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a file of UTF-8 is written."""

    delimiter: str
    compressed: bool
    quoted_newlines: bool = True


@dataclass(slots=True)
class Fault:
    """How often something did not fit, and the first lines where."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def at(self, line: int) -> None:
        """Note one more."""
        self.count += 1
        if len(self.lines) < FEW_LINES:
            self.lines.append(line)


@dataclass(slots=True)
class Mended:
    """What is known about a file that was rewritten.  Privacy: for its steward alone."""

    longest: int = 0  # the bytes of its longest line
    records: int = 0
    spans_lines: bool = False  # whether any of them goes over several lines
    short: Fault = field(default_factory=Fault)
    surplus: Fault = field(default_factory=Fault)
    broken: Fault = field(default_factory=Fault)
    unreadable: dict[int, Fault] = field(default_factory=dict)  # by the place of the column


def header(path: Path, layout: LineFormat, called: str) -> list[str]:
    """The names in the first line, which are public."""
    with opened(path, layout) as file:
        start = file.read(PIECE)
    fields, _, _, broken = next(records(start, layout), ([], 1, 1, False))
    try:
        names = [] if broken else [field.decode() for field in fields]
    except UnicodeDecodeError:
        names = []
    if not names or "" in names:
        why = f"{called} needs a header line with a name for every column"
        if names[:1] == [""] and "" not in names[1:]:
            why += ": the first has none, as pandas writes an index; write to_csv(..., index=False)"
        raise SchemaMismatch(why)
    both = clashing_names(names)
    if both is not None:
        raise SchemaMismatch(
            f"the header of {called} has {both[0]!r} and {both[1]!r}, which SQL cannot tell "
            "apart: rename one of them, or put a line of names above it if it is a row"
        )
    return names


def write_decoded(path: Path, compressed: bool, encoding: str, target: Path) -> None:
    """Write a copy of a file in UTF-8."""
    with opened(path, LineFormat(",", compressed)) as file, target.open("wb") as copy:
        for piece in decoded(iter(lambda: file.read(PIECE), b""), encoding):
            copy.write(piece)


# Whether DuckDB may read a file


def is_plain(path: Path, layout: LineFormat) -> bool:
    """Whether DuckDB, if it reads the file at all, reads it as the rules here do.

    It may not if lines end in different ways, if there are spaces before a quote, or if quotes do
    not come in pairs, each around a whole field or doubled in one; and within a line, if they may
    not reach beyond it.
    """
    counted, quotes = [0, 0, 0], 0
    delimiter = ord(layout.delimiter)
    with opened(path, layout) as file:
        last, rest = b"", b""
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
            rest += chunk if last else chunk.removeprefix(_BOM)
            cut = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
            if not _are_around_fields(rest[:cut], delimiter, layout.quoted_newlines, quotes):
                return False
            quotes += rest.count(b'"', 0, cut)
            rest = rest[cut:]
            last = chunk[-1:]
    closed = (quotes + rest.count(b'"')) % 2 == 0
    closed = closed and _are_around_fields(rest, delimiter, layout.quoted_newlines, quotes)
    return closed and len(set(counted)) == 1


def _are_around_fields(text: bytes, delimiter: int, over_lines: bool, before: int) -> bool:
    """Whether the quotes in these lines open and close fields in turn, or are doubled in one.

    ``before`` is how many come before them.  If they may not go ``over_lines``, as many open as
    close in each.
    """
    if b'"' not in text:
        return True
    data = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    place = np.arange(before, before + len(quotes))
    if not over_lines:
        line = np.searchsorted(np.flatnonzero((data == 10) | (data == 13)), quotes)
        if (np.bincount(line) % 2).any():
            return False
        place -= place[np.searchsorted(line, line)]
    opens = place % 2 == 0
    apart = np.zeros(256, np.bool_)
    apart[[10, 13, delimiter, ord('"')]] = True
    ahead: NDArray[np.bool_] = apart[data[quotes[opens] - 1]]
    after: NDArray[np.bool_] = apart[data[quotes[~opens] + 1]]
    return bool(ahead.all() and after.all())


def goes_over_lines(path: Path, layout: LineFormat, beside: Path) -> bool:
    """Whether a record goes over several lines, if quoted fields may."""
    with _whole(path, layout, beside) as data:
        return any(lines > 1 for _, _, lines, _ in records(data, layout))


# Reading and rewriting


def write_mended(path: Path, layout: LineFormat, target: Path, *, numbered: bool = False) -> Mended:
    """Rewrite the records of a file so that DuckDB reads all of them.

    A field that is not UTF-8, or is too long, is left empty, which means NULL.  If they are to be
    ``numbered``, each record begins with the number of its line.
    """
    delimiter, found = layout.delimiter.encode(), Mended()
    with _whole(path, layout, target) as data, target.open("wb") as file:
        rows = records(data, layout)
        width = len(next(rows)[0])
        for fields, number, spanned, broken in rows:
            if fields == [b""] and width > 1:
                continue
            if broken:
                found.broken.at(number)
            if len(fields) != width:
                _note_width(found, fields, width, number)
            written = [_written(each) for each in fields[:width]]
            if None in written:
                for place, each in enumerate(written):
                    if each is None:
                        found.unreadable.setdefault(place, Fault()).at(number)
            written += [None] * (width - len(fields))
            start = [b"%d" % number] if numbered else []
            line = delimiter.join(start + [each or b'""' for each in written]) + b"\n"
            found.longest = max(found.longest, len(line))
            found.records += 1
            found.spans_lines |= spanned > 1
            file.write(line)
    return found


def _note_width(found: Mended, fields: list[bytes], width: int, number: int) -> None:
    if len(fields) < width:
        found.short.at(number)
    elif any(fields[width:]):  # empty ones are no matter
        found.surplus.at(number)


def _written(value: bytes) -> bytes | None:
    """A field in quotes; None if it is not UTF-8, or too long."""
    try:
        if len(value) <= LONGEST_FIELD:
            value.decode()
            return b'"' + value.replace(b'"', b'""') + b'"'
    except UnicodeDecodeError:
        pass
    return None


Record = tuple[list[bytes], int, int, bool]
"""Its fields, the number of its first line, how many it has, whether a quote is not closed."""


def records(data: Data, layout: LineFormat) -> Iterator[Record]:
    """The records of a file, with its header."""
    delimiter = layout.delimiter.encode()
    plain = re.compile(rb"[^\r\n" + re.escape(delimiter) + rb"]*+")
    start, number = len(_BOM) if data[: len(_BOM)] == _BOM else 0, 1
    while start < len(data):
        end, after = _line_end(data, start)
        line, lines, broken = data[start:end], 1, False
        if b'"' not in line:
            fields = line.split(delimiter)
        else:
            reach = len(data) if layout.quoted_newlines else end
            fields, stop, broken = _fields(data, start, reach, delimiter, plain)
            if stop > end:
                after = _line_end(data, stop)[1]
                lines = len(_END.findall(data, start, stop)) + 1
        yield fields, number, lines, broken
        start, number = after, number + lines


def _fields(
    data: Data, start: int, reach: int, delimiter: bytes, plain: re.Pattern[bytes]
) -> tuple[list[bytes], int, bool]:
    """A record that may have quotes, where it ends, and whether one of them is not closed."""
    fields: list[bytes] = []
    broken = False
    while True:
        found = None
        if _OPENING.match(data, start, reach):
            found = _QUOTED.match(data, start, reach)
            if found and data[found.end() : found.end() + 1] not in (delimiter, b"\r", b"\n", b""):
                found = None
            broken |= found is None
        if found is not None:
            fields.append(found[1].replace(b'""', b'"'))
        else:
            found = plain.match(data, start)
            assert found is not None
            fields.append(found[0])
        if data[found.end() : found.end() + 1] != delimiter:
            return fields, found.end(), broken
        start = found.end() + 1


def _line_end(data: Data, start: int) -> tuple[int, int]:
    """Where the line ends, and where the next one starts."""
    found = _END.search(data, start)
    return (found.start(), found.end()) if found else (len(data), len(data))


def opened(path: Path, layout: LineFormat) -> gzip.GzipFile | BufferedReader:
    """The bytes of a file, unpacked."""
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
