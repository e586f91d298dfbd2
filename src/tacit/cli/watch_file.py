"""The file of ``tacit watch``: which table is asked what, how often, and who is told.

Paths are read from the folder of the file.  A mistake is named with its line, before anything is
opened or paid.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.cli.options import person_of
from tacit.errors import BadConfiguration, BadParameter
from tacit.postgres import URL, with_password_file
from tacit.server.toml_lines import lines_of

_UNITS = {"s": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86_400}
_UNITS |= {"day": 86_400, "week": 7 * 86_400}
_DAY = 86_400
_PERIOD_HELP = "give a period such as '1 day', '6 hours', '15 min' or '30 s'"

_TEXT = (str,)
_WHOLE = (int,)
_NUMBER = (int, float, str)
_YES = (bool,)
_TOP: dict[str, tuple[type, ...]] = {
    "budget": _TEXT,
    "every": _TEXT,
    "questions": (list,),
    "command": (list,),
    "table": (dict,),
    "stream": (dict,),
}
_TABLE: dict[str, tuple[type, ...]] = {
    "source": _TEXT,
    "person": _TEXT,
    "each_row": _YES,
    "name": _TEXT,
    "schema": _TEXT,
    "table": _TEXT,
    "people": _WHOLE,
    "memory_limit": (int, str),
    "spill_folder": _TEXT,
    "spill": _YES,
    "shards": _TEXT,
    "grows_by": _TEXT,
    "password_file": _TEXT,
}
_STREAM: dict[str, tuple[type, ...]] = {
    "name": _TEXT,
    "threshold": _NUMBER,
    "at_most": _WHOLE,
    "epsilon": _NUMBER,
    "delta": _NUMBER,
    "analyst": _TEXT,
    "numeric": _YES,
    "values": _TEXT,
    "kind": _TEXT,
    "sensitivity": _NUMBER,
    "grid": _NUMBER,
    "recipe": _TEXT,
    "questions": _WHOLE,
    "beta": _NUMBER,
}
_PATHS = ("source", "schema", "spill_folder", "shards")
_KINDS = {str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false"}
_KINDS |= {list: "a list of texts", dict: "a table with entries of its own"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFile:
    """All that is watched, by whom it is paid, and who is told."""

    budget: str = field(repr=False)  # a path or a URL, in which a password may be
    every: int | None  # seconds
    table: Mapping[str, Any] = field(repr=False)  # as `tacit.open` takes it
    stream: Mapping[str, Any]  # as `table.sparse` takes it
    questions: tuple[str, ...]
    command: tuple[str, ...] | None


def period(text: str) -> int:
    """A period in seconds.

    >>> period("1 day"), period("15 min"), period("6 hours")
    (86400, 900, 21600)
    """
    found = re.fullmatch(r"([0-9]{1,6}) *([a-z]+?)s?", text.strip()) or re.fullmatch(
        r"([0-9]{1,6}) *(s)", text.strip()
    )
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or not int(found[1]):
        raise BadParameter("every", repr(text), _PERIOD_HELP)
    return int(found[1]) * unit


def label_at(tick: int, every: int) -> str:
    """The label of a tick, in seconds since 1970: its day or, if there are several a day, its time.

    >>> label_at(1_791_936_000, 86_400), label_at(1_791_957_600, 21_600)
    ('2026-10-14', '2026-10-14 06:00:00')
    """
    moment = datetime.fromtimestamp(tick, UTC)
    return moment.strftime("%Y-%m-%d" if every % _DAY == 0 else "%Y-%m-%d %H:%M:%S")


def read_watch_file(path: str) -> WatchFile:
    """Read the file; ``BadConfiguration`` names the first mistake, with its line."""
    place = Path(path)
    try:
        text = place.read_bytes().decode()
        entries = tomllib.loads(text)
    except OSError as error:
        raise BadParameter("file", path, error.strerror or "it cannot be read") from None
    except UnicodeDecodeError:
        raise BadConfiguration(f"{path}: it is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise BadConfiguration(f"{path}: it is not TOML: {error}") from None
    lines = lines_of(text)

    def wrong(entry: tuple[str, ...], what: str) -> BadConfiguration:
        line = next((lines[entry[:n]] for n in range(len(entry), 0, -1) if entry[:n] in lines), 1)
        return BadConfiguration(f"{path}, line {line}: {'.'.join(entry)}: {what}")

    top = _section(entries, (), _TOP, ("budget", "questions", "table", "stream"), wrong)
    table = _section(top["table"], ("table",), _TABLE, ("source",), wrong)
    needed = ("name", "threshold", "at_most", "epsilon")
    stream = _section(top["stream"], ("stream",), _STREAM, needed, wrong)
    return WatchFile(
        budget=_placed(top["budget"], place.absolute().parent),
        every=None if "every" not in top else _every(top["every"], wrong),
        table=_opening(table, place.absolute().parent, wrong),
        stream=stream,
        questions=_texts(top["questions"], "questions", wrong),
        command=None if "command" not in top else _command(top["command"], wrong),
    )


Wrong = Callable[[tuple[str, ...], str], BadConfiguration]


def _section(
    found: Mapping[str, Any],
    path: tuple[str, ...],
    known: Mapping[str, tuple[type, ...]],
    needed: tuple[str, ...],
    wrong: Wrong,
) -> Mapping[str, Any]:
    for name, value in found.items():
        if name not in known:
            raise wrong((*path, name), f"there is no such entry; known are {', '.join(known)}")
        if type(value) not in known[name]:
            kinds = " or ".join(_KINDS[kind] for kind in known[name])
            raise wrong((*path, name), f"give {kinds}")
    for name in needed:
        if name not in found:
            raise wrong((*path, name), "it is missing")
    return found


def _opening(table: Mapping[str, Any], folder: Path, wrong: Wrong) -> dict[str, Any]:
    """The entries as ``tacit.open`` takes them."""
    each_row = table.get("each_row", False)
    if ("person" in table) is each_row:
        raise wrong(
            ("table", "person"), "name a column, or write each_row = true if nobody has two rows"
        )
    apart = ("each_row", "password_file")
    given = {name: value for name, value in table.items() if name not in apart}
    for name in _PATHS:
        if name in given:
            given[name] = _placed(given[name], folder)
    if "password_file" in table:
        if not URL.match(given["source"]):
            raise wrong(("table", "password_file"), "it goes with a table in PostgreSQL only")
        given["source"] = with_password_file(given["source"], folder / table["password_file"])
    return given | {"person": person_of(table.get("person"), each_row)}


def _placed(named: str, folder: Path) -> str:
    """A path in the folder of the file; a URL as it is."""
    return named if "://" in named else str(folder / named)


def _every(text: str, wrong: Wrong) -> int:
    try:
        return period(text)
    except BadParameter as error:
        raise wrong(("every",), error.allowed) from None


def _texts(given: list[Any], name: str, wrong: Wrong) -> tuple[str, ...]:
    if not given or not all(isinstance(text, str) for text in given):
        raise wrong((name,), "give a list of texts")
    return tuple(given)


def _command(given: list[Any], wrong: Wrong) -> tuple[str, ...]:
    command = _texts(given, "command", wrong)
    if shutil.which(command[0]) is None:
        raise wrong(("command",), f"there is no program {command[0]}")
    return command
