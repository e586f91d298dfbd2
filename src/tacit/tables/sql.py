"""Reading a question: a predicate, a weighted sum of counts, or a SELECT.

The text is parsed by sqlglot and rebuilt as the tree of ``question.py``.  No part of the text
reaches an engine.  What is not listed in ``docs/questions.md`` is refused, with its place
underlined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TypeVar

from sqlglot import exp

from tacit.arguments import LONGEST_QUESTION, instance
from tacit.errors import QuestionRefused, TacitError
from tacit.numbers import is_decimal
from tacit.tables.codes import NUMBERS
from tacit.tables.operands import TOO_DEEP
from tacit.tables.parsing import UNREADABLE, Span, parsed, readable, refused
from tacit.tables.predicates import PredicateReader
from tacit.tables.question import (
    TRUE,
    People,
    Predicate,
    Question,
    Rows,
    Term,
    Total,
    all_of,
    weighted,
)
from tacit.tables.schema import Column, Schema, row_bound, total_steps
from tacit.tables.show import name

MOST_CELLS = 1_000_000
MOST_WEIGHT = 10**100  # of numerator and denominator, since weights multiply and are printed

_NOT_IN_SELECT = {
    "joins": ("a question is about one table, without joins", ""),
    "laterals": ("a question is about one table", ""),
    "with_": ("a question may not contain another query", ""),
    "having": ("HAVING would show true counts", "use the threshold of a stream"),
    "order": ("cells come in the order in which the schema declares them", "remove ORDER BY"),
    "limit": ("every declared cell is answered", "remove LIMIT"),
    "distinct": ("SELECT DISTINCT is not part of the language", "use COUNT(DISTINCT person)"),
    "windows": ("window functions are not part of the language", ""),
    "qualify": ("window functions are not part of the language", ""),
}
T = TypeVar("T")
_AGGREGATE_HINT = "ask for COUNT or SUM; for a ratio, ask for both of its parts"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was read from a text: a question whose parameters are open, and its cells."""

    shape: Question
    parameters: frozenset[str]
    keys: tuple[Column, ...]


def read(
    text: str,
    schema: Schema,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
    longest: int = LONGEST_QUESTION,
) -> Parsed:
    """Read a text, or refuse it."""
    instance(schema, "schema", Schema, "give a Schema, such as tacit.tables.read_schema makes")
    reader = _Reader(readable(text, longest), schema, max_rows, total)
    return _read_or_refused(text, reader.read)


def read_predicate(text: str, schema: Schema) -> tuple[Predicate, frozenset[str]]:
    """Read a text that must be a predicate, and its parameters."""
    reader = _Reader(readable(text), schema, None, None)
    return _read_or_refused(text, reader.read_predicate)


def _read_or_refused(text: str, reading: Callable[[], T]) -> T:
    try:
        return reading()
    except TacitError:
        raise
    except RecursionError:
        problem = TOO_DEEP  # refused below, without the thousand frames of its traceback
    except Exception:  # sqlglot, or our use of its tree, did not expect this text
        problem = UNREADABLE
    raise refused(problem, Span(text, 0, len(text)))


class _Reader:
    """Reads one text."""

    def __init__(
        self, text: str, schema: Schema, max_rows: int | None, total: Sequence[object] | None
    ) -> None:
        self.text = text
        self.schema = schema
        self.max_rows = schema.max_rows if max_rows is None else row_bound(max_rows)
        self.total = total
        self.predicates = PredicateReader(text, schema)
        self.inside_select = False

    def read(self) -> Parsed:
        root = parsed(self.text)
        keys: tuple[Column, ...] = ()
        parts: list[tuple[Fraction, Term, Fraction]] = []
        if isinstance(root, exp.Select):
            keys = self._select(root, parts)
        elif _is_aggregate(root):
            self._weighted(root, TRUE, parts)
        else:
            parts.append((Fraction(1), People(self.predicates.read(root)), Fraction(1)))
        shape = weighted(parts)
        if shape is None:
            raise refused("the terms cancel out, so the answer is always 0", self._everything())
        return Parsed(shape, self._parameters(), keys)

    def read_predicate(self) -> tuple[Predicate, frozenset[str]]:
        return self.predicates.read(parsed(self.text)), self._parameters()

    def _parameters(self) -> frozenset[str]:
        return frozenset(self.predicates.parameters.values())

    def _everything(self) -> Span:
        return Span(self.text, 0, len(self.text))

    # SELECT

    def _select(
        self, select: exp.Select, parts: list[tuple[Fraction, Term, Fraction]]
    ) -> tuple[Column, ...]:
        self.inside_select = True
        for key, (problem, hint) in _NOT_IN_SELECT.items():
            if found := select.args.get(key):
                node = found[0] if isinstance(found, list) else found
                place = self.predicates.place(node if isinstance(node, exp.Expr) else select)
                raise refused(problem, place, hint)
        self.predicates.only(select, "expressions", "from_", "where", "group")
        self._from_table(select)
        condition = select.args.get("where")
        where = TRUE if condition is None else self.predicates.read(condition.this)
        keys = self._keys(select.args.get("group"))
        aggregates = self._selected(select, keys)
        if len(aggregates) != 1:
            raise refused(
                "a question has one answer: select exactly one count or sum",
                self.predicates.place(select),
            )
        self._weighted(aggregates[0], where, parts)
        return keys

    def _from_table(self, select: exp.Select) -> None:
        clause = select.args.get("from_")
        if clause is None:
            raise refused("FROM is missing", self._everything(), f"FROM {name(self.schema.name)}")
        self.predicates.only(clause, "this")
        table = clause.this
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise refused("a question is about one table", self.predicates.place(table))
        self.predicates.only(table, "this", "alias")
        if table.name.casefold() != self.schema.name.casefold():
            raise refused(
                f"a question here is about the table {name(self.schema.name)} only",
                self.predicates.place(table),
            )
        alias = table.args.get("alias")
        if alias is not None:
            self.predicates.only(alias, "this")
            self.predicates.tables = {alias.name.casefold()}

    def _keys(self, group: exp.Expr | None) -> tuple[Column, ...]:
        if group is None:
            return ()
        self.predicates.only(group, "expressions")
        keys: list[Column] = []
        for node in group.expressions:
            if not isinstance(node, exp.Column):
                raise self.predicates.refusal(node, "GROUP BY takes columns by name")
            column = self.predicates.column(node)
            if column.cells is None:
                raise refused(
                    f"GROUP BY needs the key values of {column.name}",
                    self.predicates.place(node),
                    f"list them in the schema: [columns.{column.name}] keys = [...]",
                )
            if column not in keys:
                keys.append(column)
        if prod(len(key.cells or ()) for key in keys) > MOST_CELLS:
            raise refused(
                f"GROUP BY may have at most {MOST_CELLS} cells",
                self.predicates.place(group),
                "group by fewer columns, or declare fewer keys",
            )
        return tuple(keys)

    def _selected(self, select: exp.Select, keys: tuple[Column, ...]) -> list[exp.Expr]:
        """The selected expressions other than the keys of GROUP BY."""
        found = []
        for node in select.expressions:
            if isinstance(node, exp.Alias):
                self.predicates.only(node, "this", "alias")
                node = node.this
            if not isinstance(node, exp.Column):
                found.append(node)
            elif self.predicates.column(node) not in keys:
                raise refused("rows cannot be shown", self.predicates.place(node), _AGGREGATE_HINT)
        return found

    # Weighted sums

    def _weighted(
        self, root: exp.Expr, where: Predicate, parts: list[tuple[Fraction, Term, Fraction]]
    ) -> None:
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
            self.predicates.only(node, "this", "expression")
            condition = self.predicates.read(node.args["expression"].this)
            return self._aggregate(node.this, all_of((where, condition)))
        if isinstance(node, exp.Count):
            return self._count(node, where), Fraction(1)
        if isinstance(node, exp.CountIf):
            self.predicates.only(node, "this")
            return self._rows(node, all_of((where, self.predicates.read(node.this)))), Fraction(1)
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
            return refused(
                f"the sensitivity of {node.sql_name()} is not bounded", place, _AGGREGATE_HINT
            )
        return self.predicates.refusal(node, "a count or a sum is needed here")

    def _count(self, node: exp.Count, where: Predicate) -> Term:
        self.predicates.only(node, "this", "big_int")
        inner = node.this
        if isinstance(inner, exp.Star):
            self.predicates.only(inner)
            return self._rows(node, where)
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
        alone = len(nodes) == 1 and isinstance(nodes[0], exp.Column)
        if not alone or self.predicates.column(nodes[0]).name != self.schema.person:
            who = self.schema.person if isinstance(self.schema.person, str) else "each row"
            raise refused(
                "COUNT(DISTINCT ...) can count only people",
                self.predicates.place(distinct),
                f"a person is {who}" + ("" if who != "each row" else ": use COUNT(*)"),
            )
        return People(where)

    def _rows(self, node: exp.Expr, where: Predicate) -> Term:
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
        if not isinstance(node.this, exp.Column):
            raise refused(
                "SUM takes a column by name",
                self.predicates.place(node.this),
                "write a factor before it: 2 * SUM(age)",
            )
        column, place = self.predicates.column(node.this), self.predicates.place(node)
        if column.type not in NUMBERS:
            raise refused(f"{column.name} is {column.type}, and has no sum", place)
        if column.bounds is None:
            needs = "bounds" if column.type == "integer" or column.grid else "bounds and a grid"
            raise refused(
                f"SUM needs {needs} for {column.name}",
                place,
                f"declare them in the schema: [columns.{column.name}] bounds = [...]",
            )
        total = column.total if self.total is None else total_steps(column, self.total)
        if total is None and isinstance(self.schema.person, str):
            raise refused(
                f"SUM needs a bound on one person's total of {column.name}",
                place,
                f"declare it in the schema: [columns.{column.name}] total = [...]",
            )
        low, high = self._reach(column.bounds, total)
        return Total(column.name, where, low, high), column.step

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


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether a text without SELECT is a sum of aggregates, rather than a predicate."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(
        node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Filter | exp.AggFunc | exp.Literal
    )
