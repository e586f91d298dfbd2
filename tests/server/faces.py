"""A table as an analyst holds it: the local one and the one on a server, with one face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tacit
from tacit.errors import TacitError


@dataclass
class Face:
    """A table to ask, with whatever the local one needs besides."""

    table: Any
    pays: dict[str, Any]  # what a local call gives to be paid for
    resumes: dict[str, Any]
    budget: Any

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.table, name)
        more = self.resumes if name in RESUMED else self.pays if name in PAID else {}
        return (
            (lambda *given, **named: found(*given, **more, **named)) if callable(found) else found
        )

    def refused(self, name: str, /, *given: Any, **named: Any) -> tuple[type[TacitError], str]:
        """The class and the words of the error that a call ends in."""
        return refused(getattr(self, name), *given, **named)


PAID = {"count", "sum", "histogram", "query", "ranges", "running", "top", "small_db", "synthetic"}
PAID |= {"above_threshold", "sparse", "numeric_sparse", "watched_model"}
RESUMED = {"resume", "resume_watched_model"}


def refused(function: Any, /, *given: Any, **named: Any) -> tuple[type[TacitError], str]:
    try:
        function(*given, **named)
    except TacitError as error:
        return type(error), str(error)
    raise AssertionError("it was not refused")


def local_face(table: tacit.Table, budget: tacit.Budget, analyst: str) -> Face:
    return Face(table, {"budget": budget, "analyst": analyst}, {"budget": budget}, budget)


def remote_face(connection: Any, name: str) -> Face:
    return Face(connection.table(name), {}, {}, connection.budget)
