"""Linear queries over a finite universe, without redundant ones.

SmallDB's score depends on a query f only through |n·f(x) − n·f(y)|.  A constant query contributes
nothing; f, 1 − f and any other c ± f contribute the same; and c ± s·f with s < 1 contributes less
than f.  So of all queries that agree up to scale and shift only the steepest is kept.  Universe
elements that all remaining queries treat alike form one *atom*.  A class that contains the same
question a thousand times, in whatever form, becomes the same problem as that one question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import BadParameter
from tacit.numbers import Number, exact

_LARGEST_DENOMINATOR = 2**48

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinearQueries:
    """Queries with values answers/denominator on atoms; ``atom_of`` has each element's atom."""

    answers: Integers  # queries × atoms
    denominator: int
    atom_of: Integers

    @property
    def atoms(self) -> int:
        """How many atoms there are."""
        return int(self.answers.shape[1])

    def members(self, atom: int) -> Integers:
        """The universe elements of an atom."""
        return np.flatnonzero(self.atom_of == atom)

    def histogram(self, x: Integers) -> Integers:
        """Rows per atom, from rows per universe element."""
        per_atom = np.zeros(self.atoms, np.int64)
        np.add.at(per_atom, self.atom_of, x)
        return per_atom

    def _key(self) -> tuple[object, ...]:
        return self.answers.shape, self.answers.tobytes(), self.denominator, self.atom_of.tobytes()

    def __eq__(self, other: object) -> bool:
        """Whether they are the same problem, however it was written."""
        return isinstance(other, LinearQueries) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        queries, atoms = self.answers.shape
        universe = len(self.atom_of)
        return f"<LinearQueries: {queries} queries, {atoms} atoms of {universe} universe elements>"


def linear_queries(matrix: Sequence[Sequence[Number]] | npt.NDArray[Any]) -> LinearQueries:
    """Compress a matrix of answers in [0, 1]: a row for each query, a column for each element.

    >>> linear_queries([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], ["1/3", "1/3", 0, 0]])
    <LinearQueries: 1 queries, 2 atoms of 4 universe elements>
    """
    numerators, denominator = _common_denominator(matrix)
    steepest: dict[bytes, int] = {}
    for row in numerators:
        slopes = row - row[0]
        scale = int(np.gcd.reduce(slopes))
        if scale:
            upwards = slopes[np.flatnonzero(slopes)[0]] > 0
            shape = (slopes // (scale if upwards else -scale)).tobytes()
            steepest[shape] = max(scale, steepest.get(shape, 0))
    common = gcd(denominator, *steepest.values())
    rows = [_upright(shape) * (steepest[shape] // common) for shape in sorted(steepest)]
    answers = np.array(rows, np.int64).reshape(len(rows), numerators.shape[1])
    atom_of, first_of = _alike(answers)
    return LinearQueries(answers[:, first_of], denominator // common, atom_of)


def _upright(shape: bytes) -> Integers:
    """A shape with its least value at 0."""
    row: Integers = np.frombuffer(shape, np.int64)
    lifted: Integers = row - row.min()
    return lifted


def _alike(answers: Integers) -> tuple[Integers, Integers]:
    """For each column its number among the distinct ones, and the first place of each of those."""
    seen: dict[bytes, int] = {}
    columns = np.ascontiguousarray(answers.T)
    atom_of = np.array([seen.setdefault(c.tobytes(), len(seen)) for c in columns], np.int64)
    return atom_of, np.unique(atom_of, return_index=True)[1]


def _common_denominator(
    matrix: Sequence[Sequence[Number]] | npt.NDArray[Any],
) -> tuple[Integers, int]:
    """The answers as integers over one denominator."""
    table = np.asarray(matrix, dtype=getattr(matrix, "dtype", object))
    if table.ndim != 2 or not table.size:
        raise BadParameter(
            "matrix", f"shape {table.shape}", "give a row for each query, a column for each element"
        )
    if table.dtype.kind in "biu":  # fast for counting queries
        table = table.astype(np.int64)
    values = set(table.ravel().tolist())
    answers = {value: exact(_not_bool(value), "matrix") for value in values}
    wrong = [value for value in answers.values() if not 0 <= value <= 1]
    if wrong:
        raise BadParameter("matrix", f"an answer of {wrong[0]}", "answers must lie in [0, 1]")
    denominator = lcm(*(value.denominator for value in answers.values()))
    if denominator > _LARGEST_DENOMINATOR:
        raise BadParameter(
            "matrix",
            f"answers with the common denominator {denominator}",
            "round them to multiples of a simple fraction",
        )
    if table.dtype == np.int64:
        return table, denominator
    numerators = {given: int(value * denominator) for given, value in answers.items()}
    flat = np.array([numerators[value] for value in table.ravel().tolist()], np.int64)
    return flat.reshape(table.shape), denominator


def _not_bool(value: object) -> object:
    """True is 1 and False is 0, as in a predicate."""
    return int(value) if isinstance(value, bool) else value
