"""How a text file seems to be written: found from its bytes and values, once, for its steward.

Unlike everything that opens a table, this looks at the data.  What it finds is written into a
proposed schema, for the steward to check and declare.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.tables.schema.codes import Type
from tacit.tables.schema.declarations import quoted, text
from tacit.tables.schema.text_format import DAY_FIRST, ISO, MONTH_FIRST, TextFormat, decoded
from tacit.tables.sources import lines
from tacit.tables.sources.delimited import DelimitedSource
from tacit.tables.sources.normal_form import text_pattern

if TYPE_CHECKING:
    from tacit.tables.sources.source import Source

NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-", "--", "?", ".", "\\N")
"""Fields that often mean NULL."""

_LOOK = 2**16
_ROWS = 200
_DELIMITERS = (",", ";", "\t", "|")
_ALIKE = 0.5  # of the first rows have as many fields as the header
_KINDS: tuple[Type, ...] = ("boolean", "integer", "real", "date", "timestamp")


def file_format(source: Source) -> TextFormat:
    """The encoding and the delimiter of a file, and whether quoted fields go over line ends."""
    assert isinstance(source, DelimitedSource)
    path, layout = source.files[0], source.usual
    encoding = _encoding(path, layout)
    with lines.opened(path, layout) as file:
        start = b"".join(decoded(iter([file.read(_LOOK)]), encoding))
    found = _delimiter(start, layout.delimiter)
    source.written = TextFormat(encoding, None if found == layout.delimiter else found)
    copy, layout = source.in_own_encoding()
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
    written, listed = source.written, ", ".join(map(text, NULLS))
    forms = [replace(written, decimal=decimal) for decimal in (".", ",")]
    forms += [replace(written, dates=dates) for dates in (DAY_FIRST, MONTH_FIRST)]
    tests = [[text_pattern(kind, "v", form) for kind in _KINDS] for form in forms]
    columns = {name: f"trim({quoted(name)})" for name in source.columns}
    patterns = [test for row in tests for test in row]
    hold = holding(source, columns, patterns, f"v NOT IN ({listed}) AND v <> ''")
    chosen: dict[str, list[int]] = {"decimal": [0, 0], "dates": [0, 0, 0]}
    for fitting in hold.values():
        usual, comma, day, month = ([test in fitting for test in row] for row in tests)
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
    typed = {name: value for name, value in columns.items() if hold[name]}
    nulls = {null for _, null in by_column(source, typed, f"v IN ({listed})", "v")}
    return replace(
        written, decimal=decimal, nulls=tuple(null for null in NULLS if null in nulls), dates=dates
    )


def holding(
    source: Source, columns: Mapping[str, str], tests: Sequence[str], among: str
) -> dict[str, set[str]]:
    """For each column, the tests that all its values with ``among`` pass, if it has any.

    Columns are given with how their values ``v`` are read.  All are asked about in one query for
    each test: a query of a plain pattern is planned in the time that it takes to test thousands of
    values.  Most tests fail on the first rows already.
    """
    tests = sorted(set(tests))
    left = {name: set(tests) for name in columns}
    counts = ", ".join(f"count(({test}) OR NULL)" for test in tests)
    for name, present, *passed in by_column(
        source, columns, among, f"count(*), {counts}", f"LIMIT {_ROWS}"
    ):
        left[name] = {test for test, n in zip(tests, passed, strict=True) if n == present}
    for test in tests:
        asked = {name: value for name, value in columns.items() if test in left[name]}
        found = by_column(source, asked, among, f"count(*) = count(({test}) OR NULL)")
        all_pass = {name for name, passes in found if passes}
        for name in asked.keys() - all_pass:
            left[name].remove(test)
    return left


def by_column(
    source: Source, columns: Mapping[str, str], among: str, asked: str, rows: str = ""
) -> list[Any]:
    """What is asked of the values ``v`` of each of these columns, in one query."""
    if not columns:
        return []
    shown = ", ".join(f"{value} AS {quoted(name)}" for name, value in columns.items())
    return source.connection.execute(
        f"SELECT name, {asked} FROM (UNPIVOT (SELECT {shown} FROM source {rows}) "
        f"ON COLUMNS(*) INTO NAME name VALUE v) WHERE {among} GROUP BY ALL"
    ).fetchall()
