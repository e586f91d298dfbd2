"""Rows with the people they belong to, and what each person adds to the cells of a GROUP BY.

Where a person lies in more cells than a release covers, those that count are chosen at random, for
each person by themselves.  So is which of a person's rows count in a cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.engine.totals import SAFE
from tacit.tables.language.tree import People, Predicate, Rows, Total

if TYPE_CHECKING:
    from tacit.book.coins import Coins

Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Coded:
    """A column by row: its codes, and whether there is one.

    Text is given as its place among the declared keys; other text is not there.
    """

    codes: Integers
    there: Truths


@dataclass(frozen=True, slots=True)
class PersonRows:
    """Rows, each with a number that stands for its person and says nothing else.

    Privacy: these are the data.  Only a mechanism may see them.
    """

    people: Integers
    columns: Mapping[str, Coded]
    tests: Mapping[Predicate, Truths]  # whether each is TRUE of a row


def joined_rows(parts: Sequence[PersonRows]) -> PersonRows:
    """The rows of several parts; each person must be in one of them only."""
    if len(parts) == 1:
        return parts[0]
    people, start = [], 0
    for part in parts:
        people.append(part.people + start)
        start += 1 + int(part.people.max(initial=0))
    first = parts[0]
    columns = {
        name: Coded(
            np.concatenate([part.columns[name].codes for part in parts]),
            np.concatenate([part.columns[name].there for part in parts]),
        )
        for name in first.columns
    }
    tests = {test: np.concatenate([part.tests[test] for part in parts]) for test in first.tests}
    return PersonRows(np.concatenate(people), columns, tests)


def only_cells(cells: Integers, told: Sequence[int], count: int) -> Integers:
    """The place of each row's cell among those that are told, or -1 if it is none of them."""
    place_of = np.full(count + 1, -1, np.int64)
    place_of[list(told)] = np.arange(len(told))
    return place_of[cells]  # that of -1 is the last


def in_chosen_cells(people: Integers, cells: Integers, most: int, coins: Coins) -> Truths:
    """Which rows lie in a cell that counts: at most ``most`` cells of each person, at random.

    Privacy: the choice is made for each person by themselves; whoever is added or removed changes
    nothing about the others.
    """
    inside = np.flatnonzero(cells >= 0)
    counted = np.zeros(len(people), np.bool_)
    if not len(inside):
        return counted
    pairs, pair_of_row = pairs_of(people[inside], cells[inside])
    counted[inside] = first_at_random(pairs[:, 0], most, coins)[pair_of_row]
    return counted


def first_at_random(owners: Integers, most: int, coins: Coins) -> Truths:
    """Of the entries of each owner, ``most`` chosen uniformly at random, or all if there are fewer.

    Each gets a random number; that two of an owner's are equal happens once in 2^62.
    """
    order = np.lexsort((coins.belows(1 << 62, len(owners)), owners))
    return first_of_each(owners, order, most)


def first_of_each(owners: Integers, order: Integers, most: int) -> Truths:
    """The first ``most`` entries of each owner, in an order that goes from owner to owner."""
    chosen = np.zeros(len(owners), np.bool_)
    if not len(owners):
        return chosen
    sorted_owners = owners[order]
    firsts = np.flatnonzero(np.append(True, sorted_owners[1:] != sorted_owners[:-1]))
    sizes = np.diff(np.append(firsts, len(owners)))
    chosen[order[np.arange(len(owners)) - np.repeat(firsts, sizes) < most]] = True
    return chosen


def pairs_of(people: Integers, cells: Integers) -> tuple[Integers, Integers]:
    """The distinct pairs of a person and a cell, and the place among them of each row's."""
    order = np.lexsort((cells, people))
    person, cell = people[order], cells[order]
    new = np.append(True, (person[1:] != person[:-1]) | (cell[1:] != cell[:-1]))
    pair_of_row = np.empty(len(people), np.int64)
    pair_of_row[order] = np.cumsum(new) - 1
    return np.stack([person[new], cell[new]], axis=1), pair_of_row


def totals_by_cell(
    rows: PersonRows, cells: Integers, count: int, term: People | Rows | Total
) -> list[int]:
    """For each of ``count`` cells, the sum of what each person contributes to a term there.

    ``cells`` says in which cell each row counts, or -1.
    """
    kept = (cells >= 0) & rows.tests[term.where]
    if isinstance(term, Total):
        kept &= rows.columns[term.column].there
    at = np.flatnonzero(kept)
    if not len(at):
        return [0] * count
    pairs, pair_of_row = pairs_of(rows.people[at], cells[at])
    if isinstance(term, Total):
        values = rows.columns[term.column].codes[at]
        parts = clipped_sums(values, pair_of_row, len(pairs), (term.low, term.high))
    else:
        most = term.most if isinstance(term, Rows) else 1
        parts = np.minimum(np.bincount(pair_of_row, minlength=len(pairs)), most)
    return added_up(parts, pairs[:, 1], count)


def clipped_sums(
    values: NDArray[Any], owners: Integers, count: int, ends: tuple[int, int]
) -> NDArray[Any]:
    """The sum of each owner's values, clamped; in Python's integers if 64 bits may not do."""
    largest = max(abs(int(values.min())), abs(int(values.max())))
    if max(largest * len(values), *map(abs, ends)) >= SAFE:
        values = values.astype(object)
    sums = np.zeros(count, values.dtype)
    np.add.at(sums, owners, values)
    return np.clip(sums, *ends)


def added_up(parts: NDArray[Any], cells: Integers, count: int) -> list[int]:
    """The sum of the parts of each cell, exactly."""
    if not len(parts):
        return [0] * count
    if max(abs(int(parts.min())), abs(int(parts.max()))) * len(parts) >= SAFE:
        parts = parts.astype(object)
    totals = np.zeros(count, parts.dtype)
    np.add.at(totals, cells, parts)
    return [int(total) for total in totals]
