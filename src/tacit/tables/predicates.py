"""Reading a predicate: from sqlglot's tree to ours, refusing everything that is not listed here.

Only total operators without side effects are accepted.  A node is accepted if its type is known
*and* it has no argument that this reader does not know, so a new feature of sqlglot is refused and
not ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from fractions import Fraction

from sqlglot import exp

from tacit.errors import BadParameter, QuestionRefused
from tacit.numbers import exact
from tacit.tables.codes import NUMBERS
from tacit.tables.parsing import Span, refused
from tacit.tables.question import (
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
from tacit.tables.schema import Column, Schema
from tacit.tables.show import name
from tacit.tables.templates import Hole, joined, ready_or_pending

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
_FLIPPED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}

_OPENINGS: dict[type[exp.Expr], str] = {
    exp.Query: "(",
    exp.Tuple: "(",
    exp.Case: "case",
}
TOO_DEEP = "this question is nested too deeply"
_DEEPEST_NULL = 5  # IS NULL of a predicate holds the predicate twice: each level doubles the tree
_DEEPEST = 100  # levels of nesting, which any later walk through the tree has room for
_NO_ARITHMETIC = "move the arithmetic to the other side: age >= 62 for age - 2 >= 60"
_REASONS: list[tuple[tuple[type[exp.Expr], ...], str, str]] = [
    (
        (exp.Query, exp.Subquery, exp.Exists, exp.Any, exp.All),
        "a question may not contain another query",
        "list the values: town in ('Bruges', 'Ghent')",
    ),
    ((exp.Window,), "window functions are not part of the language", ""),
    (
        (exp.Div, exp.IntDiv, exp.Mod),
        "division is not part of the language: it could fail on a row",
        "multiply the other side instead",
    ),
    (
        (exp.Add, exp.Sub, exp.Mul, exp.Neg),
        "arithmetic on columns is not part of the language: it could overflow on a row",
        _NO_ARITHMETIC,
    ),
    (
        (exp.Cast, exp.TryCast),
        "casts are not part of the language: they could fail on a row",
        "declare the column's type in the schema",
    ),
    (
        (exp.ILike, exp.SimilarTo, exp.RegexpLike, exp.Escape, exp.Collate, exp.Glob),
        "the only text pattern of the language is LIKE, by code point and without ESCAPE",
        "% stands for any text and _ for one character",
    ),
    ((exp.AggFunc,), "an aggregate cannot stand inside a predicate", ""),
    ((exp.Case, exp.If), "CASE is not part of the language", "use and, or, not"),
    ((exp.Func,), "functions are not part of the language: they could fail on a row", ""),
    ((exp.Alias,), "an expression cannot be named here", "remove it"),
    ((exp.Tuple,), "a row of values cannot be compared", "compare each column by itself"),
]


class PredicateReader:
    """Reads the predicates of one question's text."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text = text
        self.schema = schema
        self.tables = {schema.name.casefold()}
        self.parameters: dict[str, str] = {}  # as they are spelt, by their folded names
        self._depth = 0
        self._null_depth = 0

    def read(self, node: exp.Expr) -> Predicate:
        """The predicate that a node stands for."""
        reader = _READERS.get(type(node))
        if reader is None:
            raise self.refusal(node, "a predicate is needed here, such as age >= 60")
        self._depth += 1
        if self._depth > _DEEPEST or self._null_depth > _DEEPEST_NULL:
            raise refused(TOO_DEEP, Span(self.text, 0, len(self.text)))
        found = reader(self, node)
        self._depth -= 1
        return found

    # Refusals

    def place(self, node: exp.Expr) -> Span:
        """Where a node is in the text, as far as sqlglot knows."""
        starts, ends = [], []
        for part in node.walk():
            meta = part.meta if part.meta else {}
            if "start" in meta:
                starts.append(meta["start"])
                ends.append(meta["end"] + 1)
            elif isinstance(part, exp.Placeholder) and part.this:
                found = self.text.find(f":{part.this}")
                if found >= 0:
                    starts.append(found)
                    ends.append(found + len(part.this) + 1)
        if not starts:
            return Span(self.text, 0, len(self.text))
        start, end = min(starts), max(ends)
        for kind, word in _OPENINGS.items():  # sqlglot does not say where these words are
            if isinstance(node, kind):
                start = max(self.text.lower().rfind(word, 0, start), 0)
                break
        opened = self.text.count("(", start, end) - self.text.count(")", start, end)
        while opened > 0 and (close := self.text.find(")", end)) >= 0:
            end, opened = close + 1, opened - 1
        return Span(self.text, start, end)

    def _here(self, node: exp.Expr) -> Callable[[], Span]:
        return lambda: self.place(node)  # searched for only if it must be shown

    def refusal(self, node: exp.Expr, problem: str, hint: str = "") -> QuestionRefused:
        """The refusal of a node, for the most helpful reason that is known."""
        for kinds, reason, advice in _REASONS:
            if isinstance(node, kinds):
                problem, hint = reason, advice
                break
        if isinstance(node, exp.Func) and self.schema.find(node.sql()):  # such as current_date
            hint = "to name the column, put it in double quotes"
        return refused(problem, self.place(node), hint)

    def only(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node that has any argument besides these."""
        for key, value in node.args.items():
            if value and key not in known:
                inner = value[0] if isinstance(value, list) else value
                where = inner if isinstance(inner, exp.Expr) else node
                word = key.rstrip("_").replace("_", " ")
                raise refused(f"{word!r} is not part of the language here", self.place(where))

    # Operands

    def column(self, node: exp.Expr) -> Column:
        """The declared column that a name stands for."""
        self.only(node, "this", "table")
        identifier = node.this
        if not isinstance(identifier, exp.Identifier):
            raise refused("a column is needed here", self.place(node))
        qualifier = node.args.get("table")
        if qualifier is not None and qualifier.name.casefold() not in self.tables:
            about = name(self.schema.name)
            raise refused(f"a question here is about the table {about} only", self.place(node))
        found = self.schema.find(identifier.name)
        if found is None:
            raise self._unknown(identifier, node)
        return found

    def _unknown(self, identifier: exp.Identifier, node: exp.Expr) -> QuestionRefused:
        names = [column.name for column in self.schema.columns]
        close = get_close_matches(identifier.name, names, 1, 0.7)
        hint = f"did you mean {close[0]}?" if close else f"its columns: {', '.join(names[:20])}"
        if identifier.quoted and not close:
            hint = "double quotes name a column; put text in single quotes"
        return refused(f"{self.schema.name} has no such column", self.place(node), hint)

    def _operand(self, node: exp.Expr) -> object:
        """A Column, a Hole, or the value of a literal: int, Fraction, str, bool or None."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self.column(node)
        if isinstance(node, exp.Placeholder):
            return self._hole(node)
        if isinstance(node, exp.Literal):
            return node.this if node.is_string else self.number(node)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and node.this.is_number:
            return -self.number(node.this)
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Null):
            return None
        if type(node) is exp.Cast and node.this.is_string and node.to.sql() in _DATED:
            self.only(node, "this", "to")
            return node.this.this  # date '2026-01-31': the column's type decides how it is read
        raise self.refusal(node, "a column or a literal is needed here")

    def number(self, node: exp.Expr) -> int | Fraction:
        """The exact value of a number literal."""
        text: str = node.this
        if text.isascii() and text.isdigit() and len(text) < 100:
            return int(text)
        try:
            return exact(text, "number")
        except BadParameter:
            raise refused("this number cannot be read", self.place(node)) from None

    def _hole(self, node: exp.Expr, many: bool = False) -> Hole:
        parameter = node.this
        if not isinstance(parameter, str) or not parameter:
            raise refused("a parameter needs a name", self.place(node), "write :name")
        other = self.parameters.setdefault(parameter.casefold(), parameter)
        if other != parameter:
            raise refused(
                f":{other} and :{parameter} differ only in case",
                self.place(node),
                "spell a parameter in one way, or give two parameters different names",
            )
        return Hole(parameter, many)

    def _column_and(self, node: exp.Expr, word: str) -> Column:
        column = self._operand(node)
        if not isinstance(column, Column):
            raise refused(f"{word} needs a column on its left", self.place(node))
        return column

    def _values(self, nodes: list[exp.Expr]) -> tuple[object, ...]:
        values = tuple(self._operand(node) for node in nodes)
        for node, value in zip(nodes, values, strict=True):
            if isinstance(value, Column):
                raise refused("a literal is needed here, not a column", self.place(node))
        return values

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
        return joined(Or, self._parts(node, exp.Or))

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
        left, right = self._operand(node.this), self._operand(node.args["expression"])
        if isinstance(left, Column) and isinstance(right, Column):
            return self._columns(node, left, operator, right)
        if isinstance(left, Column):
            return ready_or_pending(left, operator, (right,), self._here(node))
        if isinstance(right, Column):
            flipped = _FLIPPED.get(operator, operator)
            return ready_or_pending(right, flipped, (left,), self._here(node))
        raise refused("a comparison needs a column", self.place(node))

    def _columns(self, node: exp.Expr, left: Column, operator: str, right: Column) -> Predicate:
        if not _comparable(left, right):
            raise refused(f"{left.name} and {right.name} cannot be compared", self.place(node))
        if left.type == "boolean" and operator not in ("=", "<>"):
            raise refused("booleans have no order", self.place(node), "use = or <>")
        if operator.startswith("is "):
            raise refused(
                "IS DISTINCT FROM needs a literal", self.place(node), "use =, and is null"
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
        column = self._column_and(node.this, "BETWEEN")
        ends = self._values([node.args["low"], node.args["high"]])
        return ready_or_pending(column, "between", ends, self._here(node))

    def _in(self, node: exp.Expr) -> Predicate:
        if node.args.get("query") is not None:
            raise self.refusal(node.args["query"], "")
        self.only(node, "this", "expressions", "field")
        column = self._column_and(node.this, "IN")
        field = node.args.get("field")
        if field is None:
            values = self._values(node.expressions)
        elif isinstance(field, exp.Placeholder):
            values = (self._hole(field, many=True),)
        else:
            raise refused("IN needs a list in parentheses", self.place(node))
        return ready_or_pending(column, "in", values, self._here(node))

    def _like(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "expression", "negate")
        column = self._column_and(node.this, "LIKE")
        values = self._values([node.args["expression"]])
        found = ready_or_pending(column, "like", values, self._here(node))
        return _unless_negated(node, found)

    def _is(self, node: exp.Expr) -> Predicate:
        self.only(node, "this", "expression", "negate")
        return _unless_negated(node, self._is_not_negated(node))

    def _is_not_negated(self, node: exp.Expr) -> Predicate:
        subject, test = node.this, node.args["expression"]
        while isinstance(subject, exp.Paren):
            subject = subject.this
        if isinstance(test, exp.Null):
            if isinstance(subject, exp.Column):
                return IsNull(self.column(subject).name)
            self._null_depth += 1
            part = self.read(subject)
            self._null_depth -= 1
            return And((Not(IsTrue(part)), Not(IsTrue(Not(part)))))
        if isinstance(test, exp.Boolean):
            part = self.read(subject)
            return IsTrue(part if test.this else Not(part))
        raise refused("IS is followed by NULL, TRUE or FALSE", self.place(node))


_DATED = ("DATE", "TIMESTAMP")


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
    exp.Like: PredicateReader._like,
    exp.Is: PredicateReader._is,
    exp.Column: PredicateReader._boolean_column,
    exp.Boolean: PredicateReader._constant,
    exp.Null: PredicateReader._constant,
    **dict.fromkeys(_COMPARISONS, PredicateReader._comparison),
}
