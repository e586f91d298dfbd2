"""Keys and their cells: what is computed is what a list of all cells would say."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import product

import numpy as np
import pytest

from tacit.tables import read_schema
from tacit.tables.engine.person_rows import Coded, PersonRows
from tacit.tables.language.functions import part_of_date, truncated
from tacit.tables.language.keys import NO_KEYS, KeySet, column_key, date_key
from tacit.tables.schema.codes import Unfit

SCHEMA = read_schema(
    "[columns.week]\ntype = 'integer'\nkeys = [7, -3, 12]\n"
    "[columns.smoker]\ntype = 'boolean'\n"
    "[columns.town]\ntype = 'text'\nkeys = ['Ghent', 'Ath']\n"
    "[columns.free]\ntype = 'integer'\n"
    "[columns.wide]\ntype = 'integer'\nkeys = {from = 1, to = 10000}\n"
    "[columns.day]\ntype = 'date'\nbounds = ['2025-11-20', '2026-02-03']",
    name="visits",
    person="free",
)
DAY = SCHEMA.column("day")


def keys_of(*names: str) -> KeySet:
    return KeySet(tuple(column_key(SCHEMA.column(name)) for name in names))


EVERY_KIND = KeySet(
    (
        *keys_of("week", "smoker", "town"),
        date_key(truncated("month", DAY)),
        date_key(part_of_date("isodow", DAY), "weekday"),
    )
)


@pytest.mark.parametrize("keys", [NO_KEYS, keys_of("week", "town"), EVERY_KIND])
def test_cells_are_the_product_of_the_values_in_order(keys: KeySet) -> None:
    every = list(product(*(key.values for key in keys)))
    assert keys.cells == len(every)
    assert list(keys.listed()) == [keys.codes(place) for place in range(keys.cells)] == every
    assert list(keys.listed(range(1, 3))) == every[1:3]
    assert [keys.place(cell) for cell in every] == list(range(keys.cells))
    for place, cell in enumerate(every):
        pairs = zip(keys, cell, strict=True)
        assert keys.holds(place) == tuple(key.holds(value) for key, value in pairs)
    for beyond in (keys.cells, -keys.cells - 1):
        with pytest.raises(IndexError):
            keys.codes(beyond)


def test_what_is_in_no_cell_has_no_place() -> None:
    keys = keys_of("week", "town")
    with pytest.raises(ValueError, match="not in"):
        keys.place((8, "Ghent"))
    with pytest.raises(ValueError, match="zip"):
        keys.place((7,))


def test_cells_are_computed_however_many_there_are() -> None:
    keys = KeySet(keys_of("wide").keys * 5)
    assert keys.cells == 10**20
    place = 12_345_678_901_234_567_890
    assert keys.codes(place) == (1235, 5679, 9013, 3457, 7891)
    assert keys.place(keys.codes(place)) == place
    assert keys.codes(-1) == (10_000,) * 5
    assert keys.longest(lambda code: len(str(code))) == (10_000,) * 5


def test_rows_are_placed_where_their_values_are() -> None:
    first, count = date(2025, 11, 1), 150
    days = [first + timedelta(days=at) for at in range(count)]
    weeks = np.arange(count) % 4 * 5 - 3  # -3, 2, 7, 12
    smoke = np.arange(count) % 2
    towns = np.arange(count) % 3 % 2
    there = np.arange(count) % 11 > 0
    codes = {"week": weeks, "smoker": smoke, "town": towns}
    codes["day"] = np.array([(day - date(1970, 1, 1)).days for day in days])
    coded = {name: Coded(values.astype(np.int64), there) for name, values in codes.items()}
    rows = PersonRows(np.arange(count), coded, {})
    cells = list(EVERY_KIND.listed())
    for at, place in enumerate(EVERY_KIND.places(rows).tolist()):
        month = (days[at].replace(day=1) - date(1970, 1, 1)).days
        town = ("Ghent", "Ath")[towns[at]]
        cell = (weeks[at], smoke[at], town, month, days[at].isoweekday())
        inside = there[at] and cell in cells
        assert place == (cells.index(cell) if inside else -1)
    assert NO_KEYS.places(rows).tolist() == [0] * count


def test_keys_are_kept_as_json() -> None:
    kept = EVERY_KIND.as_json()
    assert kept[:3] == ["week", "smoker", "town"]
    assert kept[3:] == [
        {"name": "day_month", "of": "day", "function": "trunc month"},
        {"name": "weekday", "of": "day", "function": "isodow"},
    ]
    assert KeySet.from_json(json.loads(json.dumps(kept)), SCHEMA) == EVERY_KIND


def test_a_column_without_declared_values_is_no_key() -> None:
    with pytest.raises(Unfit):
        column_key(SCHEMA.column("free"))
    with pytest.raises(ValueError, match="not declared"):  # as other JSON that is none of ours
        KeySet.from_json(["free"], SCHEMA)


def test_keys_that_are_columns_are_known() -> None:
    assert keys_of("week", "town").columns == (SCHEMA.column("week"), SCHEMA.column("town"))
    assert NO_KEYS.columns == ()
    assert EVERY_KIND.columns is None
    assert EVERY_KIND.names == ("week", "smoker", "town", "day_month", "weekday")
    assert EVERY_KIND.of == {"week", "smoker", "town", "day"}
