"""What may still be spent, durably."""

from tacit.budget.accountants import Accountant, Amount, SumAccountant, ZcdpAccountant
from tacit.budget.budget import Budget, Receipt
from tacit.budget.chain import Entry
from tacit.budget.history import History, Hypothetical, Verified
from tacit.budget.lease import Lease
from tacit.budget.ledger import Ledger, Pot, StreamState, TableIdentity

__all__ = [
    "Accountant",
    "Amount",
    "Budget",
    "Entry",
    "History",
    "Hypothetical",
    "Lease",
    "Ledger",
    "Pot",
    "Receipt",
    "StreamState",
    "SumAccountant",
    "TableIdentity",
    "Verified",
    "ZcdpAccountant",
]
