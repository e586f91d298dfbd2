"""A budget that may not be written can be shown and verified, and refuses a charge clearly."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.budget import children
from tests.budget.children import JOIN_SECONDS, PROCESSES, ROOT, run
from tests.budget.common import open_stream, resume, sqlite_of

from tacit.budget import Budget
from tacit.budget import sqlite_files as files
from tacit.errors import LedgerBusy, LedgerDamaged, LedgerUnwritable, NotWritten
from tacit.privacy import Cost

LOOK = """
import sys
from tests.budget.children import look_without_writing
print(look_without_writing(sys.argv[1]))
"""


def charge(budget: Budget) -> None:
    budget.charge(Cost.pure("1/100"), table="visits", what="a count")


@pytest.fixture
def spent(path, tmp_path):
    """A budget that was left in the middle: 14 entries, all but the first in the log."""
    assert run(children.spend_and_die, path, tmp_path / "log") == -signal.SIGKILL
    (tmp_path / "log").unlink()
    return path


SEEN = "(14, '1', ['LedgerUnwritable', 'LedgerUnwritable', 'LedgerUnwritable'])"


def _mounted_read_only(path: Path) -> subprocess.CompletedProcess[str]:
    """Look at it from a name space of its own, in which its folder is read-only."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$4"'
    folder, program = str(path.parent), sys.executable
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", folder, program, LOOK, str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=JOIN_SECONDS,
        check=False,
    )


def _can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" "$1"', "sh", str(folder)]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("left", [("wal", "shm"), ("wal",), ()], ids=["in use", "log", "closed"])
def test_a_read_only_file_system(spent, left):
    if not _can_mount(spent.parent):
        pytest.skip("this system lets nobody mount anything")
    if not left:
        Budget.open(spent).close()
    for end in ("wal", "shm", "lock"):
        if end not in left:
            spent.with_name(f"{spent.name}-{end}").unlink(missing_ok=True)
    before = {file.name: file.read_bytes() for file in spent.parent.iterdir() if file.is_file()}
    looked = _mounted_read_only(spent)
    assert looked.returncode == 0, looked.stderr
    assert looked.stdout.strip() == SEEN
    assert before == {file.name: file.read_bytes() for file in spent.parent.iterdir()}
    Budget.open(spent).verify()


@pytest.mark.parametrize("left", [("wal", "shm"), ("wal",), ()], ids=["in use", "log", "closed"])
def test_a_folder_without_write_permission(left):
    """As nobody, whom permissions bind."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = Path(folder) / "budgets" / "clinic.budget"
        path.parent.mkdir(0o777)
        Budget.create(path, epsilon=1, covers=["visits"]).close()
        run(children.spend_and_die, path, Path(folder) / "log")
        if not left:
            Budget.open(path).close()
        for end in ("wal", "shm", "lock"):
            if end not in left:
                path.with_name(f"{path.name}-{end}").unlink(missing_ok=True)
        results = PROCESSES.Queue()
        assert run(children.look_as_nobody, path, results) == 0
        assert str(results.get(timeout=JOIN_SECONDS)) == SEEN


def _as_if_read_only(monkeypatch) -> None:
    monkeypatch.setattr("tacit.budget.sqlite.is_writable", lambda path: False)


def test_what_cannot_be_written_is_read_from_a_copy_in_memory(spent, monkeypatch, tmp_path):
    _as_if_read_only(monkeypatch)
    before = sorted(os.listdir(tmp_path))
    budget = Budget.open(spent)
    assert budget.verify().entries == 14
    assert budget.left.epsilon == 0
    assert [state.status for state in budget.streams()] == ["halted"]
    for act in (lambda: charge(budget), lambda: open_stream(budget, "new")):
        with pytest.raises(LedgerUnwritable, match=r"not be written here.* shown and verified"):
            act()
    assert sorted(os.listdir(tmp_path)) == before
    budget.close()


def test_a_copy_in_memory_keeps_up_with_what_others_write(path, monkeypatch):
    writer = Budget.open(path)
    charge(writer)
    with monkeypatch.context() as patch:
        _as_if_read_only(patch)
        reader = Budget.open(path)
        for number in range(2, 5):
            assert len(reader.history) == number
            charge(writer)  # it is connected, and stays so
    assert len(reader.history) == 5
    charge(reader)  # it may be written now
    assert len(writer.history) == 6


def test_what_others_can_read_is_not_read_there_either(spent, monkeypatch):
    _as_if_read_only(monkeypatch)
    spent.chmod(0o644)
    with pytest.raises(LedgerUnwritable, match="holds secrets"):
        Budget.open(spent)


def test_a_damaged_log_is_noticed_there_as_well(spent, monkeypatch):
    log = spent.with_name(f"{spent.name}-wal")
    said = bytearray(log.read_bytes())
    said[5000] ^= 1
    log.write_bytes(said)
    _as_if_read_only(monkeypatch)
    with pytest.raises(LedgerDamaged, match="lost what was spent last"):
        Budget.open(spent)


def test_a_missing_head_file_can_be_vouched_for_without_writing(spent, monkeypatch):
    head = Budget.open(spent).head
    spent.with_name(f"{spent.name}-head").unlink()
    _as_if_read_only(monkeypatch)
    with pytest.raises(LedgerDamaged, match="missing"):
        Budget.open(spent)
    assert Budget.open(spent, head=head).verify(head).entries == 14
    assert not spent.with_name(f"{spent.name}-head").exists()


def test_a_file_that_changes_all_the_time_is_busy(spent, monkeypatch):
    _as_if_read_only(monkeypatch)
    states = iter(range(1000))
    monkeypatch.setattr(files, "_state", lambda path: (next(states),))
    with pytest.raises(LedgerBusy, match="without a pause"):
        Budget.open(spent)


def test_a_folder_that_becomes_read_only_while_in_use(path, monkeypatch):
    """The next write fails, with nothing spent; then it is read only."""
    budget = Budget.open(path)
    charge(budget)
    sqlite_of(budget)._disconnect()
    _as_if_read_only(monkeypatch)
    with pytest.raises(LedgerUnwritable):
        charge(budget)
    assert len(budget.history) == 2


def test_a_stream_cannot_be_resumed_and_an_export_needs_another_place(path, monkeypatch):
    with Budget.open(path) as budget:
        open_stream(budget, at_most=3).suspend()
    _as_if_read_only(monkeypatch)
    budget = Budget.open(path)
    with pytest.raises(LedgerUnwritable):
        resume(budget)
    with pytest.raises(NotWritten):
        budget.export(path.parent / "nowhere" / "history.jsonl")
    assert budget.stream("flu").tops_left == 3
