"""However a question is spelt and reached, what is on record is found before a coin is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.analyst.spellings import FEW, LOCAL, MANY, SCHEMA, StreamMachine, rows
from tests.server.faces import Face, local_face

import tacit
from tacit.budget import Budget


@pytest.fixture(scope="module")
def face() -> Iterator[Face]:
    budget = Budget.in_memory(epsilon=10**12, covers=["visits"])
    with tacit.open(rows(), person="pid", name="visits", schema=SCHEMA, people=133) as table:
        face = local_face(table, budget, "ana")
        face.pays = {"budget": budget}
        yield face


@pytest.mark.parametrize("often", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("machine", LOCAL)
def test_a_cell_is_answered_once_however_it_is_reached(
    face: Face, machine: type[StreamMachine], often: settings
) -> None:
    made: Any = partial(machine, face)
    run_state_machine_as_test(made, settings=often)
