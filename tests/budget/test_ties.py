"""One name, one kind of people: a table is tied to its person column at first use."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.budget.common import BINDING, open_stream

import tacit
from tacit.budget import TableIdentity
from tacit.errors import BadParameter, BudgetExhausted, NotCovered, TableMismatch
from tacit.privacy import Cost

PID = TableIdentity("pid", "integer", "a" * 64)
OTHERS = [
    TableIdentity("household", "integer", "a" * 64),
    TableIdentity("pid", "text", "a" * 64),
    TableIdentity("each row", "each row"),
    TableIdentity("PID", "integer"),
]


def charge(budget, identity=None, table="visits", epsilon="1/100"):
    what = "a count"
    return budget.charge(Cost.pure(epsilon), table=table, what=what, identity=identity)


def kinds(budget):
    return [entry.kind for entry in budget.history]


def test_the_first_use_ties_in_the_same_transaction(budget):
    assert budget.tied == {}
    receipt = charge(budget, PID)
    assert budget.tied == {"visits": PID}
    assert kinds(budget) == ["created", "tie", "charge"]
    assert receipt.number == 3
    tie = budget.history[1].body
    assert (tie["table"], tie["person"], tie["type"]) == ("visits", "pid", "integer")
    assert (tie["schema"], tie["because"]) == ("a" * 64, "first use")
    charge(budget, PID)
    charge(budget, TableIdentity("pid", "integer", "b" * 64))  # columns may be added
    assert kinds(budget) == ["created", "tie", "charge", "charge", "charge"]
    assert budget.tied == {"visits": PID}
    budget.verify()


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_other_people_are_refused_and_nothing_is_spent(budget, other):
    charge(budget, PID)
    lease = open_stream(budget, identity=PID)
    lease.suspend()
    head, left = budget.head, budget.left
    with pytest.raises(TableMismatch) as refusal:
        charge(budget, other)
    for said in ("'visits'", str(PID), str(other), "Nothing was spent", "budget.tie"):
        assert said in str(refusal.value)
    with pytest.raises(TableMismatch):
        open_stream(budget, "new", identity=other)
    with pytest.raises(TableMismatch):
        budget.resume_stream("flu", binding=BINDING, after_loss=bytes, identity=other)
    assert (budget.head, budget.left) == (head, left)
    charge(budget, other, table="labs")  # another name, other people
    budget.verify()


def test_a_charge_by_hand_ties_nothing(budget):
    charge(budget)
    open_stream(budget).suspend()
    assert budget.tied == {}
    charge(budget, PID)
    charge(budget)
    assert budget.tied == {"visits": PID}


def test_what_is_refused_ties_nothing(budget):
    with pytest.raises(BudgetExhausted):
        charge(budget, PID, epsilon=50)
    with pytest.raises(NotCovered):
        charge(budget, PID, table="payroll")
    assert budget.tied == {}
    assert kinds(budget) == ["created"]
    charge(budget, OTHERS[0])


def test_the_steward_says_that_it_is_meant(budget):
    charge(budget, PID)
    lease = open_stream(budget, identity=PID)
    lease.suspend()
    other = OTHERS[0]
    budget.tie("visits", other)
    budget.tie("visits", other)  # said already
    assert budget.tied == {"visits": other}
    assert kinds(budget)[-2:] == ["suspend", "tie"]
    assert budget.history[-1].body["because"] == "the steward said so"
    charge(budget, other)
    for call in (
        lambda: charge(budget, PID),
        lambda: budget.resume_stream("flu", binding=BINDING, after_loss=bytes, identity=PID),
    ):
        with pytest.raises(TableMismatch):
            call()
    budget.verify()
    with pytest.raises(BadParameter, match=r"payroll.*covers visits, labs"):
        budget.tie("payroll", PID)


def test_a_type_that_was_not_known_is_tied_when_it_is(budget):
    budget.tie("visits", TableIdentity("pid", None, "a" * 64))
    charge(budget, TableIdentity("pid", None))
    charge(budget, TableIdentity("pid", "integer", "b" * 64))
    assert budget.tied == {"visits": PID}
    assert kinds(budget) == ["created", "tie", "charge", "tie", "charge"]
    with pytest.raises(TableMismatch):
        charge(budget, TableIdentity("pid", "text"))
    budget.verify()


# Tables say whose rows they hold -----------------------------------------------------------

ROWS = pd.DataFrame(
    {
        "pid": range(60),
        "household": [n // 3 for n in range(60)],
        "name": [str(n) for n in range(60)],
        "age": [20 + n % 50 for n in range(60)],
    }
)
AGES = """
[columns.pid]
type = "integer"
[columns.household]
type = "integer"
[columns.name]
type = "text"
[columns.age]
type = "integer"
bounds = [0, 120]
keys = {from = 20, to = 69}
"""


def visits(person="pid", schema=AGES):
    return tacit.open(ROWS, person=person, name="visits", schema=schema)


USES = {
    "count": lambda table, budget: table.count("age > 30", epsilon="1/100", budget=budget),
    "sum": lambda table, budget: table.sum("age", epsilon="1/100", budget=budget),
    "histogram": lambda table, budget: table.histogram(
        "age", max_rows=1, epsilon="1/100", budget=budget
    ),
    "stream": lambda table, budget: table.sparse(
        threshold=50, at_most=1, epsilon="1/100", budget=budget
    ).suspend(),
    "release": lambda table, budget: table.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon="1/100", rows=1, budget=budget
    ),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_table_ties_it_and_minds_the_tie(budget, use):
    schema = AGES + "total = [0, 120]\n"
    USES[use](visits(schema=schema), budget)
    assert budget.tied == {"visits": visits(schema=schema).identity}
    left = budget.left
    with pytest.raises(TableMismatch, match=r"'visits' by pid \(integer\).*household \(integer\)"):
        USES[use](visits("household", schema), budget)
    with pytest.raises(TableMismatch, match="identifies them by each row"):
        USES[use](visits(tacit.EACH_ROW, schema), budget)
    assert budget.left == left
    USES[use](visits(schema=schema), budget)


def test_a_resumed_stream_minds_the_tie(budget):
    with visits().sparse(threshold=50, at_most=2, epsilon="1/100", budget=budget, name="flu"):
        pass
    budget.tie("visits", visits("household").identity)
    with pytest.raises(TableMismatch):
        visits().resume("flu", budget=budget)
    budget.tie("visits", visits().identity)
    assert visits().resume("flu", budget=budget).tops_left == 2


def test_the_same_column_read_as_text_is_refused(budget):
    visits().count("age > 30", epsilon="1/100", budget=budget)
    text = AGES.replace('[columns.pid]\ntype = "integer"', '[columns.pid]\ntype = "text"')
    rows = ROWS.assign(pid=ROWS.pid.map(str))
    other = tacit.open(rows, person="pid", name="visits", schema=text)
    with pytest.raises(TableMismatch, match=r"pid \(integer\).*pid \(text\)"):
        other.count("age > 30", epsilon="1/100", budget=budget)


def test_columns_and_keys_may_be_added(budget):
    visits().count("age > 30", epsilon="1/100", budget=budget)
    wider = AGES.replace("to = 69", "to = 90")
    visits(schema=wider).count("age > 30", epsilon="1/100", budget=budget)


def test_a_column_called_each_row_is_not_each_row(budget):
    rows = ROWS.rename(columns={"pid": "each row"})
    table = tacit.open(rows, person="each row", name="visits")
    table.count("age > 30", epsilon="1/100", budget=budget)
    with pytest.raises(TableMismatch):
        tacit.open(rows, person=tacit.EACH_ROW, name="visits").count(
            "age > 30", epsilon="1/100", budget=budget
        )
