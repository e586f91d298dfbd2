"""The theorems and algorithms of the book: pure, no input or output.

Dwork & Roth, *The Algorithmic Foundations of Differential Privacy* (2014), sections 3.5.2,
3.6, 3.6.1, 3.6.3 and 4.1, as corrected in ``docs/errata.md``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.book import accuracy, coins, composition, experiment, one_sided, sparse_vector

# What a reader with the book open looks for; each is loaded when it is first used.
__all__ = ["accuracy", "coins", "composition", "experiment", "one_sided", "sparse_vector"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'tacit.book' has no attribute {name!r}")
    return import_module(f"tacit.book.{name}")


def __dir__() -> list[str]:
    return __all__
