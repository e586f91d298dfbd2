"""A byte that was changed anywhere in what a budget stores does not pass ``verify``."""

from __future__ import annotations

import random
from functools import partial

import pytest
from tests.budget.common import BINDING, resume
from tests.budget.damages import edited, rows_of, write_budget

from tacit.budget import Budget, TableIdentity
from tacit.errors import LedgerDamaged
from tacit.privacy import Cost

KEYS = {
    "tables": "number",
    "ties": "name",
    "pots": "analyst",
    "streams": "id",
    "secrets": "stream",
    "entries": "number",
    "answers": "number",
}


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "clinic.budget"
    write_budget(where)
    with Budget.open(where) as budget:
        budget.tie("visits", TableIdentity("pid", "integer", "0" * 64))
        budget.charge(Cost.pure("1/10"), table="labs", what="⊤", identity=TableIdentity("each row"))
    return where


def changes_of(value, dice, *, dense):
    """The value with a byte changed, at every place or at some."""
    if isinstance(value, int):
        return [value ^ 1, value + 2, -value - 1, value + 256]
    if value is None:
        return [0, b"x", b""]
    places = range(len(value)) if dense else dice.sample(range(len(value)), min(3, len(value)))
    flipped = [
        value[:at] + bytes([value[at] ^ bit]) + value[at + 1 :]
        for at in places
        for bit in ((1,) if dense else (1, 32, 128))
    ]
    spaced = [value[:at] + b" " + value[at:] for at in places[:: 7 if dense else 1]]
    return [*flipped, *spaced, *([value[:-1]] if value else []), value + b"\0"]


def check_every_change(path, tables, *, dense):
    dice, tried = random.Random(7), 0
    with Budget.open(path) as budget:
        budget.verify()
        for table, column, key, value in rows_of(path):
            if table not in tables:
                continue
            text = isinstance(value, bytes) and table != "secrets"
            for changed in changes_of(value, dice, dense=dense):
                if not edited(path, table, column, key, changed, text=text):
                    continue  # SQLite itself does not let one
                where = changed if column == KEYS[table] else key
                tried += 1
                try:
                    budget.verify()
                except LedgerDamaged:
                    pass
                else:
                    pytest.fail(f"{table}.{column} = {changed!r} in place of {value!r} passes")
                assert edited(path, table, column, where, value, text=text)
        budget.verify()  # all is as it was
    return tried


def test_some_bytes_of_every_value(path):
    assert check_every_change(path, set(KEYS), dense=False) > 1000


@pytest.mark.long
@pytest.mark.parametrize("table", KEYS)
def test_every_byte_of_every_value(path, table):
    assert check_every_change(path, {table}, dense=True) > 10


@pytest.mark.parametrize("column", ["secret", "checksum"])
def test_a_changed_secret_is_found_before_it_is_used(path, column):
    """120 of 120 changed bytes passed in 0.1."""
    used: list[bytes] = []
    for table, name, key, value in rows_of(path):
        if table == "secrets" and name == column and key == 1:
            for at in range(len(value)):
                changed = value[:at] + bytes([value[at] ^ 4]) + value[at + 1 :]
                assert edited(path, table, name, key, value)
                with Budget.open(path) as budget:
                    assert edited(path, table, name, key, changed)
                    for call in (
                        budget.verify,
                        partial(resume, budget, after_loss=used.append),
                        partial(Budget.open, path),
                    ):
                        with pytest.raises(
                            LedgerDamaged, match=r"secret state .* was changed"
                        ) as e:
                            call()
                        assert "91827" not in str(e.value) + repr(e.value.__context__)
            assert edited(path, table, name, key, value)
    assert not used
    with Budget.open(path) as budget:
        assert resume(budget).tops_left == 2  # and nothing was lost by trying


@pytest.mark.parametrize(
    ("column", "value"),
    [("tops", 0), ("lost", 1), ("at_most", 100), ("binding", "{}"), ("source", "labs")],
)
def test_a_stream_does_not_go_on_with_more_than_was_paid_for(path, column, value):
    binding = {} if column == "binding" else BINDING
    with Budget.open(path) as budget:
        edited(path, "streams", column, 1, value)
        with pytest.raises(LedgerDamaged, match="'flu' does not follow from its history"):
            budget.resume_stream("flu", binding=binding, after_loss=bytes)
        assert resume(budget, "gout").tops_left == 2


def test_two_secrets_that_change_places_are_found(path):
    secrets = {(n, k): v for t, n, k, v in rows_of(path) if t == "secrets"}
    streams = sorted({key for _, key in secrets})
    assert len(streams) >= 2
    for column in ("secret", "checksum"):
        for one, other in zip(streams, streams[::-1], strict=True):
            edited(path, "secrets", column, one, secrets[column, other])
    with pytest.raises(LedgerDamaged, match="was changed"):
        Budget.open(path)


@pytest.mark.parametrize("space", [b" ", b"\n", b"\t"])
def test_white_space_in_a_binding_is_found(path, space):
    for table, column, key, value in rows_of(path):
        if (table, column) == ("streams", "binding"):
            edited(path, table, column, key, value.replace(b": ", b":" + space * 2), text=True)
    with pytest.raises(LedgerDamaged, match="its streams"):
        Budget.open(path)


def test_an_error_that_is_kept_does_not_keep_the_old_view(path):
    with Budget.open(path) as budget:
        edited(path, "entries", "stream", 1, 0)
        with pytest.raises(LedgerDamaged) as kept:
            budget.verify()
        edited(path, "entries", "stream", 1, None)
        budget.verify()
    assert kept.value.__traceback__ is not None
