"""What is known about the size of the largest shattered set, with a witness."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tacit.book.vc.question_matrix import Table
from tacit.errors import BadParameter, NotExact


@dataclass(frozen=True, slots=True)
class Dimension:
    """The size of the largest shattered set, and a shattered set of size ``low``.

    ``points`` are columns of the matrix.  ``questions`` holds one row of the matrix for each of
    their subsets: ``questions[b]`` cuts out exactly those ``points[i]`` whose bit i of b is 1.
    """

    low: int
    high: int
    points: tuple[int, ...]
    questions: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether the search was finished: nothing larger than ``points`` is shattered."""
        return self.low == self.high

    @property
    def dimension(self) -> int | None:
        """The dimension if it is known exactly, else None: see ``low`` and ``high``."""
        return self.low if self.exact else None

    def cutting(self, subset: Iterable[int]) -> int:
        """The question that cuts exactly this subset out of ``points``."""
        wanted = set(subset)
        if not wanted <= set(self.points):
            raise BadParameter("subset", sorted(wanted), f"choose from the points {self.points}")
        return self.questions[sum(1 << i for i, p in enumerate(self.points) if p in wanted)]

    def describe(self, name: str, witness: Iterable[object]) -> str:
        """One line for people."""
        size = str(self.low) if self.exact else f"between {self.low} and {self.high}"
        shown = ", ".join(map(str, witness))
        points = "points" if self.low > 1 else "point"
        return f"{name} {size} ({points} {shown} shattered)" if shown else f"{name} {size}"


def cutting_questions(above: Table, below: Table) -> tuple[int, ...]:
    """The first row that realises each pattern of the columns, patterns in binary order.

    This is also the last check of a search: a pattern that no row realises is a fault here.
    """
    points = above.shape[1]
    decided = np.flatnonzero((above | below).all(axis=1))
    patterns = above[decided] @ (1 << np.arange(points, dtype=np.int64))
    present, first = np.unique(patterns, return_index=True)
    if len(present) != 1 << points:
        raise AssertionError("the search named a set that is not shattered")
    return tuple(decided[first].tolist())


def warn_unless_exact(result: Dimension, name: str, seconds: object) -> None:
    """Bounds are never passed off as the dimension."""
    if not result.exact:
        warnings.warn(
            f"the {name} is known only to lie between {result.low} and {result.high}: the search "
            f"stopped after {seconds} s; give it more seconds, or None to let it finish",
            NotExact,
            stacklevel=3,
        )
