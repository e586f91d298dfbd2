"""Our ledgers, and a toy, pass the contract suites that everybody's must pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.toys.json_ledger import JsonLedger

from tacit.budget.memory import MemoryLedger
from tacit.budget.postgres import PostgresLedger
from tacit.budget.sqlite import SqliteLedger
from tacit.budget.sqlite_together import TogetherLedger
from tacit.testing.budgets import BudgetContract
from tacit.testing.ledgers import LedgerContract


class TestMemory(LedgerContract, BudgetContract):
    ledger_class = MemoryLedger
    durable = False

    @pytest.fixture
    def address(self) -> str:
        return "memory://"


class TestSqlite(LedgerContract, BudgetContract):
    ledger_class = SqliteLedger

    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'contract.budget'}"


class TestTogether(LedgerContract, BudgetContract):
    """The file of a server, whose threads share transactions."""

    ledger_class = TogetherLedger

    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'contract.budget'}"


class TestPostgres(LedgerContract, BudgetContract):
    ledger_class = PostgresLedger

    @pytest.fixture
    def address(self, postgres_budget: str) -> str:
        return postgres_budget


class TestJson(LedgerContract, BudgetContract):
    """The toy of docs/extending/add-a-ledger.md."""

    ledger_class = JsonLedger

    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return f"json:///{tmp_path / 'contract.json'}"
