"""What the tests do in processes that are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.budget.watched import watch, watched

import tacit
from tacit.budget import Budget

RETRY_AT = [
    f"{act}: {point}" for act in ("charge", "answer") for point in ("begun", "written", "committed")
]


def die_counting(data: Path, path: Path, point: str) -> None:
    """Ask for a count under a key, and be killed at a named point of a write."""

    def die(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    budget = watched(Budget.open(path))
    watch(budget, die)
    with tacit.open(data, person="pid") as visits:
        visits.count("age >= 60", epsilon="1/2", budget=budget, retry_key="monday")
