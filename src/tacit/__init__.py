"""Tacit: ask as many questions as you like; only the surprising answers cost privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Every public name and where it lives.  Loaded on first use, so that `import tacit` is quick.
_HOME = {
    "Privacy": "tacit.privacy",
    "TacitError": "tacit.errors",
}

if TYPE_CHECKING:
    from tacit.errors import TacitError
    from tacit.privacy import Privacy

__all__ = ["Privacy", "TacitError"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
