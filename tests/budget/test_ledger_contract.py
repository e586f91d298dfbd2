"""What every ledger must do.  A new ledger joins the list in ``LEDGERS`` and must pass."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.budget.accountants import Amount
from tacit.budget.chain import digest
from tacit.budget.ledger import Contents, Ledger, Pot, StreamState, TableIdentity, Tail
from tacit.budget.memory import MemoryLedger
from tacit.budget.sqlite import SqliteLedger
from tacit.errors import LedgerBusy


def _memory(folder: Path) -> Ledger:
    return MemoryLedger()


def _sqlite(folder: Path) -> Ledger:
    path = folder / "contract.budget"
    SqliteLedger.create(path, lambda writer: None)
    return SqliteLedger(path)


LEDGERS = {"memory": _memory, "sqlite": _sqlite}


@pytest.fixture(params=LEDGERS)
def ledger(request, tmp_path):
    made = LEDGERS[request.param](tmp_path)
    yield made
    made.close()


def amount(epsilon) -> Amount:
    return Amount.of(epsilon=Fraction(epsilon), delta=Fraction(0))


STATE = StreamState(1, "flu", "visits", None, 3, {"recipe": "book"})


def test_a_new_ledger_is_empty(ledger):
    with ledger.reading() as reader:
        assert reader.tail() == Tail(0, "0" * 64)
        assert reader.entries() == []
        assert reader.tables() == []
        assert reader.pots() == []
        assert reader.streams() == []
        assert reader.secrets() == []
        assert reader.pot(None) is None
        assert reader.stream("flu") is None
        assert reader.secret(1) is None
        assert not reader.covers("visits")
        assert reader.ties() == {}
        assert reader.tie("visits") is None


def test_what_is_written_is_read_inside_and_after(ledger):
    def check(reader):
        assert reader.tables() == ["visits", "labs"]
        assert reader.covers("labs")
        assert reader.pots() == [rest, ana, bob]
        assert reader.pot("ana") == ana
        assert reader.pot(None) == rest
        assert reader.streams() == [STATE, other]
        assert reader.stream("measles") == other
        assert reader.secret(1) == b"\0one\xff"
        assert reader.secrets() == [1]
        assert reader.tail() == Tail(3, entry.hash)
        assert [e.number for e in reader.entries()] == [1, 2, 3]
        assert [e.number for e in reader.entries(after=1, most=1)] == [2]
        assert [e.kind for e in reader.entries(stream=1)] == ["open"]
        assert reader.entries(after=3) == []
        assert reader.entries(after=3, most=5) == []
        assert [e.number for e in reader.entries(after=1, stream=1)] == [2]
        assert reader.entries(after=2, stream=1) == reader.entries(stream=7) == []
        assert reader.ties() == {"labs": unknown, "visits": people}
        assert reader.tie("visits") == people
        assert reader.tie("payroll") is None

    rest, ana, bob = (
        Pot(None, amount(1), amount(0)),
        *(Pot(name, amount("1/3"), amount("1/7")) for name in ("ana", "bob")),
    )
    people, unknown = TableIdentity("pid", "integer", "0" * 64), TableIdentity("each row")
    other = replace(STATE, id=2, name="measles", analyst="ana", reserved=False, status="closed")
    with ledger.writing("fill") as writer:
        for table in ("visits", "labs"):
            writer.add_table(table)
        writer.put_tie("visits", unknown)
        writer.put_tie("visits", people)
        writer.put_tie("labs", unknown)
        for pot in (bob, rest, replace(ana, spent=amount("1/9")), ana):
            writer.put_pot(pot)
        assert writer.next_stream() == 1
        writer.put_stream(replace(STATE, tops=2))
        writer.put_stream(STATE)
        assert writer.next_stream() == 2
        writer.put_stream(other)
        writer.put_secret(1, b"before")
        writer.put_secret(1, b"\0one\xff")
        writer.put_secret(2, b"two")
        writer.put_secret(2, None)
        writer.append("created", {"a": 1})
        writer.append("open", {"b": "⊤"}, 1)
        entry = writer.append("cover", {})
        check(writer)
    with ledger.reading() as reader:
        check(reader)


def test_entries_are_chained(ledger):
    for number in range(3):
        with ledger.writing("append") as writer:
            writer.append("charge", {"amount": number})
    with ledger.reading() as reader:
        entries = reader.entries()
    previous = "0" * 64
    for number, entry in enumerate(entries, 1):
        assert entry.body["previous"] == previous
        assert entry.body["number"] == entry.number == number
        assert digest(entry.text) == entry.hash
        previous = entry.hash


def test_all_or_nothing(ledger):
    with ledger.writing("first") as writer:
        writer.put_pot(Pot(None, amount(1), amount(0)))
        writer.append("created", {})

    class Stop(BaseException):
        pass

    def write_and_stop() -> None:
        with ledger.writing("second") as writer:
            writer.add_table("visits")
            writer.put_pot(Pot(None, amount(1), amount(1)))
            writer.put_pot(Pot("ana", amount(1), amount(1)))
            writer.put_stream(STATE)
            writer.put_tie("visits", TableIdentity("pid"))
            writer.put_secret(1, b"secret")
            writer.append("charge", {})
            raise Stop

    with pytest.raises(Stop):
        write_and_stop()
    with ledger.reading() as reader:
        assert reader.tail().number == 1
        assert reader.pots() == [Pot(None, amount(1), amount(0))]
        assert (reader.tables(), reader.streams(), reader.secrets()) == ([], [], [])
        assert (reader.ties(), reader.stream("flu")) == ({}, None)
    with ledger.writing("third") as writer:  # and it is not stuck
        assert writer.append("charge", {}).number == 2


@pytest.mark.parametrize("point", ["begun", "written", "committed"])
def test_a_write_passes_three_named_points(ledger, point):
    seen = []

    def watch(reached: str) -> None:
        seen.append(reached)
        if reached == f"append: {point}":
            raise RuntimeError("stopped here")

    def write() -> None:
        with ledger.writing("append") as writer:
            writer.append("charge", {})

    ledger.reached = watch
    with pytest.raises(RuntimeError, match="stopped here"):
        write()
    assert seen[-1] == f"append: {point}"
    with ledger.reading() as reader:
        assert reader.tail().number == (1 if point == "committed" else 0)


def test_one_holder_at_a_time(ledger):
    first = ledger.hold(1)
    assert first is not None
    assert ledger.hold(1) is None
    other = ledger.hold(2)
    assert other is not None
    first.release()
    again = ledger.hold(1)
    assert again is not None
    first.release()  # an old hold releases nothing that is not its own
    assert ledger.hold(1) is None
    again.release()
    other.release()


def test_a_hold_ends_with_its_object(ledger):
    hold = ledger.hold(1)
    del hold
    again = ledger.hold(1)
    assert again is not None
    again.release()


def test_a_transaction_inside_another_is_refused_at_once(ledger):
    """A stream that is forgotten may be suspended in the middle of anything."""
    with ledger.writing("outer") as writer:
        writer.append("charge", {})
        for inner in (ledger.reading, lambda: ledger.writing("inner")):
            with pytest.raises(LedgerBusy, match="this very thread"), inner():
                pass
    with ledger.reading() as reader:
        assert reader.tail().number == 1


def test_threads_write_one_after_another(ledger):
    def write() -> None:
        for _ in range(5):
            with ledger.writing("count") as writer:
                pot = writer.pot(None) or Pot(None, amount(100), amount(0))
                writer.put_pot(replace(pot, spent=pot.spent + amount(1)))
                writer.append("charge", {})

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with ledger.reading() as reader:
        assert reader.pot(None).spent == amount(30)
        assert reader.tail().number == 30


def test_what_is_stored_is_compared_with_what_is_due(ledger):
    due = Contents(
        ["visits", "labs"],
        {"labs": TableIdentity("pid")},
        [Pot(None, amount(1), amount(0)), Pot("ana", amount("1/3"), amount("1/7"))],
        [STATE, replace(STATE, id=2, name="gout")],
        [1, 2],
    )
    with ledger.writing("fill") as writer:
        for table in due.tables:
            writer.add_table(table)
        for table, identity in due.ties.items():
            writer.put_tie(table, identity)
        for pot in due.pots:
            writer.put_pot(pot)
        for state in due.streams:
            writer.put_stream(state)
            writer.put_secret(state.id, b"secret")

    def unlike(expected):
        with ledger.reading() as reader:
            return [
                what for what, stored, as_due in reader.stored_and_due(expected) if stored != as_due
            ]

    assert unlike(due) == []
    assert unlike(due._replace(tables=["labs", "visits"])) == ["the tables it covers"]
    assert unlike(due._replace(ties={})) == ["whose rows they hold"]
    assert unlike(due._replace(pots=due.pots[:1])) == ["what was spent and shared"]
    changed = [STATE, replace(STATE, id=2, name="gout", binding={"recipe": "book "})]
    assert unlike(due._replace(streams=changed)) == ["its streams"]
    assert unlike(due._replace(with_secret=[1])) == ["which streams have a secret"]


def test_check_passes_on_a_sound_ledger(ledger):
    ledger.check()
