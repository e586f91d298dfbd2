"""The head file: a damaged log is never taken for the whole; no kill makes a budget unusable."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, run, start
from tests.budget.common import mend_head, open_stream, resume

from tacit.budget import Budget
from tacit.budget.head_file import TABLE, HeadFile
from tacit.budget.ledger import HistoryEnd
from tacit.errors import BadParameter, BudgetExhausted, LedgerDamaged, LedgerExists, StreamEnded
from tacit.privacy import Cost


def charge(budget: Budget, epsilon: str = "1/100") -> None:
    budget.charge(Cost.pure(epsilon), table="visits", what="a count")


def head_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-head")


def noted_in(path: Path) -> HistoryEnd | None:
    with closing(HeadFile(path)) as file:
        return file.read()


def as_0_1_left_it(path: Path) -> None:
    """Without a head file, and without a word about one."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"DROP TABLE {TABLE}")
    head_of(path).unlink()


# A damaged log


def _acknowledged(path: Path, tmp_path: Path) -> list[str]:
    """Ten charges and two answers above, and then a kill: what somebody was told of."""
    assert run(children.spend_and_die, path, tmp_path / "log") == -signal.SIGKILL
    return (tmp_path / "log").read_text().split()


def _damaged(log: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(log))
    match dice.randrange(4):
        case 0:
            return log[:at]
        case 1:
            return log[:at] + bytes(min(512, len(log) - at)) + log[at + 512 :]
        case 2:
            return log[:at] + dice.randbytes(min(64, len(log) - at)) + log[at + 64 :]
    return log[:at] + bytes([log[at] ^ 1 << dice.randrange(8)]) + log[at + 1 :]


def _damage_the_log(path: Path, tmp_path: Path, times: int) -> Counter[str]:
    told = _acknowledged(path, tmp_path)
    assert told.count("charged") == 10
    assert told.count("above") == 2
    found, dice = Counter[str](), random.Random(22)
    log = path.with_name(f"{path.name}-wal").read_bytes()
    assert len(log) > 4096
    for number in range(times):
        folder = tmp_path / f"damaged {number}"
        folder.mkdir()
        copy = folder / path.name
        shutil.copy(path, copy)
        shutil.copy(head_of(path), head_of(copy))
        damaged = copy.with_name(f"{copy.name}-wal")
        damaged.touch(0o600)
        damaged.write_bytes(_damaged(log, dice))
        try:
            with Budget.open(copy) as budget:
                assert budget.spent.epsilon == 1, "what was paid is forgotten"
                with pytest.raises(BudgetExhausted):
                    charge(budget, "1/1000000")
                with pytest.raises(StreamEnded):
                    resume(budget)
                budget.verify()
            found["intact"] += 1
        except LedgerDamaged:
            found["damaged"] += 1
        shutil.rmtree(folder)
    return found


def test_a_damaged_log_never_undoes_what_was_paid(path, tmp_path):
    assert _damage_the_log(path, tmp_path, 60)["damaged"] > 30


@pytest.mark.long
def test_a_damaged_log_never_undoes_what_was_paid_750_times(path, tmp_path):
    found = _damage_the_log(path, tmp_path, 750)
    print(dict(found))
    assert found["damaged"] > 375


def test_an_old_copy_is_noticed_by_the_head_file_that_stayed(path, tmp_path):
    shutil.copy(path, tmp_path / "old copy")
    with Budget.open(path) as budget:
        charge(budget)
    shutil.copy(tmp_path / "old copy", path)
    with pytest.raises(LedgerDamaged, match=r"notes entry 2 .* this history of 1 entries"):
        Budget.open(path)
    with closing(sqlite3.connect(path)) as opened:
        head = opened.execute("SELECT hash FROM entries").fetchone()[0]
    with pytest.raises(LedgerDamaged, match="treat the budget as spent"):
        Budget.open(path, head=head)  # a head from before does not undo what is known


# Killed at any point


@pytest.mark.parametrize("point", ["begun", "written", "committed", "before the head", "noted"])
@pytest.mark.parametrize("first", [True, False], ids=["the first write", "a later write"])
def test_killed_anywhere_around_a_commit_the_budget_opens(path, tmp_path, point, first):
    if first:
        as_0_1_left_it(path)
    assert run(children.charge_and_die, path, point) == -signal.SIGKILL
    with Budget.open(path) as budget:
        happened = point in ("committed", "before the head", "noted")
        assert len(budget.history) == 1 + happened
        charge(budget)
        budget.verify()
    with Budget.open(path) as budget:
        assert len(budget.history) == 2 + happened


def _kill_at_steps(path: Path, tmp_path: Path, most: int) -> int:
    """SIGKILL before an instruction of a charge; what was acknowledged is there."""
    killed, told = 0, 0
    steps = children.steps_of_a_charge(tmp_path)
    for at in range(1, steps + 1, max(1, steps // most)):
        killed += run(children.die_at_step, path, at, tmp_path / "told") == -signal.SIGKILL
        told = len((tmp_path / "told").read_bytes()) if (tmp_path / "told").exists() else 0
        with Budget.open(path) as budget:
            assert len(budget.history) >= 1 + told
            charge(budget, "1/1000000")
            told += 1
            (tmp_path / "told").write_bytes(b"." * told)
    Budget.open(path).verify()
    return killed


def test_killed_at_a_step_of_a_charge(path, tmp_path):
    assert _kill_at_steps(path, tmp_path, 12) > 8


@pytest.mark.long
def test_killed_at_every_third_step_of_a_charge(path, tmp_path):
    assert _kill_at_steps(path, tmp_path, 1000) > 500


def test_a_head_behind_the_log_is_no_damage(path):
    """As after a power cut: it is not synced, so that it may be older than the log."""
    with Budget.open(path) as budget:
        charge(budget)
        old = head_of(path).read_bytes()
        charge(budget)
    head_of(path).write_bytes(old)
    with Budget.open(path) as budget:
        charge(budget)
    assert noted_in(head_of(path)) == HistoryEnd(4, Budget.open(path).head)


# A head file that is missing or torn


def test_a_missing_head_file_asks_for_the_noted_head(path):
    with Budget.open(path) as budget:
        charge(budget)
        first, noted = budget.history[0].hash, budget.head
    head_of(path).unlink()
    with pytest.raises(LedgerDamaged, match=r"head is missing.* Budget.open\(path, head=...\)"):
        Budget.open(path)
    with pytest.raises(LedgerDamaged, match="not in the history"):
        Budget.open(path, head="f" * 64)
    assert not head_of(path).exists()
    with pytest.raises(BadParameter, match="head"):
        Budget.open(path, head=7)  # type: ignore[arg-type]
    for head in (noted, first):  # whatever was noted, as long as it is there
        Budget.open(path, head=head).close()
        with Budget.open(path) as budget:
            charge(budget)
        head_of(path).unlink()


def test_a_torn_head_file_asks_for_the_noted_head(path):
    with Budget.open(path) as budget:
        charge(budget)
        noted = budget.head
    sound = head_of(path).read_bytes()
    torn = [sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :] for at in range(len(sound))]
    for said in (*torn, b"", sound[:-1], sound + b"\n", bytes(len(sound)), b"\xff" * 300):
        head_of(path).write_bytes(said)
        with pytest.raises(LedgerDamaged, match="head is torn"):
            Budget.open(path)
    Budget.open(path, head=noted).close()
    assert head_of(path).read_bytes() == sound
    Budget.open(path).close()


def test_a_head_file_that_vanishes_or_tears_while_in_use_stops_the_next_charge(path):
    budget = Budget.open(path)
    charge(budget)
    sound = head_of(path).read_bytes()
    head_of(path).write_bytes(b"rubbish")
    with pytest.raises(LedgerDamaged, match="torn"):
        charge(budget)
    head_of(path).write_bytes(sound)
    charge(budget)
    head_of(path).unlink()
    with pytest.raises(LedgerDamaged, match="head file was moved, removed or replaced"):
        charge(budget)
    assert len(budget.history) == 3


def test_a_history_that_loses_its_end_while_in_use_is_charged_no_more(path):
    """An older state that SQLite takes for the whole: what the head file notes is not in it."""
    with Budget.open(path) as budget:
        charge(budget)
        with closing(HeadFile(head_of(path))) as file:
            noted = file.read()
            assert noted is not None
            file.write(HistoryEnd(noted.number + 1, "f" * 64))
        with pytest.raises(LedgerDamaged, match="has lost what was spent last"):
            charge(budget)
        assert len(budget.history) == 2


def test_a_budget_of_0_1_opens_without_fuss_and_gets_a_head_file_at_its_first_write(path):
    with Budget.open(path) as budget:
        charge(budget)
    as_0_1_left_it(path)
    with Budget.open(path) as budget:
        assert budget.verify().entries == 2
        assert not head_of(path).exists()
        charge(budget)
        assert noted_in(head_of(path)) == HistoryEnd(3, budget.head)
    head_of(path).unlink()
    with pytest.raises(LedgerDamaged, match="missing"):
        Budget.open(path)


def test_two_that_opened_a_budget_of_0_1_write_one_after_the_other(path):
    as_0_1_left_it(path)
    one, other = Budget.open(path), Budget.open(path)
    charge(one)
    charge(other)
    charge(one)
    assert noted_in(head_of(path)) == HistoryEnd(4, other.head)


def test_the_log_in_which_a_budget_of_0_1_got_its_head_file_is_watched_too(path, tmp_path):
    as_0_1_left_it(path)
    _acknowledged(path, tmp_path)
    path.with_name(f"{path.name}-wal").unlink()  # the whole log, with the table in it
    path.with_name(f"{path.name}-shm").unlink()
    with pytest.raises(LedgerDamaged, match="lost what was spent last"):
        Budget.open(path)


def test_the_head_file_of_a_budget_that_was_removed_does_not_trouble_a_new_one(path):
    with Budget.open(path) as budget:
        charge(budget)
    path.unlink()
    with Budget.create(path, epsilon=1, covers=["visits"]) as budget:
        charge(budget)
    assert len(Budget.open(path).history) == 2


def test_the_log_of_a_budget_that_was_removed_is_not_read_into_a_new_one(path, tmp_path):
    _acknowledged(path, tmp_path)
    path.unlink()
    with pytest.raises(LedgerExists, match=r"budget-wal is the log of a budget that was at"):
        Budget.create(path, epsilon=5, covers=["visits"])
    path.with_name(f"{path.name}-wal").unlink()
    with Budget.create(path, epsilon=5, covers=["visits"]) as budget:
        assert budget.promise.epsilon == 5
        charge(budget)
        budget.verify()


def test_a_creation_killed_before_its_head_file_leaves_a_budget_that_opens(tmp_path):
    path = tmp_path / "clinic.budget"
    assert run(children.create_and_die_at, path, "unlink") == -signal.SIGKILL
    with Budget.open(path) as budget:
        assert not head_of(path).exists()
        charge(budget)
    assert head_of(path).exists()


def test_verify_looks_at_the_head_file_as_well(path):
    budget = Budget.open(path)
    charge(budget)
    with closing(HeadFile(head_of(path))) as file:
        file.read()
        file.write(HistoryEnd(9, "9" * 64))
    with pytest.raises(LedgerDamaged, match="notes entry 9"):
        budget.verify()
    budget.close()
    mend_head(path)
    Budget.open(path).verify()


def test_a_head_that_is_read_while_it_is_written_is_read_again(path, monkeypatch):
    """A reader may see half of what another process writes; it then waits for its turn."""
    with Budget.open(path) as budget:
        charge(budget)
    pread = os.pread
    seen: list[int] = []

    def half_once(descriptor: int, length: int, at: int) -> bytes:
        said = pread(descriptor, length, at)
        if said.startswith(b"tacit head") and not seen:
            seen.append(1)
            return said[:40] + bytes(len(said) - 40)
        return said

    monkeypatch.setattr(os, "pread", half_once)
    assert len(Budget.open(path).history) == 2
    assert seen == [1]


def test_streams_survive_a_kill_with_their_head_file(path):
    with Budget.open(path) as budget:
        open_stream(budget, at_most=3).suspend()
    child = start(children.hold_until_killed, path, results := children.PROCESSES.Queue())
    results.get(timeout=JOIN_SECONDS)
    os.kill(child.pid, signal.SIGKILL)
    child.join(JOIN_SECONDS)
    with Budget.open(path) as budget:
        assert resume(budget).tops_left == 2
