"""Ranges that were never asked for, alone and together, against plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow
import pytest

from tacit.tables import EACH_ROW, load, parse

pytestmark = pytest.mark.usefixtures("both_loops")

Row = tuple[int | None, int, int]
CHANCE = random.Random(17)
ROWS: list[Row] = [
    (
        None if CHANCE.random() < 0.1 else CHANCE.randrange(1000),
        CHANCE.randrange(10**13),
        CHANCE.randrange(3),
    )
    for _ in range(3000)
]
SCHEMA = "".join(f"[columns.{name}]\ntype = 'integer'\n" for name in "xyz")


def asked(a: int, b: int, c: int) -> list[tuple[str, Callable[[int, int, int], bool]]]:
    """Predicates, and what they mean where x is not NULL."""
    return [
        (f"x >= {a} and x < {b}", lambda x, y, z: a <= x < b),
        (f"x > {a} and y < {c} and x <= {b}", lambda x, y, z: a < x <= b and y < c),
        (f"x is null and x < {b}", lambda x, y, z: False),
        (f"not (x < {a} or x > {b}) and z = 1", lambda x, y, z: a <= x <= b and z == 1),
        (f"x >= {a} and x >= {b} and y >= {c}", lambda x, y, z: x >= max(a, b) and y >= c),
        (f"not (x >= {a} and x < {b})", lambda x, y, z: not a <= x < b),
        (f"z = 2 and y > {c} and y <= {c + 10**11} and x <> {a}", lambda x, y, z: (
            z == 2 and c < y <= c + 10**11 and x != a
        )),
    ]  # fmt: skip


@pytest.mark.parametrize("person", [EACH_ROW, "pid"])
def test_new_ends_of_ranges(person: object) -> None:
    columns = dict(zip("xyz", map(list, zip(*ROWS, strict=True)), strict=True))
    pids = list(range(len(ROWS)))
    schema = SCHEMA + "[columns.pid]\ntype = 'integer'\n"
    table = pyarrow.table({**columns, "pid": pids})
    with load(table, person=person, schema=schema) as engine:  # type: ignore[arg-type]
        for _ in range(25):
            a, b, c = CHANCE.randrange(-5, 1005), CHANCE.randrange(1000), CHANCE.randrange(10**13)
            for text, meant in asked(a, b, c):
                expected = sum(x is not None and meant(x, y, z) for x, y, z in ROWS)
                for _ in range(3):  # new, then built, then kept
                    assert engine.values([parse(text, engine.schema)]) == [expected], text
