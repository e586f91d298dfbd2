"""What a stream is bound to: stored when it is opened, and compared when it is resumed.

A stream is bound to what its promise depends on: who its people are, how each column was read and
bounded when the stream was opened, and its noise.  Columns may be added later, and so may key
values, which only say which cells a GROUP BY has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.analyst.task import Planned
from tacit.book.one_sided import prepare
from tacit.book.recipes import Recipe
from tacit.errors import StreamMismatch, TacitError
from tacit.tables.schema.codes import is_read_alike, literal

if TYPE_CHECKING:
    from tacit.book.sparse_vector import SparseVector
    from tacit.budget import TableIdentity
    from tacit.tables.schema.schema import Column, Person, Schema

_WHOSE = ("table", "person")
_COLUMN, _RECIPE, _PLANNED, _BESIDE = "column.", "recipe.", "planned.", "beside."
MAY_BE_ADDED = (_COLUMN, _BESIDE)
"""Columns and other tables may be added to a table after a stream was opened."""
_STORED = "stored"
_DIGEST = "schema"  # a hash, which is all that 0.1 stored about the columns
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, TacitError)


def binding_of(
    schema: Schema, mechanism: SparseVector, kind: str, planned: Planned | None
) -> dict[str, str]:
    """Table, people, columns, kind of questions, threshold, recipe and plan, as text."""
    rows = {} if schema.max_rows is None else {"max_rows": str(schema.max_rows)}
    columns = {column.name: _as_text(_facts(column)) for column in schema.columns}
    beside = {other.name: _as_text(_facts_of_table(other)) for other in schema.beside}
    return {
        "table": schema.name,
        "person": person_text(schema.person),
        **rows,
        "kind": kind,
        "threshold": str(mechanism.threshold),
        "sensitivity": str(mechanism.sensitivity),
        "grid": str(mechanism.grid),
        **_under(_COLUMN, columns),
        **_under(_BESIDE, beside),
        **_under(_RECIPE, mechanism.recipe.as_json()),
        **_under(_PLANNED, {} if planned is None else planned.as_json()),
    }


def tables_beside(binding: Mapping[str, str]) -> frozenset[str]:
    """The other tables that a stream's questions could name when it was opened."""
    return frozenset(_part(_BESIDE, binding))


def mechanism_of(binding: Mapping[str, str], stream: str) -> SparseVector:
    """The mechanism that a stored binding describes."""
    try:
        binding["kind"]  # a binding without it is malformed
        return prepare(
            Recipe.from_json(_part(_RECIPE, binding)),
            threshold=Fraction(binding["threshold"]),
            sensitivity=Fraction(binding["sensitivity"]),
            grid=Fraction(binding["grid"]),
        )
    except _MALFORMED:
        raise _of_another_version(stream) from None


def planned_of(binding: Mapping[str, str], stream: str) -> Planned | None:
    """What the stream was planned for; None if it was opened by 0.1, which did not store it."""
    fields = _part(_PLANNED, binding)
    try:
        return Planned.from_json(fields) if fields else None
    except _MALFORMED:
        raise _of_another_version(stream) from None


def refuse_other(
    stored: Mapping[str, str],
    schema: Schema,
    mechanism: SparseVector,
    planned: Planned | None,
    stream: str,
) -> None:
    """Refuse a table for which the stream's promise would mean something else."""
    now = binding_of(schema, mechanism, stored["kind"], planned)
    if _not_about_the_table(stored) != _not_about_the_table(now):
        raise _of_another_version(stream)  # it may depend on something unknown here
    differ = [_was(key, stored.get(key), now[key]) for key in _WHOSE if stored.get(key) != now[key]]
    if not differ and _DIGEST in stored:
        _refuse_other_digest(stored[_DIGEST], schema, stream)
    elif not differ:
        try:
            differ = list(_differences(stored, schema))
        except _MALFORMED:
            raise _of_another_version(stream) from None
    if differ:
        raise StreamMismatch(f"stream {stream!r} cannot be resumed here: {'; '.join(differ)}")


def _not_about_the_table(binding: Mapping[str, str]) -> dict[str, str]:
    """The part of a binding that is not about the table."""
    of_table = {*_WHOSE, "max_rows", _DIGEST}
    return {
        key: text
        for key, text in binding.items()
        if key not in of_table and not key.startswith(MAY_BE_ADDED)
    }


def person_text(person: Person) -> str:
    """A person column or EACH_ROW as text; a column that is called "each row" gets quotes."""
    if not isinstance(person, str):
        return "each row"
    return f'"{person}"' if person == "each row" or person.startswith('"') else person


def identity_of(schema: Schema) -> TableIdentity:
    """Who the people of a table are."""
    from tacit.budget import TableIdentity

    person = schema.person
    read_as = schema.column(person).type if isinstance(person, str) else person.value
    return TableIdentity(person_text(person), read_as, schema.digest)


# What is kept of a column ---------------------------------------------------------------------


def _facts(column: Column) -> dict[str, Any]:
    """What is declared about a column, in codes; its keys are left out."""
    declared = {
        "type": column.type,
        "grid": None if column.grid is None else str(column.grid),
        "bounds": None if column.bounds is None else list(column.bounds),
        "total": None if column.total is None else list(column.total),
        _STORED: column.stored,
    }
    return {name: fact for name, fact in declared.items() if fact is not None}


def _facts_of_table(schema: Schema) -> dict[str, Any]:
    """What a question may depend on of a table that is open together with the stream's."""
    columns = {column.name: _facts(column) for column in schema.columns}
    return {"person": person_text(schema.person), "columns": columns}


def _as_text(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def _differences(binding: Mapping[str, str], schema: Schema) -> Iterator[str]:
    """In words, what is declared differently now than when the stream was opened."""
    rows = None if schema.max_rows is None else str(schema.max_rows)
    if binding.get("max_rows") != rows:
        yield _was("max_rows", binding.get("max_rows"), rows)
    read = {name: json.loads(text) for name, text in _part(_COLUMN, binding).items()}
    yield from _differing_columns(read, schema)
    beside = {other.name: other for other in schema.beside}
    for name, text in _part(_BESIDE, binding).items():
        if name not in beside:
            yield f"table {name}: open together with it when it was opened, not now"
            continue
        then, other = json.loads(text), beside[name]
        for what in _differing_columns(then["columns"], other):
            yield f"table {name}: {what}"
        if then["person"] != person_text(other.person):
            yield f"table {name}: {_was('person', then['person'], person_text(other.person))}"


def _differing_columns(stored: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    columns = {column.name: column for column in schema.columns}
    for name, then in stored.items():
        if name not in columns:
            yield f"column {name}: declared when it was opened, not declared now"
            continue
        now = _facts(columns[name])
        if then["type"] != now["type"]:  # then nothing else can be compared
            then, now = {"type": then["type"]}, {"type": now["type"]}
        if is_read_alike(columns[name].type, then.get(_STORED), now.get(_STORED)):
            then.pop(_STORED, None), now.pop(_STORED, None)
        for fact in sorted({*then, *now}):
            before, after = _written(then, fact), _written(now, fact)
            if before != after:
                yield f"column {name}: {_was(fact, before, after)}"


def _written(facts: Mapping[str, Any], fact: str) -> str | None:
    """A fact as a schema would write it."""
    declared = facts.get(fact)
    if declared is None or fact not in ("bounds", "total"):
        return None if declared is None else str(declared)
    grid = facts.get("grid")
    step = None if grid is None else Fraction(grid)
    return "[" + ", ".join(literal(facts["type"], step, code) for code in declared) + "]"


def _was(what: str, then: str | None, now: str | None) -> str:
    return f"{what} {then or 'not declared'} when it was opened, {now or 'not declared'} now"


# Other versions -------------------------------------------------------------------------------


def _refuse_other_digest(digest: str, schema: Schema, stream: str) -> None:
    if digest != schema.digest:
        raise StreamMismatch(
            f"stream {stream!r} was opened by Tacit 0.1, which stored only a hash of the schema, "
            f"{digest[:12]}…; the hash of this schema is {schema.digest[:12]}…: resume the stream "
            "with the schema it was opened with, including its keys",
            advice="table.schema.digest is the hash of a table's schema",
        )


def _of_another_version(stream: str) -> StreamMismatch:
    return StreamMismatch(f"stream {stream!r} was not opened by this version of Tacit")


def _under(prefix: str, fields: Mapping[str, str]) -> dict[str, str]:
    return {prefix + name: text for name, text in fields.items()}


def _part(prefix: str, binding: Mapping[str, str]) -> dict[str, str]:
    return {
        key.removeprefix(prefix): text for key, text in binding.items() if key.startswith(prefix)
    }
