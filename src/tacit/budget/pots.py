"""Pots that may be drawn from: each is a part of the limit, and so are all of them together."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.budget.amounts import Amount
from tacit.budget.damage import damaged, insist, readable
from tacit.budget.ledger import Pot, Reader

_UNFIT = "what was spent and shared does not fit the promise"


def pot_of(reader: Reader, analyst: str | None, limit: Amount) -> Pot | None:
    """The share of an analyst if there is one, or what is not shared."""
    pot = reader.pot(analyst)
    if pot is None and analyst is None:
        raise damaged("what is not shared has vanished from the budget")
    with readable(_UNFIT):
        insist(pot is None or pot.limit.fits_in(limit))
    return pot


def all_pots(reader: Reader, limit: Amount) -> tuple[Pot, ...]:
    """What is not shared, then each share."""
    pots = tuple(reader.pots())
    with readable(_UNFIT):
        insist(bool(pots) and pots[0].analyst is None)
        insist(together(pots).limit.fits_in(limit))
    return pots


def together(pots: Sequence[Pot]) -> Pot:
    """All pots as one."""
    limit, spent = pots[0].limit, pots[0].spent
    for pot in pots[1:]:
        limit, spent = limit + pot.limit, spent + pot.spent
    return Pot(None, limit, spent)
