"""Every ledger, the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.budget import Budget


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Budget]]:
    """Make a budget on any ledger; ε = 1 over visits and labs unless said otherwise."""
    made: list[Budget] = []

    def make_budget(**options: Any) -> Budget:
        options = {"epsilon": 1, "covers": ["visits", "labs"], **options}
        if request.param == "memory":
            return Budget.in_memory(**options)
        where = str(tmp_path / "clinic.budget")
        if request.param == "postgres":
            where = f"{request.getfixturevalue('postgres_budget')}_{len(made)}"
        made.append(Budget.create(where, **options))
        return made[-1]

    yield make_budget
    for budget in made:
        budget._ledger.close()


@pytest.fixture
def budget(make: Callable[..., Budget]) -> Budget:
    """The usual budget, on any ledger."""
    return make(delta="1e-6")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A budget file of ε = 1, closed."""
    where = tmp_path / "clinic.budget"
    Budget.create(where, epsilon=1, covers=["visits"]).close()
    return where


@pytest.fixture(params=["sqlite", "postgres"])
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address where there is no budget yet, nor at those that begin with it."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_budget"))
    return str(tmp_path / "clinic.budget")


@pytest.fixture
def place(nowhere: str) -> str:
    """The address of a budget of ε = 1, closed, on a ledger that lasts."""
    Budget.create(nowhere, epsilon=1, covers=["visits"]).close()
    return nowhere
