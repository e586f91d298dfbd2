"""What a killed process leaves behind is swept by the next one, and nothing that is in use."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.budget import children
from tests.budget.children import run
from tests.budget.common import abandon, open_stream, resume

from tacit.budget import Budget
from tacit.budget.locks import FileHold, draft_of, sweep_drafts
from tacit.errors import StreamHeld


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("point", ["mkdir", "flock", "connect", "link", "unlink"])
def test_a_creation_that_was_killed_is_swept_by_the_next(tmp_path, point):
    path = tmp_path / "clinic.budget"
    assert run(children.create_and_die_at, path, point) == -signal.SIGKILL
    assert any(name.endswith(".new") for name in names(tmp_path))
    if point == "unlink":
        Budget.open(path).close()  # it was complete, but for its leftovers
    else:
        Budget.create(tmp_path / "other.budget", epsilon=1, covers=["visits"]).close()
    assert not [name for name in names(tmp_path) if name.startswith(".")]


def test_opening_sweeps_as_well(path):
    assert run(children.create_and_die_at, path.with_name("new"), "link") == -signal.SIGKILL
    with Budget.open(path):
        pass
    assert [name for name in names(path.parent) if "-lock" not in name] == [
        path.name,
        f"{path.name}-head",
    ]


def test_a_draft_that_is_being_made_is_left_alone(tmp_path):
    with draft_of(tmp_path / "clinic.budget") as draft:
        draft.write_text("half a budget")
        sweep_drafts(tmp_path)
        Budget.create(tmp_path / "other.budget", epsilon=1, covers=["visits"]).close()
        assert draft.read_text() == "half a budget"
    assert names(tmp_path) == ["other.budget", "other.budget-head"]


def test_a_draft_that_a_sweeper_took_at_its_birth_is_begun_again(tmp_path, monkeypatch):
    mkdir, made = Path.mkdir, []

    def mkdir_and_lose(folder: Path, mode: int) -> None:
        mkdir(folder, mode)
        made.append(folder)
        if len(made) == 1:
            sweep_drafts(tmp_path)

    monkeypatch.setattr(Path, "mkdir", mkdir_and_lose)
    with draft_of(tmp_path / "clinic.budget") as draft:
        draft.write_text("all of it")
    assert len(made) == 2
    assert names(tmp_path) == []


def test_drafts_of_0_1_are_swept_when_they_cannot_be_in_use(tmp_path):
    """They were plain files without a lock."""
    old, new, linked = (tmp_path / f".clinic.budget.{digit * 16}.new" for digit in "abc")
    for draft in (old, new, linked):
        draft.write_text("draft")
    old.with_name(old.name + "-wal").write_text("log")
    hour_ago = time.time() - 3700
    os.utime(old, (hour_ago, hour_ago))
    os.link(linked, tmp_path / "complete")
    (tmp_path / ".notes.new").write_text("somebody else's")
    sweep_drafts(tmp_path)
    assert names(tmp_path) == [new.name, ".notes.new", "complete"]


def test_locks_of_streams_whose_holders_were_killed_are_swept(path):
    with Budget.open(path) as budget:
        abandon(open_stream(budget, "gone"))
        kept = open_stream(budget, "held")
        assert path.with_name(f"{path.name}-held-1").exists()
        with Budget.open(path) as other:
            left = [name for name in names(path.parent) if "-held-" in name]
            assert left == [f"{path.name}-held-2"]
            with pytest.raises(StreamHeld):
                resume(other, "held")
        assert kept.alive


def test_a_sweeper_never_looks_like_a_holder(path, monkeypatch):
    """It takes an abandoned lock for a moment; who resumes just then asks again in its turn."""
    budget = Budget.open(path)
    abandon(open_stream(budget, at_most=3))
    taken, go_on, release = threading.Event(), threading.Event(), FileHold.release

    def slowly(hold: FileHold) -> None:
        if threading.current_thread() is sweeper:
            taken.set()
            go_on.wait(60)
        release(hold)

    monkeypatch.setattr(FileHold, "release", slowly)
    sweeper = threading.Thread(target=lambda: Budget.open(path).close())
    sweeper.start()
    assert taken.wait(60)
    resumed = []
    resumer = threading.Thread(target=lambda: resumed.append(resume(budget)))
    resumer.start()
    resumer.join(0.2)
    assert not resumed  # neither refused nor let in
    go_on.set()
    for thread in (sweeper, resumer):
        thread.join(60)
    assert resumed[0].tops_left == 2
