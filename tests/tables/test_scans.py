"""Scans by DuckDB: people packed into words, and people a part at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pytest
from tests.tables.engines import arrow, bitmaps, scans

from tacit.errors import EngineFailed
from tacit.tables import EACH_ROW, Engine, Question, parse, prepare, read_schema
from tacit.tables.duckdb import BATCH, MOST_PARTS, WORD_BITS, DuckDBEngine
from tacit.tables.schema import Person
from tacit.testing.engines import row
from tacit.testing.meaning import TOML, RawRow

ROWS: list[RawRow] = [
    row(n % 97, big=n % 150, age=n % 7, week=n % 5, cost=n / 4, town="Ghent" if n % 3 else None)
    for n in range(900)
]


def asked(engine: Engine) -> list[Question]:
    """More questions than fit into one scan, of all kinds, each with an answer of its own."""
    texts = [f"big >= {n} and age <= {n % 7}" for n in range(BATCH + WORD_BITS)]
    texts[5:5] = ["count(*) filter (where big < 40)", "sum(cost) filter (where week <> 3)"]
    texts[WORD_BITS:WORD_BITS] = ["count(big < 9) + 2 * count(town = 'Ghent') - sum(age)"]
    texts += ["null", "true", "not town = 'Ghent'", "big < 0"]
    return [parse(text, engine.schema) for text in texts]


def engines(person: Person) -> Iterator[Engine]:
    table = arrow(ROWS, read_schema(TOML, name="visits", person=person))
    for opened in (bitmaps, scans):
        yield opened(table, TOML, person)


@pytest.mark.parametrize("person", ["pid", EACH_ROW])
def test_every_bit_of_every_word_is_a_question(person: Person) -> None:
    held, scanned = engines(person)
    with held, scanned:
        expected = held.values(asked(held))
        assert scanned.values(asked(scanned)) == expected
        assert len(set(expected)) > 40  # so that bits in the wrong place would be seen


def queries(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch, enough: int) -> list[int]:
    """Let scans run out of memory unless people are in ``enough`` parts; what was tried."""
    run, tried = engine._run, []

    def short(query):
        parts = re.search(r"HASH\(\"pid\"\) % (\d+)", query.sql("duckdb"))
        tried.append(int(parts[1]) if parts else 1)
        if tried[-1] < enough:
            raise duckdb.OutOfMemoryException("poison: 900 rows")
        return run(query)

    monkeypatch.setattr(engine, "_run", short)
    return tried


def test_people_who_do_not_fit_are_scanned_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, scanned = engines("pid")
    assert isinstance(scanned, DuckDBEngine)
    with held, scanned:
        tried = queries(scanned, monkeypatch, 8)
        few = asked(held)[:9]
        assert scanned.values(few) == held.values(few)
        assert tried == [1, *[8] * 8]
        tried.clear()
        prepared = prepare("big = :n and age < 5", held.schema)
        cells = [prepared.question(n=n) for n in range(150)]
        assert scanned.values(cells) == held.values(cells)
        assert tried == [1, *[8] * 8]


def test_a_question_that_cannot_be_answered_at_all_fails_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, scanned = engines("pid")
    assert isinstance(scanned, DuckDBEngine)
    with held, scanned:
        tried = queries(scanned, monkeypatch, MOST_PARTS + 1)
        with pytest.raises(EngineFailed) as failure:
            scanned.values(asked(held)[:2])
        assert "poison" not in str(failure.value)
        assert failure.value.__context__ is None
        assert tried == [1, 8, 64, 512, MOST_PARTS] * 2  # two terms, then one


def test_rows_that_do_not_fit_together_are_scanned_for_fewer_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held, scanned = engines(EACH_ROW)
    assert isinstance(scanned, DuckDBEngine)
    run = scanned._run

    def short(query):
        if len(query.expressions) > 4:
            raise duckdb.OutOfMemoryException("poison")
        return run(query)

    monkeypatch.setattr(scanned, "_run", short)
    with held, scanned:
        few = asked(held)[:15]
        assert scanned.values(few) == held.values(few)


@pytest.mark.parametrize("person", ["pid", "town"])
def test_the_parts_of_people_are_all_people_once(person: str) -> None:
    """Whatever the type of the person column is."""
    held, scanned = engines(person)
    assert isinstance(scanned, DuckDBEngine)
    with held, scanned:
        everybody = [parse("true", scanned.schema).terms[0]]
        parts = [scanned._scan(everybody, scanned._part(n, 8))[0] for n in range(8)]
        assert [sum(parts)] == held.totals(everybody)
        assert person == "town" or sum(part > 0 for part in parts) > 4
