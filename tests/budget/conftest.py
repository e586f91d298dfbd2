"""Every ledger, the same tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.budget import Budget


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Budget]:
    """Make a budget on either ledger; ε = 1 over visits and labs unless said otherwise."""

    def make_budget(**options: Any) -> Budget:
        options = {"epsilon": 1, "covers": ["visits", "labs"], **options}
        if request.param == "memory":
            return Budget.in_memory(**options)
        return Budget.create(tmp_path / "clinic.budget", **options)

    return make_budget


@pytest.fixture
def budget(make: Callable[..., Budget]) -> Budget:
    """The usual budget, on either ledger."""
    return make(delta="1e-6")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A budget file of ε = 1, closed."""
    where = tmp_path / "clinic.budget"
    Budget.create(where, epsilon=1, covers=["visits"]).close()
    return where
