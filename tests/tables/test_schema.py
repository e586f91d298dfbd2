"""Schemas: what TOML may say, what it means, and its hash."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadParameter, SchemaMismatch
from tacit.numbers import decimal
from tacit.tables import EACH_ROW, Column, Schema, read_schema, write_schema
from tacit.tables.language.tree import TRUE, Rows, Total
from tacit.tables.schema.codes import double_of_rank, rank_of_double
from tacit.testing.meaning import TOML


def declared(**entries: str) -> str:
    return "[columns.x]\n" + "\n".join(f"{key} = {value}" for key, value in entries.items())


def read(text: str) -> Schema:
    return read_schema(text, name="t", person=EACH_ROW)


def test_a_schema_survives_writing_and_reading() -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    assert read_schema(write_schema(schema), name="visits", person="pid") == schema


def test_a_schema_is_shown_in_the_units_in_which_it_is_declared() -> None:
    schema = read(declared(type='"real"', grid="0.25", bounds='["-1.5", 10]'))
    assert "bounds = [-1.5, 10]" in str(schema)
    assert read(str(schema)) == schema


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(WORDS, min_size=1, unique=True), WORDS.filter(bool))
def test_any_text_survives_writing_and_reading(keys: list[str], name: str) -> None:
    schema = Schema("t", EACH_ROW, (Column(name, "text", keys=tuple(keys)),))
    assert read(write_schema(schema)) == schema


def test_values_are_stored_as_codes() -> None:
    column = read(declared(type='"real"', grid="0.25", bounds='["-1.5", 10]')).column("x")
    assert (column.grid, column.bounds) == (Fraction(1, 4), (-6, 40))
    column = read(declared(type='"date"', keys="[1970-01-02, '1970-01-01']")).column("x")
    assert column.keys == (1, 0)
    column = read(declared(type='"date"', keys="{from = '2026-01-30', to = 2026-02-01}")).column(
        "x"
    )
    assert [date.fromordinal(int(key) + 719163).day for key in column.keys or ()] == [30, 31, 1]
    assert read(declared(type='"boolean"')).column("x").cells == (0, 1)
    assert read(declared(type='"integer"')).column("X").cells is None


WRONG = [
    ({}, "columns.x.type"),
    ({"type": '"number"'}, "columns.x.type"),
    ({"type": '"integer"', "bound": "[0, 1]"}, "columns.x.bound"),
    ({"type": '"integer"', "grid": "1"}, "columns.x.grid"),
    ({"type": '"integer"', "bounds": "[1, 0]"}, "columns.x.bounds"),
    ({"type": '"integer"', "bounds": "[0, 0.5]"}, "columns.x.bounds"),
    ({"type": '"integer"', "bounds": "[0]"}, "columns.x.bounds"),
    ({"type": '"integer"', "bounds": "[0, 9223372036854775808]"}, "columns.x.bounds"),
    ({"type": '"integer"', "bounds": "[0, inf]"}, "columns.x.bounds"),
    ({"type": '"text"', "bounds": '["a", "b"]'}, "columns.x.bounds"),
    ({"type": '"real"', "bounds": "[0, 1]"}, "columns.x.bounds"),
    ({"type": '"real"', "grid": '"1/3"'}, "columns.x.grid"),
    ({"type": '"real"', "grid": "0"}, "columns.x.grid"),
    ({"type": '"real"', "grid": "1e-12"}, "columns.x.grid"),
    ({"type": '"real"', "grid": "0.01", "bounds": "[0, 0.005]"}, "columns.x.bounds"),
    ({"type": '"integer"', "total": "[0, 1]"}, "columns.x.total"),
    ({"type": '"integer"', "bounds": "[0, 1]", "total": "[0, 0.5]"}, "columns.x.total"),
    ({"type": '"integer"', "bounds": "[0, 1]", "total": "[5, 0]"}, "columns.x.total"),
    ({"type": '"integer"', "bounds": "[0, 1]", "total": "5"}, "columns.x.total"),
    ({"type": '"integer"', "keys": "[]"}, "columns.x.keys"),
    ({"type": '"integer"', "keys": "[1, 1.0]"}, "columns.x.keys"),
    ({"type": '"integer"', "keys": "['1']"}, "columns.x.keys"),
    ({"type": '"integer"', "bounds": "[0, 5]", "keys": "[6]"}, "columns.x.keys"),
    ({"type": '"text"', "keys": "[1]"}, "columns.x.keys"),
    ({"type": '"integer"', "keys": "{from = 1, to = 2000000000}"}, "columns.x.keys"),
    ({"type": '"date"', "keys": "['2026-02-30']"}, "columns.x.keys"),
]


@pytest.mark.parametrize(("entries", "where"), WRONG)
def test_a_wrong_entry_is_named(entries: dict[str, str], where: str) -> None:
    with pytest.raises(BadParameter) as caught:
        read(declared(**entries))
    assert caught.value.parameter == where


@pytest.mark.parametrize(
    "text", ["", "columns = 3", "[columns]", "x = [", "max_rows = 3", "[other]\nx = 1"]
)
def test_a_schema_that_is_none(text: str) -> None:
    with pytest.raises(BadParameter):
        read(text)


@pytest.mark.parametrize("rows", ["0", "-1", "1.5", "'x'", "1000000001"])
def test_max_rows_is_a_positive_whole_number(rows: str) -> None:
    with pytest.raises(BadParameter, match="max_rows"):
        read(f"max_rows = {rows}\n" + declared(type='"integer"'))


@pytest.mark.parametrize(
    ("type_", "keys", "said"),
    [
        ("integer", "{from = 5, to = 1}", "'from' must not exceed 'to'"),
        ("integer", "{from = 1, to = 2000000}", "at most 1000000"),
        ("integer", "{from = 1}", "from = ..., to = ..."),
        ("text", "{from = 'a', to = 'b'}", "whole numbers and dates"),
        ("integer", "5", "list the key values"),
    ],
)
def test_keys_that_are_wrong_say_how(type_: str, keys: str, said: str) -> None:
    with pytest.raises(BadParameter, match=said):
        read(declared(type=f'"{type_}"', keys=keys))


IN_PYTHON = [  # what comes after the name; the entry that is wrong
    (("number",), "type"),
    ((None,), "type"),
    (("integer", Fraction(1)), "grid"),
    (("real", Fraction(-1)), "grid"),
    (("real", Fraction(1, 3)), "grid"),
    (("real", "x"), "grid"),
    (("integer", None, (50, -50)), "bounds"),
    (("integer", None, (0, 2**63)), "bounds"),
    (("integer", None, (0, 0.5)), "bounds"),
    (("integer", None, (False, True)), "bounds"),
    (("integer", None, (0, float("nan"))), "bounds"),
    (("integer", None, (0, 1, 2)), "bounds"),
    (("integer", None, [0, 1]), "bounds"),
    (("date", None, (1, 0)), "bounds"),
    (("date", None, (0, 10**9)), "bounds"),
    (("text", None, (0, 1)), "bounds"),
    (("boolean", None, (0, 1)), "bounds"),
    (("real", None, (0, 1)), "bounds"),
    (("integer", None, (-50, 50), (10**6, -(10**6))), "total"),
    (("integer", None, (-50, 50), (0, 2**62 + 1)), "total"),
    (("integer", None, (-50, 50), (0, 1.0)), "total"),
    (("integer", None, None, (0, 1)), "total"),
    (("date", None, (0, 1), (0, 1)), "total"),
    (("integer", None, None, None, ()), "keys"),
    (("integer", None, None, None, (1, 1)), "keys"),
    (("integer", None, None, None, [1]), "keys"),
    (("integer", None, None, None, ("1",)), "keys"),
    (("integer", None, (0, 5), None, (6,)), "keys"),
    (("boolean", None, None, None, (True,)), "keys"),
    (("text", None, None, None, (1,)), "keys"),
    (("text", None, None, None, ("a\0",)), "keys"),
    (("text", None, None, None, ("\ud800",)), "keys"),
]


@pytest.mark.parametrize(("declared", "wrong"), IN_PYTHON)
def test_a_column_that_contradicts_itself_cannot_be_built(
    declared: tuple[object, ...], wrong: str
) -> None:
    with pytest.raises(BadParameter) as caught:
        Column("x", *declared)  # type: ignore[arg-type]
    assert caught.value.parameter == f"columns.x.{wrong}"


@pytest.mark.parametrize("rows", [0, -(10**6), 1.5, "x", True, 10**9 + 1])
def test_a_schema_with_no_bound_on_rows_cannot_be_built(rows: object) -> None:
    with pytest.raises(BadParameter, match="max_rows"):
        Schema("t", EACH_ROW, (Column("x", "integer"),), rows)  # type: ignore[arg-type]


def test_a_schema_of_something_else_cannot_be_built() -> None:
    good = Column("x", "integer")
    for name, person, columns, parameter in [
        ("", EACH_ROW, (good,), "name"),
        (5, EACH_ROW, (good,), "name"),
        ("t", None, (good,), "person"),
        ("t", good, (good,), "person"),
        ("t", EACH_ROW, [good], "columns"),
        ("t", EACH_ROW, (), "columns"),
        ("t", EACH_ROW, ("x",), "columns"),
    ]:
        with pytest.raises(BadParameter) as caught:
            Schema(name, person, columns)  # type: ignore[arg-type]
        assert caught.value.parameter == parameter
    for name in ("", None, 7):
        with pytest.raises(BadParameter, match="name"):
            Column(name, "integer")  # type: ignore[arg-type]


def test_a_term_without_a_sensitivity_cannot_be_built() -> None:
    for most in (0, -(10**6)):
        with pytest.raises(BadParameter):
            Rows(TRUE, most)
    with pytest.raises(BadParameter):
        Total("x", TRUE, 1, 0)


def test_names_may_not_differ_by_case_alone() -> None:
    with pytest.raises(BadParameter, match="case"):
        read(declared(type='"integer"') + '\n[columns.X]\ntype = "integer"')


def test_the_hash_covers_what_is_declared_and_nothing_else() -> None:
    one = '[columns.a]\ntype = "integer"\nkeys = [1, 2]\n[columns.b]\ntype = "text"\n'
    other_order = '[columns.b]\ntype = "text"\n[columns.a]\ntype = "integer"\nkeys = [1, 2]\n'
    base = read(one).digest
    assert base == read(other_order).digest
    assert base == read_schema(one, name="other", person="a").digest
    for changed in (
        one.replace("[1, 2]", "[2, 1]"),
        one.replace('"text"', '"boolean"'),
        one.replace("columns.b", "columns.c"),
        "max_rows = 2\n" + one,
        one.replace("keys = [1, 2]", "bounds = [1, 2]"),
    ):
        assert read(changed).digest != base


def test_the_hash_is_the_same_forever() -> None:
    """A stored stream is bound to it: changing how it is computed breaks every resume."""
    text = '[columns.a]\ntype = "real"\ngrid = "0.5"\nbounds = [0, 9]\n[columns.b]\ntype = "text"'
    assert read(text).digest == DIGEST


DIGEST = "25895d00fd42533f94c16879ed59d567e66c3b4ef5534491ce4a138ae153805f"


def test_the_person_is_spelled_as_declared() -> None:
    assert read_schema(TOML, name="t", person="PID").person == "pid"
    with pytest.raises(SchemaMismatch, match="nobody"):
        read_schema(TOML, name="t", person="nobody")


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_ranks_of_doubles_keep_their_order(a: float, b: float) -> None:
    assert (rank_of_double(a) <= rank_of_double(b)) == (a <= b)
    assert double_of_rank(rank_of_double(a)) == a


@given(st.integers(), st.integers(0, 12), st.integers(0, 12))
def test_decimals_are_written_exactly(n: int, twos: int, fives: int) -> None:
    number = Fraction(n, 2**twos * 5**fives)
    assert Fraction(decimal(number)) == number
