"""What a stream is bound to: written when it is opened, and the only thing to resume it with."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.book.one_sided import prepare
from tacit.book.recipe import Recipe
from tacit.errors import StreamMismatch

if TYPE_CHECKING:
    from tacit.book.mechanism import SparseVector
    from tacit.tables.schema import Schema


def binding_of(schema: Schema, mechanism: SparseVector, kind: str) -> dict[str, str]:
    """Table, people, schema, kind of questions, threshold and recipe, as text."""
    recipe = {f"recipe.{name}": text for name, text in mechanism.recipe.as_json().items()}
    return {
        "table": schema.name,
        "person": whose_row(schema),
        "schema": schema.digest,
        "kind": kind,
        "threshold": str(mechanism.threshold),
        "sensitivity": str(mechanism.sensitivity),
        "grid": str(mechanism.grid),
        **recipe,
    }


def mechanism_of(binding: Mapping[str, str], stream: str) -> SparseVector:
    """The mechanism that a stored binding describes."""
    try:
        recipe = {
            key.removeprefix("recipe."): text
            for key, text in binding.items()
            if key.startswith("recipe.")
        }
        return prepare(
            Recipe.from_json(recipe),
            threshold=Fraction(binding["threshold"]),
            sensitivity=Fraction(binding["sensitivity"]),
            grid=Fraction(binding["grid"]),
        )
    except (KeyError, ValueError):
        raise StreamMismatch(f"stream {stream!r} was not opened by this version of Tacit") from None


def whose_row(schema: Schema) -> str:
    """The person column, or that each row is a person; no column is mistaken for the latter."""
    person = schema.person
    if not isinstance(person, str):
        return "each row"
    return f'"{person}"' if person == "each row" or person.startswith('"') else person
