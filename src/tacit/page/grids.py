"""The grids of a GROUP BY, from what is on record: the same in every browser and after a reload.

A batch is kept in blocks, and each has its last question on record.  That question lies in a cell
of some declared keys, and the block says how many cells came before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import floor
from operator import itemgetter
from typing import NamedTuple

from tacit.analyst.table import Table
from tacit.analyst.tabular import plain_value
from tacit.book.answer import Answer
from tacit.errors import TacitError
from tacit.numbers import spaced
from tacit.page.figures import HEATS
from tacit.page.lines import AnswerLine
from tacit.page.rendering import number
from tacit.page.series import key_in_words
from tacit.tables.language.keys import Batch, KeySet, column_key
from tacit.tables.language.show import question as show_question
from tacit.tables.language.tree import Question, Range, all_hold, conjuncts, with_where
from tacit.tables.schema.schema import Schema

_MOST_GRIDS = 3
MOST_CELLS = 400  # to be drawn, of all grids together


class GridCell(NamedTuple):
    """What one cell of a grid says; ``heat`` is how strong its number is, from 1 to 4."""

    text: str
    above: bool = False
    heat: int | None = None


@dataclass(frozen=True, slots=True)
class CellGrid:
    """The cells of a GROUP BY: its keys down, and where there are several the last one across."""

    title: str
    words: str  # how far its numbers may be off
    names: tuple[str, ...]
    heads: tuple[str, ...]
    lines: tuple[tuple[tuple[str, ...], tuple[GridCell, ...]], ...]
    cells: int
    answered: int
    above: int


_Which = tuple[Question, tuple[str, ...], str | None]
"""What all cells of a GROUP BY ask, by which keys, as of which label."""


class _Asked(NamedTuple):
    """A GROUP BY that was asked, and what its cells came to so far."""

    batch: Batch
    told: list[Answer]


def grids_of(lines: Sequence[AnswerLine], table: Table, size: int) -> list[CellGrid]:
    """The last grids of a stream, newest first; its lines come newest first, too.

    ``size`` is how many questions a block has, unless fewer are left.
    """
    asked: dict[_Which, _Asked] = {}
    for line in reversed(lines):
        block = line.block
        if block is None:
            continue
        possible = []
        for batch, place in _cells_around(line, table):
            which = (batch.like, batch.columns, line.paid.as_of)
            start = place + 1 - block.answered
            before = asked[which].told[:start] if which in asked else []
            if len(before) == start and block.asked == min(len(batch) - start, size):
                possible.append((start, which, _Asked(batch, [*before, *block.answers])))
        if possible:  # one that goes on is likelier than one that begins in its midst
            _, which, one = max(possible, key=itemgetter(0))
            asked.pop(which, None)
            asked[which] = one  # the newest last
    drawn, left = [], MOST_CELLS
    for one in list(asked.values())[: -_MOST_GRIDS - 1 : -1]:
        drawn.append(_drawn(one, table.schema, most=left))
        left = max(0, left - len(one.told))
    return drawn


def _cells_around(line: AnswerLine, table: Table) -> Iterator[tuple[Batch, int]]:
    """The cells of a GROUP BY of which a question may be one, and its place; fewest keys first."""
    try:
        question = table.prepare(line.paid.question or "").question()
    except TacitError:  # it was too long to be kept whole, or the schema has changed
        return
    keys = KeySet()
    for part in reversed(conjuncts(question.terms[0].where)):
        column = table.schema.find(part.column) if isinstance(part, Range) else None
        if column is None or not column.cells or column.name in keys.names:
            return
        keys = KeySet((column_key(column), *keys))
        terms = [
            with_where(term, all_hold(conjuncts(term.where)[: -len(keys)]))
            for term in question.terms
        ]
        batch = Batch(question.with_terms(tuple(terms)), keys)
        place = batch.place(question)
        if place is not None:
            yield batch, place


# As a table ---------------------------------------------------------------------------------------


def _drawn(asked: _Asked, schema: Schema, *, most: int) -> CellGrid:
    batch, told = asked
    keys, question = batch.keys, show_question(batch.like, schema)
    labels = [[key_in_words(plain_value(key.gives, code)) for code in key.values] for key in keys]
    heads = tuple(labels.pop()) if len(labels) > 1 else ("Answer",)
    across = len(heads)
    numbers = [float(answer.unbiased) for answer in told if answer.unbiased is not None]
    ends = (min(numbers, default=0.0), max(numbers, default=0.0)) if len(keys) > 1 else None
    drawn = [_cell(answer, ends) for answer in told[:most]]
    lines = [
        (down, tuple(drawn[place : place + across]))
        for down, place in zip(product(*labels), range(0, len(drawn), across), strict=False)
    ]
    return CellGrid(
        title=f"{question.replace('(true)', '')} by {', '.join(keys.names)}",
        words="; ".join(_words(told, most, several=len(keys) > 1)),
        names=keys.names if len(keys) == 1 else keys.names[:-1],
        heads=heads,
        lines=tuple(lines),
        cells=len(batch),
        answered=len(told),
        above=sum(answer.above for answer in told),
    )


def _cell(answer: Answer, ends: tuple[float, float] | None) -> GridCell:
    """All that was told; in a heat map the number alone, and how it lies between the ends."""
    if answer.unbiased is None or ends is None:
        return GridCell(str(answer), answer.above)
    least, most = ends
    part = (float(answer.unbiased) - least) / (most - least) if most > least else 1.0
    heat = 1 + floor(part * (HEATS - 0.001))
    return GridCell(f"⊤ {spaced(answer.unbiased)}", above=True, heat=heat)


def _words(told: Sequence[Answer], most: int, *, several: bool) -> Iterator[str]:
    """What is to be known beside the cells."""
    if several and (words := _off_by(told)):
        yield words
    if len(told) > most:
        yield (
            f"only the first {number(most)} are drawn" if most else "not drawn: there are too many"
        )


def _off_by(told: Sequence[Answer]) -> str:
    """How far the numbers of a heat map may be off, in words: the same for all in a stream."""
    found = set()
    for answer in told:
        ends = answer.interval()
        if answer.unbiased is not None and ends is not None:
            found.add((ends[0] - answer.unbiased, ends[1] - answer.unbiased))
    if len(found) != 1:
        return ""
    ((low, high),) = found
    if -low == high:
        return f"each ± {spaced(high)} (95 %)"
    return f"the true number is between {spaced(-low)} less and {spaced(high)} more (95 %)"
