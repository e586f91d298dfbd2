"""How a text file seems to be written: found from its bytes and values, once, for its steward.

Unlike everything that opens a table, this looks at the data.  What it finds is written into a
proposed schema, for the steward to check and declare.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.tables import lines
from tacit.tables.codes import Type
from tacit.tables.declared import quoted, text
from tacit.tables.delimited import in_own_encoding
from tacit.tables.normal import text_pattern
from tacit.tables.text_format import DAY_FIRST, ISO, MONTH_FIRST, TextFormat, decoded

if TYPE_CHECKING:
    from tacit.tables.sources import Source

NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-", "--", "?", ".", "\\N")
"""Fields that often mean NULL."""

_LOOK = 2**16
_ROWS = 200
_DELIMITERS = (",", ";", "\t", "|")
_ALIKE = 0.5  # of the first rows have as many fields as the header
_KINDS: tuple[Type, ...] = ("boolean", "integer", "real", "date", "timestamp")


def file_format(source: Source, delimiter: str, *, compressed: bool) -> TextFormat:
    """The encoding and the delimiter of a file, and whether quoted fields go over line ends."""
    path = source.files[0]
    layout = lines.LineFormat(delimiter, compressed)
    encoding = _encoding(path, layout)
    with lines.opened(path, layout) as file:
        start = b"".join(decoded(iter([file.read(_LOOK)]), encoding))
    found = _delimiter(start, delimiter)
    source.written = TextFormat(encoding, None if found == delimiter else found)
    copy, layout = in_own_encoding(source, path, delimiter, compressed)
    over = not lines.is_plain(copy, replace(layout, quoted_newlines=False))
    over = over and lines.goes_over_lines(copy, layout, source.spill.path / "looked-at")
    return replace(source.written, quoted_newlines=over)


def _encoding(path: Path, layout: lines.LineFormat) -> str:
    with lines.opened(path, layout) as file:
        start = file.read(_LOOK)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        most = len(start) // 4  # of text in Latin letters, every other byte is zero
        if start[1::2].count(0) > most:
            return "utf-16-le"
        if start[::2].count(0) > most:
            return "utf-16-be"
        good, bad, high = _counted(start, iter(lambda: file.read(lines.PIECE), b""))
    if bad <= good:
        return "utf-8"
    return "cp1252" if high else "iso8859-1"


def _counted(start: bytes, more: Iterator[bytes]) -> tuple[int, int, bool]:
    """Lines beyond ASCII that are UTF-8, those that are not, and whether bytes 128 to 159 occur."""
    good = bad = 0
    high, rest = False, start
    while rest:
        chunk = next(more, b"")
        whole, cut, tail = (rest + chunk).rpartition(b"\n") if chunk else (rest, b"", b"")
        if not whole.isascii():
            for line in whole.split(b"\n"):
                if not line.isascii():
                    is_good = _is_utf8(line)
                    good, bad = good + is_good, bad + (not is_good)
                    high = high or any(128 <= byte < 160 for byte in line)
        rest = tail if cut or not chunk else rest + chunk
    return good, bad, high


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(start: bytes, usual: str) -> str:
    """The one by which the header has most names, and most of the first rows as many fields."""
    best, most = usual, 1
    for each in (usual, *_DELIMITERS):
        first = islice(lines.records(start, lines.LineFormat(each, False)), _ROWS)
        widths = [len(fields) for fields, *_ in first]
        alike = sum(width == widths[0] for width in widths[1:])
        if widths and widths[0] > most and alike >= _ALIKE * (len(widths) - 1):
            best, most = each, widths[0]
    return best


# From the values


def value_format(source: Source) -> TextFormat:
    """How the values of a text file are written: decimal commas, NULLs, and the order of dates."""
    written = source.written
    names = list(source.columns)
    nulls: set[str] = set()
    forms = [replace(written, decimal=decimal) for decimal in (".", ",")]
    forms += [replace(written, dates=dates) for dates in (DAY_FIRST, MONTH_FIRST)]
    chosen: dict[str, list[int]] = {"decimal": [0, 0], "dates": [0, 0, 0]}
    for name in names:
        fits, occurring = _fitting(source, name, forms)
        if any(any(row) for row in fits):
            nulls |= set(occurring)
        usual, comma, day, month = fits
        chosen["decimal"][0] += usual[2] and not usual[1]
        chosen["decimal"][1] += comma[2] and not usual[2]
        chosen["dates"][0] += usual[3] or usual[4]
        chosen["dates"][1] += (day[3] or day[4]) and not (usual[3] or usual[4])
        chosen["dates"][2] += (month[3] or month[4]) and not (usual[3] or usual[4])
    decimal = "," if chosen["decimal"][1] > chosen["decimal"][0] else "."
    _, day_first, month_first = chosen["dates"]
    dates = ISO
    if max(day_first, month_first):
        dates = DAY_FIRST if day_first >= month_first else MONTH_FIRST
    listed = tuple(each for each in NULLS if each in nulls)
    return replace(written, decimal=decimal, nulls=listed, dates=dates)


def _fitting(
    source: Source, name: str, forms: Sequence[TextFormat]
) -> tuple[list[list[bool]], list[str]]:
    """Which types all values of a column have in each form, and which NULLs occur among them."""
    value = f"trim({quoted(name)})"
    listed = ", ".join(map(text, NULLS))
    tests = [
        f"count_if({text_pattern(kind, value, form)} AND {value} NOT IN ({listed}))"
        for form in forms
        for kind in _KINDS
    ]
    run = source.connection.execute
    row = run(
        f"SELECT count_if({value} NOT IN ({listed}) AND {value} <> ''), {', '.join(tests)} "
        "FROM source"
    ).fetchone()
    present, *counts = row or (0,)
    fits = [
        [bool(present) and count == present for count in counts[at : at + len(_KINDS)]]
        for at in range(0, len(counts), len(_KINDS))
    ]
    occurring = run(f"SELECT DISTINCT {value} FROM source WHERE {value} IN ({listed})").fetchall()
    return fits, [each for (each,) in occurring]
