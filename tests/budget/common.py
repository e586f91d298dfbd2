"""What the tests of the budget share."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tacit.budget import Budget, Lease
from tacit.budget.chain import canonical, digest
from tacit.budget.head_file import HeadFile
from tacit.budget.ledger import HistoryEnd
from tacit.budget.sqlite import SqliteLedger
from tacit.errors import StreamHeld
from tacit.privacy import Cost

BINDING = {"table": "visits", "recipe": "book"}


def next_secret(secret: bytes) -> bytes:
    """The state after an answer above: the next threshold."""
    word, number = secret.split()
    return b"%s %d" % (word, int(number) + 1)


def open_stream(
    budget: Budget, name: str | None = "flu", *, at_most: int = 3, **more: Any
) -> Lease:
    options = {
        "cost": Cost.pure("1/10"),
        "table": "visits",
        "at_most": at_most,
        "binding": BINDING,
        "secret": b"threshold 0",
        **more,
    }
    return budget.open_stream(name, **options)


def resume(budget: Budget, name: str = "flu", after_loss: Any = next_secret) -> Lease:
    return budget.resume_stream(name, binding=BINDING, after_loss=after_loss)


def resume_when_free(budget: Budget, name: str = "flu") -> Lease:
    """Resume a stream whose holder was killed: a server may need a moment to notice."""
    deadline = time.monotonic() + 300  # a safety net
    while True:
        try:
            return resume(budget, name)
        except StreamHeld:
            if time.monotonic() > deadline:
                raise


def lost_by_resuming(budget: Budget, name: str = "flu") -> int:
    """Resume a stream, and say how many of its answers are lost by then."""
    lease = resume_when_free(budget, name)
    state = budget.stream(name)
    assert lease.tops_left == state.tops_left == state.at_most - state.tops - state.lost
    return state.lost


def ask(lease: Lease, key: str, *, above: bool = True, secret: bytes | None = None) -> None:
    """Put one question whose coin is known."""
    with lease.turn():
        if above:
            lease.record_top({"above": True}, question_key=key, secret=secret)


def sqlite_of(budget: Budget) -> SqliteLedger:
    """The ledger of a budget in a file."""
    ledger = budget._ledger
    assert isinstance(ledger, SqliteLedger)
    return ledger


def mend_head(path: Path) -> None:
    """Make the head file agree with a file that was edited, as a thorough forger would."""
    with closing(sqlite3.connect(path)) as connection:
        last = "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1"
        tail = HistoryEnd(*connection.execute(last).fetchone())
    file = HeadFile(path.with_name(f"{path.name}-head"))
    file.begin(tail)
    file.close()


def rewritten(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit an entry and mend every hash after it, as somebody who knows the format would."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER entries_stay")
        rows = connection.execute("SELECT number, text FROM entries ORDER BY number").fetchall()
        previous = "0" * 64
        for position, text in rows:
            body = json.loads(text)
            if position == number:
                change(body)
            body["previous"] = previous
            text = canonical(body)
            previous = digest(text)
            connection.execute(
                "UPDATE entries SET text = ?, hash = ? WHERE number = ?", (text, previous, position)
            )
    connection.close()
    mend_head(path)


def abandon(lease: Lease) -> None:
    """Leave as a killed process would: the kernel drops the hold, and nothing is written."""
    hold, lease._hold = lease._hold, None
    lease._over = "its process is gone"
    if hold is not None:
        hold.drop() if hasattr(hold, "drop") else hold.release()
