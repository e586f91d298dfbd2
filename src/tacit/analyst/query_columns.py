"""The columns of a query's result: each is measured, computed, drawn, or told by a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from tacit.analyst.query_derived import (
    Derived,
    MeanColumn,
    RatioColumn,
    ShareColumn,
    SpreadColumn,
)
from tacit.analyst.query_measured import Interval, QueryColumn, name_of, rows_of, steps_of
from tacit.analyst.query_quantiles import QuantileTree
from tacit.analyst.tabular import plain_value
from tacit.book.answer import Answer
from tacit.book.coins import WIDEST_NOISE
from tacit.book.quantile import QuantileMechanism
from tacit.numbers import Number, exact, positive, spaced
from tacit.tables.schema.codes import NUMBERS
from tacit.tables.schema.schema import Column, Schema

__all__ = [
    "AnyColumn",
    "Interval",
    "MeanColumn",
    "QuantileColumn",
    "QueryColumn",
    "RatioColumn",
    "ShareColumn",
    "SpreadColumn",
    "StreamColumn",
    "column_from_json",
    "lengths_of",
]


@dataclass(frozen=True, slots=True)
class QuantileColumn:
    """A quantile of a column in every cell: one of its declared values.

    How far each is off is known in ranks, and not in values: so many values may lie between it and
    the true quantile.
    """

    name: str
    column: Column
    mechanism: QuantileMechanism | QuantileTree
    codes: tuple[int, ...]
    max_rows: int | None = None

    why_no_intervals: ClassVar[str] = (
        "how many values may lie between it and the true one is known, and not where those lie"
    )

    @property
    def values(self) -> list[Any]:
        """What was drawn, cell by cell: numbers, exactly, or dates."""
        if self.column.type in NUMBERS:
            return [code * self.column.step for code in self.codes]
        return [plain_value(self.column, code) for code in self.codes]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """By how many ranks each may be off by itself, except with probability β."""
        return [Fraction(self.mechanism.error(beta))] * len(self.codes)

    @property
    def said(self) -> str:
        """What stands in the place of the least or the greatest value, in words."""
        kind = {-1: "least", 0: "", 1: "greatest"}[self.mechanism.end]
        if not kind or isinstance(self.mechanism, QuantileTree):
            return ""
        rank = self.mechanism.rank
        return f"; {self.name}: the {spaced(Fraction(rank))}th {kind} value, not the {kind}"

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        return {
            "name": self.name,
            "quantile of": self.column.name,
            "share": str(self.mechanism.share),
            "end": self.mechanism.end,
            "epsilon": str(self.mechanism.epsilon),
            "max_rows": self.max_rows,
            "codes": list(self.codes),
            **({"tree": True} if isinstance(self.mechanism, QuantileTree) else {}),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], schema: Schema) -> QuantileColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        column, codes = schema.column(fields["quantile of"]), steps_of(fields, "codes")
        if column.domain is None or not all(code in column.domain for code in codes):
            raise ValueError
        rows = rows_of(fields)
        if "tree" in fields:
            size, paid = column.domain_size or 0, positive(fields["epsilon"], "epsilon")
            tree = QuantileTree(exact(fields["share"], "share"), size, paid, rows or 1)
            return cls(name_of(fields), column, tree, codes, rows)
        drawn = QuantileMechanism(
            fields["share"],
            column.domain_size or 0,
            epsilon=fields["epsilon"],
            max_rows=rows or 1,
            end=fields["end"],
        )
        return cls(name_of(fields), column, drawn, codes, rows)


@dataclass(frozen=True, slots=True)
class StreamColumn:
    """What HAVING compares, in the cells that are told: the value that came with each ⊤.

    ``like`` is a ⊤ with the value 0, which says how far the values may be off.  Those from the gap
    have an interval that is not symmetric, and are too high where the true value is below the
    threshold and was told all the same.
    """

    name: str
    like: Answer
    steps: tuple[int, ...]
    max_rows: int | None = None

    @property
    def values(self) -> list[Fraction]:
        """The noisy values, cell by cell, without what makes a ⊤ from the gap biased."""
        return [each.unbiased or Fraction(0) for each in self._answers]

    def errors(self, beta: Number = "1/20") -> list[Fraction]:
        """How far each of the values may be off by itself, except with probability β."""
        return [self.like.unbiased_error(beta)] * len(self.steps)

    @property
    def _answers(self) -> list[Answer]:
        return [replace(self.like, value=steps * self.like.grid) for steps in self.steps]

    def intervals(self, beta: Number = "1/20") -> list[Interval]:
        """In which interval each lies: of every cell asked, told or not, it misses with β."""
        found = [each.interval(beta) for each in self._answers]
        return [each for each in found if each is not None]

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON."""
        rows = {"max_rows": self.max_rows}
        return {"name": self.name, "told by": self.like.as_json(), "steps": list(self.steps)} | rows

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> StreamColumn:
        """The inverse of `as_json`; other JSON raises one of many kinds of errors."""
        like = Answer.from_json(fields["told by"])
        if not like.above or like.value != 0 or like.value_from is None or like.grid <= 0:
            raise ValueError
        gap = like.gap_noise
        scales = [like.noise_scale] if gap is None else [gap.question_scale, gap.threshold_scale]
        if any(scale is not None and scale > WIDEST_NOISE for scale in scales):
            raise ValueError  # its error would take long to find
        return cls(name_of(fields), like, steps_of(fields), rows_of(fields))


AnyColumn = (
    QueryColumn
    | MeanColumn
    | ShareColumn
    | RatioColumn
    | SpreadColumn
    | QuantileColumn
    | StreamColumn
)

_DERIVED: tuple[type[MeanColumn | ShareColumn | RatioColumn | SpreadColumn], ...] = (
    MeanColumn,
    ShareColumn,
    RatioColumn,
    SpreadColumn,
)


def column_from_json(fields: Mapping[str, Any], schema: Schema) -> AnyColumn:
    """A column as its own `as_json` wrote it; other JSON raises one of many kinds of errors."""
    if "quantile of" in fields:
        return QuantileColumn.from_json(fields, schema)
    if "told by" in fields:
        return StreamColumn.from_json(fields)
    for kind in _DERIVED:
        if kind.tag in fields:
            return kind.from_json(fields)
    return QueryColumn.from_json(fields)


def lengths_of(column: AnyColumn) -> set[int]:
    """How many cells what was measured or drawn for a column has; one number, if all is well."""
    if isinstance(column, QuantileColumn):
        return {len(column.codes)}
    parts = column.measured if isinstance(column, Derived) else (column,)
    return {len(part.steps) for part in parts}
