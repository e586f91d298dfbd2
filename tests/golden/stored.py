"""What version 0.1 wrote, and how later versions are compared with it.

Everything in the folder ``0.1`` was written by that version itself (``write_with_0_1.py``) and is
never written again.  The tests say what must hold for ever, through public calls: names inside may
change, and later versions may add to what is told, but what was stored keeps its meaning.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import tacit
from tacit.tables.schema import EachRow

FOLDER = Path(__file__).parent / "0.1"
BUDGETS = ("clinic", "research", "killed", "secrets")
PEOPLE: dict[str, str | EachRow] = {
    "visits": "pid",
    "readings": tacit.EACH_ROW,
    "staff": "each row",
}
ENDED = ("halted", "closed")

_TYPES: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "fraction": Fraction,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
}


def noted(name: str) -> Any:
    """What 0.1 itself said about a file."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


class Stored(ExitStack):
    """Copies of the files, and the tables and budgets that are opened from them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._tables: dict[str, Any] = {}
        for file in FOLDER.iterdir():
            copy = folder / file.name
            shutil.copyfile(file, copy)
            if ".budget" in file.name:
                copy.chmod(0o600)  # as it was written; a repository does not keep that

    def budget(self, name: str) -> Any:
        return self.enter_context(tacit.Budget.open(self.folder / f"{name}.budget"))

    def table(self, name: str = "visits") -> Any:
        if name not in self._tables:
            table = tacit.open(self.folder / f"{name}.csv", person=PEOPLE[name])
            self._tables[name] = self.enter_context(table)
        return self._tables[name]

    def resume(self, stream: dict[str, Any], budget: Any) -> Any:
        return self.table(stream["table"]).resume(stream["name"], budget=budget)


def parameters(told: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a question, with the types they had."""
    return {name: _value(value) for name, value in told["parameters"].items()}


def _value(told: Any) -> Any:
    if isinstance(told, list):
        return [_value(each) for each in told]
    if isinstance(told, dict):
        ((kind, text),) = told.items()
        return _TYPES[kind](text)
    return told


def amounts(amount: Any) -> dict[str, str]:
    """An amount of (ε, δ) or ρ, exactly."""
    return {unit: str(number) for unit, number in amount.values}


def privacy(of: Any) -> dict[str, str] | None:
    return None if of is None else {"epsilon": str(of.epsilon), "delta": str(of.delta)}


def told_by(answer: Any) -> dict[str, Any]:
    """All that an answer tells, exactly."""
    parts = {"value": answer.value, "gap": answer.gap, "error": answer.error()}
    told = {name: None if part is None else str(part) for name, part in parts.items()}
    return {"above": answer.above, **told}


def still_says(now: Any, before: Any, *, values: bool = True, words: tuple[str, ...] = ()) -> bool:
    """Whether everything that was told is told still, under the same key and in the same type.

    More keys may have come.  Without ``values`` only types are compared, and so are they for the
    keys in ``words``, which hold sentences; a list must then hold such elements as it held.
    """
    if isinstance(before, dict):
        return isinstance(now, dict) and all(
            key in now and still_says(now[key], each, values=values and key not in words)
            for key, each in before.items()
        )
    if isinstance(before, list) and values:
        return (
            isinstance(now, list)
            and len(now) == len(before)
            and all(still_says(*pair, words=words) for pair in zip(now, before, strict=True))
        )
    if isinstance(before, list):
        return isinstance(now, list) and all(
            any(still_says(each, other, values=False) for other in before) for each in now
        )
    if _kind(now) != _kind(before):
        return False
    return now == before or not values


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__
