"""Files of an earlier version are read as they are, and brought up to date by the first write."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from tests.budget.common import abandon, ask, open_stream, resume
from tests.budget.damages import SECRET, rows_of
from tests.budget.watched import nothing_happens, watch, watched

from tacit.budget import Budget, RetryKey, TableIdentity
from tacit.budget.sqlite_tables import STEPS, VERSION
from tacit.errors import LedgerDamaged, TableMismatch
from tacit.privacy import Cost

KEY = RetryKey("monday", "ana", "visits.count", None)
PEOPLE = {"table": "visits", "person": "pid", "schema": "a" * 64}


def version_of(path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def run(path, *statements) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def as_of_version_1(path) -> None:
    """What 0.1 would have written: what came later is taken away again."""
    run(
        path,
        "ALTER TABLE secrets DROP COLUMN checksum",
        "DROP TABLE ties",
        "DROP TABLE answers",
        "ALTER TABLE tables DROP COLUMN people",
        "PRAGMA user_version = 1",
    )


@pytest.fixture
def old(tmp_path):
    """A file of version 1: a suspended stream, one whose holder was killed, and an ended one."""
    path = tmp_path / "old.budget"
    with Budget.create(path, epsilon=1, covers=["visits", "labs", "staff"]) as budget:
        budget.share("ana", epsilon="1/4")
        lease = open_stream(budget, "flu", binding=PEOPLE, secret=SECRET)
        ask(lease, "one")
        lease.suspend()
        abandon(open_stream(budget, "gout", binding=PEOPLE | {"person": "other"}, secret=SECRET))
        open_stream(budget, "cold", table="labs", binding={"x": ""}).close()
        budget.charge(Cost.pure("1/10"), table="staff", what="by hand")
    as_of_version_1(path)
    return path


def charge(budget, **more):
    return budget.charge(Cost.pure("1/100"), table="visits", what="more", **more)


def test_a_new_file_is_of_the_newest_version(path):
    assert version_of(path) == VERSION == 1 + len(STEPS) == 4


def test_reading_leaves_an_older_file_as_it_is(old):
    before = old.read_bytes()
    with Budget.open(old) as budget:
        budget.verify(budget.head)
        assert [state.name for state in budget.streams()] == ["flu", "gout", "cold"]
        assert len(str(budget.history).splitlines()) == len(budget.history) == 9
        assert budget.tied == {}
        assert str(budget)
    assert old.read_bytes() == before
    assert version_of(old) == 1


@pytest.mark.parametrize(
    "write",
    [
        charge,
        lambda budget: budget.share("ana", epsilon="1/5"),
        lambda budget: budget.cover("pharmacy"),
        lambda budget: open_stream(budget, "new").suspend(),
        lambda budget: budget.resume_stream("flu", binding=PEOPLE, after_loss=bytes).suspend(),
        lambda budget: budget.tie("labs", TableIdentity("pid")),
    ],
)
def test_the_first_write_brings_it_up_to_date(old, write):
    with Budget.open(old) as budget:
        head, length = budget.head, len(budget.history)
        write(budget)
        assert version_of(old) == VERSION
        budget.verify(head)
        assert len(budget.history) > length
        assert "staff" not in budget.tied  # nobody said whose rows they are
    sealed = [value for table, name, _, value in rows_of(old) if name == "checksum"]
    assert sealed
    assert all(isinstance(value, bytes) and len(value) == 32 for value in sealed)
    with Budget.open(old) as budget:
        charge(budget)
        budget.verify()


def test_its_tables_are_tied_once_and_to_the_people_of_their_first_streams(old):
    with Budget.open(old) as budget:
        with pytest.raises(TableMismatch, match=r"by pid, but .* by other \(integer\)"):
            charge(budget, identity=TableIdentity("other", "integer"))
        assert version_of(old) == 1
        people = TableIdentity("pid", "integer", "a" * 64)
        charge(budget, identity=people)
        charge(budget, identity=people)
        ties = [entry.body for entry in budget.history if entry.kind == "tie"]
        assert [(tie["table"], tie["type"]) for tie in ties] == [("visits", "integer")]
        assert budget.tied == {"visits": people}
        budget.verify()


def test_its_streams_go_on_and_count_what_was_lost(old):
    with Budget.open(old) as budget:
        seen = []
        lease = budget.resume_stream(
            "gout", binding=PEOPLE | {"person": "other"}, after_loss=lambda s: seen.append(s) or s
        )
        assert (seen, lease.secret, lease.tops_left) == ([SECRET], SECRET, 2)
        assert resume_flu(budget).answers == {"one": {"above": True}}


def resume_flu(budget):
    return budget.resume_stream("flu", binding=PEOPLE, after_loss=lambda secret: secret)


def test_a_file_of_version_2_gets_a_place_for_answers_with_its_first_write(path):
    with Budget.open(path) as budget:
        abandon(open_stream(budget))
        charge(budget)
    run(
        path,
        "DROP TABLE answers",
        "ALTER TABLE tables DROP COLUMN people",
        "PRAGMA user_version = 2",
    )
    before = path.read_bytes()
    with Budget.open(path) as budget:
        head = budget.verify().head
        assert list(budget.answers) == []
        assert budget.answers.under(KEY) is None
    assert (path.read_bytes(), version_of(path)) == (before, 2)
    with Budget.open(path) as budget:
        paid = charge(budget, retry=KEY)
        budget.keep(paid.number, {"told": 1})
        assert version_of(path) == VERSION
        again = charge(budget, retry=KEY)
        assert again.before is not None
        assert again.before.response == {"told": 1}
        budget.verify(head)


@pytest.mark.parametrize("point", ["begun", "written"])
def test_both_or_neither(old, point):
    """What interrupts the write takes the new version back with it."""
    before = rows_of(old)
    with watched(Budget.open(old)) as budget:

        def stop(reached):
            if reached == f"charge: {point}":
                raise RuntimeError("stopped here")

        watch(budget, stop)
        with pytest.raises(RuntimeError):
            charge(budget)
        assert version_of(old) == 1
        assert rows_of(old) == before
        budget.verify()
        watch(budget, nothing_happens)
        charge(budget)
        budget.verify()
    assert version_of(old) == VERSION


def test_a_refused_charge_does_not_bring_it_up_to_date(old):
    with Budget.open(old) as budget, pytest.raises(Exception, match="not 'payroll'"):
        budget.charge(Cost.pure(1), table="payroll", what="x")
    assert version_of(old) == 1


def test_whoever_has_it_open_goes_on_with_the_new_version(old):
    with Budget.open(old) as early, Budget.open(old) as other:
        early.verify()
        charge(other, identity=TableIdentity("pid"))
        assert early.tied["visits"].person == "pid"
        early.verify()
        charge(early)
        other.verify()


def test_a_later_version_is_refused_also_while_it_is_open(path):
    with Budget.open(path) as budget:
        run(path, f"PRAGMA user_version = {VERSION + 1}")
        for call in (budget.verify, lambda: str(budget), lambda: charge(budget)):
            with pytest.raises(LedgerDamaged, match=rf"version {VERSION + 1}.*newer Tacit"):
                call()
    with pytest.raises(LedgerDamaged, match=rf"version {VERSION + 1}; this Tacit reads"):
        Budget.open(path)


def test_a_file_that_says_that_it_is_older_than_it_is(path):
    """One bit of the header: nobody would look at checksums and ties any more."""
    with Budget.open(path) as budget:
        lease = open_stream(budget)
        lease.suspend()
    with Budget.open(path) as budget:
        run(path, "PRAGMA user_version = 1")
        with pytest.raises(LedgerDamaged, match="its format"):
            budget.verify()
        with pytest.raises(LedgerDamaged):
            charge(budget)
        with pytest.raises(LedgerDamaged):
            resume(budget)
        with pytest.raises(LedgerDamaged, match="its format"):
            Budget.open(path)
