"""Which cells of a GROUP BY are shown: the largest (ORDER BY), or those above a threshold (HAVING).

All others are kept out of the result.  Without either clause every declared cell is shown.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from tacit.errors import QuestionRefused
from tacit.tables.language.aggregate_kinds import FromStream, Plain
from tacit.tables.language.parsing import refused
from tacit.tables.language.selected import Above, Largest, Select
from tacit.tables.language.sql import TextReader
from tacit.tables.language.tree import Question

_ORDER_EXAMPLE = "write ORDER BY COUNT(*) DESC LIMIT 3"
_HAVING_EXAMPLE = "write HAVING COUNT(*) > 500"
_ABOVE: tuple[type[exp.Expr], ...] = (exp.GT, exp.GTE)
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


class CellChoiceReader:
    """Reads ORDER BY with LIMIT, and HAVING, of one SELECT; what is left is read without them."""

    def __init__(self, reader: TextReader, root: exp.Select) -> None:
        self._reader, self._root = reader, root
        self._order, self._limit = root.args.get("order"), root.args.get("limit")
        self._having = root.args.get("having")
        if self._order is None or self._limit is None:  # either of them alone is refused
            self._order = self._limit = None
        else:
            root.set("order", None)
            root.set("limit", None)
        root.set("having", None)

    @property
    def needs_columns(self) -> bool:
        """Whether something must be selected beside the keys: HAVING shows them alone, too."""
        return self._having is None

    def read(self, select: Select) -> Select:
        """The same SELECT, which says which of its cells are shown."""
        chosen = self._chosen(select)
        return replace(chosen, parameters=self._reader.parameters)  # these clauses may have some

    def _chosen(self, select: Select) -> Select:
        if self._having is not None and self._order is not None:
            raise self._refused(
                "HAVING and ORDER BY with LIMIT both choose which cells are returned",
                self._having,
                "leave one of them out",
            )
        if self._having is not None:
            return self._above(select, self._having.this)
        if self._order is not None and self._limit is not None:
            return replace(select, largest=self._largest(self._order, self._limit, select))
        return select

    # HAVING

    def _above(self, select: Select, node: exp.Expr) -> Select:
        """``HAVING COUNT(*) > T``: with T on the other side, too; and >=."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not select.keys:
            raise self._refused(
                "HAVING chooses among the cells of a GROUP BY, and there is none",
                node,
                "add GROUP BY, or use a stream: table.sparse(threshold=...)",
            )
        counted, limit, kind = self._comparison(node)
        question = self._question(counted, select, "HAVING needs", _HAVING_EXAMPLE)
        if question.direction != 1:
            raise self._refused(
                "HAVING needs a count or a sum that adding a person never lowers",
                counted,
                _HAVING_EXAMPLE,
            )
        steps = limit / question.grid
        least = floor(steps) + 1 if kind is exp.GT else ceil(steps)
        columns = tuple(
            replace(column, kind=FromStream())
            if column.kind == Plain() and column.factor == 1 and column.question == question
            else column
            for column in select.columns
        )
        return replace(select, columns=columns, above=Above(question, least * question.grid))

    def _comparison(self, node: exp.Expr) -> tuple[exp.Expr, Fraction, type[exp.Expr]]:
        """What is compared, with which number, and whether by > or by >=."""
        if isinstance(node, exp.And | exp.Or | exp.Not):
            raise self._refused("HAVING takes a single comparison", node, _HAVING_EXAMPLE)
        if not isinstance(node, exp.Predicate) or "expression" not in node.args:
            raise self._refused("HAVING compares a count with a number", node, _HAVING_EXAMPLE)
        left, right = node.this, node.args["expression"]
        kind: type[exp.Expr] = type(node)
        limit = self._reader.predicates.constant(right)
        if limit is None:
            limit = self._reader.predicates.constant(left)
            left, kind = right, _TURNED.get(kind, kind)
        if limit is None:
            raise self._refused("HAVING compares a count with a number", node, _HAVING_EXAMPLE)
        if kind not in _ABOVE:
            raise self._refused(
                "HAVING can only find cells above a threshold, by > or >=",
                node,
                f"{_HAVING_EXAMPLE}: the others are not above",
            )
        return left, limit, kind

    # ORDER BY with LIMIT

    def _largest(self, order: exp.Expr, limit: exp.Expr, select: Select) -> Largest:
        """Which cells ``ORDER BY ... DESC LIMIT n`` asks for."""
        self._reader.predicates.only(limit, "expression")
        places = self._reader.predicates.constant(limit.args["expression"])
        if not select.keys or places is None or places.denominator != 1 or places < 1:
            raise self._refused(
                "LIMIT needs a GROUP BY, and a whole number of its cells",
                limit,
                "write GROUP BY ... ORDER BY COUNT(*) DESC LIMIT 3",
            )
        if places > select.keys.cells:
            raise self._refused(
                f"there are only {select.keys.cells} cells", limit, "remove ORDER BY and LIMIT"
            )
        if len(order.expressions) != 1 or not order.expressions[0].args.get("desc"):
            raise self._refused(
                "only the largest cells by one count or sum can be returned", order, _ORDER_EXAMPLE
            )
        ordered = order.expressions[0].this
        if isinstance(ordered, exp.Literal) and ordered.is_number and ordered.this.isdigit():
            place = int(ordered.this)
            if not 1 <= place <= len(self._root.expressions):
                raise self._refused("there is no such column", ordered, "give the name of one")
            ordered = self._root.expressions[place - 1]
            ordered = ordered.this if isinstance(ordered, exp.Alias) else ordered
        question = self._question(ordered, select, "ORDER BY needs", _ORDER_EXAMPLE)
        if question.direction != 1:
            raise self._refused(
                "ORDER BY needs a count or a sum that adding a person never lowers", ordered
            )
        return Largest(places.numerator, question)

    def _question(self, node: exp.Expr, select: Select, says: str, hint: str) -> Question:
        """A count or a sum: a column of the result by its name, or an aggregate."""
        if not isinstance(node, exp.Column):
            return self._reader.aggregates.question(node, select.where)
        for column in select.columns:
            if column.name.casefold() == node.name.casefold() and column.kind == Plain():
                return column.question
        raise self._refused(f"{says} a count or a sum", node, hint)

    def _refused(self, problem: str, node: exp.Expr, hint: str = "") -> QuestionRefused:
        return refused(problem, self._reader.predicates.place(node), hint)
