"""What earlier versions wrote, and how later versions are compared with it.

Everything in the folders ``0.1`` and ``0.2`` was written by these versions themselves
(``write_with_0_1.py``, ``write_with_0_2.py``) and is never written again.  The tests say what must
hold for ever, through public calls: names inside may change, and later versions may add to what is
told, but what was stored keeps its meaning.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.tables.schema.schema import EachRow

GOLDENS = Path(__file__).parent
BUDGETS: dict[str, tuple[str, ...]] = {
    "0.1": ("clinic", "research", "killed", "secrets"),
    "0.2": (
        *("clinic", "recipes", "research", "killed", "ledger", "secrets", "watched", "served"),
    ),
}
VERSIONS = tuple(BUDGETS)
IN_POSTGRESQL = "ledger"
PEOPLE: dict[str, dict[str, str | EachRow]] = {
    "0.1": {"visits": "pid", "readings": tacit.EACH_ROW, "staff": "each row"},
    "0.2": {"visits": "pid", "labs": "patient", "readings": tacit.EACH_ROW},
}
ENDED = ("halted", "closed")

every_version = pytest.mark.parametrize("version", VERSIONS)
every_budget = pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in VERSIONS for name in BUDGETS[version]]
)

_TYPES: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "fraction": Fraction,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
}


def noted(name: str, version: str = "0.1") -> Any:
    """What a version itself said about a file."""
    return json.loads((GOLDENS / version / f"{name}.json").read_text(encoding="utf-8"))


def exported(version: str, name: str) -> dict[str, Any]:
    """The length and the digest of the history as it was exported."""
    if version != "0.1":
        told: dict[str, Any] = noted(name, version)["exported"]
        return told
    text = (GOLDENS / version / f"{name}.jsonl").read_bytes()
    return {"bytes": len(text), "sha256": sha256(text).hexdigest()}


def opens_with(text: bytes, told: dict[str, Any]) -> bool:
    """Whether an exported history begins with one that was exported then."""
    start = text[: told["bytes"]]
    found = {"bytes": len(start), "sha256": sha256(start).hexdigest()}
    return found == told


class Stored(ExitStack):
    """Copies of a version's files, and the tables and budgets that are opened from them."""

    def __init__(self, folder: Path, version: str, ledger: Callable[[Path], str]) -> None:
        super().__init__()
        self.folder = folder
        self.version = version
        self._ledger = ledger  # from a dump to the URL of a budget
        self._tables: dict[str, Any] = {}
        shutil.copytree(
            GOLDENS / version, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.gz")
        )
        for copy in [*folder.glob("*.budget*"), *folder.glob("shards/**")]:
            keep_private(copy)

    def noted(self, name: str) -> Any:
        """What the version itself said about a file."""
        return noted(name, self.version)

    def unpack(self, name: str) -> Path:
        """A budget's file, with those beside it."""
        path = self.folder / f"{name}.budget"
        for packed in (GOLDENS / self.version).glob(f"{path.name}*.gz"):
            copy = self.folder / packed.stem
            copy.write_bytes(gzip.decompress(packed.read_bytes()))
            keep_private(copy)
        return path

    def budget(self, name: str) -> Any:
        if name == IN_POSTGRESQL:
            place = self._ledger(self.folder / f"{name}.sql")
        else:
            place = str(self.unpack(name))
        return self.enter_context(tacit.Budget.open(place))

    def table(self, name: str = "visits") -> Any:
        if not self._tables and self.version == "0.2":
            self._tables.update(self.enter_context(opened_together(self.folder)))
        if name not in self._tables:
            source, person = self.folder / f"{name}.csv", PEOPLE[self.version][name]
            self._tables[name] = self.enter_context(tacit.open(source, person=person))
        return self._tables[name]

    def resume(self, stream: dict[str, Any], budget: Any) -> Any:
        return self.table(stream["table"]).resume(stream["name"], budget=budget)


def keep_private(copy: Path) -> None:
    """As it was written; a repository does not keep that."""
    copy.chmod(0o700 if copy.is_dir() else 0o600)


def streams_of(version: str, name: str) -> Iterator[dict[str, Any]]:
    """Every stream of a budget, but for watched models."""
    for stream in noted(name, version)["streams"]:
        if stream["binding"].get("kind") != "watched":
            yield stream


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


def opened_together(folder: Path, *, as_of: str | None = "2026-11-01") -> Any:
    """The tables of 0.2 that are about the same people."""
    return tacit.open_all(
        {
            "visits": {
                "source": folder / "visits.csv",
                "person": "pid",
                "people": 60,
                "as_of": as_of,
            },
            "labs": {"source": folder / "labs.csv", "person": "patient", "as_of": as_of},
        }
    )


def visits_in(version: str, folder: Path | str) -> Any:
    """The table that most streams are about."""
    if version == "0.2":
        return opened_together(Path(folder))["visits"]
    return tacit.open(Path(folder) / "visits.csv", person="pid")


def called(table: Any, asked: dict[str, Any], budget: Any) -> Any:
    """Ask for a release as it was noted."""
    method, given, options = asked["call"]
    paid = {"budget": budget, "analyst": asked["analyst"], "retry_key": asked["key"]}
    return getattr(table, method)(*map(_argument, given), **options, **paid)


def _argument(told: Any) -> Any:
    if isinstance(told, dict):
        ((kind, column),) = told.items()
        return getattr(tacit, kind)(column)
    return told
