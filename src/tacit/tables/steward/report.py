"""What of a table does not fit its schema: for its steward, who alone may see it.

Opening a table never says this, since whether a value fits is a fact about somebody's row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tacit.failures import passed_on
from tacit.numbers import decimal
from tacit.tables.opening import check_kinds
from tacit.tables.schema.declarations import folded, quoted
from tacit.tables.schema.schema import EACH_ROW, Column, Schema
from tacit.tables.schema.text_format import ISO, TextFormat, format_lines
from tacit.tables.sources.declaring import Declaring
from tacit.tables.sources.kinds import open_source
from tacit.tables.sources.lines import FEW_LINES, Fault, Mended
from tacit.tables.sources.normal_form import check_columns, raw_names, values_with_lines
from tacit.tables.sources.source import Source
from tacit.tables.sources.spill import byte_limit


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """How the values of a column fit what is declared about it."""

    name: str
    declared: str
    values: int
    """Those that are not NULL in the source."""
    unfit: Fault
    """Those that are read as NULL."""
    outside: Fault
    """Those that are moved to the nearest bound."""


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """What a table holds that its schema does not foresee.  Privacy: for its steward alone."""

    name: str
    written: TextFormat
    lines: Mended | None
    """Of a text file: its records, and those that are not as its header says."""
    columns: tuple[ColumnReport, ...]

    @property
    def fits(self) -> bool:
        """Whether nothing was found."""
        faults = [fault for each in self.columns for fault in (each.unfit, each.outside)]
        return not any(fault.count for fault in [*faults, *map(_fault, self._of_lines())])

    def _of_lines(self) -> Iterator[tuple[str, Fault]]:
        if self.lines is not None:
            yield "with too few fields, of which the others are NULL", self.lines.short
            yield "with too many fields, which are ignored", self.lines.surplus
            yield "with a quote that is not closed and stands for itself", self.lines.broken

    def __str__(self) -> str:
        where = "lines" if self.lines is not None else "rows"
        shown = [f"{self.name}: for its steward only"]
        shown += [f"  {each}" for each in format_lines(self.written)]
        if self.lines is not None:
            shown.append(f"  rows: {self.lines.records}")
        shown += [f"  {what}: {fault.count}{_at(fault, where)}" for what, fault in self._of_lines()]
        for each in self.columns:
            unfit, outside = each.unfit, each.outside
            shown.append(f"{each.name}: {each.declared}")
            shown.append(f"  values: {each.values}")
            shown.append(f"  that do not fit and are NULL: {unfit.count}{_at(unfit, where)}")
            moved = f"  outside of the bounds, moved there: {outside.count}{_at(outside, where)}"
            shown += [moved] if outside.count else []
        shown += ["everything fits"] if self.fits else []
        return "\n".join(shown) + "\n"


def _fault(named: tuple[str, Fault]) -> Fault:
    return named[1]


def _at(fault: Fault, where: str) -> str:
    """The first lines, in words."""
    if not fault.count:
        return ""
    listed = ", ".join(map(str, fault.lines))
    more = ", ..." if fault.count > len(fault.lines) else ""
    return f" ({where[:-1] if fault.count == 1 else where} {listed}{more})"


def report_schema(
    source: object, *, schema: Schema | str | Path | None = None, table: str | None = None
) -> SchemaReport:
    """What of a source does not fit its schema, column by column, with the first lines.

    ``schema`` is as for ``tacit.open``; by default it lies beside the data.

    Privacy: this shows statistics of the data.  It is not for analysts.
    """
    check_kinds(schema=schema, table=table)
    declaring = Declaring(schema, None, EACH_ROW)
    limit, how = byte_limit(None), declaring.written
    opened = open_source(source, table=table, memory_limit=limit, written=how, guard=passed_on)
    try:
        return _reported(opened, declaring.schema(opened))
    finally:
        opened.close()


@passed_on("looking at the data")
def _reported(source: Source, schema: Schema) -> SchemaReport:
    check_columns(source, schema)
    source.fetch(raw_names(source, schema.columns))
    return source.reading(lambda: _looked_at(source, schema))


def _looked_at(source: Source, schema: Schema) -> SchemaReport:
    places = {folded(name): place for place, name in enumerate(source.columns)}
    name = "line"
    while folded(name) in places:
        name += "_"
    mended = source.with_lines(name)
    line = "row_number() OVER ()" if mended is None else f"CAST({quoted(name)} AS BIGINT)"
    columns = []
    for column in schema.columns:
        report = _column(source, column, line)
        if mended is not None:  # what could not be decoded was left empty
            _join(report.unfit, mended.unreadable.get(places[folded(column.name)]))
        columns.append(report)
    return SchemaReport(schema.name, source.written, mended, tuple(columns))


def _join(fault: Fault, other: Fault | None) -> None:
    if other is not None:
        fault.count += other.count
        fault.lines = sorted(fault.lines + other.lines)[:FEW_LINES]


def _column(source: Source, column: Column, line: str) -> ColumnReport:
    free = Column(column.name, column.type, column.grid, zone=column.zone, times=column.times)
    low, high = column.range
    outside = "false" if column.bounds is None else f"there AND value NOT BETWEEN {low} AND {high}"
    asked = ", ".join(
        f"coalesce(count_if({which}), 0), coalesce(min(line, {FEW_LINES}) FILTER ({which}), [])"
        for which in ("there", "there AND value IS NULL", outside)
    )
    query = f"SELECT {asked} FROM ({values_with_lines(source, free, line)})"
    ((values, _, *faults),) = source.connection.execute(query).fetchall()
    return ColumnReport(
        column.name,
        _in_words(column, source.written),
        int(values),
        Fault(*faults[:2]),
        Fault(*faults[2:]),
    )


def _in_words(column: Column, written: TextFormat) -> str:
    """The declared type and format of a column."""
    words: list[str] = [column.type]
    if column.grid is not None:
        words.append(f"on a grid of {decimal(column.grid)}")
    if column.type in ("integer", "real") and written.decimal != ".":
        words.append("with decimal commas")
    if column.type in ("date", "timestamp") and written.dates != ISO:
        words.append(written.dates)
    if column.zone is not None:
        words.append(f"in {column.zone}")
    if column.bounds is not None:
        low, high = map(column.literal, column.bounds)
        words.append(f"from {low} to {high}")
    return ", ".join(words)
