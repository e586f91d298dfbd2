from __future__ import annotations

from typing import Any

import pytest

import tacit
from tacit.budget import Budget

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Ypres"]
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.cost]
type = "real"
grid = "0.5"
bounds = [0, 100]
total = [0, 200]
"""


@pytest.fixture
def visits_file(tmp_path):
    """300 people, two rows each: 200 in Bruges, 90 in Ghent, 10 in Ypres; ages 0..99 in turn."""
    rows = ["pid,town,age,cost"]
    for pid in range(300):
        town = "Bruges" if pid < 200 else "Ghent" if pid < 290 else "Ypres"
        rows += [f"{pid},{town},{pid % 100},10.5"] * 2
    (tmp_path / "visits.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "visits.toml").write_text(SCHEMA)
    return tmp_path / "visits.csv"


@pytest.fixture
def visits(visits_file):
    with tacit.open(visits_file, person="pid", people=300) as table:
        yield table


@pytest.fixture(params=["memory", "file"])
def budget(request, tmp_path):
    promise: dict[str, Any] = {"epsilon": 10_000, "covers": ["visits"]}
    if request.param == "memory":
        yield Budget.in_memory(**promise)
    else:
        with Budget.create(tmp_path / "clinic.budget", **promise) as budget:
            yield budget


@pytest.fixture
def calm():
    """So much ε that noise hardly ever moves an answer by more than a few people."""
    return {"epsilon": 100, "questions": 100}
