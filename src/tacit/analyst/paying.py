"""What pays: a budget, and nothing that only looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.arguments import instance

if TYPE_CHECKING:
    from tacit.budget import Budget


def paying(budget: Budget) -> Budget:
    """The budget that was given to pay; asked for before anything is read or drawn."""
    from tacit.budget import Budget

    return instance(
        budget, "budget", Budget, "give a Budget, such as tacit.Budget.open('clinic.budget')"
    )
