"""Answers that were paid for, as a server shows them to whoever may see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tacit import wire
from tacit.errors import BadParameter
from tacit.remote.transport import Transport

if TYPE_CHECKING:
    from tacit.wire import PaidSummary

_LARGEST = 2**62


class RemoteAnswers:
    """Answers that were paid for, oldest first; fetched as they are used.

    An analyst's own; for a viewer all that were told, without whose they are; all for a steward.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __iter__(self) -> Iterator[PaidSummary]:
        last, more = 0, True
        while more:
            page, more = self._page({"after": last})
            yield from page
            last = page[-1].number if page else last

    def __getitem__(self, number: int) -> PaidSummary:
        """By the number of the entry of the history that paid for it."""
        if type(number) is int and 1 <= number < _LARGEST:
            for answer in self._page({"after": number - 1, "most": 1})[0]:
                if answer.number == number:
                    return answer
        raise BadParameter("number", number, "no answer of this number is shown to this token")

    def _page(self, asked: dict[str, int]) -> tuple[list[PaidSummary], bool]:
        from tacit.wire import PaidSummary

        told = self._transport.post("/v1/answers", dict(asked))
        return [wire.from_json(fields, PaidSummary) for fields in told["answers"]], told["more"]

    def __repr__(self) -> str:
        return f"<answers at {self._transport.place}>"
