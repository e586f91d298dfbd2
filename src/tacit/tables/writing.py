"""Writing a tree as SQL, through sqlglot's expressions: each dialect is generated, none is typed.

Columns are the codes of the normal form, so every comparison is between integers, texts or
doubles, and no operator can fail on a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from sqlglot import exp

from tacit.tables.codes import Code, double_of_rank
from tacit.tables.question import (
    Among,
    And,
    Constant,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    Predicate,
    Range,
    SameOrder,
)
from tacit.tables.schema import Schema


def column(name: str) -> exp.Column:
    """A column, always quoted."""
    return exp.column(exp.to_identifier(name, quoted=True))


def code(schema: Schema, name: str, value: Code) -> exp.Expr:
    """A code as a literal of the type that the normal form has."""
    if isinstance(value, str):
        return exp.Literal.string(value)
    declared = schema.column(name)
    if declared.type == "real" and declared.grid is None:
        return exp.cast(exp.Literal.string(repr(double_of_rank(value))), "double")
    return exp.cast(exp.Literal.string(str(value)), "bigint")


def condition(schema: Schema, tree: Predicate) -> exp.Expr:
    """A predicate as a boolean expression, in parentheses wherever they could matter."""
    match tree:
        case Constant(None):
            return exp.cast(exp.null(), "boolean")
        case Constant(value):
            return exp.true() if value else exp.false()
        case Range(name, low, high):
            return _range(schema, name, low, high)
        case Among(name, ()):
            return exp.NEQ(this=column(name), expression=column(name))
        case Among(name, values):
            listed = [code(schema, name, value) for value in values]
            return exp.In(this=column(name), expressions=listed)
        case Like(name, pattern):
            return _like(name, pattern)
        case SameOrder():
            return _same_order(schema, tree)
        case IsNull(name):
            return exp.Is(this=column(name), expression=exp.null())
        case IsTrue(part):
            return exp.Coalesce(this=condition(schema, part), expressions=[exp.false()])
        case Not(part):
            return exp.Not(this=exp.paren(condition(schema, part)))
        case And(parts):
            return _chain(exp.And, (condition(schema, part) for part in parts))
        case Or(parts):
            return _chain(exp.Or, (condition(schema, part) for part in parts))


def _chain(kind: type[exp.And] | type[exp.Or], parts: Iterable[exp.Expr]) -> exp.Expr:
    """A balanced tree: a long chain must not exhaust anybody's stack."""
    level: list[exp.Expr] = [exp.paren(part) for part in parts]
    if not level:
        return exp.true() if kind is exp.And else exp.false()
    while len(level) > 1:
        paired = [
            exp.paren(kind(this=level[place], expression=level[place + 1]))
            for place in range(0, len(level) - 1, 2)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0]


def _range(schema: Schema, name: str, low: Code | None, high: Code | None) -> exp.Expr:
    if low is not None and low == high:
        return exp.EQ(this=column(name), expression=code(schema, name, low))
    ends: list[exp.Expr] = []
    if low is not None:
        ends.append(exp.GTE(this=column(name), expression=code(schema, name, low)))
    if high is not None:
        ends.append(exp.LTE(this=column(name), expression=code(schema, name, high)))
    if not ends:  # TRUE unless it is NULL
        return exp.EQ(this=column(name), expression=column(name))
    return reduce(lambda first, second: exp.And(this=first, expression=second), ends)


def _like(name: str, pattern: str) -> exp.Expr:
    """LIKE with an escape character of our own, since dialects differ in their default."""
    written = pattern.replace("!", "!!")
    like = exp.Like(this=column(name), expression=exp.Literal.string(written))
    return exp.Escape(this=like, expression=exp.Literal.string("!"))


def _same_order(schema: Schema, tree: SameOrder) -> exp.Expr:
    kind: Callable[..., exp.Expr] = exp.EQ if tree.equal else exp.LTE
    left, right = (schema.column(name) for name in (tree.left, tree.right))
    if left.step == right.step:
        return kind(this=column(left.name), expression=column(right.name))
    # Both in units of a common grid; 128 bits hold any 64-bit code times any grid's factor.
    common = left.step.denominator * right.step.denominator
    sides = [
        exp.Mul(
            this=exp.cast(column(side.name), "hugeint"),
            expression=exp.Literal.number((side.step * common).numerator),
        )
        for side in (left, right)
    ]
    return kind(this=sides[0], expression=sides[1])
