"""A small clinic to serve: two tables, a budget and the server's file in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit import Budget

POISON = "Zyzzyva-4711"

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.cost]
type = "real"
grid = "0.5"
bounds = [0, 100]
total = [0, 200]
[cannot_ask]
tags = "it holds lists"
"""

CONFIG = """\
budget = "clinic.budget"

[listen]
port = 0
{listen}

[clock]
milliseconds = {milliseconds}

[limits]
requests_a_second = 100_000
{limits}

[tables.visits]
source = "visits.csv"
person = "pid"
people = 300
as_of = "2026-11-01"

[tables.labs]
source = "labs.csv"
each_row = true
"""


def write_clinic(
    folder: Path,
    *,
    milliseconds: int = 1,
    limits: str = "",
    listen: str = "",
    zcdp: bool = False,
    epsilon: int = 10,
) -> Path:
    """Two tables, their schemas, a budget and the server's file; the path of the latter."""
    rows = [f"{pid},{'Bruges' if pid < 200 else 'Ghent'},{pid % 100},1.5" for pid in range(300)]
    for name in ("visits", "labs"):
        text = "\n".join(["pid,town,age,cost", *rows, f"300,{POISON},50,2", ""])
        (folder / f"{name}.csv").write_text(text)
        (folder / f"{name}.toml").write_text(SCHEMA)
    promised: dict[str, Any] = {"epsilon": epsilon, "covers": ["visits", "labs"]}
    if zcdp:
        promised |= {"delta": "1e-9", "accountant": "zcdp"}
    Budget.create(folder / "clinic.budget", **promised).close()
    path = folder / "tacit.toml"
    path.write_text(CONFIG.format(milliseconds=milliseconds, limits=limits, listen=listen))
    return path
