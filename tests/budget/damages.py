"""Ways to damage a budget file, and everything that can be asked of it afterwards."""

from __future__ import annotations

import io
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tests.budget.common import BINDING

from tacit.budget import Budget, RetryKey
from tacit.budget.answers import Telling
from tacit.privacy import Cost

SECRET = b"918273645 0"

HOSTILE: list[Any] = [
    *(None, 0, -1, 1, 2, 7, 2**31, 2**62, 2**63 - 1, -(2**63), 0.5, float("inf"), 1e300),
    *("", "x", "1", "NaN", "null", "[]", "{}", "[1, 2]", '"text"', "\ud800", "a\0b", "⊤" * 50),
    *("[" * 20_000, "9" * 5000, '{"kind": "created"}', '{"kind": 5}', '{"kind": "open"}'),
    *('{"epsilon": "1/0", "delta": "0"}', '{"epsilon": 1, "delta": 0}', '{"rho": "1"}'),
    *('{"epsilon": "-5", "delta": "0"}', '{"epsilon": "1e999999999", "delta": "0"}'),
    *('{"epsilon": "99", "delta": "7"}', '{"person": null}', '{"a": 1}', '{"a": {"b": []}}'),
    *('{"threshold": "1/0", "kind": "counts"}', "live", "halted", "suspended", "closed", "gone"),
    *(b"", b"\xff\xfe", b"{}", b"\x80" * 30, b"1", b"[1, 2]", b"[918273645", b"918273645 \xff"),
    *(b"null", b"[[]]", b"[1e400, 0]", b'["a", "b"]'),
]


def write_budget(path: Path) -> None:
    """Every kind of entry, and streams in every state."""
    with Budget.create(path, epsilon=1, delta="1e-6", covers=["visits", "labs"]) as budget:
        budget.share("ana", epsilon="1/4")
        budget.charge(Cost.pure("1/10"), table="visits", what="count of smokers")
        for number in range(3):
            retry = RetryKey(f"key {number}", "ana", "visits.count", {"question": "smoker"})
            paid = budget.charge(Cost.pure("1/99"), table="visits", what="kept", retry=retry)
            if number:
                budget.keep(paid.number, {"told": number, "text": "⊤"})
        for name, at_most in (("flu", 3), ("measles", 1), ("cold", 2), ("gout", 2)):
            lease = budget.open_stream(
                name,
                cost=Cost.pure("1/100"),
                table="visits",
                at_most=at_most,
                binding=BINDING,
                secret=SECRET,
                analyst="ana",
            )
            with lease.turn():
                if name != "gout":
                    lease.record_top({"above": "⊤"}, question_key="one")
                if name == "gout":
                    retry = RetryKey("key", "ana", "gout.ask", {"question": "one"})
                    telling = Telling(retry, {"above": False}, room=600)
                    lease.record_told({"above": "⊥"}, question_key="one", telling=telling)
            if name == "cold":
                lease.close()
            else:
                lease.suspend()


def rows_of(path: Path) -> list[tuple[str, str, Any, Any]]:
    """Every stored value: its table, its column, its key and itself."""
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        connection.execute("PRAGMA query_only = ON")
        tables = [
            name.decode()
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        found = []
        for table in tables:
            info = connection.execute(f"PRAGMA table_info({table})").fetchall()
            names = [name.decode() for _, name, *_ in info]
            (key,) = [name.decode() for _, name, *_, place in info if place]
            for row in connection.execute(f"SELECT {key}, {', '.join(names)} FROM {table}"):
                found += [
                    (table, name, row[0], value) for name, value in zip(names, row[1:], strict=True)
                ]
        return found


def edited(
    path: Path, table: str, column: str, key: Any, value: Any, *, text: bool = False
) -> bool:
    """Put a value in the place of another; False if the file itself does not let one."""
    if isinstance(value, str):
        value, text = value.encode("utf-8", "surrogatepass"), True
    new = "CAST(? AS TEXT)" if text else "?"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.text_factory = bytes
        connection.execute("PRAGMA synchronous = OFF")
        for trigger in ("entries_stay", "entries_remain"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        (named,) = [name.decode() for _, name, *_, place in columns if place]
        find = "CAST(? AS TEXT)" if isinstance(key, bytes) else "?"
        try:
            connection.execute(
                f"UPDATE {table} SET {column} = {new} WHERE {named} = {find}", (value, key)
            )
        except (sqlite3.IntegrityError, OverflowError):
            return False
        return True


def damage(path: Path, dice: random.Random) -> str:
    """Damage a file in one of many ways; says how."""
    kind = dice.choice(["edit", "edit", "edit", "bytes", "bytes", "cut", "blank"])
    if kind == "edit":
        table, column, key, _ = dice.choice(rows_of(path))
        value = dice.choice(HOSTILE)
        edited(path, table, column, key, value)
        return f"{table}.{column} of {key!r} = {value!r:.60}"
    raw = bytearray(path.read_bytes())
    if kind == "bytes":
        for _ in range(dice.choice([1, 1, 2, 5, 30])):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
    elif kind == "cut":
        del raw[dice.randrange(len(raw)) :]
    else:
        start = dice.randrange(len(raw))
        raw[start : start + dice.choice([10, 500, 4096])] = bytes(dice.choice([10, 500, 4096]))
    path.write_bytes(raw)
    return kind


def asked_of(path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every public call on a budget file, one after another."""
    opened: list[Budget] = []

    def budget() -> Budget:
        if not opened:
            opened.append(Budget.open(path))
        return opened[0]

    cost = Cost.pure("1/1000")
    yield "open", budget
    if not opened:
        return
    yield "str", lambda: str(budget())
    yield "repr", lambda: repr(budget())
    for name in (
        "covers",
        "shares",
        "pots",
        "whole",
        "spent",
        "left",
        "spent_privacy",
        "left_privacy",
    ):
        yield name, partial(getattr, budget(), name)
    for name in ("promise", "accountant", "head", "tied"):
        yield name, partial(getattr, budget(), name)
    yield "streams", lambda: [str(state) for state in budget().streams()]
    yield "history", lambda: list(budget().history)
    yield "history len", lambda: len(budget().history)
    yield "history str", lambda: str(budget().history)
    yield "history repr", lambda: [repr(entry) for entry in budget().history]
    yield "history [-1]", lambda: budget().history[-1].body
    yield "history [1:4]", lambda: budget().history[1:4]
    yield "history [::-2]", lambda: budget().history[::-2]
    yield "export", lambda: budget().export(io.StringIO())
    yield "verify", lambda: budget().verify()
    yield "hypothetical", lambda: str(budget().hypothetical())
    for name in ("flu", "measles", "cold", "gout"):
        yield "stream", partial(budget().stream, name)
    yield "charge", lambda: budget().charge(cost, table="visits", what="x", analyst="ana")
    yield "charge", lambda: budget().charge(cost, table="labs", what="x")
    yield "share", lambda: budget().share("ana", epsilon="1/5")
    yield "cover", lambda: budget().cover("pharmacy")
    for name in ("flu", "gout"):
        yield (
            "resume",
            partial(
                budget().resume_stream, name, binding=BINDING, after_loss=lambda secret: secret
            ),
        )
    yield (
        "open stream",
        lambda: budget().open_stream(
            None, cost=cost, table="visits", at_most=1, binding=BINDING, secret=SECRET
        ),
    )
    yield "verify", lambda: budget().verify()
    yield "close", lambda: budget().close()
