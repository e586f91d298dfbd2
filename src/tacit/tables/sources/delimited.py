"""Text files (CSV, TSV): as their schema says they are written, shown to DuckDB.

A file that is not in UTF-8 is read from a copy that is.  One in which DuckDB finds something that
it refuses is read from a copy that was rewritten by the rules of ``lines``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import duckdb

from tacit.tables.schema.declarations import AS_IT_IS, exact_path, text
from tacit.tables.schema.text_format import AS_USUAL, TextFormat, format_lines, in_utf8
from tacit.tables.sources import lines
from tacit.tables.sources.source import FileSource, Source

_R = TypeVar("_R")

_DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}


class DelimitedSource(FileSource):
    """A text file, whose fields are shown as text."""

    called = "a CSV or TSV file"
    endings = tuple(_DELIMITERS)
    typed = False
    _layout: lines.LineFormat
    _is_mended: bool

    def show_file(self, path: Path, table: str | None) -> None:
        """What it holds follows from how it is written."""
        self._file = path

    @property
    def usual(self) -> lines.LineFormat:
        """How a file with this ending is written, as long as nothing else is declared."""
        return lines.LineFormat(_DELIMITERS[self.read_as], self.read_as.endswith(".gz"))

    def describe(self, how: Callable[[Source], TextFormat]) -> None:
        """Show the fields of the file, as its schema says it is written."""
        self.written = how(self)
        called = self._file.name
        self._file, self._layout = self.in_own_encoding()
        if self.written != AS_USUAL:  # shards of another reading do not count
            self.read_as = " ".join([self.read_as, *format_lines(self.written)])
        names = lines.header(self._file, self._layout, called)
        self.columns = dict.fromkeys(names, "VARCHAR")
        in_lines = lines.is_plain(self._file, replace(self._layout, quoted_newlines=False))
        over_lines = self._layout.quoted_newlines and lines.is_plain(self._file, self._layout)
        self._is_mended = not (in_lines or over_lines)
        if self._is_mended:
            self._show_mended(None)
        else:
            file = str(self._file.absolute())
            self.show_rows(_rows(file, self._layout, names, "header = true", in_lines))

    def in_own_encoding(self) -> tuple[Path, lines.LineFormat]:
        """The file, or a copy of it in UTF-8, and how that is written."""
        written, path, usual = self.written, self._file, self.usual
        delimiter, compressed = written.delimiter or usual.delimiter, usual.compressed
        if not in_utf8(written):
            copy = self.spill.path / "decoded.csv"
            lines.write_decoded(path, compressed, written.encoding, copy)
            path, compressed = Path(self.spill.hidden(copy)), False
        return path, lines.LineFormat(delimiter, compressed, written.quoted_newlines)

    def reading(self, read: Callable[[], _R]) -> _R:
        """Read the rows; if DuckDB refuses the file, from a rewritten copy.

        Every field means the same in both, so what a line holds decides only how long this takes.
        """
        try:
            return read()
        except duckdb.Error:
            if self._is_mended:
                raise
        self._show_mended(None)
        self._is_mended = True
        return read()

    def with_lines(self, line: str) -> lines.Mended:
        """Show the records of a rewritten copy, with a column of their lines."""
        return self._show_mended(line)

    def keep_parsed(self) -> None:
        """Parse the file once, for a steward, who asks many questions of it."""
        run = self.connection.execute
        run("CREATE TABLE parsed AS SELECT * FROM source")
        run("DROP VIEW source; ALTER TABLE parsed RENAME TO source")

    def _show_mended(self, line: str | None) -> lines.Mended:
        copy = self.spill.path / "mended.csv"
        made = lines.write_mended(self._file, self._layout, copy, numbered=line is not None)
        longest = max(2 * made.longest, 2**21)
        shown, plain = self.spill.hidden(copy), lines.LineFormat(self._layout.delimiter, False)
        more = f"header = false, new_line = '\\n', max_line_size = {longest}"
        names = list(self.columns) if line is None else [line, *self.columns]
        self.show_rows(_rows(shown, plain, names, more, not made.spans_lines))
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
