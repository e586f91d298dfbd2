"""What answers say of a value that is no declared key: most often it is misspelt.

A stream answers in some microseconds, and nearly all of its questions name declared keys only.  So
whether there is anything to say is seen at a glance, and `key_notes` finds what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tacit.tables.language.key_notes import notes, notes_on
from tacit.tables.language.prepared import representatives
from tacit.tables.language.tree import (
    Among,
    And,
    Having,
    IsTrue,
    Not,
    Or,
    PersonIn,
    Predicate,
    Range,
)

if TYPE_CHECKING:
    from tacit.tables.language.prepared import Read
    from tacit.tables.schema.codes import Code
    from tacit.tables.schema.schema import Schema

_Keys = Mapping[str, "frozenset[Code]"]  # by column


class KeyNotes:
    """Notes on one question after another: it remembers the keys of the schema that it saw last."""

    def __init__(self) -> None:
        self._known: tuple[Schema | None, _Keys] = None, {}

    def of(self, read: Read) -> tuple[str, ...]:
        """What may be a mistake in a question."""
        schema, keys = self._known
        if read.schema is not schema:
            keys = {each.name: frozenset(each.keys) for each in read.schema.columns if each.keys}
            self._known = read.schema, keys
        for term in read.question.terms:
            if type(term) is Having or not _listed(term.where, keys):
                return notes(read.question, read.schema)
        return ()

    def by_place(self, reads: Sequence[Read]) -> dict[int, tuple[str, ...]]:
        """The same for a list, where there is anything to say."""
        found = ((place, self.of(read)) for place, read in enumerate(reads))
        return {place: noted for place, noted in found if noted}


def notes_of(words: str | Read) -> tuple[str, ...]:
    """What may be a mistake in a question; nothing is known of one that is only text."""
    return () if isinstance(words, str) else notes(words.question, words.schema)


def notes_of_all(reads: Sequence[Read]) -> tuple[str, ...]:
    """What may be a mistake in a batch; the first few."""
    if not reads:
        return ()
    terms = (term for read in representatives(reads) for term in read.question.terms)
    return notes_on(terms, reads[0].schema)


def _listed(where: Predicate, keys: _Keys) -> bool:
    """Whether all that a column with keys is compared with is one of them; if not, look closer."""
    if isinstance(where, Range):
        value = where.low
        if value is None or value != where.high:
            return True
        return where.column not in keys or value in keys[where.column]
    if isinstance(where, (And, Or)):
        for part in where.parts:  # noqa: SIM110 -- quicker than `all`
            if not _listed(part, keys):
                return False
        return True
    if isinstance(where, Among):
        return where.column not in keys or keys[where.column].issuperset(where.values)
    if isinstance(where, (Not, IsTrue)):
        return _listed(where.part, keys)
    return not isinstance(where, PersonIn)  # whose people another table knows
