"""How much fits into one response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import BadParameter

if TYPE_CHECKING:
    from tacit.analyst.synthetic import SyntheticPlan

MOST_VALUES = 5_000_000
"""Of synthetic rows: what is paid for must also arrive."""


def refuse_too_many(plan: SyntheticPlan) -> None:
    """Refuse rows that a response could not hold, before they are paid for."""
    if plan.rows * len(plan.columns) > MOST_VALUES:
        raise BadParameter(
            "rows",
            plan.rows,
            f"over HTTP there are at most {MOST_VALUES} values, rows times columns",
            "ask for fewer rows",
        )
