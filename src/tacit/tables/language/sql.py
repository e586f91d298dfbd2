"""Reading a question: a predicate, a weighted sum of counts, or a SELECT.

The text is parsed by sqlglot and rebuilt as the tree of ``question.py``.  No part of the text
reaches an engine.  What is not listed in ``docs/questions.md`` is refused, with its place
underlined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from tacit.arguments import LONGEST_QUESTION, instance
from tacit.errors import TacitError
from tacit.tables.language.aggregates import AGGREGATE_HINT, CANCELS, AggregateReader, WeightedTerm
from tacit.tables.language.grouping import GroupReader
from tacit.tables.language.keys import NO_KEYS, KeySet
from tacit.tables.language.operands import TOO_DEEP
from tacit.tables.language.parsing import NOT_SQL, Span, parsed, readable, refused
from tacit.tables.language.per_person import GroupedPeopleReader, from_table
from tacit.tables.language.predicates import PredicateReader
from tacit.tables.language.subqueries import SubqueryReader
from tacit.tables.language.tree import (
    TRUE,
    People,
    Predicate,
    Question,
    weighted,
)
from tacit.tables.schema.schema import Schema

_NOT_IN_SELECT = {
    "laterals": ("a question is about one table", ""),
    "with_": ("a question may not contain another query", "ask the table itself, without WITH"),
    "having": (
        "HAVING would show true counts",
        "use the threshold of a stream, or table.query(..., at_most=...)",
    ),
    "order": ("cells come in the order in which the schema declares them", "remove ORDER BY"),
    "limit": ("every declared cell is answered", "remove LIMIT"),
    "distinct": ("SELECT DISTINCT is not part of the language", "use COUNT(DISTINCT person)"),
    "windows": ("window functions are not part of the language", ""),
    "qualify": ("window functions are not part of the language", ""),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was read from a text: a question whose parameters are open, and its cells."""

    shape: Question
    parameters: frozenset[str]
    keys: KeySet


def read(
    text: str,
    schema: Schema,
    max_rows: int | None = None,
    total: Sequence[object] | None = None,
    longest: int = LONGEST_QUESTION,
) -> Parsed:
    """Read a text, or refuse it."""
    instance(schema, "schema", Schema, "give a Schema, such as tacit.tables.read_schema makes")
    reader = TextReader(readable(text, longest), schema, max_rows, total)
    return read_or_refused(text, reader.read)


def read_predicate(text: str, schema: Schema) -> tuple[Predicate, frozenset[str]]:
    """Read a text that must be a predicate, and its parameters."""
    reader = TextReader(readable(text), schema, None, None)
    return read_or_refused(text, reader.read_predicate)


def read_or_refused(text: str, reading: Callable[[], T]) -> T:
    """What is read, or a refusal, whatever goes wrong."""
    try:
        return reading()
    except TacitError:
        raise
    except RecursionError:
        problem = TOO_DEEP  # refused below, without the thousand frames of its traceback
    except Exception:  # sqlglot, or our use of its tree, did not expect this text
        problem = NOT_SQL
    raise refused(problem, Span(text, 0, len(text)))


class TextReader:
    """Reads one text."""

    def __init__(
        self, text: str, schema: Schema, max_rows: int | None, total: Sequence[object] | None
    ) -> None:
        self.text = text
        self.schema = schema
        self.predicates = PredicateReader(text, schema)
        self.aggregates = AggregateReader(self.predicates, max_rows, total)

    def read(self) -> Parsed:
        """A question."""
        return self.read_tree(parsed(self.text))

    def read_tree(self, root: exp.Expr) -> Parsed:
        """A question that was parsed."""
        keys = NO_KEYS
        parts: list[WeightedTerm] = []
        if isinstance(root, exp.Select):
            keys = self._select(root, parts)
        elif _is_aggregate(root):
            self.aggregates.weighted(root, TRUE, parts)
        else:
            parts.append((Fraction(1), People(self.predicates.read(root)), Fraction(1)))
        shape = weighted(parts)
        if shape is None:
            raise refused(CANCELS, self._everything())
        return Parsed(shape, self.parameters, keys)

    def read_predicate(self) -> tuple[Predicate, frozenset[str]]:
        """A predicate, and its parameters."""
        return self.predicates.read(parsed(self.text)), self.parameters

    @property
    def parameters(self) -> frozenset[str]:
        """Those that were read so far."""
        return frozenset(self.predicates.parameters.values())

    def _everything(self) -> Span:
        return Span(self.text, 0, len(self.text))

    # SELECT

    def _select(self, select: exp.Select, parts: list[WeightedTerm]) -> KeySet:
        self.aggregates.inside_select = True
        clause = select.args.get("from_")
        if clause is not None and isinstance(clause.this, exp.Subquery):
            question = GroupedPeopleReader(self.predicates).read(select, clause)
            parts.append((Fraction(1), question, Fraction(1)))
            return NO_KEYS
        where, group, aggregates = self.clauses(select)
        if len(aggregates) != 1:
            raise refused(
                "a question has one answer: select exactly one count or sum",
                self.predicates.place(select),
                "table.query(...) takes several",
            )
        self.aggregates.weighted(aggregates[0], where, parts)
        return group.keys

    def clauses(self, select: exp.Select) -> tuple[Predicate, GroupReader, list[exp.Expr]]:
        """WHERE, GROUP BY, and what is selected beside its keys."""
        for key, (problem, hint) in _NOT_IN_SELECT.items():
            if found := select.args.get(key):
                node = found[0] if isinstance(found, list) else found
                place = self.predicates.place(node if isinstance(node, exp.Expr) else select)
                raise refused(problem, place, hint)
        self.predicates.only(select, "expressions", "from_", "joins", "where", "group")
        from_table(self.predicates, select)
        condition = select.args.get("where")
        if select.args.get("joins"):
            where = SubqueryReader(self.predicates).joined(select, condition)
        else:
            where = TRUE if condition is None else self.predicates.read(condition.this)
        group = GroupReader(self.predicates, select)
        return where, group, self._selected(select, group)

    def _selected(self, select: exp.Select, group: GroupReader) -> list[exp.Expr]:
        """The selected expressions other than the keys of GROUP BY."""
        found = []
        for node in select.expressions:
            if isinstance(node, exp.Alias):
                self.predicates.only(node, "this", "alias")
                node = node.this
            if group.is_key(node):
                continue
            if group.is_of_rows(node):
                raise refused("rows cannot be shown", self.predicates.place(node), AGGREGATE_HINT)
            found.append(node)
        return found


def _is_aggregate(node: exp.Expr) -> bool:
    """Whether a text without SELECT is a sum of aggregates, rather than a predicate."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(
        node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Filter | exp.AggFunc | exp.Literal
    )
