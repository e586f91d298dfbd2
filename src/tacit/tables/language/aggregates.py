"""Reading COUNT and SUM, and weighted sums of them, as terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.numbers import is_decimal
from tacit.tables.language.parsing import refused
from tacit.tables.language.predicates import PredicateReader
from tacit.tables.language.show import name
from tacit.tables.language.tree import (
    TRUE,
    IsNull,
    Not,
    People,
    Predicate,
    Question,
    Rows,
    Term,
    Total,
    all_of,
    weighted,
)
from tacit.tables.schema.codes import NUMBERS
from tacit.tables.schema.schema import Column, row_bound, total_steps

MOST_WEIGHT = 10**100  # of numerator and denominator, since weights multiply and are printed
CANCELS = "the terms cancel out, so the answer is always 0"
AGGREGATE_HINT = "ask for COUNT or SUM; for a ratio, ask for both of its parts"

_AVERAGE_HINT = "ask for SUM and COUNT, or SELECT it with table.query(...)"
_CASE_HINT = "write CASE WHEN smoker THEN 1 ELSE 0 END, or a column after THEN"

WeightedTerm = tuple[Fraction, Term, Fraction]
"""A weight, a term, and what one step of the term is worth."""


class AggregateReader:
    """Reads the aggregates of one question's text."""

    def __init__(
        self, predicates: PredicateReader, max_rows: int | None, total: Sequence[object] | None
    ) -> None:
        self.predicates = predicates
        self.schema = predicates.schema
        self.max_rows = self.schema.max_rows if max_rows is None else row_bound(max_rows)
        self.total = total
        self.inside_select = False
        self._by_row = False

    @contextmanager
    def each_row_by_itself(self) -> Iterator[None]:
        """Inside, SUM is of rows that are bounded by themselves, and nobody's total is needed."""
        self._by_row = True
        try:
            yield
        finally:
            self._by_row = False

    def question(self, node: exp.Expr, where: Predicate) -> Question:
        """A weighted sum of counts and sums, over the rows that satisfy a predicate."""
        parts: list[WeightedTerm] = []
        self.weighted(node, where, parts)
        question = weighted(parts)
        if question is None:
            raise refused(CANCELS, self.predicates.place(node))
        return question

    def weighted(self, root: exp.Expr, where: Predicate, parts: list[WeightedTerm]) -> None:
        """Add Σ weight × term to the parts, without recursion along the sum."""
        waiting: list[tuple[exp.Expr, Fraction]] = [(root, Fraction(1))]
        while waiting:
            node, weight = waiting.pop()
            if isinstance(node, exp.Paren | exp.Neg):
                self.predicates.only(node, "this")
                waiting.append((node.this, -weight if isinstance(node, exp.Neg) else weight))
            elif isinstance(node, exp.Add | exp.Sub):
                self.predicates.only(node, "this", "expression")
                second = -weight if isinstance(node, exp.Sub) else weight
                waiting += [(node.args["expression"], second), (node.this, weight)]
            elif isinstance(node, exp.Mul):
                inner, factor = self._scaled(node)
                weight *= factor
                if max(abs(weight.numerator), weight.denominator) > MOST_WEIGHT:
                    raise refused(
                        "this weight has too many digits",
                        self.predicates.place(node),
                        "give a weight of at most 100 digits",
                    )
                waiting.append((inner, weight))
            else:
                term, unit = self._aggregate(node, where)
                parts.append((weight, term, unit))

    def _scaled(self, node: exp.Mul) -> tuple[exp.Expr, Fraction]:
        self.predicates.only(node, "this", "expression")
        sides = (node.this, node.args["expression"])
        for factor, inner in (sides, sides[::-1]):
            weight = self.predicates.constant(factor)
            if weight is not None and not is_decimal(weight):
                raise refused(
                    "a weight must be a decimal number",
                    self.predicates.place(factor),
                    "give one with finitely many digits, such as 0.33",
                )
            if weight is not None:
                return inner, weight
        raise refused(
            "a weight must be a number", self.predicates.place(node), "write 2 * count(smoker)"
        )

    def _aggregate(self, node: exp.Expr, where: Predicate) -> tuple[Term, Fraction]:
        if isinstance(node, exp.Filter):
            return self._aggregate(*self.predicates.filtered(node, where))
        if isinstance(node, exp.Count):
            return self._count(node, where), Fraction(1)
        if isinstance(node, exp.CountIf):
            self.predicates.only(node, "this")
            return self.rows(node, all_of((where, self.predicates.read(node.this)))), Fraction(1)
        if isinstance(node, exp.Sum):
            return self._sum(node, where)
        raise self._not_an_aggregate(node)

    def _not_an_aggregate(self, node: exp.Expr) -> QuestionRefused:
        place = self.predicates.place(node)
        if isinstance(node, exp.Div):
            return refused(
                "division is not part of the language",
                place,
                "to halve a count, write 0.5 * count(...)",
            )
        if isinstance(node, exp.Literal):
            return refused(
                "a constant cannot be added to a question", place, "subtract it from the threshold"
            )
        if isinstance(node, exp.AggFunc):
            hint = _AVERAGE_HINT if isinstance(node, exp.Avg) else AGGREGATE_HINT
            return refused(
                f"how much one person can change {node.sql_name()} is not known", place, hint
            )
        if isinstance(node, exp.Star):
            return refused("rows cannot be shown", place, "write COUNT(*)")
        return self.predicates.refusal(node, "a count or a sum is needed here")

    def _count(self, node: exp.Count, where: Predicate) -> Term:
        self.predicates.only(node, "this", "big_int")
        inner = node.this
        if isinstance(inner, exp.Star):
            self.predicates.only(inner)
            return self.rows(node, where)
        if isinstance(inner, exp.Literal):  # COUNT(1): it is never NULL
            return self.rows(node, where)
        if isinstance(inner, exp.Case | exp.If):
            condition, value = self._filter(inner, counted=True)
            there: Predicate = TRUE
            if isinstance(value, exp.Column):
                there = Not(IsNull(self.predicates.column(value).name))
            return self.rows(node, all_of((where, condition, there)))
        if isinstance(inner, exp.Distinct):
            return self._people(inner, where)
        if inner is None:
            raise refused(
                "COUNT needs something to count",
                self.predicates.place(node),
                "write count(age >= 60)",
            )
        if self.inside_select:
            raise refused(
                "in SQL this would count the rows where it is not NULL",
                self.predicates.place(node),
                "write COUNT(*) FILTER (WHERE ...), or count(...) without SELECT",
            )
        return People(all_of((where, self.predicates.read(inner))))

    def _people(self, distinct: exp.Distinct, where: Predicate) -> Term:
        self.predicates.only(distinct, "expressions")
        nodes = distinct.expressions
        if len(nodes) == 1 and isinstance(nodes[0], exp.Case | exp.If):
            condition, value = self._filter(nodes[0], counted=True)
            where, nodes = all_of((where, condition)), [value]
        alone = len(nodes) == 1 and isinstance(nodes[0], exp.Column)
        if not alone or self.predicates.column(nodes[0]).name != self.schema.person:
            who = self.schema.person if isinstance(self.schema.person, str) else None
            raise refused(
                "COUNT(DISTINCT ...) can count only people",
                self.predicates.place(distinct),
                "each row is a person here: use COUNT(*)"
                if who is None
                else f"write COUNT(DISTINCT {name(who)})",
            )
        return People(where)

    def rows(self, node: exp.Expr, where: Predicate) -> Term:
        """The rows for which a predicate is TRUE, as many of each person as may count."""
        if not isinstance(self.schema.person, str):
            return People(where)
        if self.max_rows is None:
            raise refused(
                "counting rows needs a bound on the rows of one person",
                self.predicates.place(node),
                "declare it in the schema: max_rows = 10; "
                f"or count people: COUNT(DISTINCT {name(self.schema.person)})",
            )
        return Rows(where, self.max_rows)

    def _sum(self, node: exp.Sum, where: Predicate) -> tuple[Term, Fraction]:
        self.predicates.only(node, "this")
        inner = node.this
        if isinstance(inner, exp.Case | exp.If):
            condition, inner = self._filter(inner, counted=False)
            where = all_of((where, condition))
            if _is_number(inner, "1"):
                return self.rows(node, where), Fraction(1)
        if not isinstance(inner, exp.Column):
            raise refused(
                "SUM takes a column by name",
                self.predicates.place(inner),
                "write a factor before it: 2 * SUM(age)",
            )
        column, place = self.predicates.column(inner), self.predicates.place(node)
        if column.type not in NUMBERS:
            raise refused(f"{column.name} is {column.type}, and has no sum", place)
        bounds = self.bounds(node, column)
        if self._by_row and isinstance(self.schema.person, str):
            return Total(column.name, where, *bounds), column.step
        total = column.total if self.total is None else total_steps(column, self.total)
        if total is None and isinstance(self.schema.person, str):
            raise refused(
                f"SUM needs a bound on one person's total of {column.name}",
                place,
                f"declare it in the schema: [columns.{column.name}] total = [...]",
            )
        low, high = self._reach(bounds, total)
        return Total(column.name, where, low, high), column.step

    def bounds(self, node: exp.AggFunc, column: Column, *, wide: bool = False) -> tuple[int, int]:
        """The bounds of the values that an aggregate is of; ``wide`` ones have room between."""
        if column.bounds is None or (wide and column.bounds[0] == column.bounds[1]):
            needs = "bounds" if column.type == "integer" or column.grid else "bounds and a grid"
            raise refused(
                f"{node.sql_name()} needs {needs} for {column.name}",
                self.predicates.place(node),
                f"declare them in the schema: [columns.{column.name}] bounds = [...]",
            )
        return column.bounds

    def _filter(self, node: exp.Expr, counted: bool) -> tuple[Predicate, exp.Expr]:
        """The condition of a CASE that does what FILTER does, and what stands after THEN."""
        branch, otherwise = node, node.args.get("false")
        if isinstance(node, exp.Case):
            self.predicates.only(node, "ifs", "default")
            branch, *more = node.args["ifs"]
            if more:
                raise refused(
                    "a CASE with several WHEN is not part of the language",
                    self.predicates.place(node),
                    "write one aggregate for each",
                )
            otherwise = node.args.get("default")
        self.predicates.only(branch, "this", "true", "false")
        value = branch.args["true"]
        if otherwise is not None and not isinstance(otherwise, exp.Null):
            if counted:
                raise refused(
                    "COUNT would also count what stands after ELSE, unless that is NULL",
                    self.predicates.place(node),
                    "use SUM, or leave out ELSE",
                )
            if not _is_number(otherwise, "0"):
                raise refused("ELSE takes 0 or NULL", self.predicates.place(node), _CASE_HINT)
        if not (isinstance(value, exp.Column) or _is_number(value, "1")):
            raise refused("THEN takes 1 or a column", self.predicates.place(node), _CASE_HINT)
        return self.predicates.read(branch.this), value

    def _reach(self, bounds: tuple[int, int], total: tuple[int, int] | None) -> tuple[int, int]:
        """What one person's total can be, once it is clamped to the declared total."""
        least, most = bounds
        if total is None:
            return least, most
        low, high = total
        each_row = not isinstance(self.schema.person, str)
        # The sum of values that are never negative is at least the least value.
        if each_row or least >= 0:
            low = min(max(least, low), high)
        if each_row or most <= 0:
            high = max(min(most, high), low)
        return low, high


def _is_number(node: exp.Expr, digits: str) -> bool:
    return isinstance(node, exp.Literal) and node.is_number and node.this == digits
