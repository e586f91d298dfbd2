"""What is said of a ledger that is not as it was written, whatever made it so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tacit.errors import LedgerDamaged


def damaged(what: str) -> LedgerDamaged:
    """The error: what is wrong, and what to do."""
    return LedgerDamaged(
        f"{what}: the budget is damaged, and was left as it is. Use a copy only if it is the "
        "newest: an older one forgets what was spent",
        advice="budget.verify() looks at everything",
    )


def insist(true: bool) -> None:
    """What is always true of what was written here; a ``ValueError`` if it is not."""
    if not true:
        raise ValueError("it was not written by Tacit")


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Whatever reading raises of rows, JSON and numbers that make no sense is one error.

    For what is public only: the error that it replaces may quote what was read.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise damaged(what) from None
