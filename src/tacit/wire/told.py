"""Released numbers for people: what each is, and between what the true one lies, with 95 %.

All of it follows from what was released, so no file keeps it, and readers work it out again.  Where
there is no such interval, the object says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.analyst.query_columns import QuantileColumn
from tacit.numbers import plain
from tacit.wire.forms import Json

if TYPE_CHECKING:
    from tacit.analyst.histogram import Histogram
    from tacit.analyst.query_columns import AnyColumn
    from tacit.analyst.query_result import QueryResult
    from tacit.analyst.ranges import Ranges
    from tacit.analyst.top import Top

Intervals = Iterable[tuple[Fraction, Fraction]]


def of_query(result: QueryResult) -> Json:
    """Each column by its name, cell by cell."""
    return {column.name: _of_column(column) for column in result.columns}


def of_histogram(histogram: Histogram) -> Json:
    """Each count within its own error."""
    return _numbers(histogram.counts.tolist(), histogram.intervals())


def of_ranges(ranges: Ranges) -> Json:
    """The counts up to each value, all within their intervals together."""
    (_, values), (_, counts), *_ = ranges.to_dict().items()
    told = _numbers(counts, ranges.intervals())
    return {"up to": [_value(value) for value in values], **told}


def of_top(top: Top) -> Json:
    """The counts, if they were paid for."""
    if top.counts is None:
        return {"value": None, "lower": None, "upper": None, "why": "counts were not asked for"}
    return _numbers([each.value for each in top.counts], (each.interval() for each in top.counts))


def _of_column(column: AnyColumn) -> Json:
    if isinstance(column, QuantileColumn):
        return {
            "value": [_value(value) for value in column.values],
            "lower": None,
            "upper": None,
            "why": column.why_no_intervals,
            "rank_error": [plain(error) for error in column.errors()],
        }
    return _numbers(column.values, column.intervals())


def _numbers(values: Iterable[Fraction | int], intervals: Intervals) -> Json:
    ends = list(intervals)
    return {
        "value": [plain(Fraction(value)) for value in values],
        "lower": [plain(low) for low, _ in ends],
        "upper": [plain(high) for _, high in ends],
    }


def _value(value: Any) -> Any:
    """One of a column's own values; days and moments as text."""
    if isinstance(value, date):
        return value.isoformat()
    return plain(value) if isinstance(value, Fraction) else value
