"""The same outputs on a neighbour: the same calls, inputs as near as was paid for, nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from tests.replay import sessions
from tests.replay.neighbours import EVERY_ROW, SOURCES, neighbours
from tests.replay.runs import Replayed, Session, replay
from tests.replay.sessions import SESSIONS


def replayed(session: Session, source: str, seed: int) -> Replayed:
    with TemporaryDirectory() as folder:
        return replay(session, neighbours(Random(seed)), SOURCES[source], Path(folder), seed)


def check(session: Session, seeds: Iterable[int]) -> None:
    """Each seed has tables of its own; sources take turns."""
    start = SESSIONS.index(session)
    for seed in seeds:
        found = replayed(session, list(SOURCES)[(start + seed) % len(SOURCES)], seed)
        assert found.calls
        assert found.charged


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_a_neighbour_has_the_same_calls(session):
    check(session, range(2))


@pytest.mark.long  # 6 minutes of one core
@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_many_neighbours_have_the_same_calls(session):
    check(session, range(2, 60))


def test_where_each_row_is_a_person():
    for session in (sessions.count, sessions.histogram, sessions.synthetic, sessions.sparse):
        tables = neighbours(Random(1), each_row=True)
        with TemporaryDirectory() as folder:
            assert replay(session, tables, EVERY_ROW, Path(folder), 1).calls


def test_every_select_is_measured():
    """None is refused: so all kinds of aggregates are looked at."""
    for sql, options in sessions.SELECTS:

        def asked(door, sql=sql, options=options):
            door.told(lambda: door.table.query(sql, epsilon=1, budget=door.budget, **options))

        with TemporaryDirectory() as folder:
            assert replay(asked, neighbours(Random(4)), SOURCES["arrow"], Path(folder), 4).charged


def test_what_is_paid_is_used():
    """The loss reaches what was charged: so inputs are seen as they are."""
    for session, seed in ((sessions.count, 2), (sessions.histogram, 0), (sessions.ranges, 0)):
        found = replayed(session, "arrow", seed)
        assert found.loss == found.charged
