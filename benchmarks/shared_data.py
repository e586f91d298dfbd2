"""Public data sets that are not part of the project, for the utility reports.

They lie in ``../shared/data`` beside the checkout, or wherever ``TACIT_SHARED`` says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(os.environ.get("TACIT_SHARED", "../shared/data"))


def shared(name: str) -> Path:
    """The path of a data set; the program ends with a clear word if it is absent."""
    path = FOLDER / name
    if not path.exists():
        sys.exit(
            f"{name} is not in {FOLDER}: this report needs data that is not part of the project. "
            "Set TACIT_SHARED to the folder that holds it."
        )
    return path


def table(head: list[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *[[str(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
