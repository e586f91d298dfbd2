"""Reading MEDIAN, PERCENTILE_CONT and _DISC, QUANTILE, MIN and MAX in a SELECT."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.tables.language.aggregate_kinds import Ranked, question_of
from tacit.tables.language.aggregates import AggregateReader
from tacit.tables.language.parsing import refused
from tacit.tables.language.tree import IsNull, Not, Predicate, Question, all_of
from tacit.tables.schema.codes import NUMBERS

_QUANTILES = (exp.Quantile, exp.ApproxQuantile)
_PERCENTILES = (exp.PercentileCont, exp.PercentileDisc)
_EXAMPLE = "write QUANTILE(cost, 0.9), with a share between 0 and 1"


class QuantileReader:
    """Reads quantiles of columns whose values are declared."""

    def __init__(self, aggregates: AggregateReader) -> None:
        self._aggregates = aggregates
        self._predicates = aggregates.predicates

    def read(self, node: exp.Expr, where: Predicate) -> tuple[Question, Ranked] | None:
        """The rows with a value, and which quantile of them; None if it is none."""
        bare, where = self._predicates.filtered(node, where)
        ranked = self._which(bare)
        if ranked is None:
            return None
        named, share, end = ranked
        if not isinstance(named, exp.Column):
            raise self._refused("a quantile takes a column by name", bare, _EXAMPLE)
        column = self._predicates.column(named)
        if column.type not in (*NUMBERS, "date", "timestamp"):
            raise self._refused(f"{column.name} is {column.type}, and has no quantiles", bare)
        if column.domain is None:
            raise self._refused(
                f"a quantile needs the values that {column.name} may have",
                bare,
                f"declare them in the schema: [columns.{column.name}] bounds = [...]",
            )
        there = all_of((where, Not(IsNull(column.name))))
        return question_of(self._aggregates.rows(bare, there)), Ranked(column.name, share, end)

    def _which(self, node: exp.Expr) -> tuple[exp.Expr, Fraction, int] | None:
        """Of what, which share of the values is less, and at which end it is."""
        if isinstance(node, exp.Median | exp.Min | exp.Max):
            self._predicates.only(node, "this")
            end = {exp.Median: 0, exp.Min: -1, exp.Max: 1}[type(node)]
            return node.this, Fraction(1, 2) if not end else Fraction(end > 0), end
        if isinstance(node, _QUANTILES):
            self._predicates.only(node, "this", "quantile")
            return node.this, *self._share(node.args["quantile"])
        if isinstance(node, _PERCENTILES):
            self._predicates.only(node, "this", "expression")
            if node.args.get("expression") is None:
                raise self._refused("WITHIN GROUP is missing", node, _EXAMPLE)
            return node.this, *self._share(node.args["expression"])
        if isinstance(node, exp.WithinGroup) and isinstance(node.this, _PERCENTILES):
            return self._within_group(node)
        return None

    def _within_group(self, node: exp.WithinGroup) -> tuple[exp.Expr, Fraction, int]:
        """PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost)."""
        self._predicates.only(node, "this", "expression")
        self._predicates.only(node.this, "this")
        order = node.args["expression"].expressions
        if len(order) != 1:
            raise self._refused("a quantile is of one column", node, _EXAMPLE)
        share, end = self._share(node.this.this)
        if order[0].args.get("desc"):
            share, end = 1 - share, -end
        return order[0].this, share, end

    def _share(self, node: exp.Expr) -> tuple[Fraction, int]:
        share = self._predicates.constant(node)
        if share is None or not 0 <= share <= 1:
            raise self._refused("a quantile needs a share between 0 and 1", node, _EXAMPLE)
        return share, -1 if share == 0 else int(share == 1)

    def _refused(self, problem: str, node: exp.Expr, hint: str = "") -> QuestionRefused:
        return refused(problem, self._predicates.place(node), hint)
