"""A table is read anew while it is open: streams go on, and each answer belongs to its version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.analyst.table import Table
from tacit.errors import BadParameter, EngineFailed, KeyReused, SchemaMismatch, TacitError
from tacit.tables import load
from tacit.tables.engine.engine import Engine

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.admitted]
type = "date"
"""
GHENT = "town = 'Ghent'"
BY_NOW = "admitted <= :as_of"
BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"


def write(path: Path, people: int, town: str = "Ghent") -> Path:
    """So many people, a hundred of them admitted each day of October 2026."""
    rows = [f"{pid},{town},2026-10-{1 + pid // 100:02}" for pid in range(people)]
    path.write_text("\n".join(["pid,town,admitted", *rows, ""]))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "visits.csv", 1000)


@pytest.fixture
def visits(file: Path) -> Iterator[Table]:
    with tacit.open(file, person="pid", schema=SCHEMA, as_of="2026-10-10") as table:
        yield table


@pytest.fixture
def growing(file: Path) -> Iterator[Table]:
    with tacit.open(
        file, person="pid", schema=SCHEMA, as_of="2026-10-05", grows_by="admitted"
    ) as table:
        yield table


@pytest.fixture
def stream(calm: dict[str, Any]) -> Any:
    def new(table: Table, budget: tacit.Budget, **options: Any) -> Any:
        given: dict[str, Any] = {"threshold": 100, "at_most": 9, "name": "flu"} | options
        return table.numeric_sparse(budget=budget, **given, **calm)

    return new


def near(people: int) -> Any:
    return pytest.approx(people, abs=50)


def test_a_stream_goes_on_and_answers_belong_to_their_version(visits, file, stream, budget):
    with stream(visits, budget) as flu:
        spent = budget.spent
        assert flu.ask(GHENT).value == near(1000)
        assert flu.ask(BY_NOW).value == near(1000)
        prepared = visits.prepare(BY_NOW)
        write(file, 3000)
        visits.refresh(as_of="2026-10-20")
        assert visits.as_of == "2026-10-20"
        fresh = flu.ask(GHENT)
        assert fresh.value == near(3000)
        assert fresh.recorded is None
        assert flu.ask(GHENT).recorded.as_of == "2026-10-20"
        assert flu.ask(prepared).value == near(2000)  # :as_of is the new label's
        assert flu.tops_left == 5
        assert budget.spent == spent
        assert labels(flu) == ["2026-10-10", "2026-10-10", "2026-10-20", "2026-10-20"]
    with visits.resume("flu", budget=budget) as again:
        assert again.ask(GHENT).recorded.as_of == "2026-10-20"


def labels(flu: Any) -> list[str]:
    return [entry.answer.recorded.as_of for entry in flu.recorded]


def test_only_rows_between_the_labels_are_read(growing, file, stream, budget):
    with stream(growing, budget) as flu:
        assert flu.ask(GHENT).value == near(500)
        write(file, 2000, town="Bruges")  # everybody has moved
        growing.refresh(as_of="2026-10-12")
        assert flu.ask("true").value == near(1200)
        assert flu.ask(GHENT).value == near(500)
        growing.refresh(as_of="2026-10-15", whole=True)
        assert flu.ask("true").value == near(1500)
        assert not flu.ask(GHENT)


def test_new_rows_may_come_from_elsewhere(growing, tmp_path, stream, budget):
    day = pa.table(
        {"pid": range(5000, 5400), "town": ["Ghent"] * 400, "admitted": ["2026-10-06"] * 400}
    )
    day = day.set_column(2, "admitted", day["admitted"].cast(pa.date32()))
    with stream(growing, budget) as flu:
        growing.refresh(as_of="2026-10-06", source=day.to_reader())
        assert flu.ask(GHENT).value == near(900)
        growing.refresh(as_of="2026-10-31", source=write(tmp_path / "rest.csv", 1000))
        assert flu.ask(GHENT).value == near(1300)


def test_what_can_be_read_once_must_be_given_again(budget, tmp_path):
    once = pa.table({"pid": [1, 2]}).to_reader()
    with tacit.open(once, person="pid", name="visits", as_of="a") as table:
        with pytest.raises(BadParameter, match="source is missing"):
            table.refresh(as_of="b")
        assert table.as_of == "a"
        table.refresh(as_of="b", source=pa.table({"pid": [1, 2, 3]}))
        assert table.engine.values([table.prepare("true").question()]) == [3]


def test_an_engine_is_replaced_by_another_of_the_same_schema(tmp_path):
    def engine(people: int, schema: str = SCHEMA) -> Engine:
        return load(write(tmp_path / "visits.csv", people), person="pid", schema=schema)

    first, second = engine(100), engine(200)
    with tacit.open(first) as table:
        with pytest.raises(BadParameter, match="source is missing"):
            table.refresh(as_of="b")
        with pytest.raises(SchemaMismatch, match="same schema"):
            table.refresh(as_of="b", source=engine(1, '[columns.pid]\ntype = "integer"'))
        table.refresh(as_of="b", source=second)
        assert table.engine is second
        with pytest.raises(EngineFailed):
            first.values([table.prepare("true").question()])  # it was closed


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"as_of": "2026-10-05"}, "used before"),
        ({"as_of": None}, "as_of is missing"),
        ({"as_of": 7}, "as_of"),
        ({"as_of": "2026-10-04"}, "give a later"),
        ({"as_of": "2026-10-04", "whole": True}, "give a later"),
        ({"as_of": "tomorrow"}, "give a date"),
        ({"as_of": "2026-10-06", "whole": 1}, "whole"),
        ({"as_of": "2026-10-06", "source": "nowhere.csv"}, "no such file"),
        ({"as_of": "2026-10-06", "source": 7}, "source"),
    ],
)
def test_what_is_refused_leaves_the_table_as_it_was(growing, stream, budget, options, wrong):
    with stream(growing, budget) as flu:
        with pytest.raises(BadParameter, match=wrong):
            growing.refresh(**options)
        assert growing.as_of == "2026-10-05"
        assert flu.ask(GHENT).value == near(500)


def test_a_label_is_never_given_twice(visits, file):
    visits.refresh(as_of="b")
    with pytest.raises(BadParameter, match="used before"):
        visits.refresh(as_of="2026-10-10")
    visits.close()
    with pytest.raises(EngineFailed, match="closed"):
        visits.refresh(as_of="c")


def test_a_source_that_cannot_be_read_leaves_the_table_as_it_was(visits, file, stream, budget):
    with stream(visits, budget) as flu:
        file.write_text("pid,town\n1,Ghent\n")
        with pytest.raises(SchemaMismatch):
            visits.refresh(as_of="2026-10-11")
        file.unlink()
        with pytest.raises(BadParameter, match="no such file"):
            visits.refresh(as_of="2026-10-11")
        assert flu.ask(GHENT).value == near(1000)
        assert flu.ask(GHENT).recorded.as_of == "2026-10-10"


def test_a_question_under_way_is_about_the_version_it_began_with(
    visits, file, stream, budget, monkeypatch
):
    """The table is refreshed between the evaluation and the record of an answer."""
    old = visits.engine
    begun, refreshed = Event(), Event()
    values = old.values

    def slow(questions: Any) -> list[int]:
        begun.set()
        assert refreshed.wait(60)
        return list(values(questions))

    monkeypatch.setattr(old, "values", slow)
    found = []
    with stream(visits, budget) as flu:
        asking = Thread(target=lambda: found.append(flu.ask(GHENT)))
        asking.start()
        assert begun.wait(60)
        write(file, 3000)
        visits.refresh(as_of="2026-10-20")
        refreshed.set()
        asking.join(60)
        assert found[0].value == near(1000)
        assert labels(flu) == ["2026-10-10"]
        assert flu.ask(GHENT).value == near(3000)
    with pytest.raises(EngineFailed):
        values([visits.prepare("true").question()])  # released by its last user


def test_a_batch_is_about_the_version_it_was_asked_of(visits, file, stream, budget):
    with stream(visits, budget, threshold=-1000) as flu:
        answers = flu.ask_all(BY_TOWN)
        next(answers)
        write(file, 3000)
        visits.refresh(as_of="2026-10-20")
        assert [answer.value for answer in answers] == [near(1000)]
        assert labels(flu) == ["2026-10-10", "2026-10-10"]


def test_a_release_is_labelled_with_the_version_it_was_drawn_from(
    visits, file, budget, monkeypatch
):
    """The table is refreshed between paying and drawing."""
    charge = budget.charge

    def then_refresh(*given: Any, **options: Any) -> Any:
        receipt = charge(*given, **options)
        write(file, 3000)
        visits.refresh(as_of="2026-10-20")
        return receipt

    monkeypatch.setattr(budget, "charge", then_refresh)
    assert visits.count(GHENT, epsilon=5, budget=budget).value == near(1000)
    monkeypatch.undo()
    assert visits.count(GHENT, epsilon=5, budget=budget).value == near(3000)
    charges = [entry for entry in budget.history if entry.kind == "charge"]
    assert [entry.body["as_of"] for entry in charges] == ["2026-10-10", "2026-10-20"]


def test_under_a_retry_key_the_first_answer_stays(visits, file, stream, budget):
    with stream(visits, budget) as flu:
        first = flu.ask(GHENT, retry_key="one")
        told = visits.count(GHENT, epsilon=5, budget=budget, retry_key="two")
        write(file, 3000)
        visits.refresh(as_of="2026-10-20")
        assert flu.ask(GHENT, retry_key="one").value == first.value
        assert visits.count(GHENT, epsilon=5, budget=budget, retry_key="two").value == told.value
        assert flu.ask(GHENT, retry_key="three").value == near(3000)


def test_what_was_paid_for_one_version_is_not_drawn_from_another(visits, file, budget, monkeypatch):
    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    from tacit.analyst.count import NoisyCount

    monkeypatch.setattr(NoisyCount, "draw", die)
    with pytest.raises(Died):
        visits.count(GHENT, epsilon=5, budget=budget, retry_key="one")
    monkeypatch.undo()
    visits.refresh(as_of="2026-10-20")
    with pytest.raises(KeyReused):
        visits.count(GHENT, epsilon=5, budget=budget, retry_key="one")


def test_many_threads_ask_while_the_table_grows(growing, file, stream, budget):
    """No question fails, and none loses the reserved ⊤, whatever comes in between."""
    write(file, 3000)
    failures: list[TacitError] = []
    with stream(growing, budget, threshold=100_000) as flu:
        done = Event()

        def ask() -> None:
            while not done.is_set():
                try:
                    assert not flu.ask(GHENT)
                except TacitError as error:
                    failures.append(error)

        threads = [Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for day in range(6, 16):
            growing.refresh(as_of=f"2026-10-{day:02}", whole=day % 4 == 0)
        done.set()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert flu.tops_left == 9
    assert growing.engine.values([growing.prepare("true").question()]) == [1500]
