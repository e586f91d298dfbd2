"""What to say about a value that a question names and the schema does not list among the keys.

Such a question is allowed, and counts whoever has that value; most often it is misspelt.  What is
said depends on the text and the schema alone, and both are public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from tacit.tables.language.tree import (
    Among,
    Having,
    People,
    PersonIn,
    Question,
    Range,
    Term,
    predicates_of,
    walk,
)
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import Column, Schema

_MOST_NOTES = 3
_MOST_COMPARED = 1000  # keys, and letters of a value: comparing takes time
_MOST_LISTED = 6


def notes(asked: Question, schema: Schema) -> tuple[str, ...]:
    """A line for each value that is not among the declared keys of its column; the first few."""
    return notes_on(asked.terms, schema)


def notes_on(terms: Iterable[Term], schema: Schema) -> tuple[str, ...]:
    """The same for what is counted or added up, in whatever."""
    found: dict[str, None] = {}
    for term in terms:
        for column, code in _in_term(term, schema):
            if column.keys is not None and code not in column.keys:
                found[_note(column, code)] = None
                if len(found) == _MOST_NOTES:
                    return tuple(found)
    return tuple(found)


def _note(column: Column, code: Code) -> str:
    said = f"{column.literal(code)} is not one of the declared keys of {column.name}"
    close = _closest(column, code)
    if close is not None:
        return f"{said}; did you mean {column.literal(close)}?"
    keys = column.keys or ()
    if len(keys) > _MOST_LISTED:
        return said
    return f"{said}, which are {', '.join(map(column.literal, keys))}"


def _closest(column: Column, code: Code) -> str | None:
    keys = [key for key in column.keys or () if isinstance(key, str)]
    if not isinstance(code, str) or max(len(code), len(keys)) > _MOST_COMPARED:
        return None
    folded = {key.casefold(): key for key in keys}
    close = get_close_matches(code.casefold(), folded, 1, 0.7)
    return folded[close[0]] if close else None


def _in_term(term: Term, schema: Schema) -> Iterator[tuple[Column, Code]]:
    """Each value that a column is compared with by = or IN, or their opposites."""
    for tree in (each for where in predicates_of(term) for each in walk(where)):
        match tree:
            case Range(column, low, high) if low is not None and low == high:
                yield schema.column(column), low
            case Among(column, values):
                yield from ((schema.column(column), value) for value in values)
            case PersonIn(table=table, term=People() | Having() as inner):
                yield from _in_term(inner, schema.table(table))
            case _:  # also a comparison with a parameter that is not given yet
                pass
