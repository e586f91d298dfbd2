"""What a question costs on 10⁹ rows, measured on columns that are made up: ``docs/scale.md``.

``python -m benchmarks.scale [rows]`` prints the first table of that page.  The engine is the real
one; only loading is left out, since the codes are drawn.  Three columns of a byte a row and their
bitmaps must fit into memory: about 5 bytes a row.

``python -m benchmarks.scale building`` prints the second one: what making the shards of a table
takes, as each worker of a cluster does it, by the number of rows.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import duckdb
import numpy as np

from benchmarks.bench_tables import SCHEMA as EIGHT_COLUMNS
from benchmarks.bench_tables import generated
from tacit.tables import EACH_ROW, parse, read_schema
from tacit.tables.encoded.columns import EncodedColumn
from tacit.tables.encoded.layout import WORD, Layout, every_row
from tacit.tables.encoded.shards import Shard
from tacit.tables.encoded.workers import Work
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.schema.schema import Person

COLUMNS = ("age", "week", "town")
SCHEMA = "".join(f"[columns.{name}]\ntype = 'integer'\n" for name in ("pid", *COLUMNS))
ROWS_EACH = 4  # of a person: sixteen people fill a word of 64 rows
PASSES = 7
BUILT = (500_000, 1_000_000, 2_000_000, 4_000_000)  # the last fills one shard of many rows
A_TASK = 250_000  # rows


def main() -> None:
    """Draw the columns once, and ask them with each row a person, and with four rows a person."""
    if sys.argv[1:] == ["building"]:
        building()
        return
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**9
    rows -= rows % 64
    random = np.random.default_rng(7)
    held = {
        name: EncodedColumn(random.integers(0, 200, rows, dtype=np.uint8), 199, 0)
        for name in COLUMNS
    }
    print(f"| {rows:,} rows, one core | processor time |\n|---|---|")
    for person, layout in ((EACH_ROW, every_row(rows)), ("pid", _of_people(rows))):
        _measured(person, layout, held)


def _of_people(rows: int) -> Layout:
    """All people with as many rows, which `by_person` would sort first."""
    words = rows // 64
    inner = np.full(words, 0x7777777777777777, dtype=WORD)
    return Layout(
        words=words,
        one_row=0,
        many_words=words,
        filled=np.full(words, 2**64 - 1, dtype=WORD),
        inner=inner,
        inner_bits=words * 48,
        starts=np.zeros(0, dtype=np.int64),  # only sums and limits on rows look there
        sizes=np.array([ROWS_EACH]),
        size_ends=np.array([words]),
    )


def _measured(person: Person, layout: Layout, held: dict[str, EncodedColumn]) -> None:
    schema = read_schema(SCHEMA, name="visits", person=person)
    counted = "rows" if person is EACH_ROW else f"people of {ROWS_EACH} rows"
    with BitmapEngine(schema, [Shard(layout, held)], limit=8 * 2**30) as engine:
        question = parse("age < 100 and week >= 50 and town <> 7", schema)
        first = _seconds(lambda: engine.values([question]))
        again = min(_seconds(lambda: engine.values([question])) for _ in range(PASSES))
        print(f"| {counted}, three atoms, once their bitmaps are built | {again * 1e3:.0f} ms |")
        print(f"| building one bitmap from codes of a byte | {(first - again) / 3:.2f} s |")


# Making the shards


def building() -> None:
    """Processor time of the two steps of workers, which see rows and shards of bounded size."""
    print("| rows, 8 columns | cutting | building | a row |\n|---|---|---|---|")
    for rows in BUILT:
        with tempfile.TemporaryDirectory() as folder:
            cut, built = _built(rows, Path(folder))
        print(f"| {rows:,} | {cut:.1f} s | {built:.1f} s | {(cut + built) / rows * 1e6:.2f} µs |")


def _built(rows: int, folder: Path) -> tuple[float, float]:
    schema = read_schema(EIGHT_COLUMNS, name="visits", person="pid")
    work = Work(schema, None, folder)
    work.begin()
    with duckdb.connect() as connection:
        made = connection.sql(generated(rows)).to_arrow_table()
    tasks: list[tuple[str, int]] = []

    def cut() -> None:
        for start in range(0, rows, A_TASK):
            done = work.cut(made.slice(start, A_TASK).to_batches())
            assert done is not None
            tasks.append(done)

    cutting = _seconds(cut)
    of = work.shards_for(sum(count for _, count in tasks))
    names = [name for name, _ in tasks]
    return cutting, _seconds(
        lambda: work.finish([work.build(number, of, names) for number in range(of)])
    )


def _seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


if __name__ == "__main__":
    main()
