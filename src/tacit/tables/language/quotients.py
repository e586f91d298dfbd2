"""Reading a division of aggregates: a share, a mean, or a ratio of two numbers."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.tables.language.aggregate_kinds import Kind, Mean, Portion, Ratio, question_of
from tacit.tables.language.aggregates import AggregateReader, WeightedTerm
from tacit.tables.language.parsing import refused
from tacit.tables.language.tree import (
    People,
    Predicate,
    Question,
    Rows,
    Term,
    Total,
    conjuncts,
    weighted,
)

_ONE = Fraction(1)
_EXAMPLE = "write 100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(*), or SUM(cost) / COUNT(*)"
_NUMBERS = (exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE, exp.DataType.Type.DECIMAL)


class QuotientReader:
    """Reads ``above / below``, in the way that has the least noise.

    Where what stands above counts a part of what stands below, or adds up something about it, the
    two need not pay for one person twice.
    """

    def __init__(self, aggregates: AggregateReader) -> None:
        self._aggregates = aggregates
        self._predicates = aggregates.predicates

    def read(self, node: exp.Div, where: Predicate) -> tuple[Question, Kind, Fraction]:
        """The question, what is made of it, and a constant factor."""
        self._predicates.only(node, "this", "expression", "typed", "safe")
        below = self._question(_bare(node.args["expression"]), where)
        counted, size = _single(below)
        if isinstance(counted, People | Rows) and size is not None and size > 0:
            above = self._row_values(_bare(node.this), where, counted)
            if above is None:
                above = self._question(_bare(node.this), where)
            found = self._inside(above, counted)
            if found is not None:
                kind, factor = found
                return question_of(counted), kind, factor / size
        if below.direction != 1:
            raise self._refused("what is divided by may be zero or negative", node, _EXAMPLE)
        return self._question(_bare(node.this), where), Ratio(below), _ONE

    def _question(self, node: exp.Expr, where: Predicate) -> Question:
        if isinstance(node, exp.Literal):
            raise self._refused(
                "a number is not an aggregate", node, "leave it out, and divide the result yourself"
            )
        return self._aggregates.question(node, where)

    def _row_values(self, node: exp.Expr, where: Predicate, counted: Term) -> Question | None:
        """SUM(x) above COUNT(*), which is a mean over rows: nobody's total has to be bounded."""
        if isinstance(counted, People) and isinstance(self._aggregates.schema.person, str):
            return None
        parts: list[WeightedTerm] = []
        with self._aggregates.each_row_by_itself():
            self._aggregates.weighted(node, where, parts)
        return weighted(parts)

    def _inside(self, above: Question, counted: People | Rows) -> tuple[Kind, Fraction] | None:
        """What is made of a single term that is about a part of what is counted."""
        term, factor = _single(above)
        if term is None or factor is None or not _is_part(term.where, counted.where):
            return None
        if type(term) is type(counted):
            assert isinstance(term, People | Rows)
            return Portion(term), factor
        if isinstance(term, Total):
            low, high = min(term.low, 0), max(term.high, 0)
            step = self._predicates.schema.column(term.column).step
            if low == high:
                return None
            return Mean(None, low, high, step, term), factor / step
        if isinstance(term, Rows) and isinstance(counted, People):
            return Mean(None, 0, term.most, _ONE, term), factor
        return None

    def _refused(self, problem: str, node: exp.Expr, hint: str = "") -> QuestionRefused:
        return refused(problem, self._predicates.place(node), hint)


def _bare(node: exp.Expr) -> exp.Expr:
    """Without what changes nothing: brackets, a cast to a number, NULLIF(..., 0)."""
    while True:
        of_zero = isinstance(node, exp.Nullif) and node.args["expression"] == exp.Literal.number(0)
        cast = isinstance(node, exp.Cast) and node.args["to"].this in _NUMBERS
        if not (of_zero or cast or isinstance(node, exp.Paren)):
            return node
        node = node.this


def _single(question: Question) -> tuple[Term | None, Fraction | None]:
    """The term of a question that has only one, and what one step of the term is worth."""
    if len(question.terms) != 1:
        return None, None
    return question.terms[0], question.promise.steps[0] * question.grid


def _is_part(inner: Predicate, outer: Predicate) -> bool:
    """Whether the first can be TRUE only where the second is, as one sees from its parts."""
    return set(conjuncts(outer)) <= set(conjuncts(inner))
