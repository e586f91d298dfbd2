"""A made-up table with a budget of its own, for trying questions: it is about nobody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tacit.analyst.open_tables import put_together
from tacit.analyst.table import Table
from tacit.arguments import instance
from tacit.budget import Budget
from tacit.errors import BadParameter
from tacit.numbers import whole
from tacit.tables.sample import made_up_engine
from tacit.tables.schema.schema import PERSON_HELP, Person, Schema
from tacit.tables.sources.declaring import written_schema

_MOST_PEOPLE = 1_000_000
_MOST_SEED = 2**64
_EPSILON = 1000  # enough for trying; nobody is promised anything


class DummyTable(Table):
    """A table about nobody, with a budget in memory to pay from: ``tacit.dummy`` makes one."""

    def __init__(self, schema: Schema, people: int, seed: int, as_of: str | None) -> None:
        alone = replace(schema, beside=())
        super().__init__(made_up_engine(alone, people, seed), people=people, as_of=as_of)
        self._others = [Table(made_up_engine(each, people, seed)) for each in schema.beside]
        if self._others:
            put_together({each.name: each for each in (self, *self._others)})
        covers = [each.name for each in (schema, *schema.beside)]
        self._budget = Budget.in_memory(epsilon=_EPSILON, delta="1/1000", covers=covers)

    @property
    def budget(self) -> Budget:
        """A budget in memory that covers the table; give it wherever one is asked for."""
        return self._budget

    def close(self) -> None:
        """Forget the table, and what was spent on it."""
        self._budget.close()
        for other in self._others:
            other.close()
        super().close()


def dummy(
    schema: Schema | str | Path,
    *,
    person: Person | None = None,
    name: str | None = None,
    people: int = 1000,
    seed: int = 0,
    as_of: str | None = None,
) -> DummyTable:
    """A made-up table of a public schema, to try questions on; ``tacit.dummy`` is this function.

    ``schema`` is a table's ``schema``, or TOML text or a TOML file, and then ``person`` and
    ``name`` are needed as in ``tacit.open``.  The rows follow from the schema, ``people`` and
    ``seed`` alone: not a bit of them comes from data, so whatever is asked is free.
    """
    if isinstance(schema, Schema):
        if person is not None or name is not None:
            raise BadParameter(
                "person",
                "one beside a Schema",
                "a Schema says the person and the name: leave both out",
            )
        declared = schema
    else:
        instance(schema, "schema", (str, Path), "give table.schema, TOML text or a TOML file")
        if person is None:
            raise BadParameter("person", None, PERSON_HELP)
        if name is None:
            raise BadParameter("name", None, "give the name by which FROM calls the table")
        declared = written_schema(schema, name, person)
    count = whole(people, "people")
    if count > _MOST_PEOPLE:
        raise BadParameter("people", count, f"it must be at most {_MOST_PEOPLE}")
    number = whole(seed, "seed", at_least=0)
    if number >= _MOST_SEED:
        raise BadParameter("seed", "a large number", f"it must be less than {_MOST_SEED}")
    return DummyTable(declared, count, number, as_of)


dummy.__qualname__ = "tacit.dummy"  # what Python calls it when an argument is wrong
