"""A question written out from its tree, and the printed statement of what is promised about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from html import escape

from sqlglot import Parser, Tokenizer

from tacit.arguments import kind_of
from tacit.errors import TacitError
from tacit.numbers import decimal
from tacit.support import html_table
from tacit.tables.language.functions import DATE_PARTS
from tacit.tables.language.key_notes import notes
from tacit.tables.language.tallies import tally_schema
from tacit.tables.language.tree import (
    TRUE,
    Among,
    And,
    Computed,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Like,
    Members,
    Not,
    Or,
    People,
    PersonIn,
    Predicate,
    Question,
    Range,
    Rows,
    SameOrder,
    Term,
    Total,
    all_hold,
    conjuncts,
)
from tacit.tables.schema.codes import Code
from tacit.tables.schema.codes import literal as literal_of
from tacit.tables.schema.declarations import quoted
from tacit.tables.schema.schema import Column, Schema

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII | re.IGNORECASE)


@cache
def name(column: str) -> str:
    """A column's name as a question must write it: words of SQL in double quotes."""
    word = column.upper()
    # sqlglot does not document these.  Nothing else says which words it does not read as names;
    # tests/tables/test_sqlglot.py fails when they change.
    is_sql = word in Tokenizer.KEYWORDS or word in Parser.NO_PAREN_FUNCTION_PARSERS
    if _PLAIN.fullmatch(column) and not is_sql:
        return column
    return quoted(column)


def predicate(tree: Predicate, schema: Schema, name: Callable[[str], str] = name) -> str:
    """A predicate as text; reading it gives the same tree."""
    match tree:
        case Constant(value):
            return {True: "true", False: "false", None: "null"}[value]
        case Range(column) | Among(column) | Like(column):
            return _atom(tree, name(column), schema.column(column).literal)
        case Computed(function, atom):
            return _atom(atom, _call(function, name(atom.column)), _plain_literal)
        case SameOrder(left, right, equal):
            return f"{name(left)} {'=' if equal else '<='} {name(right)}"
        case IsNull(column):
            return f"{name(column)} is null"
        case IsTrue(part):
            return f"({predicate(part, schema, name)}) is true"
        case Not(part):
            return f"not {_nested(part, schema, name)}"
        case And(parts):
            return " and ".join(_nested(part, schema, name) for part in parts)
        case Or(parts):
            return " or ".join(_nested(part, schema, name) for part in parts)
        case PersonIn(column, table, term):
            return f"{name(column)} in ({_found_people(term, schema.table(table))})"
        case Members():
            raise AssertionError("who they are is seen by engines only")


def _nested(tree: Predicate, schema: Schema, name: Callable[[str], str]) -> str:
    text = predicate(tree, schema, name)
    return f"({text})" if isinstance(tree, And | Or | Not) else text


def _atom(tree: Range | Among | Like, written: str, literal: Callable[[Code], str]) -> str:
    """An atom about a column, or a function of one, that is written so."""
    match tree:
        case Range(_, low, high):
            return _range(written, *(None if end is None else literal(end) for end in (low, high)))
        case Among(_, ()):
            return f"{written} <> {written}"
        case Among(_, values):
            return f"{written} in ({', '.join(map(literal, values))})"
        case Like(_, pattern):
            return f"{written} like {literal(pattern)}"


def _plain_literal(code: Code) -> str:
    return literal_of("text" if isinstance(code, str) else "integer", None, code)


def _call(function: str, column: str) -> str:
    word, _, number = function.partition(" ")
    if word in ("left", "right"):
        return f"{word}({column}, {number})"
    return f"extract({word} from {column})" if word in DATE_PARTS else f"{word}({column})"


def _range(written: str, low: str | None, high: str | None) -> str:
    if low is None:
        return f"{written} <= {high}"
    if high is None:
        return f"{written} >= {low}"
    if low == high and low in ("true", "false"):
        return written if low == "true" else f"{written} = false"
    return f"{written} = {low}" if low == high else f"{written} between {low} and {high}"


def question(asked: Question, schema: Schema) -> str:
    """A question as one line of text."""
    written = ""
    for step, term in zip(asked.promise.steps, asked.terms, strict=True):
        weight = step * asked.grid / _unit(term, schema)
        sign = ("-" if weight < 0 else "") if not written else (" - " if weight < 0 else " + ")
        size = "" if abs(weight) == 1 else f"{decimal(abs(weight))} * "
        written += sign + size + _term(term, schema)
    return written


def _unit(term: Term, schema: Schema) -> Fraction:
    return schema.column(term.column).step if isinstance(term, Total) else Fraction(1)


def _term(term: Term, schema: Schema) -> str:
    where = predicate(term.where, schema)
    if isinstance(term, People):
        return f"count({where})"
    if isinstance(term, Having):
        return f"select count(*) from ({_having(term, schema)})"
    head = "count(*)" if isinstance(term, Rows) else f"sum({name(term.column)})"
    return head if term.where == Constant(True) else f"{head} filter (where {where})"


def _having(term: Having, schema: Schema) -> str:
    written = {}
    for tally_name, tally in term.tallies:
        inner = "*" if tally.column is None else name(tally.column)
        always = conjuncts(term.where)
        further = all_hold(tuple(each for each in conjuncts(tally.where) if each not in always))
        only = "" if further == TRUE else f" filter (where {predicate(further, schema)})"
        written[tally_name] = f"{tally.function}({inner}){only}"
    tested = predicate(term.condition, tally_schema(term.tallies, schema), written.__getitem__)
    where = "" if term.where == TRUE else f" where {predicate(term.where, schema)}"
    person, table = name(str(schema.person)), name(schema.name)
    return f"select {person} from {table}{where} group by {person} having {tested}"


def _found_people(term: People | Having, schema: Schema) -> str:
    """A SELECT that finds the people whom a term counts."""
    if isinstance(term, Having):
        return _having(term, schema)
    where = "" if term.where == TRUE else f" where {predicate(term.where, schema)}"
    return f"select {name(str(schema.person))} from {name(schema.name)}{where}"


@dataclass(frozen=True, slots=True)
class Statement:
    """What is promised about a question, or why it is refused.  It says nothing about the data.

    It is falsy if the question is refused.
    """

    text: str
    refusal: str | None = None
    sensitivity: Fraction | None = None
    direction: int | None = None
    grid: Fraction | None = None
    cells: int | None = None
    counts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What may be a mistake, though it can be asked: a value that is no declared key."""

    def __bool__(self) -> bool:
        return self.refusal is None

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"refused: {self.refusal}"
        return "\n".join(f"{label:<12} {value}" for label, value in self._lines())

    def _repr_html_(self) -> str:
        if self.refusal is not None:
            return f"<b>refused</b><pre>{escape(self.refusal)}</pre>"
        return html_table("this can be asked", self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        lines = [("question", self.text)]
        lines += [("adds up", line) for line in self.counts]
        if self.cells is not None:
            lines.append(("cells", f"{self.cells}, each a question of its own"))
        return [
            *lines,
            ("sensitivity", str(self.sensitivity)),
            ("direction", _DIRECTIONS[self.direction]),
            ("grid", str(self.grid)),
            *(("note", line) for line in self.notes),
        ]


_DIRECTIONS = {
    1: "+1: adding a person never lowers the answer",
    -1: "-1: adding a person never raises the answer",
    0: "0: adding a person may move the answer either way",
    None: "",
}


COLUMN_HEADS = ("column", "type", "declared")
_KEYS_SHOWN = 6


def declared_in_words(column: Column) -> tuple[str, str, str]:
    """A column's name and type, and what is declared about it.  All of it is public."""
    said = []
    if column.keys is not None:
        shown = ", ".join(map(column.literal, column.keys[:_KEYS_SHOWN]))
        more = f", … {len(column.keys)} in all" if len(column.keys) > _KEYS_SHOWN else ""
        said.append(f"keys {shown}{more}")
    if column.bounds is not None:
        said.append("from {} to {}".format(*map(column.literal, column.bounds)))
    if column.total is not None:
        low, high = (decimal(code * column.step) for code in column.total)
        said.append(f"a person's total from {low} to {high}")
    if column.grid is not None:
        said.append(f"grid {decimal(column.grid)}")
    if column.zone is not None:
        said.append(f"days and hours of {column.zone}")
    return column.name, column.type, "; ".join(said)


def statement(
    asked: Question, schema: Schema, cells: int | None = None, text: str | None = None
) -> Statement:
    """What is promised about a question; for GROUP BY, about the question of each cell."""
    return Statement(
        text=question(asked, schema) if text is None else text,
        sensitivity=asked.sensitivity,
        direction=asked.direction,
        grid=asked.grid,
        cells=cells,
        counts=tuple(dict.fromkeys(_meaning(term, schema) for term in asked.terms)),
        notes=notes(asked, schema),
    )


def refusal(question: object, why: TacitError) -> Statement:
    """Why a question is refused; it may be of any type."""
    shown = question if isinstance(question, str) else kind_of(question)
    return Statement(shown, refusal=str(why))


def _meaning(term: Term, schema: Schema) -> str:
    each_row = not isinstance(schema.person, str)
    if isinstance(term, People):
        return "1 for each such row" if each_row else "1 for each person with at least one such row"
    if isinstance(term, Having):
        return "1 for each person of whose rows together this holds"
    if isinstance(term, Rows):
        return f"the number of such rows, at most {term.most} of each person"
    step = schema.column(term.column).step
    who = "each row's value" if each_row else "each person's total"
    return f"{who}, clamped to [{decimal(term.low * step)}, {decimal(term.high * step)}]"
