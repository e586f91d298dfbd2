"""Which schema a source has: one that was given, one beside the data, or its own types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tacit.errors import BadParameter, SchemaMismatch
from tacit.tables.schema.codes import own_grid, own_type, why_not
from tacit.tables.schema.declarations import folded
from tacit.tables.schema.schema import Column, Person, Schema, read_schema
from tacit.tables.schema.text_format import AS_USUAL, TextFormat
from tacit.tables.sources.kinds import MANY_FILES
from tacit.tables.sources.source import Source

SCHEMA_HELP = "give a Schema, TOML text or a TOML file"


class Declaring:
    """The schema that was given, the one beside the data, or the types of the source alone.

    It is read when the name of the source is known: of a text file, before that is read.
    """

    def __init__(self, given: Schema | str | Path | None, name: str | None, person: Person) -> None:
        self._given = given
        self._name = name
        self._person = person
        self._declared: Schema | None = None

    def written(self, file: Source) -> TextFormat:
        """How a text file is written; as usual, if nothing is declared at all."""
        return AS_USUAL if self._of(file) is None else self.schema(file).written

    def schema(self, source: Source) -> Schema:
        """The schema of this source."""
        if self._declared is None:
            given, name = self._of(source), self._name or source.name
            if given is None:
                self._declared = _types_only(source, name, self._person)
            else:
                self._declared = given_schema(given, name, self._person)
        return self._declared

    def _of(self, source: Source) -> Schema | str | Path | None:
        if self._given is None and source.sidecar is not None and source.sidecar.is_file():
            return source.sidecar
        return self._given


def written_schema(given: str | Path, name: str, person: Person) -> Schema:
    """A schema from TOML text, or from a TOML file."""
    is_text = isinstance(given, str) and "[columns" in given
    if is_text:
        return read_schema(str(given), name=name, person=person)
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        allowed = f"as a file it cannot be read ({why}); TOML text must have [columns] in it"
        raise BadParameter("schema", str(given), allowed) from None
    return read_schema(text, name=name, person=person)


def given_schema(schema: Schema | str | Path | None, name: str | None, person: Person) -> Schema:
    """What shards mean, which they do not say themselves."""
    if name is None:
        whose = "the source is a folder, so it must hold shards: give the name of their table"
        raise BadParameter("name", None, f"{whose}; {MANY_FILES}")
    if schema is None:
        raise BadParameter("schema", None, "shards hold no schema: give the one they have")
    if isinstance(schema, Schema):
        same = replace(schema, name=name, person=person)
        return schema if same == schema else same
    return written_schema(schema, name, person)


def _types_only(source: Source, name: str, person: Person) -> Schema:
    """A schema of the types that the source itself declares; no value is looked at."""
    if not source.typed:
        raise SchemaMismatch(
            f"{name} does not declare the types of its columns: write a schema to "
            f"{source.sidecar}; `tacit schema` proposes one"
        )
    columns = [
        Column(column, declared, own_grid(source_type))
        for column, source_type in source.columns.items()
        if (declared := own_type(source_type)) is not None
    ]
    return Schema(name, person, tuple(columns), cannot_ask=unaskable(source))


def unaskable(source: Source) -> tuple[tuple[str, str], ...]:
    """The columns for whose type there is none to declare, each with the reason."""
    return tuple(
        (column, f"it holds {hint}" if hint else why_not(source_type))
        for column, source_type in source.columns.items()
        for hint in [source.hints.get(folded(column))]
        if own_type(source_type) is None
    )
