"""How a budget begins: the first entry and the first pot."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tacit.budget.accountants import Accountant
from tacit.budget.checks import check_short, checked_text
from tacit.budget.ledger import Pot, Writer
from tacit.errors import BadParameter
from tacit.privacy import Privacy, as_given


def charter(
    promise: Privacy, covers: Iterable[str], accountant: Accountant
) -> Callable[[Writer], None]:
    """What a new ledger begins with; checked before anything is made."""
    if isinstance(covers, (str, bytes)) or not isinstance(covers, Iterable):
        allowed = "a list of table names, as in covers=['visits']"
        raise BadParameter("covers", as_given(covers), allowed)
    tables = [checked_text(table, "covers") for table in covers]
    if not tables or len(set(tables)) < len(tables):
        raise BadParameter("covers", tables, "name at least one table, and each one once")
    check_short("epsilon", promise.epsilon)
    check_short("delta", promise.delta)
    limit = accountant.limit(promise)

    def fill(writer: Writer) -> None:
        for table in tables:
            writer.add_table(table)
        writer.put_pot(Pot(None, limit, limit.zero()))
        writer.append(
            "created",
            {
                "epsilon": str(promise.epsilon),
                "delta": str(promise.delta),
                "accountant": accountant.name,
                "limit": limit.as_json(),
                "covers": tables,
            },
        )

    return fill
