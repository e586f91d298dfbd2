"""Over HTTP: a cell is answered once, however it is reached, and what was left stays left."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.analyst.spellings import (
    FEW,
    LOCAL,
    SCHEMA,
    THRESHOLD,
    DirectedMachine,
    StreamMachine,
    WatchedMachine,
    rows,
)
from tests.server.conftest import started
from tests.server.faces import Face, local_face, refused, remote_face

import tacit
from tacit.errors import Halted, StreamEnded
from tacit.server.tokens import TokenFile

CONFIG = """
budget = "clinic.budget"
[listen]
port = 0
[clock]
milliseconds = 1
[limits]
requests_a_second = 100_000
[tables.visits]
source = "visits.csv"
person = "pid"
people = 133
"""
MUCH = 10**12
FEW_OVER_HTTP = settings(FEW, max_examples=2, stateful_step_count=6)


def clinic(folder: Path) -> Path:
    pyarrow.csv.write_csv(rows(), folder / "visits.csv")
    (folder / "visits.toml").write_text(SCHEMA)
    (folder / "tacit.toml").write_text(CONFIG)
    path = folder / "clinic.budget"
    with tacit.Budget.create(path, epsilon=MUCH, covers=["visits"]) as budget:
        budget.share("ana", epsilon=MUCH)
    return folder / "tacit.toml"


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    config = clinic(tmp_path_factory.mktemp("spelt"))
    token = TokenFile(config.parent / "clinic.budget-tokens").add("ana", share="ana")
    with started(config, {}) as running, tacit.connect(running.url, token=token) as connection:
        yield remote_face(connection, "visits")


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Face]:
    clinic(tmp_path)
    with (
        tacit.Budget.open(tmp_path / "clinic.budget") as budget,
        tacit.open(tmp_path / "visits.csv", person="pid", people=133) as visits,
    ):
        yield local_face(visits, budget, "ana")


@pytest.fixture(params=["local", "remote"])
def face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.getfixturevalue(request.param)
    return found


def over_http(kind: type[StreamMachine]) -> type[StreamMachine]:
    """Blocks are the server's, and come ahead of whoever asks for them."""
    return type(f"Remote{kind.__name__}", (kind,), {"has_blocks": False})


SOME = {StreamMachine, DirectedMachine, WatchedMachine}


@pytest.mark.parametrize(
    "kind", [kind if kind in SOME else pytest.param(kind, marks=pytest.mark.long) for kind in LOCAL]
)
def test_a_cell_is_answered_once_however_it_is_reached(
    remote: Face, kind: type[StreamMachine]
) -> None:
    made: Any = partial(over_http(kind), remote)
    run_state_machine_as_test(made, settings=FEW_OVER_HTTP)


# Leaving, here and there ------------------------------------------------------------------------


def opened(face: Face, at_most: int) -> Any:
    return face.sparse(threshold=THRESHOLD, at_most=at_most, epsilon=1000, questions=10)


@pytest.mark.parametrize("how", ["suspend", "close"])
@pytest.mark.parametrize("halted", [False, True])
def test_what_was_left_is_asked_no_more(face: Face, how: str, halted: bool) -> None:
    """Not even for what is on record, which the local stream had told and the server's not."""
    stream = opened(face, 1 if halted else 2)
    assert stream.live
    assert stream.ask("smoker = false", retry_key=f"{how} {halted}")
    assert stream.live is not halted
    assert stream.ask("smoker = false")
    getattr(stream, how)()
    kind = Halted if halted else StreamEnded
    assert not stream.live
    for given in ({}, {"retry_key": f"{how} {halted}"}):
        assert refused(stream.ask, "smoker = false", **given)[0] is kind
    assert refused(stream.ask, "smoker")[0] is kind
    assert refused(stream.ask_all, ["smoker"])[0] is kind
    stream.suspend()
    if how == "suspend" and not halted:
        assert refused(stream.close)[0] is StreamEnded
    else:
        stream.close()
    if how == "close" or halted:
        assert face.refused("resume", stream.name)[0] is kind
    else:
        assert face.resume(stream.name).live


def test_a_batch_of_what_was_left_in_its_midst_ends_so(face: Face) -> None:
    stream = opened(face, 3)
    answers = stream.ask_all(["smoker = false", "week = 1", "town = 'Bruges'"])
    assert next(answers)
    stream.suspend()
    with pytest.raises(StreamEnded):
        list(answers)


@pytest.mark.parametrize("again", [False, True])
def test_batches_of_two_threads_through_one_object(remote: Face, again: bool) -> None:
    """One begins while another waits for the server: each is told about its own questions."""
    options: dict[str, Any] = {"rounds": 2} if again else {}
    stream = remote.sparse(threshold=THRESHOLD, at_most=9, epsilon=1000, questions=10, **options)
    transport, send = stream._transport, stream._transport.pay_in_blocks
    short: list[Any] = []

    def after_another(*sent: Any) -> Any:
        transport.pay_in_blocks = send
        short.extend(stream.ask_all(["week = 1"], again=again))
        return send(*sent)

    transport.pay_in_blocks = after_another
    asked = ["week = 1 and week = 2", "town = 'Bruges'", "smoker and smoker = false"]
    told = stream.ask_all(asked, again=again)
    assert list(map(bool, told)) == [False, True, False]
    assert [answer.about.question for answer in [*short, *told.told] if answer] == [
        "week = 1",
        "town = 'Bruges'",
    ]
    assert stream.unanswered == ()


def test_a_watched_model_that_was_left(face: Face) -> None:
    model = face.watched_model(model=rows().slice(0, 60), epsilon=10**6, surprises=1, questions=10)
    assert model.ask("smoker").source == "measured"
    assert model.ask("week = 1").source == "unwatched"
    assert model.live
    assert not model.watched
    model.suspend()
    assert not model.live
    assert refused(model.ask, "smoker")[0] is StreamEnded
    again = face.resume_watched_model(model.name, model=rows().slice(0, 60))
    told = again.ask("smoker")
    assert (told.source, told.recorded is not None, again.live) == ("measured", True, True)
