"""Rows that do not fit into memory: where they go, who can read them, and when they are gone."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.tables.engines import is_mapped

import tacit
from tacit.errors import BadParameter
from tacit.tables import EACH_ROW, load, parse
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.schema.schema import Person
from tacit.tables.sources import spill

TABLE = pa.table({"x": [1, 2]})

SPILLS = """
import sys
import pyarrow
from tacit.tables.sources.kinds import open_source

source = open_source(pyarrow.table({"x": [1]}), table=None, memory_limit=1, folder=sys.argv[1])
source.connection.execute(
    "CREATE TABLE big AS SELECT 'PLAIN ' || hash(n) || hash(n + 1) AS word FROM range(4000000) r(n)"
)
print("spilled", flush=True)
sys.stdin.read()
"""


def _folders(parent: Path) -> list[Path]:
    return sorted(parent.glob("tacit-spill-*"))


def test_what_a_killed_process_spilled_is_swept_at_the_next_start(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SPILLS, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spilled\n"
        (folder,) = _folders(tmp_path)
        assert folder.stat().st_mode & 0o777 == 0o700
        # While it lives, nobody takes it away.
        load(TABLE, person=EACH_ROW, spill_folder=tmp_path).close()
        assert _folders(tmp_path) == [folder]
        process.send_signal(signal.SIGKILL)
        process.wait()
    spilled = [path for path in folder.iterdir() if path.name != "lock"]
    assert any(b"PLAIN " in path.read_bytes() for path in spilled)
    load(TABLE, person=EACH_ROW, spill_folder=tmp_path).close()
    assert _folders(tmp_path) == []


def test_a_table_that_is_open_keeps_its_folder(tmp_path: Path) -> None:
    with load(TABLE, person=EACH_ROW, spill_folder=tmp_path) as engine:
        (first,) = _folders(tmp_path)
        with load(TABLE, person=EACH_ROW, spill_folder=tmp_path):
            assert len(_folders(tmp_path)) == 2
        assert _folders(tmp_path) == [first]
        assert engine.values([parse("x = 1", engine.schema)]) == [1]
    assert _folders(tmp_path) == []


@pytest.mark.parametrize("person", ["x", EACH_ROW])
def test_a_table_that_does_not_fit_has_no_files_that_a_killed_process_would_leave(
    tmp_path: Path, person: Person
) -> None:
    with load(TABLE, person=person, memory_limit=1, spill_folder=tmp_path) as engine:
        assert is_mapped(engine)
        assert list(tmp_path.iterdir()) == []
        assert engine.values([parse("x = 1", engine.schema)]) == [1]


def test_a_table_that_does_not_fit_is_refused_if_nothing_may_be_written(tmp_path: Path) -> None:
    with load(TABLE, person="x", spill_folder=tmp_path, spill=False) as engine:
        assert isinstance(engine, BitmapEngine)
    with pytest.raises(BadParameter, match=r"spill .*does not fit.*raise the limit"):
        load(TABLE, person="x", memory_limit=1, spill_folder=tmp_path, spill=False)
    assert _folders(tmp_path) == []
    shards = tmp_path / "shards"  # which the steward named
    shards.mkdir()
    with load(TABLE, person="x", memory_limit=1, shards=shards, spill=False) as engine:
        assert is_mapped(engine)


def test_a_table_that_nobody_holds_any_more_leaves_nothing(tmp_path: Path) -> None:
    engine = load(TABLE, person=EACH_ROW, spill_folder=tmp_path)
    assert len(_folders(tmp_path)) == 1
    del engine
    assert _folders(tmp_path) == []


def test_only_our_own_leftovers_are_swept(tmp_path: Path) -> None:
    leftover, half, busy, strange = (
        tmp_path / f"tacit-spill-{name}" for name in ("old", "half", "busy", "strange")
    )
    for folder in (leftover, half, busy, strange):
        folder.mkdir(mode=0o700)
    (leftover / "lock").touch()
    (leftover / "rows").write_text("rows")
    (leftover / "inner").mkdir()
    (leftover / "inner" / "rows").write_text("rows")
    (busy / "lock").touch()
    (strange / "somebody's file").write_text("no lock: this is no folder of ours")
    aim = tmp_path / "elsewhere"
    aim.mkdir()
    (aim / "lock").touch()
    (tmp_path / "tacit-spill-link").symlink_to(aim)
    (tmp_path / "tacit-other").mkdir()
    (tmp_path / "tacit-spill-file").write_text("a file")
    with (busy / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        load(TABLE, person=EACH_ROW, spill_folder=tmp_path).close()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "tacit-spill-busy",
        "tacit-spill-strange",
        "tacit-spill-link",
        "tacit-spill-file",
        "tacit-other",
        "elsewhere",
    }
    assert (aim / "lock").exists()
    assert (strange / "somebody's file").exists()


def test_a_folder_swept_while_it_is_being_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its lock a new folder looks like a leftover."""
    made = spill._locked
    swept: list[Path] = []

    def late(folder: Path, how: int = 0) -> int | None:
        if how and len(swept) < 3:
            swept.append(folder)
            spill.sweep(tmp_path, "tacit-spill-")
        return made(folder, how)

    monkeypatch.setattr(spill, "_locked", late)
    folder = spill.spill_folder(tmp_path)
    assert len(swept) == 3
    assert _folders(tmp_path) == [folder.path]
    assert (folder.path / "lock").exists()
    folder.close()


def test_a_folder_whose_lock_another_sweep_takes_first_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    swept: list[int] = []

    def late(lock: int, how: int) -> None:
        if not swept:
            swept.append(lock)
            spill.sweep(tmp_path, "tacit-spill-")
        real(lock, how)

    monkeypatch.setattr(fcntl, "flock", late)
    folder = spill.spill_folder(tmp_path)
    assert _folders(tmp_path) == [folder.path]
    assert (folder.path / "lock").exists()
    folder.close()


def test_a_forked_copy_removes_nothing(tmp_path: Path) -> None:
    folder = spill.spill_folder(tmp_path)
    child = os.fork()
    if not child:
        try:
            folder.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()
    assert spill._locked(folder.path) is None  # it is still ours
    folder.close()
    assert not folder.path.exists()


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_SPILL_FOLDER", str(tmp_path))
    with tacit.open(TABLE, person=tacit.EACH_ROW):
        assert len(_folders(tmp_path)) == 1
    named = tmp_path / "named"
    named.mkdir()
    with tacit.open(TABLE, person=tacit.EACH_ROW, spill_folder=named):
        assert len(_folders(named)) == 1
        assert _folders(tmp_path) == []


@pytest.mark.parametrize("wrong", ["nowhere", "file", "a\0b", 7])
def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, wrong: object) -> None:
    (tmp_path / "file").write_text("no folder")
    given = tmp_path / wrong if isinstance(wrong, str) else wrong
    with pytest.raises(BadParameter, match="spill_folder"):
        load(TABLE, person=EACH_ROW, spill_folder=given)  # type: ignore[arg-type]
