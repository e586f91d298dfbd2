"""Where rows come from, and what each value of theirs means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

if TYPE_CHECKING:
    from tacit.tables.sources.frames import ArrowSource
    from tacit.tables.sources.kinds import register

_HOME = {
    "ArrowSource": "tacit.tables.sources.frames",
    "register": "tacit.tables.sources.kinds",
}

__all__ = ["ArrowSource", "register"]

__getattr__ = loader(__name__, _HOME)
