"""Tables that are open together: what a budget must cover, and what a stream is bound to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.analyst.open_tables import OpenTables
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    NotCovered,
    QuestionRefused,
    SchemaMismatch,
    StreamMismatch,
    TableMismatch,
)

VISITS: dict[str, Any] = {"pid": [1, 1, 2, 3, None], "age": [60, 61, 30, 80, 99]}
LABS: dict[str, Any] = {"patient": [1, 3, 3, 4, None], "result": [9, 2, 8, 9, 9]}
ELDERLY = "age >= 60 and pid in (select patient from labs where result > 5)"
MUCH = 10**6  # so much ε that the noise is nothing


def opened(labs: dict[str, Any] = LABS, **more) -> OpenTables:
    return tacit.open_all(
        {
            "visits": {"source": pa.table(VISITS), "person": "pid"},
            "labs": {"source": pa.table(labs), "person": "patient"} | more,
        }
    )


def budget(*tables: str) -> tacit.Budget:
    return tacit.Budget.in_memory(epsilon=10**9, covers=list(tables))


def count(table: tacit.Table, question: str, paid: tacit.Budget) -> int:
    return round(table.count(question, epsilon=MUCH, budget=paid).value)


def test_a_count_names_people_of_the_other_table() -> None:
    paid = budget("visits", "labs")
    with opened() as tables:
        visits, labs = tables["visits"], tables["labs"]
        assert count(visits, ELDERLY, paid) == 2
        assert count(visits, "pid not in (select patient from labs)", paid) == 1
        assert count(labs, "patient not in (select pid from visits)", paid) == 1
        found = visits.query(
            "select count(distinct pid) n from visits where pid in (select patient from labs)",
            epsilon=MUCH,
            budget=paid,
        )
        assert [round(value) for value in found.column("n").values] == [2]
        assert list(tables) == ["visits", "labs"]
        assert repr(tables) == "<tables visits, labs, open together>"
    assert visits.closed
    assert labs.closed


def test_a_question_about_several_tables_is_paid_for_like_any_other() -> None:
    paid = tacit.Budget.in_memory(epsilon=2, covers=["visits", "labs"])
    paid.share("ana", epsilon=1)
    with opened() as tables:
        visits = tables["visits"]
        visits.count(ELDERLY, epsilon="1/4", budget=paid)
        visits.count(ELDERLY, epsilon="1/8", budget=paid, analyst="ana")
        assert [share.spent.epsilon for share in paid.shares] == [Fraction(1, 4), Fraction(1, 8)]
        assert paid.spent.epsilon == Fraction(3, 8)
        with pytest.raises(BudgetExhausted):
            visits.count(ELDERLY, epsilon=1, budget=paid, analyst="ana")


def test_a_stream_names_them_with_parameters() -> None:
    with (
        opened() as tables,
        tables["visits"].sparse(
            threshold="1.5", grid="1/2", at_most=3, epsilon=MUCH, budget=budget("visits", "labs")
        ) as stream,
    ):
        text = "pid in (select patient from labs where result > :least)"
        told = stream.ask_all([(text, {"least": 5}), (text, {"least": 8}), (text, {"least": 1})])
        assert [answer.above for answer in told] == [True, False, True]


def test_a_budget_must_cover_all_of_them() -> None:
    with opened() as tables:
        visits, alone = tables["visits"], budget("visits")
        for ask in (
            lambda: visits.count("age > 5", epsilon=1, budget=alone),
            lambda: visits.sparse(threshold=1, at_most=1, epsilon=1, budget=alone),
        ):
            with pytest.raises(NotCovered, match="not 'labs'"):
                ask()
        assert alone.spent.epsilon == 0


def test_people_of_the_other_table_are_tied_as_well() -> None:
    paid = budget("visits", "labs")
    with tacit.open(pa.table(LABS), name="labs", person="result") as labs:
        labs.count("patient > 0", epsilon=1, budget=paid)
    with opened() as tables, pytest.raises(TableMismatch, match="the people of 'labs' by result"):
        tables["visits"].count("age > 5", epsilon=1, budget=paid)


def test_tables_whose_people_differ_are_not_opened() -> None:
    with pytest.raises(SchemaMismatch, match="declare the same type"):
        opened(labs={"patient": ["1"], "result": [1]})
    with pytest.raises(SchemaMismatch, match="each row of labs"):
        opened(person=tacit.EACH_ROW)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"visits": {"source": pa.table(VISITS), "person": "pid"}},
        {"visits": {"source": pa.table(VISITS), "person": "pid"}, "labs": {"person": "patient"}},
        {"visits": pa.table(VISITS), "labs": pa.table(LABS)},
        {
            "visits": {"source": pa.table(VISITS), "person": "pid", "name": "x"},
            "labs": {"source": pa.table(LABS), "person": "patient"},
        },
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(BadParameter, match="tables"):
        tacit.open_all(given)


def test_a_stream_is_bound_to_the_other_tables() -> None:
    """Columns and tables may be added; what questions could depend on may not change."""
    paid = budget("visits", "labs")
    with opened() as tables:
        tables["visits"].sparse(
            threshold=1, at_most=3, epsilon=1, budget=paid, name="watch"
        ).suspend()
        with tables["visits"].resume("watch", budget=paid) as stream:
            stream.ask(ELDERLY)
    alone = tacit.open(pa.table(VISITS), name="visits", person="pid")
    with alone, pytest.raises(StreamMismatch, match="table labs: open together"):
        alone.resume("watch", budget=paid)
    reals = {"patient": [1], "result": [1.5]}
    with opened(labs=reals) as tables, pytest.raises(StreamMismatch, match="labs: column result"):
        tables["visits"].resume("watch", budget=paid)
    wider = LABS | {"more": [1, 2, 3, 4, 5]}
    with opened(labs=wider) as tables:
        tables["visits"].resume("watch", budget=paid).suspend()


def test_a_table_may_be_added_if_the_budget_covers_it() -> None:
    paid = budget("visits")
    with tacit.open(pa.table(VISITS), name="visits", person="pid") as alone:
        alone.sparse(threshold=1, at_most=3, epsilon=1, budget=paid, name="watch").suspend()
    with opened() as tables:
        with pytest.raises(NotCovered, match="not 'labs'"):
            tables["visits"].resume("watch", budget=paid)
        paid.cover("labs")
        with tables["visits"].resume("watch", budget=paid) as stream:
            stream.ask(ELDERLY)


def test_a_refresh_is_seen_by_the_tables_beside_it() -> None:
    """Each question is about one state of all tables, and a record belongs to all labels."""
    paid = budget("visits", "labs")
    with opened(as_of="2026-11-01") as tables:
        visits, labs = tables["visits"], tables["labs"]
        with visits.sparse(
            threshold="1.5", grid="1/2", at_most=3, epsilon=MUCH, budget=paid
        ) as stream:
            first = stream.ask(ELDERLY)
            assert first.above
            assert stream.ask(ELDERLY).recorded is not None
            held = labs.engine
            labs.refresh(as_of="2026-11-08", source=pa.table({"patient": [1], "result": [9]}))
            assert labs.engine is not held
            assert not stream.ask(ELDERLY)  # it is a new question, and one person is left
            assert count(visits, ELDERLY, paid) == 1
            with pytest.raises(tacit.TacitError, match="closed"):
                held.totals([])  # nothing uses the old rows


def test_other_rows_of_a_person_need_no_second_table() -> None:
    with tacit.open(pa.table(VISITS), name="visits", person="pid") as visits:
        paid = budget("visits")
        assert (
            count(visits, "age = 60 and pid in (select pid from visits where age = 61)", paid) == 1
        )
        assert (
            count(visits, "age = 30 and pid in (select pid from visits where age = 61)", paid) == 0
        )
        assert not visits.check("pid in (select patient from labs)")
        with pytest.raises(QuestionRefused, match="open_all"):
            visits.count("pid in (select patient from labs)", epsilon=1, budget=paid)
