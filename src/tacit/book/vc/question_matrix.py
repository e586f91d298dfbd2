"""A class of questions as a matrix, questions × points: how it is read, and its duplicates."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import BadParameter
from tacit.privacy import exact

Table = NDArray[np.bool_]


def zero_one(matrix: ArrayLike) -> Table:
    """A matrix of 0 and 1 (or False and True); anything else is refused."""
    table = _two_dimensional(matrix)
    if table.dtype == np.bool_ or not table.size:
        return table.astype(np.bool_)
    if table.dtype.kind not in "iufO":
        raise BadParameter("matrix", "a table of text or the like", "every entry must be 0 or 1")
    ones = np.asarray(table == 1, dtype=np.bool_)
    zeros = np.asarray(table == 0, dtype=np.bool_)
    _refuse(~(ones | zeros), "every entry must be 0 or 1")
    return ones


def rational(matrix: ArrayLike) -> tuple[NDArray[np.intp], list[Fraction]]:
    """A matrix of rationals in [0, 1] as ranks into the sorted list of its distinct values.

    Floats are read by their shortest decimal, like everywhere in Tacit.
    """
    table = _two_dimensional(matrix)
    if table.dtype.kind in "biuf" and table.dtype.itemsize <= 8:
        # As floats the entries keep their order, and distinct ones have distinct decimals.
        numbers = table.astype(np.float64)
        _refuse(~((numbers >= 0) & (numbers <= 1)), "every entry must lie in [0, 1]")  # nor NaN
        different, ranks = np.unique(numbers, return_inverse=True)
        return ranks.reshape(table.shape), [exact(value, "matrix") for value in different.tolist()]
    values = np.empty(table.shape, dtype=object)
    for place in np.ndindex(table.shape):
        values[place] = _entry(table[place])
    _refuse(values == None, "every entry must be a number in [0, 1]")  # noqa: E711 (an array)
    order = sorted(set(values.flat))
    rank = {value: index for index, value in enumerate(order)}
    ranks = np.array([rank[value] for value in values.flat], dtype=np.intp)
    return ranks.reshape(table.shape), order


def distinct(table: NDArray[np.bool_ | np.intp]) -> NDArray[np.intp]:
    """The first row of every kind, in order."""
    if not table.shape[1]:
        return np.arange(min(len(table), 1))
    small = np.packbits(table, axis=1) if table.dtype == np.bool_ else table
    return np.sort(np.unique(small, axis=0, return_index=True)[1])


def _two_dimensional(matrix: ArrayLike) -> NDArray[Any]:
    allowed = "give a list of rows of equal length, one row for each question"
    try:
        table = np.asarray(matrix)
    except (ValueError, TypeError):  # rows of unequal length
        raise BadParameter("matrix", "an uneven table", allowed) from None
    if table.ndim and not len(table):
        raise BadParameter(
            "matrix", "a class without questions", "it cuts out nothing; give at least one question"
        )
    if table.ndim != 2:
        raise BadParameter("matrix", f"an array of {table.ndim} dimensions", allowed)
    return table


def _entry(value: object) -> Fraction | None:
    try:
        number = exact(value, "matrix")
    except BadParameter:
        return None
    return number if 0 <= number <= 1 else None


def _refuse(bad: Table, allowed: str) -> None:
    """The place of the first bad entry, never the entry itself."""
    if bad.any():
        question, point = np.argwhere(bad)[0].tolist()
        raise BadParameter("matrix", f"entry (question {question}, point {point})", allowed)
