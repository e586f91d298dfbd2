"""Columns that are built chunk by chunk: their codes and words, against Python's own."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import kernel
from tacit.errors import EngineFailed
from tacit.tables import EACH_ROW
from tacit.tables.encoded import fetching
from tacit.tables.encoded.building import LONGEST_WORD, NumberColumn, TextColumn
from tacit.tables.encoded.columns import EncodedColumn, hold_numbers, placed
from tacit.tables.encoded.layout import narrowest
from tacit.tables.encoded.packed_words import packed, put_in_order, sorted_places
from tacit.tables.schema.schema import read_schema
from tacit.tables.sources.arrow_chunks import SETTINGS, ChunkColumn, chunks

LETTERS = "ab\0é水😀\U0010ffff"
needs_compiler = pytest.mark.skipif(
    kernel.compiled is None, reason="without the compiled loops DuckDB numbers words"
)
SIZES = (0, 1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 31, 32, 33, 63, 64)
WORDS = st.text(st.sampled_from(LETTERS), max_size=16)  # at most 64 bytes


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 2}) as opened:
        opened.execute(SETTINGS)
        yield opened


# Chunks


def text_of(column: ChunkColumn, row: int) -> str | None:
    if column.nulls is not None and column.nulls[row]:
        return None
    view: bytes = column.values[row].tobytes()
    size = int.from_bytes(view[:4], "little")
    if size <= 12:
        return view[4 : 4 + size].decode()
    start = int.from_bytes(view[12:], "little")
    return column.texts[start : start + size].tobytes().decode()


def test_chunks_are_the_rows_of_a_query_in_order(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE t AS SELECT i, CASE WHEN i % 3 != 1 THEN i % 250 END::UTINYINT AS small, "
        "CASE WHEN i % 1000 != 5 THEN repeat('é' || i, i % 9) END AS word, i / 7 AS real "
        "FROM range(300_000) AS r(i)"
    )
    query = "SELECT i, small, word, real, i::UINTEGER, hash(i) FROM t WHERE i % 5 != 2"
    expected = connection.execute(query).fetchall()
    at = 0
    for numbers, small, word, real, unsigned, hashed in chunks(connection, query):
        rows = expected[at : at + len(numbers.values)]
        assert numbers.values.tolist() == [row[0] for row in rows]
        assert small.nulls is not None
        pairs = zip(small.values.tolist(), small.nulls, strict=True)
        found = [None if null else value for value, null in pairs]
        assert found == [row[1] for row in rows]
        assert [text_of(word, row) for row in range(len(rows))] == [row[2] for row in rows]
        assert real.values.tolist() == [row[3] for row in rows]
        assert (unsigned.values.dtype.str, hashed.values.dtype.str) == ("<u4", "<u8")
        assert hashed.values.tolist() == [row[5] for row in rows]
        at += len(rows)
    assert at == len(expected)


def test_a_failure_in_a_chunk_is_duckdbs_and_ends_the_stream(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    query = "SELECT CASE WHEN i = 200_000 THEN error('no') ELSE i END FROM range(300_000) AS r(i)"
    with pytest.raises(duckdb.Error):
        for _ in chunks(connection, query):
            pass
    for _ in chunks(connection, "SELECT i FROM range(300_000) AS r(i)"):
        break  # nobody reads the rest
    assert connection.execute("SELECT 7").fetchall() == [(7,)]


@pytest.mark.parametrize("rows", [2, 4])
def test_other_rows_than_were_counted_are_refused(
    rows: int, connection: duckdb.DuckDBPyConnection
) -> None:
    connection.execute("CREATE TABLE t AS SELECT i AS x FROM range(3) AS r(i)")
    schema = read_schema("[columns.x]\ntype = 'integer'", name="t", person=EACH_ROW)
    source = fetching.CodeSource(connection, lambda _: "FROM t")
    with pytest.raises(EngineFailed, match="changed"):
        fetching.read_columns(source, schema, rows)


# Words


def built(words: list[str | None], sizes: list[int]) -> TextColumn:
    """The column of these words, of which so many come in each chunk."""
    column, at = TextColumn(len(words)), 0
    with duckdb.connect() as connection:
        connection.execute(SETTINGS)
        for size in sizes:
            some = pa.table({"word": pa.array(words[at : at + size], pa.string())})
            connection.register("shown", some)
            for (chunk,) in chunks(connection, "SELECT word FROM shown"):
                column.take(at, chunk)
                at += len(chunk.values)
            connection.unregister("shown")
    assert at == len(words)
    return column


def check(held: EncodedColumn, words: list[str | None]) -> None:
    known = {word for word in words if word is not None}
    assert list(held.words) == sorted(known)
    assert held.top == len(known) - 1
    assert held.codes.dtype == narrowest(len(known))
    codes = held.codes.tolist()
    assert [None if code == held.null else held.words[code] for code in codes] == words


def of_size(draw: random.Random, size: int) -> str:
    """A word of so many bytes, with NULs and wide characters in it."""
    word = ""
    while len(word.encode()) < size:
        more = draw.choice("ab\0\0é水😀")
        word += more if len((word + more).encode()) <= size else draw.choice("a\0")
    return word


@needs_compiler
@pytest.mark.parametrize("seed", range(6))
def test_words_of_every_size_are_numbered(seed: int) -> None:
    draw = random.Random(seed)
    some = [of_size(draw, size) for size in SIZES for _ in range(1 + seed)]
    words = draw.choices([*some, None] if seed % 2 else some, k=900)
    column = built(words, [300, 0, 1, 599])
    assert column.fits
    check(column.held(), words)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [None, None],
        [""],
        ["", None, "\0", "\0\0", "a", "a\0", None],
        ["same"] * 500,
        [f"different {number}" for number in range(500)],
        [f"{number}" for number in range(5000)] + [None],
        ["x" * size for size in range(LONGEST_WORD + 1)],
        ["\0" * size for size in range(LONGEST_WORD + 1)],
    ],
    ids=lambda words: f"{len(words)} of {len(set(words))}",
)
@needs_compiler
def test_columns_at_their_limits(words: list[str | None]) -> None:
    check(built(words, [len(words)]).held(), words)


@needs_compiler
def test_a_word_that_is_too_long_does_not_fit() -> None:
    assert built(["x" * LONGEST_WORD], [1]).fits
    assert not built(["a", "x" * (LONGEST_WORD + 1)], [2]).fits
    assert built([None], [1]).fits


@needs_compiler
@pytest.mark.parametrize("key", [0, 1, 2**64 - 1])
def test_words_that_begin_their_search_at_one_place_are_told_apart(key: int) -> None:
    """Whatever the hash is: here nearly all places of a small table are taken, again and again."""
    words = [of_size(random.Random(n), n % 40) + str(n) for n in range(64)]
    views = np.zeros((64, 16), np.uint8)
    texts = b"".join(word.encode() for word in words)
    at = 0
    for view, word in zip(views, map(str.encode, words), strict=True):
        view[:4] = list(len(word).to_bytes(4, "little"))
        view[4:16] = list(word[:12].ljust(12, b"\0"))
        if len(word) > 12:
            view[12:] = list(at.to_bytes(4, "little"))
        at += len(word)
    table, ends = np.zeros(128, np.uint64), np.zeros(64, np.int64)
    letters, codes = np.zeros(len(texts), np.uint8), np.zeros(64, np.uint32)
    given = np.frombuffer(texts, np.uint8)
    for _ in range(2):  # new ones, then known ones
        count = 0 if not codes.any() else 64
        found = kernel.compiled.number_words(
            *(views, given, codes, table, ends, letters, count, key, False)
        )
        assert found == (64, 64)
        assert codes.tolist() == list(range(1, 65))
    assert letters.tobytes() == texts
    table[:] = 0
    found = kernel.compiled.number_words(views, given, codes, table, ends, letters, 64, key, True)
    assert (found, codes.tolist()) == ((64, 64), list(range(1, 65)))


@needs_compiler
def test_what_has_no_room_is_left_and_what_does_not_fit_is_refused() -> None:
    views = np.zeros((3, 2), np.uint64)
    views[:, 0] = [1 | ord(letter) << 32 for letter in "abc"]
    nothing, codes = np.zeros(0, np.uint8), np.zeros(3, np.uint32)
    number = kernel.compiled.number_words

    def room(places: int, words: int, letters: int) -> list[object]:
        kept = np.zeros(places, np.uint64), np.zeros(words, np.int64), np.zeros(letters, np.uint8)
        return [views, nothing, codes, *kept, 0, 7, False]

    assert number(*room(8, 3, 3)) == (3, 3)
    assert number(*room(4, 3, 3)) == (2, 2)  # at most half of all places
    assert number(*room(8, 1, 3)) == (1, 1)
    assert number(*room(8, 3, 2)) == (2, 2)
    views[1, 0] = 13  # a long word, whose texts are not there
    for wrong in (room(8, 3, 3), room(6, 3, 3), room(0, 3, 3)):
        with pytest.raises(ValueError, match="shorter"):
            number(*wrong)
    views[1, 0] = 1
    with pytest.raises(ValueError, match="shorter"):
        number(views, nothing, codes[:2], *room(8, 3, 3)[3:])
    with pytest.raises(ValueError, match="shorter"):
        number(*room(8, 3, 3)[:6], 4, 7, False)


@given(some=st.sets(WORDS, max_size=40))
def test_words_are_sorted_as_python_sorts_them(some: set[str]) -> None:
    words = packed(list(some))
    order = sorted_places(words)
    assert [words[place] for place in order] == sorted(some)
    assert list(put_in_order(words, order)) == sorted(some)


# Numbers

EXTREMES = [-(2**63), -(2**63) + 1, -1, 0, 1, 255, 256, 2**32, 2**63 - 1]


def numbers(values: list[int | None], low: int, high: int, sizes: list[int]) -> EncodedColumn:
    kind = narrowest(high - low)
    column, at = NumberColumn(len(values), kind, low), 0
    for size in sizes:
        some = values[at : at + size]
        nulls = np.array([value is None for value in some], np.bool_)
        given = [low if value is None else value for value in some]
        shown = np.array(given, np.int64) if kind is np.uint64 else np.array(given) - low
        shown = shown if kind is np.uint64 else shown.astype(kind)
        shown[nulls] = np.iinfo(shown.dtype).max  # what stands there means nothing
        column.take(at, ChunkColumn(shown, nulls if nulls.any() else None, np.zeros(0, np.uint8)))
        at += size
    return column.held()


@given(data=st.data())
def test_numbers_are_held_as_if_they_came_together(data: st.DataObject) -> None:
    low, high = sorted(data.draw(st.tuples(*[st.sampled_from(EXTREMES)] * 2)))
    values = data.draw(st.lists(st.none() | st.integers(low, high), max_size=12))
    cut = data.draw(st.integers(0, len(values)))
    held = numbers(values, low, high, [cut, len(values) - cut])
    nulls = np.array([value is None for value in values], np.bool_)
    expected = hold_numbers(np.array([value or 0 for value in values], np.int64), nulls)
    assert (held.top, held.base) == (expected.top, expected.base)
    assert held.codes.dtype == expected.codes.dtype
    assert held.codes.tolist() == expected.codes.tolist()
    by_slot = placed(held, 64, None).codes.tolist()
    assert by_slot == expected.codes.tolist() + [held.null] * (64 - len(values))


def test_doubles_are_held_by_their_ranks(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE t AS FROM (VALUES (0.5::DOUBLE), (-2), (NULL), (0)) AS r(x)")
    schema = read_schema("[columns.x]\ntype = 'real'", name="t", person=EACH_ROW)
    source = fetching.CodeSource(connection, lambda _: "SELECT x FROM t")
    held = fetching.read_columns(source, schema, 4)["x"]
    codes = held.codes.tolist()
    assert codes[1] == 0
    assert codes[1] < codes[3] < codes[0] < codes[2] == held.null
