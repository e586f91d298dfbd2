"""What a histogram will be like, said before it is paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

from tacit.analyst.histogram import CellNoise, NoisyHistogram, prefix_error, sum_error
from tacit.analyst.question_class import declared_size
from tacit.analyst.tabular import counted_rows
from tacit.numbers import Number, probability, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Printed

if TYPE_CHECKING:
    from tacit.analyst.alternatives import Alternative
    from tacit.tables.schema.schema import Column, Schema


@dataclass(frozen=True)
class HistogramPlan(CellNoise, Printed):
    """How far the counts will be off, and what else would tell them."""

    schema: Schema
    columns: tuple[Column, ...]
    privacy: Privacy
    max_rows: int
    people: int | None = None

    def __len__(self) -> int:
        return prod(declared_size(column) for column in self.columns)

    @property
    def cost(self) -> Cost:
        """(ε, 0), in one part."""
        return Cost.pure(self.privacy.epsilon)

    def prefix_error(self, beta: Number = "1/20") -> Fraction:
        """How far any sum of the first so many counts may be off, but with probability β for all.

        Of one column in the order of its values, these are all counts up to a value.
        """
        return Fraction(prefix_error(self.noise_scale, len(self), beta))

    def sums_error(self, questions: int, beta: Number = "1/20") -> Fraction:
        """How far sums of cells may be off, so many of them, but with probability β for all."""
        each = probability(beta, "beta") / whole(questions, "questions")
        return Fraction(sum_error(self.noise_scale, len(self), each))

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could answer the same, for the same ε, and how far off it would be."""
        from tacit.analyst.alternatives import Comparison

        others = Comparison(self.schema, self.privacy.epsilon, self.people, self.max_rows)
        return others.for_cells(self.columns, but="histogram")

    @property
    def for_ranges(self) -> tuple[Alternative, ...]:
        """The same for counts up to a value; nothing unless there is one column with an order."""
        from tacit.analyst.alternatives import Comparison

        if len(self.columns) != 1 or self.columns[0].type == "text":
            return ()
        others = Comparison(self.schema, self.privacy.epsilon, self.people, self.max_rows)
        return others.for_ranges(self.columns[0], but="histogram")

    def __str__(self) -> str:
        from tacit.analyst.alternatives import lines

        names = ", ".join(column.name for column in self.columns)
        counted = counted_rows(self.schema, self.max_rows, "at random")
        said = [
            f"Histogram of {names}, {spaced(Fraction(len(self)))} cells, {self.privacy}{counted}",
            f"  error     each count ± {spaced(self.error())}, all together "
            f"± {spaced(self.worst_error())} (95 %)",
        ]
        ranges = self.for_ranges
        if ranges:
            said.append(f"            every count up to a value ± {spaced(self.prefix_error())}")
        said += lines(ranges, self.prefix_error())
        return "\n".join([*said, *lines(self.alternatives, self.worst_error())])


def plan_histogram(
    schema: Schema,
    columns: Sequence[str],
    *,
    epsilon: Number,
    max_rows: int | None = None,
    people: int | None = None,
) -> HistogramPlan:
    """Refuse, at no cost, what cannot be drawn."""
    drawn = NoisyHistogram(schema, columns, epsilon=epsilon, max_rows=max_rows)
    return HistogramPlan(schema, drawn.columns, drawn.cost.privacy, drawn.max_rows, people)
