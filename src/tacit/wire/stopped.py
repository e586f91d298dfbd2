"""The JSON of what a steward has stopped."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

from tacit.wire.forms import Form, Json, string

Stoppable = Literal["stream", "token", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedThing:
    """A stream, a token or a table that a server refuses for now."""

    kind: Stoppable
    name: str
    at: str
    by: str  # the steward's token, or "the command line"
    reason: str = ""

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.kind} {self.name!r}, since {self.at}, by {self.by}{why}"


def read_stopped(fields: Json) -> StoppedThing:
    """The inverse of ``asdict``."""
    if fields["kind"] not in get_args(Stoppable):
        raise ValueError
    return StoppedThing(**{name: string(fields[name]) for name in StoppedThing.__slots__})  # type: ignore[arg-type]


FORMS = (Form("stopped", ("wire.StoppedThing",), asdict, read_stopped),)
