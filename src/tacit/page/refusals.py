"""Why something is refused, with the place underlined: told while it is typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from typing import Any

from tacit.errors import TacitError
from tacit.page.rendering import fragment
from tacit.server.endpoints import Content
from tacit.server.problems import found_wrong, problem
from tacit.server.service import Service
from tacit.server.tokens import TokenRecord

_AS_ASKED = 422  # what was asked cannot be; all else is an error as elsewhere

Part = Callable[[Service, TokenRecord, Any], Content]


@dataclass(frozen=True, slots=True)
class Marked:
    """Why a question is refused, and which part of it."""

    why: str
    before: str
    part: str
    after: str
    hint: str


def marked(refused: str) -> Marked:
    r"""A refusal, taken apart.

    >>> marked("no such column\n  x = 3\n  ^\n  hint: its columns: a").part
    'x'
    """
    why, *lines = refused.split("\n")
    hints = [line.strip().removeprefix("hint: ") for line in lines if line.startswith("  hint: ")]
    for text, line in pairwise(lines):
        if line.strip() and not line.strip(" ^"):
            start, end = line.index("^"), len(line.rstrip())
            shown = text.ljust(end)
            before, part = shown[:start].lstrip(), shown[start:end]
            return Marked(why, before, part, shown[end:].rstrip(), "; ".join(hints))
    rest = " ".join(line.strip() for line in lines if not line.startswith("  hint: "))
    return Marked(f"{why} {rest}".strip(), "", "", "", "; ".join(hints))


def or_refused(place: str) -> Callable[[Part], Part]:
    """A part of a page, or in its place why there is none."""

    def told(part: Part) -> Part:
        @wraps(part)
        def answer(service: Service, who: TokenRecord, asked: Any) -> Content:
            try:
                return part(service, who, asked)
            except TacitError as error:
                found = found_wrong(error)
                if found.status != _AS_ASKED:
                    raise
                why = marked(problem(found, service.place)["detail"])
                return fragment("_no_plan.html", place=place, refusal=why)

        return answer

    return told
