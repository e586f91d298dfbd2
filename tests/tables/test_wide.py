"""Tables of very many columns: the work grows with the columns, the statements by blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from tacit import kernel
from tacit.tables import EACH_ROW, Schema, load, parse, read_schema
from tacit.tables.encoded.fetching import CHUNK, MOST_COLUMNS
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.opening import hold
from tacit.tables.sources.kinds import open_source

COLUMNS = [
    ("integer", pa.array([1, None, 3])),
    ("text", pa.array(["a", "b", None])),
    ("real", pa.array([1.5, None, 2.5])),
    ("date", pa.array([0, 1, None], pa.date32())),
    ("timestamp", pa.array([0, None, 1], pa.timestamp("ms"))),
    ("boolean", pa.array([True, None, False])),
]


def wide(count: int) -> tuple[pa.Table, Schema]:
    chosen = [COLUMNS[n % len(COLUMNS)] for n in range(count)]
    table = pa.table({"pid": [1, 1, 2], **{f"c{n}": array for n, (_, array) in enumerate(chosen)}})
    declared = "".join(f'[columns.c{n}]\ntype = "{kind}"\n' for n, (kind, _) in enumerate(chosen))
    pid = '[columns.pid]\ntype = "integer"\n'
    return table, read_schema(pid + declared, name="t", person="pid")


@dataclass
class Counting:
    """A connection that counts the statements that are run on it, and how long they are."""

    connection: Any
    statements: list[int] = field(default_factory=list)

    def execute(self, text: str) -> Any:
        self.statements.append(len(text))
        return self.connection.execute(text)

    def sql(self, text: str) -> Any:
        self.statements.append(len(text))
        return self.connection.sql(text)

    def close(self) -> None:
        self.connection.close()


def _held(count: int) -> tuple[BitmapEngine, list[int]]:
    table, schema = wide(count)
    source = open_source(table, table=None, memory_limit=2**30)
    counting = Counting(source.connection)
    source.connection = counting  # type: ignore[assignment]
    return hold(source, schema, 2**30), counting.statements


@pytest.mark.skipif(kernel.compiled is None, reason="then DuckDB numbers texts, column by column")
def test_statements_grow_by_blocks_of_columns() -> None:
    few, of_few = _held(20)
    more, of_more = _held(MOST_COLUMNS - 1)
    many, of_many = _held(4 * MOST_COLUMNS)
    few.close()
    more.close()
    assert len(of_few) == len(of_more) <= 5
    assert len(of_many) <= len(of_more) + 5 + 1  # a table of raw columns, and a block each
    assert max(of_many) < 2 * max(of_more)  # none of them plans all columns
    with many as engine:
        for n in range(4 * MOST_COLUMNS - len(COLUMNS), 4 * MOST_COLUMNS):
            assert engine.values([parse(f"c{n} is null", engine.schema)]) == [1]
        assert engine.values([parse("c0 = 3 and c1020 = 3", engine.schema)]) == [1]
        assert engine.values([parse("c1 = 'b' and c6 is null", engine.schema)]) == [1]


@pytest.mark.parametrize("rows", [CHUNK, CHUNK + 1])
def test_texts_are_numbered_alike_however_many_rows_there_are(rows: int) -> None:
    words = ["é", "Z", "a", "b\0", "", "z" * 100, None]
    table = pa.table({"x": [words[n % 7] for n in range(rows)], "y": list(range(rows))})
    with load(table, person=EACH_ROW, name="t") as engine:
        for text, kept in (
            ("x = 'é'", {0}),
            ("x < 'a'", {1, 4}),
            ("x is null", {6}),
            ("x like 'z%'", {5}),
            ("x > 'b'", {0, 3, 5}),
        ):
            expected = sum(n % 7 in kept for n in range(rows))
            assert engine.values([parse(text, engine.schema)]) == [expected]
        assert engine.values([parse("x = 'Z' and y = 8", engine.schema)]) == [1]
        assert engine.values([parse("x = 'Z' and y = 9", engine.schema)]) == [0]
