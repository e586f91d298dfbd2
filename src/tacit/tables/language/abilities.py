"""What an engine may lack, and what a question needs: refused before anything is paid for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tacit.errors import QuestionRefused
from tacit.tables.language.tree import (
    Computed,
    Having,
    Like,
    PersonIn,
    Predicate,
    Question,
    Rows,
    SameOrder,
    Term,
    Total,
    limits,
    walk,
)
from tacit.tables.schema.schema import Schema

ABILITIES: Mapping[str, str] = {
    "points": "give the rows themselves, which histograms and small databases need",
    "random rows": "choose at random which rows of a person count",
    "rows by person": "choose at random in which cells of a GROUP BY a person counts",
    "rows": "count several rows of a person",
    "sums": "add up a column",
    "wide sums": "add up a column whose bounds or totals do not fit into 32 bits",
    "patterns": "look for text patterns (LIKE)",
    "functions": "compute UPPER, LOWER, LENGTH, LEFT, RIGHT, and parts of dates",
    "conditions": "test all rows of a person together (HAVING)",
    "column pairs": "compare two columns with each other",
    "people": "find people by other rows of theirs, here or in another table",
}
"""What an engine may list in ``cannot``.  Every engine can do everything else."""

WIDE = 2**31
"""Sums of values smaller than this are exact in 64 bits, for up to 2^32 rows."""


def refuse_beyond(cannot: Collection[str], question: Question, schema: Schema) -> None:
    """Refuse a question that needs an ability that the engine does not have."""
    for term in question.terms:
        for ability in _needed(term, schema):
            if ability in cannot:
                raise QuestionRefused(
                    f"this question needs an engine that can {ABILITIES[ability]}, and that of "
                    f"{schema.name} cannot. Nothing was spent."
                )


def _needed(term: Term, schema: Schema) -> Iterator[str]:
    if isinstance(term, Rows):
        yield "rows"
    if isinstance(term, Total):
        yield "sums"
        ends = (*limits(term), *schema.column(term.column).range)
        if max(map(abs, ends)) >= WIDE:
            yield "wide sums"
    yield from _needed_by(term.where)
    if isinstance(term, Having):
        yield "conditions"
        yield from _needed_by(term.condition)
        for _, tally in term.tallies:
            yield from _needed_by(tally.where)


def _needed_by(predicate: Predicate) -> Iterator[str]:
    for tree in walk(predicate):
        if isinstance(tree, Computed):
            yield "functions"
            yield from _needed_by(tree.atom)
        elif type(tree) in _NEEDED:
            yield _NEEDED[type(tree)]


_NEEDED: dict[type, str] = {Like: "patterns", SameOrder: "column pairs", PersonIn: "people"}
