"""An exported history is there and complete, or not there."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tacit.budget import Budget
from tacit.budget.locks import FileHold
from tacit.errors import LedgerExists, NotWritten
from tacit.privacy import Cost

KILLED = """
import os, signal, sys
from tacit.budget import Budget
from tacit.budget import history as exporting

written = exporting.canonical

def then_killed(body):
    if body["entry"]["number"] == 3:
        if sys.argv[3] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        print("half", flush=True)
        sys.stdin.readline()
    return written(body) + " " * 10_000  # more than a buffer holds

exporting.canonical = then_killed
Budget.open(sys.argv[1]).export(sys.argv[2])
"""


@pytest.fixture
def filled(path):
    with Budget.open(path) as budget:
        for number in range(6):
            budget.charge(Cost.pure("1/100"), table="visits", what=f"count {number}")
    return path


def start(filled, target, how):
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(filled), str(target), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def drafts(folder):
    return [name for name in os.listdir(folder) if name.endswith(".new")]


def test_a_killed_export_leaves_no_file_and_the_next_one_sweeps(filled, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    target = folder / "history.jsonl"
    with start(filled, target, "kill") as killed:
        assert killed.wait(300) == -signal.SIGKILL
    assert not target.exists()
    assert len(drafts(folder)) == 1
    with Budget.open(filled) as budget:
        assert budget.export(target) == 7
    assert os.listdir(folder) == ["history.jsonl"]
    assert len(target.read_text().splitlines()) == 7


def test_what_another_process_is_writing_is_not_swept(filled, tmp_path):
    folder = tmp_path / "exports"
    folder.mkdir()
    with start(filled, folder / "theirs.jsonl", "wait") as other:
        assert other.stdout.readline() == "half\n"
        (theirs,) = drafts(folder)
        with Budget.open(filled) as budget:
            budget.export(folder / "ours.jsonl")
        assert drafts(folder) == [theirs]
        assert sorted(os.listdir(folder)) == sorted([theirs, "ours.jsonl"])
        other.stdin.write("\n")
        other.stdin.close()
        assert other.wait(300) == 0
    assert sorted(os.listdir(folder)) == ["ours.jsonl", "theirs.jsonl"]


def test_many_exports_at_once_sweep_nothing_of_each_other(budget, tmp_path):
    """A draft that was swept between its making and its locking is made again."""
    failed = []

    def work(number):
        try:
            for nth in range(10):
                budget.export(tmp_path / "out" / f"{number}-{nth}")
        except Exception as error:
            failed.append(error)

    (tmp_path / "out").mkdir()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not failed
    found = list((tmp_path / "out").iterdir())
    assert len(found) == 60
    assert {file.read_text() for file in found} == {found[0].read_text()}


def test_a_draft_that_is_swept_before_it_is_locked_is_made_again(budget, tmp_path, monkeypatch):
    take = FileHold.take
    taken: list[Path] = []

    def swept_first(cls, path):
        if not taken:
            taken.append(path)
            path.parent.rmdir()
        return take(path)

    monkeypatch.setattr(FileHold, "take", classmethod(swept_first))
    assert budget.export(tmp_path / "new") == 1
    assert len((tmp_path / "new").read_text().splitlines()) == 1
    assert not drafts(tmp_path)


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_where_there_are_no_links(budget, tmp_path, monkeypatch, code):
    def no_links(*places):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_links)
    assert budget.export(tmp_path / "new") == 1
    assert len((tmp_path / "new").read_text().splitlines()) == 1
    (tmp_path / "there").write_text("mine")
    with pytest.raises(LedgerExists):
        budget.export(tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"
    assert not drafts(tmp_path)

    def no_replace(*places):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", no_replace)
    with pytest.raises(NotWritten, match="Input/output"):
        budget.export(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    assert not drafts(tmp_path)


def test_what_appears_meanwhile_is_not_overwritten(budget, tmp_path, monkeypatch):
    target = tmp_path / "history.jsonl"
    link = os.link

    def too_late(draft, path):
        target.write_text("somebody else's")
        link(draft, path)

    monkeypatch.setattr(os, "link", too_late)
    with pytest.raises(LedgerExists):
        budget.export(target)
    assert target.read_text() == "somebody else's"
    assert not drafts(tmp_path)


def test_a_link_to_nowhere_is_something(budget, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LedgerExists):
        budget.export(tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_others_may_read_unless_the_umask_says_otherwise(budget, tmp_path):
    before = os.umask(0o027)
    try:
        budget.export(tmp_path / "new")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_an_open_file_is_written_to(budget, tmp_path):
    with open(tmp_path / "a", "w") as file:
        assert budget.export(file) == 1
    text = io.StringIO()
    budget.export(text)
    assert (tmp_path / "a").read_text() == text.getvalue()
