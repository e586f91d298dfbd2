"""Tables of the same people that are open together: a question about one may name the others.

What such a question says about another table is who is meant there: ``pid IN (SELECT pid FROM
labs WHERE ...)``.  Each engine finds people in its own table, and their codes are what the engine
of the other table is asked with.  So engines of any kind go together.

Privacy: whether a person is meant depends on that person's own rows alone.  Neighbours differ in
one person's rows in all these tables together, so the sensitivity of a question and its direction
are those of the table that it is about.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from tacit.errors import SchemaMismatch
from tacit.tables.engine.engine import Answering, Engine
from tacit.tables.engine.person_rows import PersonRows
from tacit.tables.engine.points import CountedPoints
from tacit.tables.language.keys import Batch
from tacit.tables.language.tree import (
    Members,
    PersonIn,
    Predicate,
    Question,
    Term,
    mapped,
    mapped_term,
    names_people,
    predicates_of,
)
from tacit.tables.schema.codes import Code
from tacit.tables.schema.declarations import folded
from tacit.tables.schema.schema import Schema

if TYPE_CHECKING:
    from tacit.book.coins import Coins

_MOST_KEPT = 8
"""How many sets of people are remembered: each may be as large as the table."""

T = TypeVar("T", bound=Predicate)


class TogetherEngine(Answering):
    """The engine of one table, which looks up who is meant in this table or in those beside it."""

    def __init__(self, engine: Engine, schema: Schema, beside: Mapping[str, Engine]) -> None:
        self.schema = schema
        self.cannot = engine.cannot
        self._engine = engine
        self._tables = {folded(schema.name): engine}
        self._tables |= {folded(name): other for name, other in beside.items()}
        self._kept: OrderedDict[PersonIn, Members] = OrderedDict()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.schema.name}>"

    def values(self, questions: Sequence[Question]) -> list[int]:
        """The true answers, in steps of each question's grid."""
        for question in questions:
            if question.promise.names_people:
                return super().values(questions)
        return self._engine.values(questions)

    def totals(self, terms: Sequence[Term]) -> list[int]:
        """For each term, the sum of what each person contributes."""
        return self._engine.totals([self._term(term) for term in terms])

    def cell_values(self, questions: Batch) -> NDArray[Any]:
        """`values` of all cells of a GROUP BY."""
        if questions.like.promise.names_people:
            return super().cell_values(questions)
        return self._engine.cell_values(questions)

    def cell_totals(
        self, like: Term, keys: Sequence[str], values: Sequence[Sequence[Code]]
    ) -> NDArray[Any]:
        """The totals of a term in each combination of values of the key columns, in order."""
        ready = self._term(like)
        if isinstance(self._engine, Answering):
            return self._engine.cell_totals(ready, keys, values)
        return super().cell_totals(ready, keys, values)

    def point_counts(
        self, columns: Sequence[str], *, max_rows: int = 1, coins: Coins | None = None
    ) -> CountedPoints:
        """The rows as codes of some columns, at most ``max_rows`` rows of each person."""
        return self._engine.point_counts(columns, max_rows=max_rows, coins=coins)

    def rows_by_person(
        self, where: Predicate, columns: Sequence[str], tests: Sequence[Predicate]
    ) -> PersonRows:
        """The rows for which ``where`` is TRUE, with their people as numbers."""
        ready = [self._looked_up(test) for test in tests]
        found = self._engine.rows_by_person(self._looked_up(where), columns, ready)
        tested = {test: found.tests[done] for test, done in zip(tests, ready, strict=True)}
        return PersonRows(found.people, found.columns, tested)

    def people_of(self, term: Term) -> NDArray[Any]:
        """See `Engine`."""
        return self._engine.people_of(self._term(term))

    def close(self) -> None:
        """Release the data of this table."""
        self._kept.clear()
        self._engine.close()

    # Looking up people

    def _term(self, term: Term) -> Term:
        if not any(names_people(where) for where in predicates_of(term)):
            return term
        return mapped_term(term, self._looked_up)

    def _looked_up(self, tree: Predicate) -> Predicate:
        """The predicate with the codes of those who are meant."""

        def found(atom: Predicate) -> Predicate:
            return self._members(atom) if isinstance(atom, PersonIn) else atom

        return mapped(tree, found) if names_people(tree) else tree

    def _members(self, tree: PersonIn) -> Members:
        kept = self._kept.get(tree)
        if kept is None:
            kept = Members(tree.column, self._tables[folded(tree.table)].people_of(tree.term))
            while len(self._kept) >= _MOST_KEPT:
                self._kept.popitem(last=False)
            self._kept[tree] = kept
        return kept


def refuse_other_people(schemas: Sequence[Schema]) -> None:
    """Refuse tables whose people have no common normal form.

    A person is the value of the person column.  If one table read it as a number and another as
    text, '007' and 7 would be two people, of whom a promise would cover only one.
    """
    first, *others = schemas
    for schema in schemas:
        if not isinstance(schema.person, str):
            raise SchemaMismatch(
                f"each row of {schema.name} is a person of its own, so nobody of it is in another "
                "table: open it by itself, or name its person column"
            )
    for other in others:
        one, two = (each.column(str(each.person)) for each in (first, other))
        if one.type != two.type:
            raise SchemaMismatch(
                f"the people of {first.name} are {one.type} ({one.name}) and those of {other.name} "
                f"are {two.type} ({two.name}): declare the same type in both schemas, so that a "
                "person is one value everywhere"
            )
    names = [folded(schema.name) for schema in schemas]
    if len(set(names)) < len(names):
        raise SchemaMismatch("tables that are open together need names that differ beyond case")
