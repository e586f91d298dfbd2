"""The theorems and algorithms of the book, as pure functions without input or output.

Dwork & Roth, *The Algorithmic Foundations of Differential Privacy* (2014), sections 3.5.2,
3.6, 3.6.1, 3.6.3, 4.1 and 4.2, as corrected in `tacit.errata`, where E1 to E22 are explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

if TYPE_CHECKING:
    from tacit.book import (
        accuracy,
        answer,
        chance,
        coins,
        composition,
        experiment,
        half_gap,
        laplace,
        multiplicative_weights,
        noise,
        one_sided,
        optimal,
        range_tree,
        recipes,
        remarks,
        shattering,
        small_db,
        small_db_size,
        small_db_utility,
        sparse_vector,
        synthetic,
        top,
        watching,
        zcdp,
    )

# The modules that a reader with the book open looks for; each is loaded on first use.
__all__ = [
    "accuracy",
    "answer",
    "chance",
    "coins",
    "composition",
    "experiment",
    "half_gap",
    "laplace",
    "multiplicative_weights",
    "noise",
    "one_sided",
    "optimal",
    "range_tree",
    "recipes",
    "remarks",
    "shattering",
    "small_db",
    "small_db_size",
    "small_db_utility",
    "sparse_vector",
    "synthetic",
    "top",
    "watching",
    "zcdp",
]


__getattr__ = loader(__name__, {name: f"{__name__}.{name}" for name in __all__})


def __dir__() -> list[str]:
    return __all__
