"""A budget that is damaged is refused when it is opened, as far as that can be seen soon."""

from __future__ import annotations

import random

import pytest
from tests.budget.damages import edited, write_budget
from tests.budget.test_budget import charge

from tacit.budget import Budget, history
from tacit.errors import LedgerDamaged
from tacit.server.config import read_config
from tacit.server.service import Service


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "clinic.budget"
    write_budget(where)
    return where


@pytest.mark.parametrize(
    ("table", "column", "key", "value"),
    [
        ("entries", "text", 2, "{}"),
        ("pots", "spent", "", '{"epsilon": "0", "delta": "0"}'),
        ("streams", "tops", 1, 0),
        ("tables", "name", 1, "payroll"),
    ],
)
def test_what_verify_calls_damaged_is_not_opened(path, table, column, key, value):
    assert edited(path, table, column, key, value)
    with pytest.raises(LedgerDamaged, match="newest copy"):
        Budget.open(path)


@pytest.mark.parametrize("number", range(20))
def test_a_bit_that_flipped_is_seen_at_opening_or_by_nobody(path, number):
    """Of 225 flips, 27 were spent from in 0.2 before anybody saw them."""
    dice, raw = random.Random(number), bytearray(path.read_bytes())
    raw[dice.randrange(100, len(raw))] ^= 1 << dice.randrange(8)
    path.write_bytes(raw)
    try:
        budget = Budget.open(path)
    except LedgerDamaged:
        return
    with budget:
        budget.verify()
        charge(budget, "1/100000")


def test_a_file_that_was_cut_is_not_opened_although_its_log_is_there(tmp_path):
    """A new one: all that 0.2 looked at was in its log, so it was opened, and spent from."""
    path = tmp_path / "new.budget"
    with Budget.create(path, epsilon=1, covers=["visits"]) as budget:
        charge(budget, "1/100000")
        raw, refused = path.read_bytes(), 0
        for keep in range(4096, len(raw), 4096):
            path.write_bytes(raw[:keep])
            try:
                other = Budget.open(path)
            except LedgerDamaged:
                refused += 1
                continue
            with other:
                other.verify()  # all that is missing there is in the log
        path.write_bytes(raw)
    assert refused > 3


def test_of_a_long_history_the_end_is_verified(path, monkeypatch):
    monkeypatch.setattr(history, "_AT_OPENING", 3)
    Budget.open(path).close()
    with Budget.open(path) as budget:
        length = len(budget.history)
    edited(path, "entries", "hash", length - 1, "0" * 64)
    with pytest.raises(LedgerDamaged, match=f"entry {length - 1} of the history was edited"):
        Budget.open(path)


def test_a_server_verifies_all(path, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "_AT_OPENING", 3)
    edited(path, "pots", "spent", "", '{"epsilon": "0", "delta": "0"}')
    Budget.open(path).close()  # this stays unseen
    (tmp_path / "visits.csv").write_text("pid\n1\n")
    file = tmp_path / "server.toml"
    file.write_text(f'budget = "{path}"\n[tables.visits]\nsource = "visits.csv"\nperson = "pid"\n')
    with pytest.raises(LedgerDamaged, match="does not follow from its history"):
        Service.open(read_config(file))
