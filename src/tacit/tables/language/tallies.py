"""What a condition on all rows of a person compares: tallies, each a number for each person."""

from __future__ import annotations

from functools import lru_cache

from tacit.tables.language.tree import Tally
from tacit.tables.schema.schema import EACH_ROW, Column, Schema

NamedTallies = tuple[tuple[str, Tally], ...]


@lru_cache(maxsize=256)
def tally_schema(tallies: NamedTallies, schema: Schema) -> Schema:
    """The tallies as columns, as which a condition is read.

    A sum is held as its column holds values, without bounds; beyond, it is the greatest that fits.
    """
    return Schema(
        schema.name, EACH_ROW, tuple(_column(name, tally, schema) for name, tally in tallies)
    )


def _column(name: str, tally: Tally, schema: Schema) -> Column:
    if tally.column is None or tally.function == "count":
        return Column(name, "integer", bounds=(0, 2**62))
    of = schema.column(tally.column)
    return Column(name, of.type, of.grid, None if tally.function == "sum" else of.bounds)
