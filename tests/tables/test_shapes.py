"""A known shape with new literals is read as the parser would read it, or refused in its words."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.mutations import mutated
from tests.tables.test_any_text import SCHEMA, SEEDS, alike

from tacit.errors import TacitError
from tacit.tables.language import parsing, shapes, sql
from tacit.tables.language.prepared import Reader
from tacit.tables.language.shapes import Shapes, cut_out_literals
from tacit.testing.meaning import Summand
from tacit.testing.random_questions import questions

LITERALS = [
    *("0", "7", "60", "007", "121", "1.5", "60.5", "0.0", "9" * 30, "9" * 120, "1e3", "1E-3"),
    *("1.", ".5", "-3", "- 3", "--3", "+4", "0x1F", "1_000", "5e", "3 days", "2 + 2", "1 2"),
    *("''", "'Ghent'", "'it''s'", "''''", "'a''''b'", "'a' 'b'", "'a''", "'x", "x'1F'", "N'a'"),
    *("'--'", "'/* a */'", "'a -- b'", "'%a_'", "'a:b'", "'\"'", "'\\'", "'\\n'", "'\n'", "'{}'"),
    *("'2026-01-31'", "'2026-02-30'", "'2026-01-31 09:30'", "'1'", "'é😀'", "'\x01'", "'$1'"),
    *("date '2026-01-31'", "null", "true", ":p", "?", '"age"', "`a`", "/* 1 */ 2", "7 -- x"),
    *("interval '7' day", "interval '7 days'", "(5)", "(1, 2)", "'a', 'b'", "2 and 3"),
]
PLAIN = ["7", "60", "1.5", "'Ghent'", "'it''s'", "'2026-01-31'"]
SHAPES = [
    "age >= {}",
    "age >= {} and town = {}",
    "{} < age or not town = {}",
    "age between {} and {}",
    "age between - {} and {}",
    "age in ({}, {}, {})",
    "town in ({})",
    "town like {}",
    "town not ilike {} and age = -{}",
    "cost < {} and day >= {} and at < {}",
    "age + {} >= {}",
    "{} * age < {}",
    "left(town, {}) = {}",
    "day >= date {}",
    "day - interval {} days > {}",
    'SELECT COUNT(*) FROM visits WHERE "age" > {} AND town <> {}',
    "count(*) filter (where age > {}) - {} * count(*) filter (where town = {})",
    "SELECT COUNT(*) FROM visits WHERE age > {} GROUP BY week",
    "age = {} and age = {}",
    "town = {}{}",
    "town = {} {}",
    "age = {}.{}",
    "age >= {} -- and town = {}",
    "age >= {} /* {} */",
    "age >= {};",
    '"{}" = {}',
    "town = '{}' or age > {}",
    "age > {} as x",
    "age is not distinct from {}",
]
"""Where literals stand, and where something else does that looks like one."""


def outcome(read: Callable[[str], sql.Parsed], text: str) -> object:
    """What was read, or the words of the refusal."""
    try:
        found = read(text)
    except TacitError as refusal:
        return str(refusal)
    if found.parameters:  # functions are not equal to each other
        return re.sub(" at 0x[0-9a-f]+", "", repr(found))
    return found


def by_parser(text: str) -> object:
    return outcome(lambda asked: sql.read(asked, SCHEMA), text)


def test_every_literal_in_every_shape() -> None:
    known, chance, quick = Shapes(SCHEMA), random.Random(17), 0
    for _ in range(40):
        for shape in SHAPES:
            choices = [LITERALS if chance.random() < 0.3 else PLAIN for _ in range(3)]
            text = shape.format(*map(chance.choice, choices))
            quick += (found := cut_out_literals(text)) is not None and found[0] in known._trees
            assert outcome(known.read, text) == by_parser(text), text
    assert quick > 60  # many were not parsed


def test_every_pair_of_literals_in_one_place() -> None:
    """Whichever came first, twice: the tree that is used again is that of the first."""
    for first in LITERALS:
        known = Shapes(SCHEMA)
        for literal in [first, first, *LITERALS]:
            for shape in ("age >= {}", "town = {} or cost between 7 and 70"):
                text = shape.format(literal)
                read = by_parser(text)
                assert outcome(known.read, text) == read, (first, text)


def test_mutations_of_the_documented_questions() -> None:
    known, chance = Shapes(SCHEMA), random.Random(18)
    for text in mutated(SEEDS, 800, seed=19):
        for _ in range(3):
            changed = re.sub(r"\d+|'[^']*'", lambda _: chance.choice(LITERALS), text)
            read = by_parser(changed)
            assert alike(outcome(known.read, changed), read), changed


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_many_mutations(seed: int) -> None:
    known, chance = Shapes(SCHEMA), random.Random(seed)
    for text in mutated(SEEDS, 20_000, seed=1900 + seed):
        for _ in range(3):
            changed = re.sub(r"\d+|'[^']*'", lambda _: chance.choice(LITERALS), text)
            read = by_parser(changed)
            assert alike(outcome(known.read, changed), read), changed


KNOWN = Shapes(SCHEMA)


@given(st.text(alphabet="ab'\"-/*\\ 0123.:\n;é\0", max_size=12), st.integers(), st.booleans())
def test_any_text_between_quotes(inside: str, number: int, negated: bool) -> None:
    sign = "not " if negated else ""
    for text in (
        f"{sign}town = '{inside}' and age >= {number}",
        f"{sign}town = '{inside.replace(chr(39), chr(39) * 2)}' and age >= {number}",
        f"town in ('a', '{inside}') or age between {inside} and {number}",
    ):
        read = by_parser(text)
        assert outcome(KNOWN.read, text) == read, text


@given(questions())
def test_random_questions(asked: list[Summand]) -> None:
    for summand in asked:
        assert outcome(KNOWN.read, summand.sql) == by_parser(summand.sql), summand.sql


def test_a_shape_that_comes_again_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, parsed = Reader(SCHEMA), []

    def counted(text: str) -> object:
        parsed.append(text)
        return parsing.parsed(text)

    monkeypatch.setattr(shapes, "parsed", counted)
    for age in range(50):
        prepared = reader.prepare(f"age >= {age} and town = 'a{age}'")
        assert prepared.text == f"age >= {age} and town = 'a{age}'"
        assert prepared.shape == sql.read(prepared.text, SCHEMA).shape
    assert len(parsed) == 2


def test_few_shapes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_MOST_SHAPES", 5)
    known = Shapes(SCHEMA)
    for spaces in range(1, 20):
        for age in range(3):
            known.read(f"age >={' ' * spaces}{age}")
    assert len(known._trees) == 5
    assert len(known._seen) == 5
    long = " or ".join(f"age = {age}" for age in range(200))
    for _ in range(3):
        known.read(long)
    assert cut_out_literals(long) is None


def test_threads_that_ask_the_same_shape() -> None:
    known = Shapes(SCHEMA)
    texts = [f"age >= {n} and town = 't{n}' and cost < {n}.5" for n in range(100)] * 10
    expected = {text: sql.read(text, SCHEMA) for text in texts}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(known.read, texts))
    assert found == [expected[text] for text in texts]
