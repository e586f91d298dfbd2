"""The history: append-only, chained, and everything stored follows from it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from tests.budget.common import abandon, ask, mend_head, open_stream, resume, rewritten, sqlite_of

from tacit.budget import Budget
from tacit.errors import LedgerDamaged, LedgerExists, NotWritten
from tacit.privacy import Cost


def fill(budget: Budget) -> None:
    """One entry of every kind, and a few more."""
    budget.share("ana", epsilon="1/4")
    budget.cover("pharmacy")
    budget.charge(Cost.pure("1/10"), table="visits", what="count of smokers")
    lease = open_stream(budget, analyst="ana", at_most=4, secret=b"offset 17")
    ask(lease, "town = 'Ulm'")
    lease.suspend()
    lease = resume(budget)
    abandon(lease)
    resume(budget).suspend()
    resume(budget).close()
    budget.charge(Cost.pure("1/100"), table="pharmacy", what="last")


KINDS = [
    *("created", "share", "cover", "charge", "open", "top"),
    *("suspend", "resume", "resume", "suspend", "resume", "close", "charge"),
]


def test_history_is_a_sequence(budget):
    fill(budget)
    history = budget.history
    assert [entry.kind for entry in history] == KINDS
    assert len(history) == 13
    assert history[0].body["epsilon"] == "1"
    assert history[-1] == list(history)[-1]
    assert history[1:3] == list(history)[1:3]
    assert history[::-5] == list(history)[::-5]
    assert history[5:5] == []
    with pytest.raises(IndexError):
        history[13]
    assert "count of smokers" in str(history)
    assert "13 entries" in repr(history)
    assert repr(history[3]).startswith("Entry(4, charge, ")


def test_history_is_read_in_pieces(budget, monkeypatch):
    monkeypatch.setattr("tacit.budget.history._AT_ONCE", 4)
    fill(budget)
    assert [entry.number for entry in budget.history] == list(range(1, 14))
    assert budget.verify().entries == 13


def test_export_can_be_checked_without_tacit(budget, tmp_path):
    fill(budget)
    file = tmp_path / "history.jsonl"
    assert budget.export(file) == 13
    previous = "0" * 64
    for line in file.read_text().splitlines():
        row = json.loads(line)
        assert row["entry"]["previous"] == previous
        text = json.dumps(row["entry"], sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == row["hash"]
    assert previous == budget.head
    with pytest.raises(LedgerExists):
        budget.export(file)
    stream = io.StringIO()
    budget.export(stream)
    assert stream.getvalue() == file.read_text()
    assert "offset" not in stream.getvalue()


def test_an_export_that_cannot_be_written_says_so_and_leaves_no_part(budget, tmp_path):
    for path in (tmp_path / "nowhere" / "x", str(tmp_path / "nowhere" / "x")):
        with pytest.raises(NotWritten, match="No such file or directory; nothing else"):
            budget.export(path)
    assert issubclass(NotWritten, OSError)

    def failing(text):
        raise OSError(28, "No space left on device")

    class Full(io.StringIO):
        write = staticmethod(failing)

    with pytest.raises(OSError, match="No space"):
        budget.export(Full())  # somebody else's file: her error, as it is
    half = tmp_path / "half"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.budget.history.canonical", lambda body: failing(""))
        with pytest.raises(NotWritten, match="No space left"):
            budget.export(half)
    assert not half.exists()
    budget.export(half)


def test_verify_passes_and_gives_the_head(budget):
    fill(budget)
    verified = budget.verify(head=budget.head)
    assert (verified.entries, verified.head) == (13, budget.head)
    for entry in budget.history:
        budget.verify(head=entry.hash)  # whatever was noted in the past
    with pytest.raises(LedgerDamaged, match="not in this history of 13 entries"):
        budget.verify(head="f" * 64)


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "clinic.budget"
    with Budget.create(path, epsilon=1, covers=["visits"]) as budget:
        fill(budget)
    return path


def tamper(path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS entries_stay")
        connection.execute("DROP TRIGGER IF EXISTS entries_remain")
        for statement in statements:
            connection.execute(statement)
    connection.close()
    mend_head(path)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE entries SET text = replace(text, '1/10', '1/99') WHERE number = 4", "4 .* edited"),
        ("UPDATE entries SET text = text || ' ' WHERE number = 2", "2 .* edited"),
        ("UPDATE entries SET hash = upper(hash) WHERE number = 3", "3 .* edited"),
        ("DELETE FROM entries WHERE number = 6", "entry 6 .* missing"),
        ("UPDATE entries SET stream = 2 WHERE number = 6", "another stream"),
        ("UPDATE entries SET stream = NULL WHERE number = 6", "another stream"),
        ('UPDATE pots SET spent = \'{"epsilon":"0","delta":"0"}\'', "spent and shared"),
        ('UPDATE pots SET most = \'{"epsilon":"9","delta":"0"}\'', "spent and shared"),
        ("UPDATE pots SET spent = 'rubbish'", "spent and shared"),
        ("DELETE FROM pots WHERE analyst = 'ana'", "spent and shared"),
        ("UPDATE streams SET tops = 0", "its streams"),
        ("UPDATE streams SET status = 'suspended'", "its streams"),
        ("UPDATE streams SET at_most = 100", "its streams"),
        ("UPDATE streams SET binding = '{}'", "its streams"),
        ("INSERT INTO tables (name) VALUES ('payroll')", "tables it covers"),
        ("INSERT INTO secrets VALUES (1, x'00', NULL)", "have a secret"),
        ("DELETE FROM entries WHERE number = 13", "spent and shared"),
    ],
)
def test_verify_finds_what_was_changed(filled, statement, said):
    tamper(filled, statement)
    with pytest.raises(LedgerDamaged, match=said):
        Budget.open(filled).verify()


def test_verify_finds_a_removed_entry_when_the_rest_is_renumbered(filled):
    tamper(
        filled,
        "DELETE FROM entries WHERE number = 6",
        "UPDATE entries SET number = -number WHERE number > 6",
        "UPDATE entries SET number = -number - 1 WHERE number < 0",
    )
    with pytest.raises(LedgerDamaged, match=r"entry 6 .* does not follow"):
        Budget.open(filled).verify()


def test_verify_finds_entries_in_another_order(filled):
    tamper(
        filled,
        "UPDATE entries SET number = 99 WHERE number = 4",
        "UPDATE entries SET number = 4 WHERE number = 13",
        "UPDATE entries SET number = 13 WHERE number = 99",
    )
    with pytest.raises(LedgerDamaged, match=r"entry 4 .* does not follow"):
        Budget.open(filled).verify()


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (4, lambda body: body.update(charged={"epsilon": "1/1000", "delta": "0"})),
        (4, lambda body: body["cost"].update(epsilon="1/1000")),
        (4, lambda body: body.update(kind="gift")),
        (4, lambda body: body.update(table="payroll")),
        (5, lambda body: body.update(at_most=1000)),
        (6, lambda body: body.update(top=2)),
        (6, lambda body: body.pop("stream")),
        (10, lambda body: body.update(stream="measles")),
        (9, lambda body: body.update(lost=0)),
        (2, lambda body: body.update(limit={"epsilon": "7", "delta": "0"})),
    ],
)
def test_a_mended_chain_still_has_to_make_sense(filled, number, change):
    rewritten(filled, number, change)
    with pytest.raises(LedgerDamaged, match=r"makes no sense|does not follow"):
        Budget.open(filled).verify()


def test_only_a_noted_head_finds_a_mended_rewriting(filled):
    head = Budget.open(filled).head
    rewritten(filled, 4, lambda body: body.update(what="nothing at all"))
    budget = Budget.open(filled)
    budget.verify()
    with pytest.raises(LedgerDamaged, match="noted is not in this history"):
        budget.verify(head=head)


def test_only_a_noted_head_finds_an_old_copy_with_its_head_file(filled, tmp_path):
    shutil.copy(filled, tmp_path / "old copy")
    with Budget.open(filled) as budget:
        budget.charge(Cost.pure("1/10"), table="visits", what="forgotten by the old copy")
        head = budget.head
    shutil.copy(tmp_path / "old copy", filled)
    with pytest.raises(LedgerDamaged, match="old copy was put back"):
        Budget.open(filled)
    mend_head(filled)
    budget = Budget.open(filled)
    budget.verify()  # a consistent past
    with pytest.raises(LedgerDamaged, match="old copy was put back"):
        budget.verify(head=head)


def test_an_old_copy_put_back_while_open_is_noticed_at_the_next_charge(filled, tmp_path):
    for replace in (shutil.copy, lambda old, new: old.rename(new)):
        old = tmp_path / "old copy"
        shutil.copy(filled, old)
        budget = Budget.open(filled)
        budget.charge(Cost.pure("1/1000"), table="visits", what="seen by this process")
        sqlite_of(budget)._disconnect()  # as it happens around a fork
        replace(old, filled)
        with pytest.raises(LedgerDamaged, match=r"old copy|replaced"):
            budget.charge(Cost.pure("1/1000"), table="visits", what="more")
        budget.close()
        mend_head(filled)


def test_entries_cannot_be_changed_by_accident(filled):
    connection = sqlite3.connect(filled)
    for statement in ("UPDATE entries SET text = ''", "DELETE FROM entries"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_the_ends_of_the_history_are_checked_on_opening(filled):
    tamper(filled, "UPDATE entries SET text = replace(text, 'last', 'lost') WHERE number = 13")
    with pytest.raises(LedgerDamaged, match="entry 13 of the history was edited"):
        Budget.open(filled)
