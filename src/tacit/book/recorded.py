"""What is told again from a record says so: since when it is there, and about which label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast


@dataclass(frozen=True, slots=True)
class Recorded:
    """When an answer was recorded, and the label of the data that it is about.

    >>> print(Recorded("2026-11-03T09:30:00Z", "2026-11-01"))
    on record since 2026-11-03 as of 2026-11-01
    """

    at: str  # UTC, as the history writes it
    as_of: str | None = None

    def __str__(self) -> str:
        label = "" if self.as_of is None else f" as of {self.as_of}"
        return f"on record since {self.at[:10]}{label}"


class Recordable:
    """A frozen dataclass with a field ``recorded``, which compares as if it had none."""

    __slots__ = ()
    recorded: Recorded | None

    def _marked(self, since: Recorded) -> Self:
        """The same, told again from the record."""
        return cast("Self", replace(cast("Any", self), recorded=since))


def recorded_as_json(since: Recorded | None) -> dict[str, Any]:
    """Since when something is on record, if it says so."""
    return {} if since is None else {"recorded": {"at": since.at, "as_of": since.as_of}}


def recorded_from_json(fields: Mapping[str, Any]) -> Recorded | None:
    """The inverse of `recorded_as_json`; whoever checks nothing else checks these texts."""
    since = fields.get("recorded")
    if since is None:
        return None
    if not isinstance(since["at"], str) or not isinstance(since["as_of"], str | None):
        raise TypeError
    return Recorded(since["at"], since["as_of"])
