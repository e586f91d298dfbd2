"""The theorems and algorithms of the book: pure, no input or output.

Dwork & Roth, *The Algorithmic Foundations of Differential Privacy* (2014), sections 3.5.2,
3.6, 3.6.1, 3.6.3 and 4.1, as corrected in ``docs/errata.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

if TYPE_CHECKING:
    from tacit.book import accuracy, coins, composition, experiment, one_sided, sparse_vector

# What a reader with the book open looks for; each is loaded when it is first used.
__all__ = ["accuracy", "coins", "composition", "experiment", "one_sided", "sparse_vector"]


__getattr__ = loader(__name__, {name: f"{__name__}.{name}" for name in __all__})


def __dir__() -> list[str]:
    return __all__
