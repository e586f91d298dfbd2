"""Text files (CSV, TSV): as their schema says they are written, shown to DuckDB.

A file that is not in UTF-8 is read from a copy that is.  One in which DuckDB finds something that
it refuses is read from a copy that was rewritten by the rules of ``lines``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.tables import lines
from tacit.tables.declared import AS_IT_IS, exact_path, text
from tacit.tables.text_format import AS_USUAL, format_lines, in_utf8

if TYPE_CHECKING:
    from tacit.tables.sources import Source


def show(opened: Source, path: Path, delimiter: str, *, compressed: bool) -> None:
    """Make the view show the fields of a file as text."""
    written = opened.written
    if written != AS_USUAL:  # shards of another reading do not count
        opened.read_as = " ".join([opened.read_as, *format_lines(written)])
    file, layout = in_own_encoding(opened, path, delimiter, compressed)
    names = lines.header(file, layout, path.name)
    opened.columns = dict.fromkeys(names, "VARCHAR")

    def mend(source: Source, line: str | None = None) -> lines.Mended:
        return show_mended(source, file, layout, names, line)

    opened.numbered = mend
    in_lines = lines.is_plain(file, replace(layout, quoted_newlines=False))
    if in_lines or (layout.quoted_newlines and lines.is_plain(file, layout)):
        opened.mending = mend
        opened.show(_rows(str(file.absolute()), layout, names, "header = true", in_lines))
    else:
        mend(opened)


def in_own_encoding(
    opened: Source, path: Path, delimiter: str, compressed: bool
) -> tuple[Path, lines.LineFormat]:
    """The file, or a copy of it in UTF-8, and how that is written."""
    written = opened.written
    delimiter = delimiter if written.delimiter is None else written.delimiter
    if not in_utf8(written):
        copy = opened.spill.path / "decoded.csv"
        lines.write_decoded(path, compressed, written.encoding, copy)
        path, compressed = Path(opened.spill.hidden(copy)), False
    return path, lines.LineFormat(delimiter, compressed, written.quoted_newlines)


def show_mended(
    source: Source, file: Path, layout: lines.LineFormat, names: list[str], line: str | None
) -> lines.Mended:
    """Make the view show the records of a rewritten copy, with a column of their lines if named."""
    copy = source.spill.path / "mended.csv"
    made = lines.write_mended(file, layout, copy, numbered=line is not None)
    longest = max(2 * made.longest, 2**21)
    shown, plain = source.spill.hidden(copy), lines.LineFormat(layout.delimiter, False)
    more = f"header = false, new_line = '\\n', max_line_size = {longest}"
    names = names if line is None else [line, *names]
    source.show(_rows(shown, plain, names, more, not made.spans_lines))
    return made


def _rows(
    shown: str, layout: lines.LineFormat, names: list[str], more: str, records_are_lines: bool
) -> str:
    """A file as DuckDB reads it.

    Its threads guess whether the piece that they begin with is in quotes.  Where a field goes over
    lines they may guess wrong, and then the file cannot be read.  A single one leaves out a field
    at the end that is not closed, so all fields must be.
    """
    declared = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({exact_path(shown)}, columns = {{{declared}}}, "
        f"delim = {text(layout.delimiter)}, quote = '\"', escape = '\"', "
        "auto_detect = false, strict_mode = true, nullstr = '', "
        f"compression = '{'gzip' if layout.compressed else 'none'}', {AS_IT_IS}, "
        f"parallel = {'true' if records_are_lines else 'false'}, {more})"
    )
