"""Tables that grow: up to where a source is read, and how new rows join those that are held.

A table that grows is read up to its label ``as_of``, a public value of one of its columns.  When it
is refreshed, the rows after the old label and up to the new one are read, and nothing else.  Which
rows count follows from these two labels and from each row alone, never from how many rows there
are.

Rows of a person who is held already join the shard that holds them.  A person in two shards would
count twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameter
from tacit.numbers import as_given, exact
from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, hold_words, numbered
from tacit.tables.encoded.shard_sets import new_set, write
from tacit.tables.encoded.shards import Shard
from tacit.tables.schema.codes import NUMBERS, Unfit, double_of_rank
from tacit.tables.schema.declarations import quoted
from tacit.tables.schema.schema import Column, Schema
from tacit.tables.sources.source import RowWindow

GROWS_BY_HELP = "name a declared column of dates, times or numbers"
_ORDERED = ("date", "timestamp", *NUMBERS)


# Up to where a source is read


def growing_column(schema: Schema, name: object) -> Column:
    """The column by which a table grows."""
    found = schema.find(name) if isinstance(name, str) else None
    if found is None or found.type not in _ORDERED:
        raise BadParameter("grows_by", as_given(name), GROWS_BY_HELP)
    return found


def label_place(column: Column, as_of: str | None) -> int:
    """The greatest code that a label covers."""
    kind = "a number" if column.type in NUMBERS else f"a {column.type}"
    allowed = (
        f"the table grows by {column.name}: give {kind}, up to which it is read; it is chosen by "
        "the steward or a clock, and never read from the data"
    )
    if as_of is None:
        raise BadParameter("as_of", None, allowed)
    try:
        place = column.place(exact(as_of, "as_of") if column.type in NUMBERS else as_of)
    except (Unfit, BadParameter):
        raise BadParameter("as_of", as_of, allowed) from None
    assert not isinstance(place, str)
    return floor(place)


def window_of(column: Column, after: str | None, until: str) -> RowWindow:
    """The rows after one label, or from the start, and up to another.  Those with NULL never count.

    Privacy: both labels are public, so whether a row counts depends on this row alone.
    """
    least, most = column.range
    low = None if after is None else label_place(column, after) + 1
    high = label_place(column, until)
    if after is not None and low is not None and high < low:
        raise BadParameter(
            "as_of", until, f"the table is read up to {after} already: give a later one"
        )
    nothing = high < least or (low is not None and low > most)
    sent = not nothing and column.zone is None  # a database does not know the clocks of the zone
    low = low if low is not None and low > least else None  # every code is at least the least
    return RowWindow(
        column.name,
        "false" if nothing else _between(column, low, min(high, most)),
        column.type,
        low if sent else None,
        high if sent and high < most else None,
    )


def _between(column: Column, low: int | None, high: int) -> str:
    """The condition that a code lies between two ends, as SQL on the normal form."""
    ends = [("<=", high)] if low is None else [(">=", low), ("<=", high)]
    return " AND ".join(
        f"{quoted(column.name)} {compared} {_literal(column, end)}" for compared, end in ends
    )


def _literal(column: Column, code: int) -> str:
    """A code of numbers or times in the type that the normal form has."""
    if column.type == "real" and column.grid is None:
        return f"CAST('{double_of_rank(code)!r}' AS DOUBLE)"
    return f"CAST('{code}' AS BIGINT)"


# Joining rows


def appended(
    schema: Schema, first: Mapping[str, EncodedColumn], then: Mapping[str, EncodedColumn]
) -> dict[str, EncodedColumn]:
    """Columns by row: the rows of one after those of the other."""
    return {
        name: (_texts if schema.column(name).type == "text" else _numbers)(held, then[name])
        for name, held in first.items()
    }


def _numbers(first: EncodedColumn, then: EncodedColumn) -> EncodedColumn:
    nulls = np.concatenate([held.codes == held.null for held in (first, then)])
    values = np.concatenate([held.values(held.codes) for held in (first, then)])
    return hold_numbers(np.where(nulls, 0, values), nulls)


def _texts(first: EncodedColumn, then: EncodedColumn) -> EncodedColumn:
    words = sorted({*first.words, *then.words})
    place = {word: number for number, word in enumerate(words)}
    codes = np.concatenate(
        [
            np.array([*(place[word] for word in held.words), len(words)], np.int64)[held.codes]
            for held in (first, then)
        ]
    )
    return hold_words(codes, codes == len(words), len(words), lambda: words)


def chosen(rows: Mapping[str, EncodedColumn], which: NDArray[np.bool_]) -> dict[str, EncodedColumn]:
    """Some of the rows."""
    return {name: replace(held, codes=held.codes[which]) for name, held in rows.items()}


# Joining shards


def homes(
    schema: Schema, shards: Sequence[Shard], rows: Mapping[str, EncodedColumn]
) -> NDArray[np.int64]:
    """For each row the number of its shard: the one that holds its person.

    All rows of somebody new go to one shard, it does not matter which.
    """
    if not isinstance(schema.person, str):
        return np.arange(len(next(iter(rows.values())).codes)) % len(shards)
    person = rows[schema.person]
    found = numbered(person.codes) % len(shards)
    for number, shard in enumerate(shards):
        held = shard.columns[schema.person]
        if schema.column(schema.person).type == "text":
            there = np.zeros(held.null + 1, np.bool_)  # words may be listed that no row has
            there[held.codes] = True
            known = {word for word, here in zip(held.words, there, strict=False) if here}
            same = np.array([*(word in known for word in person.words), False], np.bool_)
            found[same[person.codes]] = number
        else:
            values = held.values(held.codes[held.codes != held.null])
            found[np.isin(person.values(person.codes), values)] = number
    return found


def grown(
    schema: Schema, shards: Sequence[Shard], piece: Shard, most: int
) -> Iterator[tuple[int, Shard]]:
    """The shards that change when more people and rows come, each with the number of its old one.

    A shard that would have more than ``most`` rows becomes several.
    """
    rows = piece.rows
    home = homes(schema, shards, rows)
    for number, shard in enumerate(shards):
        here = home == number
        if here.any():
            together = appended(schema, shard.rows, chosen(rows, here))
            for part in _parts(schema, together, most):
                yield number, Shard.of(schema, part)


def _parts(
    schema: Schema, rows: Mapping[str, EncodedColumn], most: int
) -> Iterator[Mapping[str, EncodedColumn]]:
    """All rows, or parts of them by person if there are too many for one."""
    first = next(iter(rows.values()))
    parts = -(-len(first.codes) // most)
    if parts == 1:
        yield rows
        return
    people = np.arange(len(first.codes))
    if isinstance(schema.person, str):
        people = numbered(rows[schema.person].codes)
    for number in range(parts):
        here = people % parts == number
        if here.any():
            yield chosen(rows, here)


def written(
    schema: Schema, shards: Sequence[Shard], piece: Shard, most: int, folder: Path
) -> list[Shard]:
    """The shards after more rows came, mapped; those that changed are written anew.

    They are gone from the folder once they are mapped: what was read in several steps is not what
    a new reading would find, if rows came late.
    """
    changed: set[int] = set()

    def made() -> Iterator[Shard]:
        for number, shard in grown(schema, shards, piece, most):
            changed.add(number)
            yield shard

    with new_set(folder) as path:
        mapped = write(path, made(), None)
    return [shard for number, shard in enumerate(shards) if number not in changed] + mapped
