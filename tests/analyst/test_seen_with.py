"""A table for somebody who may name only some of the tables beside it."""

from __future__ import annotations

from threading import Thread

import pyarrow
import pytest

import tacit
from tacit.analyst.open_tables import follow, seen_with
from tacit.budget import Budget
from tacit.errors import EngineFailed, QuestionRefused


def rows(*people):
    return pyarrow.table({"pid": list(people)})


@pytest.fixture
def tables():
    opened = {
        "visits": {"source": rows(1, 2, 3), "person": "pid", "as_of": "1"},
        "labs": {"source": rows(2, 3), "person": "pid"},
        "scans": {"source": rows(3), "person": "pid"},
    }
    with tacit.open_all(opened) as together:
        yield together


@pytest.fixture
def paid():
    budget = Budget.in_memory(epsilon=10**9, covers=["visits", "labs", "scans"])
    return {"epsilon": 1000, "budget": budget}


def test_only_those_can_be_named(tables, paid):
    view = seen_with(tables["visits"], [tables["labs"]])
    assert [other.name for other in view.schema.beside] == ["labs"]
    assert view.count("pid in (select pid from labs)", **paid).value == 2
    assert view.count("pid in (select pid from visits where pid > 1)", **paid).value == 2
    with pytest.raises(QuestionRefused, match="is not open together with visits"):
        view.count("pid in (select pid from scans)", **paid)
    assert tables["visits"].count("pid in (select pid from scans)", **paid).value == 1


def test_it_follows_what_is_read_anew(tables, paid):
    view = seen_with(tables["visits"], [tables["labs"]])
    tables["visits"].refresh(as_of="2", source=rows(1, 2, 3, 4))
    assert view.count("pid > 0", **paid).value == 4
    assert follow(view).as_of == "2"
    tables["labs"].refresh(as_of="2", source=rows(1, 2, 3, 4))
    assert view.count("pid in (select pid from labs)", **paid).value == 4
    tables["scans"].refresh(as_of="2", source=rows(1))
    assert view.count("pid > 0", **paid).value == 4
    view.refresh(as_of="3", source=rows(7))
    assert tables["visits"].count("pid > 0", **paid).value == 1
    with view.sparse(threshold="0.5", at_most=3, **paid) as stream:
        assert stream.ask("pid = 7")
        tables["visits"].refresh(as_of="4", source=rows(8))
        assert stream.ask("pid = 8")


def test_it_is_closed_with_its_table(tables, paid):
    view = seen_with(tables["visits"], [])
    tables["visits"].close()
    assert follow(view).closed
    with pytest.raises(EngineFailed):
        view.count("pid > 0", **paid)


def test_many_may_ask_while_it_is_read_anew(tables, paid):
    view = seen_with(tables["visits"], [tables["labs"]])
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(30):
            try:
                view.count("pid in (select pid from labs)", **paid)
            except BaseException as error:
                wrong.append(error)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for label in range(2, 12):
        tables["visits"].refresh(as_of=str(label), source=rows(1, 2, 3))
    for thread in threads:
        thread.join()
    assert wrong == []
