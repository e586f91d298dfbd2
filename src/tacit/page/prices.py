"""What something would cost a token, shown before it is paid."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.budget import Amount, Share
from tacit.budget.accountants import bounded
from tacit.errors import ConditionNotMet
from tacit.privacy import Cost
from tacit.server.service import Service, show_budget
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json


@dataclass(frozen=True, slots=True)
class Priced:
    """The price, the share it would be paid from, and what would be left of that."""

    price: Amount | None  # None: this budget cannot charge it
    share: Share | None  # None: the token draws from none
    after: Amount | None  # None: it does not fit


def priced(service: Service, who: TokenRecord, cost: Cost) -> Priced:
    """What the budget would charge now; nothing is set aside for it."""
    own = show_budget(service, who).own
    share = None if own is None else from_json(own, Share)
    try:
        price = service.budget.accountant.charge(cost)
    except ConditionNotMet:  # zCDP cannot charge what is known with a δ only
        return Priced(None, share, None)
    fits = share is not None and bounded(price, share.spent).fits_in(share.left)
    return Priced(price, share, share.left - price if share is not None and fits else None)
