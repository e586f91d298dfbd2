"""Tacit: ask as many questions as you like; only the surprising answers cost privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Every public name and where it lives.  Loaded on first use, so that `import tacit` is quick.
_HOME = {
    "EACH_ROW": "tacit.tables.schema:EACH_ROW",
    "Budget": "tacit.budget:Budget",
    "Privacy": "tacit.privacy:Privacy",
    "TacitError": "tacit.errors:TacitError",
    "audit": "tacit.audit",
    "book": "tacit.book",
    "errors": "tacit.errors",
    "fat_shattering_dimension": "tacit.analyst.dimensions:fat_shattering_dimension",
    "intervals": "tacit.analyst.question_class:intervals",
    "load_release": "tacit.analyst.release:load_release",
    "open": "tacit.analyst.table:open_table",
    "plan": "tacit.analyst.plan",
    "prefixes": "tacit.analyst.question_class:prefixes",
    "shatters": "tacit.book.shattering:shatters",
    "vc_dimension": "tacit.analyst.dimensions:vc_dimension",
}

if TYPE_CHECKING:
    from tacit import audit, book, errors
    from tacit.analyst import plan
    from tacit.analyst.dimensions import fat_shattering_dimension, vc_dimension
    from tacit.analyst.question_class import intervals, prefixes
    from tacit.analyst.release import load_release
    from tacit.analyst.table import open_table as open  # noqa: A004
    from tacit.book.shattering import shatters
    from tacit.budget import Budget
    from tacit.errors import TacitError
    from tacit.privacy import Privacy
    from tacit.tables.schema import EACH_ROW

__all__ = [
    "EACH_ROW",
    "Budget",
    "Privacy",
    "TacitError",
    "audit",
    "book",
    "errors",
    "fat_shattering_dimension",
    "intervals",
    "load_release",
    "open",
    "plan",
    "prefixes",
    "shatters",
    "vc_dimension",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    module, _, attribute = _HOME[name].partition(":")
    value = getattr(import_module(module), attribute) if attribute else import_module(module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
