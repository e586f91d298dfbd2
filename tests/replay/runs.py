"""One run of a session, and all that leaves; and a session replayed on a neighbour.

A session is a function of a `Door`: a table that is open, and a budget.  To replay what another
door does, open its table another way: all draws of this process are heard, whoever makes them.
"""

from __future__ import annotations

import io
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from tests.replay.calls import Call, Diverged, Listener, listening
from tests.replay.losses import check_paid

from tacit.analyst.table import Table
from tacit.budget import Budget
from tacit.budget.chain import cost_from_json
from tacit.errors import BadParameter
from tacit.privacy import Cost
from tacit.wire import to_json

Row = Mapping[str, Any]
Opener = Callable[[Sequence[Row], Path], AbstractContextManager[Table]]
Session = Callable[["Door"], None]

_CHANGES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z|\b[0-9a-f]{12,64}\b")  # times, hashes


class Differs(AssertionError):
    """Something that leaves, or the calls themselves, are other ones on a neighbour."""


@dataclass
class Door:
    """What a session may use, and what it was told."""

    table: Table
    budget: Budget
    random: Random
    folder: Path
    left: list[str] = field(default_factory=list)

    def told(self, ask: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """What a call tells, or how it fails.  Either has left."""
        try:
            value = ask(*given, **named)
            value = list(value) if isinstance(value, Iterator) else value
        except Exception as error:
            self.left += ["error", *traceback.format_exception(error)]
            return None
        self.shown(value)
        return value

    def shown(self, *values: Any) -> None:
        """Values that leave without a call."""
        self.left += forms(values)


def forms(value: Any) -> Iterator[str]:
    """A value in every form in which it leaves."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        for each in value:
            yield from forms(each)
        return
    yield f"{type(value).__name__} {value!r} {value}"
    if hasattr(value, "_repr_html_"):
        yield value._repr_html_()
    with suppress(BadParameter):  # it has no form on the wire
        yield repr(to_json(value))


@dataclass
class Run:
    """What a run did inside, what left, and what it paid."""

    calls: list[Call]
    left: list[str]
    costs: list[Cost]


def run(
    session: Session,
    rows: Sequence[Row],
    opened: Opener,
    folder: Path,
    seed: int,
    given: Sequence[Call] | None = None,
) -> Run:
    """Run a session on a table, with the outputs that were given, or with new ones."""
    (folder / "out").mkdir(parents=True)
    listener = Listener(seed, given)
    with (
        _overheard() as left,
        opened(rows, folder) as table,
        listening(listener),
        _budget(folder / "out" / "people.budget", in_file=seed % 3 == 0) as budget,
    ):
        left += forms(table)
        session(Door(table, budget, Random(seed), folder / "out", left))
        left += forms([table, budget, *budget.history, *budget.answers, *budget.streams()])
        entries = [entry.body for entry in budget.history]
    costs = [cost_from_json(body["cost"]) for body in entries if "cost" in body]
    files = sorted((folder / "out").rglob("*"))
    left += [f"{file.name}: {file.stat().st_size} bytes" for file in files]
    return Run(listener.calls, [_same(text, folder) for text in left], costs)


def _budget(path: Path, *, in_file: bool) -> Budget:
    promise: dict[str, Any] = {"epsilon": 1000, "delta": "1/10", "covers": ["visits"]}
    return Budget.create(path, **promise) if in_file else Budget.in_memory(**promise)


def _same(text: str, folder: Path) -> str:
    return _CHANGES.sub("…", text.replace(str(folder), "…"))


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What is logged, warned and printed meanwhile, in the order of each."""
    left: list[str] = []
    printed = io.StringIO()
    logged = logging.StreamHandler(printed)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(logged)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with redirect_stdout(printed), redirect_stderr(printed):
                yield left
        left += [f"{each.category.__name__}: {each.message}" for each in warned]
        left.append(printed.getvalue())
    finally:
        root.removeHandler(logged)
        root.setLevel(level)


@dataclass(frozen=True)
class Replayed:
    """How a session went on both tables: which calls, and what was lost of what was charged."""

    calls: list[Call]
    loss: Fraction
    charged: Fraction


def replay(
    session: Session,
    tables: tuple[Sequence[Row], Sequence[Row]],
    opened: Opener,
    folder: Path,
    seed: int,
) -> Replayed:
    """Run a session on both tables, and compare all there is.  Raises `Differs` or `Unpaid`."""
    try:
        first = run(session, tables[0], opened, folder / "first", seed)
        second = run(session, tables[1], opened, folder / "second", seed, first.calls)
    except Diverged as why:
        raise Differs(f"the calls differ: {why}") from None
    if len(first.calls) != len(second.calls):
        raise Differs(f"there were {len(first.calls)} calls, then {len(second.calls)}")
    for here, there in zip(first.left, second.left, strict=False):
        if here != there:
            raise Differs(f"what leaves differs:\n{here}\n{there}")
    if len(first.left) != len(second.left) or first.costs != second.costs:
        raise Differs("more leaves, or another price is paid")
    loss = check_paid(first.calls, second.calls, first.costs)
    charged = sum((cost.privacy.epsilon for cost in first.costs), Fraction(0))
    return Replayed(first.calls, loss, charged)
