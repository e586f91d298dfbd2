"""What is measured for an aggregate, from the rows of each person."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.engine.person_rows import (
    Integers,
    PersonRows,
    added_up,
    clipped_sums,
    first_at_random,
    in_chosen_cells,
    pairs_of,
    totals_by_cell,
)
from tacit.tables.engine.totals import SAFE
from tacit.tables.language.aggregate_kinds import Distinct, Mean, Plain, Portion, Ratio, Spread
from tacit.tables.language.selected import Selected
from tacit.tables.language.tree import Having, People, Rows, Total
from tacit.tables.schema.schema import Column

if TYPE_CHECKING:
    from tacit.book.coins import Coins


def sorted_domain(column: Column) -> Sequence[int]:
    """The codes of a column's declared values, in their order."""
    domain = column.domain
    assert domain is not None
    return domain if isinstance(domain, range) else sorted(int(code) for code in domain)


def measured(
    rows: PersonRows, cells: Integers, count: int, asked: Selected, coins: Coins
) -> list[list[int]]:
    """The true values of the parts of an aggregate, in steps, for each of ``count`` cells.

    ``cells`` says in which cell each row counts, or -1.
    """
    kind = asked.kind
    if isinstance(kind, Distinct):
        return [[distinct_cells(rows, asked, coins)]]
    if isinstance(kind, Portion):
        return share_parts(rows, cells, count, asked, coins)
    if isinstance(kind, Mean | Spread):
        return mean_parts(rows, cells, count, asked, coins)
    assert isinstance(kind, Plain | Ratio)
    questions = [asked.question] if isinstance(kind, Plain) else [asked.question, kind.below]
    found = []
    for question in questions:
        totals = []
        for term in question.terms:
            assert not isinstance(term, Having)  # which is never grouped
            totals.append(totals_by_cell(rows, cells, count, term))
        found.append([question.answer(each) for each in zip(*totals, strict=True)])
    return found


def chosen_rows(
    rows: PersonRows, cells: Integers, term: People | Rows, coins: Coins
) -> tuple[Integers, Integers]:
    """The places of the rows that a term counts, and their cells.

    Of each person so many count in a cell as may, chosen at random.
    """
    at = np.flatnonzero((cells >= 0) & rows.tests[term.where])
    if len(at) and isinstance(term, Rows):
        _, pair_of_row = pairs_of(rows.people[at], cells[at])
        at = at[first_at_random(pair_of_row, term.most, coins)]
    return at, cells[at]


def places_by_cell(
    rows: PersonRows, cells: Integers, count: int, asked: Selected, domain: Column, coins: Coins
) -> list[Integers]:
    """For each cell the places in a column's domain of the values that count there, sorted."""
    (term,), held = asked.question.terms, rows.columns[domain.name]
    assert isinstance(term, People | Rows)
    known, places = _places(held.codes, domain)
    at, own = chosen_rows(rows, np.where(known & held.there, cells, -1), term, coins)
    order = np.lexsort((places[at], own))
    ends = np.searchsorted(own[order], np.arange(count + 1))
    sorted_places = places[at][order]
    return [sorted_places[start:stop] for start, stop in pairwise(ends.tolist())]


def _places(codes: Integers, column: Column) -> tuple[NDArray[np.bool_], Integers]:
    """Whether each code is in a column's domain, and its place there."""
    if column.cells is None:
        assert column.bounds is not None
        low, high = column.bounds
        inside = np.clip(codes, low, high)
        return np.ones(len(codes), np.bool_), inside - low
    listed = np.array(sorted_domain(column), np.int64)
    found = np.minimum(np.searchsorted(listed, codes), len(listed) - 1)
    return listed[found] == codes, found


def distinct_cells(rows: PersonRows, asked: Selected, coins: Coins) -> int:
    """How many cells of some keys have a row, of those that were chosen for each person."""
    (term,), kind = asked.question.terms, asked.kind
    assert isinstance(kind, Distinct)
    cells = np.where(rows.tests[term.where], kind.keys.places(rows), -1)
    counted = in_chosen_cells(rows.people, cells, kind.most, coins)
    return len(np.unique(cells[counted]))


def share_parts(
    rows: PersonRows, cells: Integers, count: int, asked: Selected, coins: Coins
) -> list[list[int]]:
    """For each cell how many of those that are counted are inside, and how many are not."""
    (term,), share = asked.question.terms, asked.kind
    assert isinstance(share, Portion)
    if isinstance(term, People):  # who is inside is also in the whole
        inside = totals_by_cell(rows, cells, count, share.inside)
        whole = totals_by_cell(rows, cells, count, term)
        return [inside, [most - part for most, part in zip(whole, inside, strict=True)]]
    assert isinstance(term, Rows)
    at, own = chosen_rows(rows, cells, term, coins)
    is_inside = rows.tests[share.inside.where][at]
    parts = (own[is_inside], own[~is_inside])
    return [np.bincount(part, minlength=count).tolist() for part in parts]


def mean_parts(
    rows: PersonRows, cells: Integers, count: int, asked: Selected, coins: Coins
) -> list[list[int]]:
    """For each cell how many values there are, and Σ y; for a variance also Σ (2y² − w²).

    Here y = 2·value − (low + high), in half steps, and w = high − low.
    """
    kind = asked.kind
    assert isinstance(kind, Mean | Spread)
    values, own = _values(rows, cells, asked, coins)
    middle, wide = kind.low + kind.high, kind.width**2 * 2 >= SAFE
    if wide or max(abs(kind.low), abs(kind.high)) >= SAFE // 4:
        values = values.astype(object)
    centred = 2 * np.clip(values, kind.low, kind.high) - middle
    parts = [np.ones(len(own), np.int64), centred]
    if isinstance(kind, Spread):
        parts.append(2 * centred * centred - kind.width**2)
    return [added_up(part, own, count) for part in parts]


def _values(
    rows: PersonRows, cells: Integers, asked: Selected, coins: Coins
) -> tuple[NDArray[Any], Integers]:
    """The values of which the mean is taken, and their cells."""
    (term,), kind = asked.question.terms, asked.kind
    assert isinstance(term, People | Rows)
    of = kind.of if isinstance(kind, Mean) else None
    if of is not None and isinstance(term, People):
        return _of_people(rows, cells, term, of)
    at, own = chosen_rows(rows, cells, term, coins)
    if of is None:
        assert isinstance(kind, Mean | Spread)
        assert kind.column is not None
        return rows.columns[kind.column].codes[at], own
    assert isinstance(of, Total)
    held = rows.columns[of.column]
    counted = rows.tests[of.where][at] & held.there[at]
    return np.where(counted, held.codes[at], 0), own


def _of_people(
    rows: PersonRows, cells: Integers, term: People, of: Rows | Total
) -> tuple[NDArray[Any], Integers]:
    """What each person that a term counts in a cell adds to another term there, and the cells."""
    at = np.flatnonzero((cells >= 0) & rows.tests[term.where])
    if not len(at):
        return np.zeros(0, np.int64), cells[at]
    pairs, pair_of_row = pairs_of(rows.people[at], cells[at])
    counted = rows.tests[of.where][at]
    if isinstance(of, Rows):
        found = np.bincount(pair_of_row[counted], minlength=len(pairs))
        return np.minimum(found, of.most), pairs[:, 1]
    held = rows.columns[of.column]
    counted &= held.there[at]
    owners = pair_of_row[counted]
    if not len(owners):
        return np.zeros(len(pairs), np.int64), pairs[:, 1]
    sums = clipped_sums(held.codes[at][counted], owners, len(pairs), (of.low, of.high))
    has_value = np.bincount(owners, minlength=len(pairs)) > 0
    return np.where(has_value, sums, 0), pairs[:, 1]
