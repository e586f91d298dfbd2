"""How many slots have each combination of the codes of some columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.tables.columns import Held
from tacit.tables.layout import narrowest


def count_combinations(
    columns: Sequence[Held], found: Iterable[slice | NDArray[Any]]
) -> NDArray[np.int64]:
    """The number of found slots for each combination of codes, with an axis for each column.

    Those of NULL, and so of slots without a row, are among them.
    """
    sizes = [held.null + 1 for held in columns]
    every = prod(sizes)
    kind = narrowest(every - 1)
    totals = np.zeros(every, np.int64)
    for slots in found:
        numbers = columns[0].codes[slots].astype(kind)
        for held, size in zip(columns[1:], sizes[1:], strict=True):
            numbers *= kind(size)
            np.add(numbers, held.codes[slots], out=numbers, casting="unsafe")
        totals += np.bincount(numbers, minlength=every)
    return totals.reshape(sizes)
