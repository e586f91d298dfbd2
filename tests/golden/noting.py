"""What the scripts that wrote the golden files share: notes of what was asked and said.

It uses only what every version since 0.1 can do.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

NO_OPTIONS: Mapping[str, Any] = {}


def write_json(path: Path, told: object) -> None:
    path.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def as_plain(value: Any) -> Any:
    """A parameter as JSON; what JSON has no word for is a list of its type and its text."""
    if isinstance(value, list):
        return [as_plain(each) for each in value]
    if isinstance(value, Decimal | Fraction):
        return {type(value).__name__.lower(): str(value)}
    if isinstance(value, date | datetime):
        return {type(value).__name__: value.isoformat()}
    return value


def noted(text: str, parameters: Mapping[str, Any], threshold: object = None) -> dict[str, Any]:
    values = {name: as_plain(value) for name, value in parameters.items()}
    own = None if threshold is None else str(threshold)
    return {"question": text, "parameters": values, "threshold": own}


def text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def answer_of(answer: Any) -> dict[str, Any]:
    return {
        "above": answer.above,
        "value": text_or_none(answer.value),
        "gap": text_or_none(answer.gap),
        "error": text_or_none(answer.error()),
    }


class Notes:
    """What each stream was asked and answered, by budget."""

    def __init__(self) -> None:
        self.asked: dict[str, dict[str, Any]] = {}

    def of(self, stream: Any, table: Any) -> list[dict[str, Any]]:
        about: dict[str, Any] = {"table": table.name, "asked": []}
        asked: list[dict[str, Any]] = self.asked.setdefault(stream.name, about)["asked"]
        return asked

    def ask(
        self,
        table: Any,
        stream: Any,
        text: str,
        threshold: Any = None,
        options: Mapping[str, Any] = NO_OPTIONS,
        **values: Any,
    ) -> Any:
        """``options`` are those that 0.1 did not have, as JSON knows them."""
        answer = stream.ask(text, threshold=threshold, **options, **values)
        told = {**noted(text, values, threshold), **_if_any(options), "answer": answer_of(answer)}
        self.of(stream, table).append(told)
        return answer

    def ask_all(
        self,
        table: Any,
        stream: Any,
        text: str,
        options: Mapping[str, Any] = NO_OPTIONS,
        **values: Any,
    ) -> None:
        answers = [answer_of(answer) for answer in stream.ask_all(text, **options, **values)]
        told = {**noted(text, values), **_if_any(options), "answers": answers}
        self.of(stream, table).append(told)


def _if_any(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"options": dict(options)} if options else {}


def privacy_of(privacy: Any) -> dict[str, str] | None:
    return (
        None if privacy is None else {"epsilon": str(privacy.epsilon), "delta": str(privacy.delta)}
    )


def write_notes(budget: Any, path: Path, notes: Notes, **more: object) -> None:
    """What is said about a budget."""
    verified = budget.verify()
    streams = [
        {
            "name": state.name,
            "table": state.table,
            "analyst": state.analyst,
            "at_most": state.at_most,
            "binding": dict(state.binding),
            "tops": state.tops,
            "lost": state.lost,
            "tops_left": state.tops_left,
            "status": state.status,
            **notes.asked.get(state.name, {"asked": []}),
        }
        for state in budget.streams()
    ]
    pots = [
        {
            "analyst": pot.analyst,
            "limit": pot.limit.as_json(),
            "spent": pot.spent.as_json(),
            "left": pot.left.as_json(),
        }
        for pot in (*budget.pots, budget.whole)
    ]
    told = {
        "promise": privacy_of(budget.promise),
        "accountant": budget.accountant.name,
        "covers": list(budget.covers),
        "whole": pots[-1],
        "pots": pots[:-1],
        "spent_privacy": privacy_of(budget.spent_privacy),
        "left_privacy": privacy_of(budget.left_privacy),
        "entries": verified.entries,
        "head": verified.head,
        "streams": streams,
        **more,
    }
    write_json(path.with_suffix(".json"), told)


def killed(what: str, *arguments: object) -> None:
    """A process of its own, which kills itself with −9 in the middle of its work."""
    told = subprocess.run([sys.executable, sys.argv[0], what, *map(str, arguments)], check=False)
    assert told.returncode == -signal.SIGKILL, told.returncode


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def command(folder: Path, values: bool, *arguments: str, stdin: str = "") -> dict[str, Any]:
    """In a folder of its own, since it may write; with the files that it was told to write."""
    with tempfile.TemporaryDirectory() as place:
        elsewhere = Path(place, "folder")
        shutil.copytree(folder, elsewhere)
        ran = subprocess.run(
            [sys.executable, "-m", "tacit", *arguments],
            input=stdin,
            capture_output=True,
            cwd=elsewhere,
            check=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONUTF8": "1"},
        )
        saved = {
            name: (elsewhere / name).read_text(encoding="utf-8")
            for option, name in pairwise(arguments)
            if option in ("--csv", "--save")
        }
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    files = {"files": saved} if saved else {}
    return {"arguments": [*arguments], "stdin": stdin, "values": values, "lines": lines, **files}
