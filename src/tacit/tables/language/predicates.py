"""Reading a predicate: from sqlglot's tree to ours, refusing everything that is not listed here.

Only total operators without side effects are accepted.  A node is accepted if its type is known
*and* it has no argument that this reader does not know, so a new feature of sqlglot is refused and
not ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.tables.language.arithmetic import constant
from tacit.tables.language.functions import begins_or_ends, ilike, of_function
from tacit.tables.language.operands import DEEPEST, TOO_DEEP, Formula, OperandReader, formula_of
from tacit.tables.language.parsing import Span, refused
from tacit.tables.language.templates import Hole, compared, flattened, ready_or_pending, turned
from tacit.tables.language.tree import (
    Among,
    And,
    Constant,
    IsNull,
    IsTrue,
    Not,
    Or,
    Predicate,
    Range,
    SameOrder,
    all_of,
)
from tacit.tables.schema.codes import NUMBERS
from tacit.tables.schema.schema import Column, Schema

if TYPE_CHECKING:
    from tacit.tables.language.subqueries import SubqueryReader

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "is not distinct from",
    exp.NullSafeNEQ: "is distinct from",
}

_ENDS = {"left": "STARTS_WITH", "right": "ENDS_WITH"}
_DEEPEST_NULL = 5  # IS NULL of a predicate holds the predicate twice: each level doubles the tree


class PredicateReader(OperandReader):
    """Reads the predicates of one question's text."""

    def __init__(self, text: str, schema: Schema) -> None:
        super().__init__(text, schema)
        self._null_depth = 0
        self.may_name_people = True

    def read(self, node: exp.Expr) -> Predicate:
        """The predicate that a node stands for."""
        reader = _READERS.get(type(node))
        if reader is None:
            raise self.refusal(node, "a predicate is needed here, such as age >= 60")
        self._depth += 1
        if self._depth > DEEPEST or self._null_depth > _DEEPEST_NULL:
            raise refused(TOO_DEEP, Span(self.text, 0, len(self.text)))
        found = reader(self, node)
        self._depth -= 1
        return found

    # Predicates

    def _parts(self, node: exp.Expr, kind: type[exp.Expr]) -> list[Predicate]:
        """The operands of a chain in order, found without recursion along the chain."""
        parts: list[Predicate] = []
        waiting = [node]
        while waiting:
            node = waiting.pop()
            while isinstance(node, exp.Paren):
                node = node.this
            if isinstance(node, kind):
                self.only(node, "this", "expression")
                waiting += [node.args["expression"], node.this]
            else:
                parts.append(self.read(node))
        return parts

    def _and(self, node: exp.Expr) -> Predicate:
        return all_of(self._parts(node, exp.And))

    def _or(self, node: exp.Expr) -> Predicate:
        return flattened(Or, self._parts(node, exp.Or))

    def _not(self, node: exp.Expr) -> Predicate:
        self.only(node, "this")
        return Not(self.read(node.this))

    def _paren(self, node: exp.Expr) -> Predicate:
        self.only(node, "this")
        return self.read(node.this)

    def _constant(self, node: exp.Expr) -> Predicate:
        return Constant(None if isinstance(node, exp.Null) else bool(node.this))

    def _boolean_column(self, node: exp.Expr) -> Predicate:
        column = self.column(node)
        if column.type != "boolean":
            raise refused(
                f"{column.name} is {column.type}, not boolean",
                self.place(node),
                "compare it with a value",
            )
        return Range(column.name, 1, 1)

    def _comparison(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "expression")
        operator = _COMPARISONS[type(node)]
        left, right = self.operand(node.this), self.operand(node.args["expression"])
        if isinstance(left, Column) and isinstance(right, Column):
            return self._columns(node, left, operator, right)
        if isinstance(left, Formula) or isinstance(right, Formula):
            return self._solved(node, left, operator, (right,))
        if isinstance(left, Column):
            return ready_or_pending(left, operator, (right,), self._here(node))
        if isinstance(right, Column):
            return ready_or_pending(right, turned(operator), (left,), self._here(node))
        raise refused("a comparison needs a column", self.place(node))

    def _solved(
        self, node: exp.Expr, left: object, operator: str, others: tuple[object, ...]
    ) -> Predicate:
        """A comparison with arithmetic, solved for its column, whatever its parameters will be."""
        listed = [other for other in others if isinstance(other, Hole) and other.many]
        first, *rest = formulas = [
            formula_of(each) for each in (left, *others) if each not in listed
        ]
        column, function = self.only_subject(node, *formulas)
        if column is None:
            raise refused("a comparison needs a column", self.place(node))
        holes = tuple(dict.fromkeys(hole for each in formulas for hole in each.holes))

        def make(column: Column, values: Sequence[object]) -> Predicate:
            given = {hole.name: value for hole, value in zip(holes, values, strict=False)}
            many = [constant(value) for value in values[len(holes) :]]
            sides = [*(each.compute(given) for each in rest), *many]
            found = compared(column, operator, first.compute(given), sides)
            return found if function is None else of_function(function, found)

        return ready_or_pending(column, make, (*holes, *listed), self._here(node))

    def _subject(self, node: exp.Expr, word: str) -> object:
        """What is on the left of a word: a column, or arithmetic on one."""
        found = self.operand(node)
        if isinstance(found, Column) or (isinstance(found, Formula) and found.column is not None):
            return found
        raise refused(f"{word} needs a column on its left", self.place(node))

    def _about(
        self, node: exp.Expr, subject: object, operator: str, values: tuple[object, ...]
    ) -> Predicate:
        """A comparison of a subject with values."""
        if isinstance(subject, Column) and not any(isinstance(each, Formula) for each in values):
            return ready_or_pending(subject, operator, values, self._here(node))
        return self._solved(node, subject, operator, values)

    def _columns(self, node: exp.Expr, left: Column, operator: str, right: Column) -> Predicate:
        if not _comparable(left, right):
            raise refused(f"{left.name} and {right.name} cannot be compared", self.place(node))
        if left.type == "boolean" and operator not in ("=", "<>"):
            raise refused("booleans have no order", self.place(node), "use = or <>")
        if operator.startswith("is "):
            raise refused(
                "IS DISTINCT FROM needs a value, not a column",
                self.place(node),
                "use = or <>, and IS NULL",
            )
        if left.name == right.name:  # TRUE or FALSE unless it is NULL
            never = Among(left.name, ())
            return Not(never) if operator in ("=", "<=", ">=") else never
        first, second = (
            (left.name, right.name)
            if operator in ("=", "<>", "<=", ">")
            else (
                right.name,
                left.name,
            )
        )
        if operator in ("=", "<>"):
            first, second = sorted((first, second))
        tree = SameOrder(first, second, operator in ("=", "<>"))
        return Not(tree) if operator in ("<>", "<", ">") else tree

    def _between(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "low", "high")
        subject = self._subject(node.this, "BETWEEN")
        ends = self.values([node.args["low"], node.args["high"]])
        return self._about(node, subject, "between", ends)

    def _in(self, node: exp.Expr) -> Predicate:
        if node.args.get("query") is not None:
            return self._subqueries().in_select(node)
        self.only(node, "this", "expressions", "field")
        subject = self._subject(node.this, "IN")
        field = node.args.get("field")
        if field is None:
            values = self.values(node.expressions)
        elif isinstance(field, exp.Placeholder):
            values = (self._hole(field, many=True),)
        else:
            raise refused(
                "IN needs a list in parentheses",
                self.place(node),
                "write town in ('Bruges', 'Ghent')",
            )
        return self._about(node, subject, "in", values)

    def filtered(self, node: exp.Expr, where: Predicate) -> tuple[exp.Expr, Predicate]:
        """An aggregate without its FILTER, and the rows that it is of."""
        if not isinstance(node, exp.Filter):
            return node, where
        self.only(node, "this", "expression")
        return node.this, all_of((where, self.read(node.args["expression"].this)))

    def _exists(self, node: exp.Expr) -> Predicate:
        return self._subqueries().exists(node)

    def _subqueries(self) -> SubqueryReader:
        from tacit.tables.language.subqueries import SubqueryReader  # which is made of what is here

        return SubqueryReader(self)

    def _like(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "expression", "negate")
        subject = self._subject(node.this, "LIKE")
        values = self.values([node.args["expression"]])
        return _unless_negated(node, self._about(node, subject, "like", values))

    def _ilike(self, node: exp.Expr) -> Predicate:
        """ILIKE: LIKE of the text and the pattern in lower case."""
        self.only(node, "this", "expression", "negate")
        column = self._subject(node.this, "ILIKE")
        if not isinstance(column, Column):
            raise refused("ILIKE takes a column by name", self.place(node), "use LIKE")
        values = self.values([node.args["expression"]])
        found = ready_or_pending(column, ilike, values, self._here(node))
        return _unless_negated(node, found)

    def _ends(self, node: exp.Expr) -> Predicate:
        """starts_with and ends_with: LEFT or RIGHT, as long as the text, is the text."""
        self.only(node, "this", "expression")
        side = "left" if isinstance(node, exp.StartsWith) else "right"
        column = self.operand(node.this)
        if not isinstance(column, Column):
            raise refused(f"{_ENDS[side]} takes a column by name", self.place(node), "use LIKE")
        values = self.values([node.args["expression"]])
        return ready_or_pending(column, partial(begins_or_ends, side), values, self._here(node))

    def _is(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "expression", "negate")
        return _unless_negated(node, self._is_not_negated(node))

    def _null_column(self, node: exp.Expr) -> str:
        found = self.operand(node)
        if isinstance(found, Formula) and found.column is not None:
            return found.column.name
        raise refused("IS NULL needs a column or a predicate", self.place(node))

    def _is_not_negated(self, node: exp.Expr) -> Predicate:
        subject, test = node.this, node.args["expression"]
        while isinstance(subject, exp.Paren):
            subject = subject.this
        if isinstance(test, exp.Null):
            if isinstance(subject, exp.Column):
                return IsNull(self.column(subject).name)
            if (
                type(subject) not in _READERS
            ):  # arithmetic and functions are NULL where their column is
                return IsNull(self._null_column(subject))
            self._null_depth += 1
            part = self.read(subject)
            self._null_depth -= 1
            return And((Not(IsTrue(part)), Not(IsTrue(Not(part)))))
        if isinstance(test, exp.Boolean):
            part = self.read(subject)
            return IsTrue(part if test.this else Not(part))
        raise refused("IS is followed by NULL, TRUE or FALSE", self.place(node))


def _unless_negated(node: exp.Expr, found: Predicate) -> Predicate:
    """NOT LIKE and IS NOT: some versions of sqlglot wrap them in Not, others do not."""
    return Not(found) if node.args.get("negate") else found


def _comparable(left: Column, right: Column) -> bool:
    if left.type in NUMBERS and right.type in NUMBERS:
        ranked = [column.type == "real" and column.grid is None for column in (left, right)]
        return all(ranked) or not any(ranked)
    return left.type == right.type


_READERS: dict[type[exp.Expr], Callable[[PredicateReader, exp.Expr], Predicate]] = {
    exp.And: PredicateReader._and,
    exp.Or: PredicateReader._or,
    exp.Not: PredicateReader._not,
    exp.Paren: PredicateReader._paren,
    exp.Between: PredicateReader._between,
    exp.In: PredicateReader._in,
    exp.Exists: PredicateReader._exists,
    exp.Like: PredicateReader._like,
    exp.ILike: PredicateReader._ilike,
    exp.StartsWith: PredicateReader._ends,
    exp.EndsWith: PredicateReader._ends,
    exp.Is: PredicateReader._is,
    exp.Column: PredicateReader._boolean_column,
    exp.Boolean: PredicateReader._constant,
    exp.Null: PredicateReader._constant,
    **dict.fromkeys(_COMPARISONS, PredicateReader._comparison),
}
