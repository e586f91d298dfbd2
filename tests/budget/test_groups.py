"""Which tables are about the same people is said in the budget, and joins stay within a group."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from tests.budget.common import BINDING, open_stream

import tacit
from tacit import wire
from tacit.budget import RetryKey, TableIdentity
from tacit.errors import BadParameter, LedgerDamaged, TableMismatch
from tacit.privacy import Cost
from tacit.server.config import read_config
from tacit.server.service import Service, table_facts

PID = TableIdentity("pid", "integer")
BESIDE = {"staff": PID}


@pytest.fixture
def grouped(budget):
    budget.cover("staff", people="staff")
    budget.cover("payroll", people="staff")
    budget.cover("letters")
    return budget


def charge(budget, table="visits", **more):
    return budget.charge(Cost.pure("1/100"), table=table, what="a count", identity=PID, **more)


def test_a_budget_says_who_its_tables_are_about(grouped):
    people = {"visits": None, "labs": None, "staff": "staff", "payroll": "staff", "letters": None}
    assert grouped.people == people
    assert grouped.covers == tuple(people)
    said = "covers visits, labs, letters; of other people (staff): staff, payroll"
    assert str(grouped).endswith(said)
    assert [entry.body.get("people") for entry in grouped.history[1:]] == ["staff", "staff", None]
    assert "people" not in grouped.history[3].body
    assert grouped.history[1].describe().endswith("of other people: staff")
    grouped.verify()


@pytest.mark.parametrize("people", [None, "patients", "staff"])
def test_whom_a_table_is_about_does_not_change(grouped, people):
    for table in ("visits", "staff"):
        with pytest.raises(BadParameter, match="covers it already"):
            grouped.cover(table, people=people)


def test_every_charge_counts_against_the_one_total(grouped):
    for table in ("visits", "staff", "payroll"):
        charge(grouped, table)
    assert grouped.spent.epsilon == 3 * Cost.pure("1/100").privacy.epsilon


def refused(budget, call):
    head = budget.head
    with pytest.raises(TableMismatch, match=r"'visits' and 'staff' .* different people.*join"):
        call()
    assert budget.head == head


def test_tables_of_different_people_are_not_joined(grouped):
    key = RetryKey("monday", None, "visits.count", 1)
    refused(grouped, lambda: charge(grouped, beside=BESIDE))
    refused(grouped, lambda: open_stream(grouped, identity=PID, beside=BESIDE))
    open_stream(grouped, identity=PID).suspend()
    refused(
        grouped,
        lambda: grouped.resume_stream("flu", binding=BINDING, after_loss=bytes, beside=BESIDE),
    )
    charge(grouped, retry=key)
    refused(grouped, lambda: charge(grouped, retry=key, beside=BESIDE))
    charge(grouped, beside={"labs": PID, "letters": PID})
    charge(grouped, "staff", beside={"payroll": PID})
    grouped.verify()


def test_it_is_there_when_it_is_opened_again_and_exported(place, tmp_path):
    with tacit.Budget.open(place) as budget:
        budget.cover("staff", people="staff")
    with tacit.Budget.open(place) as budget:
        assert budget.people == {"visits": None, "staff": "staff"}
        budget.cover("labs")
        budget.cover("pay", people="staff")
        budget.verify(budget.head)
        budget.export(tmp_path / "lines")
        told = json.loads(wire.to_line(budget))
        assert told["covers"] == ["visits", "staff", "labs", "pay"]
        assert told["people"] == {"staff": "staff", "pay": "staff"}
        shown = wire.summary(budget)
        assert wire.from_json(wire.to_json(shown)) == shown
    entries = [json.loads(line)["entry"] for line in (tmp_path / "lines").read_text().splitlines()]
    assert [entry.get("people") for entry in entries] == [None, "staff", None, "staff"]


def test_a_group_that_was_changed_is_found(path):
    from tests.budget.damages import edited

    with tacit.Budget.open(path) as budget:
        budget.cover("staff", people="staff")
        edited(path, "tables", "people", 2, None)
        with pytest.raises(LedgerDamaged, match="the tables it covers"):
            budget.verify()


# Tables -------------------------------------------------------------------------------------------

ROWS = pd.DataFrame({"pid": range(20), "age": range(20, 40)})


def opened():
    tables = {name: {"source": ROWS, "person": "pid"} for name in ("visits", "labs", "staff")}
    return tacit.open_all(tables)


def test_a_question_joins_tables_of_one_group_only():
    budget = tacit.Budget.in_memory(epsilon=10, covers=["visits", "labs"])
    budget.cover("staff", people="staff")
    question = "pid IN (SELECT pid FROM {} WHERE age > 30)"
    with opened() as tables:
        for table in ("labs", "staff"):
            with pytest.raises(TableMismatch, match="different people"):
                tables["visits"].count(question.format(table), epsilon=1, budget=budget)
    both = {name: {"source": ROWS, "person": "pid"} for name in ("visits", "labs")}
    with tacit.open_all(both) as tables:
        tables["visits"].count(question.format("labs"), epsilon=1, budget=budget)
    assert budget.spent.epsilon == 1


def test_a_server_puts_together_the_tables_of_one_group(tmp_path):
    path = tmp_path / "clinic.budget"
    names = ("visits", "labs", "staff", "payroll", "guests")
    with tacit.Budget.create(path, epsilon=1, covers=names[:2]) as budget:
        budget.cover("staff", people="staff")
        budget.cover("payroll", people="staff")
        budget.cover("guests", people="guests")
    lines = [f'budget = "{path}"']
    for name in names:
        ROWS[["pid"]].to_csv(tmp_path / f"{name}.csv", index=False)
        (tmp_path / f"{name}.toml").write_text('[columns.pid]\ntype = "integer"\n')
        lines.append(f'[tables.{name}]\nsource = "{name}.csv"\nperson = "pid"')
    (tmp_path / "server.toml").write_text("\n".join(lines))
    with Service.open(read_config(tmp_path / "server.toml")) as service:
        beside = {name: table_facts(table).beside for name, table in service.tables.items()}
    assert beside == {
        "visits": ["labs"],
        "labs": ["visits"],
        "staff": ["payroll"],
        "payroll": ["staff"],
        "guests": [],
    }
