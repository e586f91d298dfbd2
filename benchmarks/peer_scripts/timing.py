"""What every peer's script shares: the public numbers, and how answers are told and timed.

It needs nothing but the standard library, since each peer lives in an environment of its own.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version

EPSILON, DELTA = 1.0, 1e-9
BOUNDS = (0.0, 200_000.0)
TOWNS, MOST_TOWNS, TOP, CODES = 50, 3, 10, 2000
ROW_COLUMNS = {"age": 8, "region": 6, "job": 5, "income": 10, "visits": 8, "smoker": 2}
RUNS = int(os.environ.get("TACIT_PEER_RUNS", "20"))
ROWS_RUNS = min(RUNS, 5)  # of synthetic rows, for which some need a minute


class Answers:
    """What a peer answers, a line of JSON for each kind of work."""

    def __init__(self, peer: str, *packages: str) -> None:
        self._peer = peer
        self._versions = ", ".join(f"{name} {version(name)}" for name in packages)

    def run(self, *works: Callable[[], object], runs: int = RUNS) -> None:
        """Do each kind of work several times; the first time warms it up and is not counted."""
        warnings.simplefilter("ignore")
        for work in works:
            told: dict[str, object] = {"peer": self._peer, "work": work.__name__}
            try:
                work()
                start = time.process_time()
                told["answers"] = [work() for _ in range(runs)]
                told["seconds"] = (time.process_time() - start) / runs
            except Exception as error:  # a peer that fails is shown as one
                told["failed"] = f"{type(error).__name__}: {str(error)[:200]}"
            print(json.dumps(told | {"versions": self._versions}), flush=True)
