"""Errors as responses: the class and the words that a local user gets, and nothing else.

What a steward's machine is like (where the budget lies, which file could not be written) is for the
steward: an error that would tell it is told in words of its own, and its own words go to the log.
"""

from __future__ import annotations

from typing import Any

from tacit import errors
from tacit.errors import InternalError, NotAuthorised, RequestRefused, TacitError
from tacit.wire import to_json

STEWARDS: dict[type[TacitError], str] = {
    errors.LedgerBusy: "the budget is in use; try again in a moment",
    errors.LedgerUnwritable: "the budget could not be written, and nothing was released",
    errors.LedgerDamaged: "something is wrong with the budget",
    errors.LedgerMissing: "something is wrong with the budget",
    errors.LedgerExists: "something is wrong with the budget",
    errors.NotWritten: "something could not be written",
    errors.BadConfiguration: "something is wrong with the server",
    errors.SchemaMismatch: "something is wrong with the table",
}
"""Errors whose words may tell where something is kept, and what is said to others instead."""

_STATUS: tuple[tuple[type[TacitError], int], ...] = (
    (NotAuthorised, 403),
    (RequestRefused, 400),
    (errors.NotCovered, 403),
    (errors.LedgerBusy, 503),
    (errors.LedgerUnwritable, 503),
    (errors.LedgerDamaged, 503),
    (errors.LedgerMissing, 503),
    (errors.NotWritten, 503),
    (errors.ServerUnavailable, 503),
    (errors.BadConfiguration, 503),
    (errors.SchemaMismatch, 503),
    (errors.BudgetError, 409),
    (errors.EngineFailed, 500),
    (InternalError, 500),
)


class Refusal(Exception):
    """An error with a status of its own."""

    def __init__(self, status: int, error: TacitError, *, allow: str = "") -> None:
        self.status = status
        self.error = error
        self.allow = allow
        super().__init__(status)


class Busy(Refusal):
    """More requests than the clock can carry: refused at the next tick."""

    def __init__(self) -> None:
        advice = "nothing was spent: ask the same again in a moment"
        super().__init__(503, errors.ServerUnavailable("the server is busy", advice=advice))


def refused(status: int, fact: str, advice: str = "") -> Refusal:
    """A request that the server does not take."""
    return Refusal(status, RequestRefused(fact, advice=advice))


def found_wrong(error: BaseException) -> Refusal:
    """Any error, with the status that its class has."""
    if isinstance(error, Refusal):
        return error
    told = error if isinstance(error, TacitError) else InternalError.instead_of(error)
    status = next((code for kind, code in _STATUS if isinstance(told, kind)), 422)
    return Refusal(status, told)


def problem(refusal: Refusal, place: str) -> dict[str, Any]:
    """The document.  Where the budget lies (``place``) is not told."""
    told = to_json(for_others(refusal.error))
    if place:
        told = {
            name: value.replace(place, "the budget") if isinstance(value, str) else value
            for name, value in told.items()
        }
    fact, advice = told["message"], told["advice"]
    return {
        "type": f"tacit:{told['error']}",
        "title": told["error"],
        "status": refusal.status,
        "detail": f"{fact}; {advice}" if advice else fact,
        **told,
    }


def for_others(error: TacitError) -> TacitError:
    """The error as an analyst may see it."""
    for kind, fact in STEWARDS.items():
        if isinstance(error, kind):
            return kind(fact, advice="the steward can see in the log what it is")
    return error
