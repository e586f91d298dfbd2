"""What may still be spent, durably."""

from tacit.budget.accountants import Accountant, Amount, SumAccountant, ZcdpAccountant
from tacit.budget.answers import Answers, PaidAnswer, RetryKey
from tacit.budget.budget import Budget, Receipt
from tacit.budget.chain import Entry
from tacit.budget.history import Hypothetical, LedgerHistory, Verified
from tacit.budget.lease import Lease
from tacit.budget.ledger import (
    KeptAnswer,
    Ledger,
    LedgerReader,
    LedgerWriter,
    Share,
    StreamState,
    TableIdentity,
)
from tacit.budget.requests import BudgetRequest, Requests

Pot = Share  # as 0.1 called it
History = LedgerHistory  # likewise

__all__ = [
    "Accountant",
    "Amount",
    "Answers",
    "Budget",
    "BudgetRequest",
    "Entry",
    "History",
    "Hypothetical",
    "KeptAnswer",
    "Lease",
    "Ledger",
    "LedgerHistory",
    "LedgerReader",
    "LedgerWriter",
    "PaidAnswer",
    "Pot",
    "Receipt",
    "Requests",
    "RetryKey",
    "Share",
    "StreamState",
    "SumAccountant",
    "TableIdentity",
    "Verified",
    "ZcdpAccountant",
]
