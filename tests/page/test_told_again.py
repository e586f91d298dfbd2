"""What the page shows again says which label it is about; so do the files that it saves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.analyst.test_older_label import RELEASES, opened

import tacit

pytest.importorskip("starlette")

from tacit.page import releases
from tacit.wire import paid_summary

SINCE = " as of 2026-10-31"


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_says_so_once_its_table_has_another_label(name: str) -> None:
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    with opened("2026-10-31") as table:
        RELEASES[name](table, epsilon=1, budget=budget, retry_key="a")
    (answer,) = budget.answers
    paid = paid_summary(answer)
    for now in ("2026-10-31", "2026-11-30", None):
        service: Any = SimpleNamespace(label_of={"visits": now}.get)
        value = releases._value(service, paid)
        said = [words for _, words in releases._facts(value) if SINCE in words]
        assert bool(said) is (now != "2026-10-31")
        of_rows = name in ("synthetic", "small_db")
        assert ("recorded" in releases._columns(value)) is (bool(said) and not of_rows)
        assert b"on record since" not in releases._shown(service, paid).body or said


def test_a_misspelt_key_is_noted_beside_what_was_released() -> None:
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits"])
    with opened(None) as table:
        table.count("town = 'Gent'", epsilon=1, budget=budget)
        table.top(1, ["town = 'Gent'", "town = 'Ghent'"], epsilon=1, budget=budget)
    for answer in budget.answers:
        facts = releases._facts(paid_summary(answer).value)
        assert (
            "Note",
            "'Gent' is not one of the declared keys of town; did you mean 'Ghent'?",
        ) in facts
