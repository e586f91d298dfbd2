"""What the tests of the command line share."""

from __future__ import annotations

import os
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONUTF8": "1", "COLUMNS": "80"}
POISON = "Zyzzyva-4711"
PATIENCE = 300  # seconds: a safety net on a busy machine, and nothing that a test measures


ASK = ("ask", "visits.csv", "--person", "pid", "--budget", "clinic.budget")
NEW = ("--threshold", "100", "--at-most", "3", "--epsilon", "100", "--name", "watch")
CONVERSE = (*NEW, "--one-by-one")
