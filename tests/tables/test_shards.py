"""Shards: what is written is what is mapped, each person is in one, and only whole sets count."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.tables.engines import arrow, is_mapped, opened

import tacit
from tacit.errors import BadParameter, EngineFailed, NotWritten
from tacit.tables import EACH_ROW, Engine, load, parse, read_schema
from tacit.tables import opening as loading
from tacit.tables.encoded import shard_sets
from tacit.tables.encoded.shards import NotAShard, Shard, map_shard
from tacit.tables.engine.bitmaps import BitmapEngine
from tacit.tables.opening import count_rows, cut_up, read_all
from tacit.tables.schema.schema import Person
from tacit.testing.engines import row
from tacit.testing.meaning import TOML, RawRow

ROWS: list[RawRow] = [
    row(n % 41, big=(2**63 - 1, -(2**63), n)[n % 3], age=n % 9, week=n % 5, raw=n / 7)
    | {"note": f"né\0{n % 13}" if n % 4 else None, "town": "Ghent", "smoker": n % 2 == 0}
    for n in range(300)
]
TEXTS = ["age >= 4", "count(*) filter (where note like 'né%')", "sum(age)", "big > 7 or raw < 3"]
SMALL = "[columns.pid]\ntype = 'integer'\n[columns.x]\ntype = 'integer'\nkeys = [1, 2, 3]\n"


def values(engine: Engine, texts: Sequence[str] = TEXTS) -> list[int]:
    return engine.values([parse(text, engine.schema) for text in texts])


def shards_of(source: object, toml: str, person: Person, parts: int, scratch: Path) -> list[Shard]:
    found, schema = opened(source, toml, person)
    try:
        made = list(cut_up(found, schema, count_rows(found, schema), parts, scratch))
        for held in (held for shard in made for held in shard.columns.values()):
            assert held.base is not None or held.words is not None  # read while it is open
        return made
    finally:
        found.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "the [shards]'*"
    made.mkdir()
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table of 300 people, of whom the first has several rows."""
    path = tmp_path / "visits.parquet"
    duckdb.execute(
        f"COPY (SELECT greatest(i, 5) AS pid, i % 3 + 1 AS x FROM range(305) r(i)) TO '{path}'"
    )
    return path


def sets(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def kept(file: Path, folder: Path, **more: object) -> Engine:
    options: dict[str, object] = {"person": "pid", "schema": SMALL, "memory_limit": 1}
    return load(file, **options | more, shards=folder)  # type: ignore[arg-type]


ASKED = ["x = 1", "x >= 2", "true", "pid <= 5", "pid = 5 and x = 3"]
FOUND = [101, 200, 300, 1, 1]


# What is written is what is mapped


@pytest.mark.parametrize("rows", [ROWS, [], [row(1)], [row(n) for n in range(200)]])
@pytest.mark.parametrize("person", ["pid", EACH_ROW])
def test_what_is_saved_is_mapped(tmp_path: Path, rows: list[RawRow], person: Person) -> None:
    schema = read_schema(TOML, name="visits", person=person)
    (shard,) = shards_of(arrow(rows, schema), TOML, person, 1, tmp_path)
    digest = shard.save(tmp_path / "a.shard")
    assert digest == hashlib.sha256((tmp_path / "a.shard").read_bytes()).hexdigest()
    assert (tmp_path / "a.shard").stat().st_mode & 0o777 == 0o600
    found = map_shard(tmp_path / "a.shard", digest)
    for part in ("words", "one_row", "many_words", "inner_bits"):
        assert getattr(found.layout, part) == getattr(shard.layout, part)
    for part in ("filled", "inner", "starts", "sizes", "size_ends"):
        mine, theirs = (getattr(each.layout, part) for each in (found, shard))
        assert mine.dtype == theirs.dtype
        assert mine.tolist() == theirs.tolist()
    assert list(found.columns) == list(shard.columns)
    for name, column in shard.columns.items():
        mapped = found.columns[name]
        assert (mapped.top, mapped.base) == (column.top, column.base)
        assert mapped.codes.dtype == column.codes.dtype
        assert mapped.codes.tolist() == column.codes.tolist()
        assert not mapped.codes.flags.writeable
        if column.base is None:
            assert list(mapped.words) == list(column.words)


def test_words_of_both_kinds_are_kept(tmp_path: Path) -> None:
    """Texts, and numbers of so wide a range that they are listed."""
    schema = read_schema(TOML, name="visits", person="pid")
    (shard,) = shards_of(arrow(ROWS, schema), TOML, "pid", 1, tmp_path)
    found = map_shard(tmp_path / "b", shard.save(tmp_path / "b"))
    assert found.columns["big"].base is None
    assert found.columns["big"].words[0] == -(2**63)
    assert found.columns["note"].words[0] == "né\x000"


def test_another_file_is_not_taken_for_the_shard(tmp_path: Path) -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    (shard,) = shards_of(arrow(ROWS, schema), TOML, "pid", 1, tmp_path)
    digest = shard.save(tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    for number, wrong in enumerate([b"", whole[:-1], whole + b"\0", b"?" + whole[1:]]):
        (tmp_path / str(number)).write_bytes(wrong)
        with pytest.raises(NotAShard):
            map_shard(tmp_path / str(number), digest)
    (tmp_path / "mark").write_bytes(b"tacit shard 2" + whole[13:])
    with pytest.raises(NotAShard):  # a later format, with a digest of its own
        map_shard(tmp_path / "mark", hashlib.sha256((tmp_path / "mark").read_bytes()).hexdigest())


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    schema = read_schema(TOML, name="visits", person="pid")
    (shard,) = shards_of(arrow(ROWS, schema), TOML, "pid", 1, tmp_path)
    (tmp_path / "a").write_text("somebody's")
    with pytest.raises(FileExistsError):
        shard.save(tmp_path / "a")


def test_an_engine_needs_a_shard() -> None:
    with pytest.raises(BadParameter, match="shards"):
        BitmapEngine(read_schema(SMALL, name="t", person="pid"), [], limit=0)


# Each person is in one shard


def csv(path: Path, cells: Sequence[str]) -> Path:
    path.write_text("pid,x\n" + "".join(f"{cell},{n % 3 + 1}\n" for n, cell in enumerate(cells)))
    return path


def doubles(path: Path, cells: Sequence[float]) -> Path:
    weeks = [n % 3 + 1 for n in range(len(cells))]
    parquet.write_table(pa.table({"pid": pa.array(cells, pa.float64()), "x": weeks}), path)
    return path


def stored(path: Path, cells: Sequence[str]) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits (pid VARCHAR COLLATE NOCASE, x INTEGER)")
        connection.executemany(
            "INSERT INTO visits VALUES (?, ?)", [(cell, n % 3 + 1) for n, cell in enumerate(cells)]
        )
    return path


SPELT = [f"{form}" for n in range(30) for form in (n, f"{n}.0", f" {n}", f"+{n}", f"{n} ", f"0{n}")]
DOUBLES = [float(n) for n in range(30)] + [-0.0, 1.0, 2.0, 1.5, 7.0] * 5
CASES = ["ana", "Ana", "ANA", "ana ", "á", "a\u0301", "ß", "ss"] * 20
TEXT = SMALL.replace("'integer'", "'text'", 1)
SPELLINGS: dict[str, tuple[Callable[[Path], Path], str, int]] = {
    "integers as text": (lambda path: csv(path / "v.csv", SPELT), SMALL, 30),
    "doubles": (lambda path: doubles(path / "v.parquet", DOUBLES), SMALL, 30),
    "a collation": (lambda path: stored(path / "v.duckdb", CASES), TEXT, 8),
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_a_person_is_in_one_shard_however_they_are_spelt(tmp_path: Path, kind: str) -> None:
    make, toml, people = SPELLINGS[kind]
    source = make(tmp_path)
    made = shards_of(source, toml, "pid", 5, tmp_path / "scratch")
    assert len(made) > 2
    everybody: list[object] = []
    for shard in made:
        held = shard.columns["pid"]
        codes = held.codes[held.codes != held.null]
        found = held.words if held.base is None else np.unique(held.values(codes)).tolist()
        everybody += found
        assert len(found) == len(np.unique(codes))
    assert len(everybody) == len(set(everybody)) == people
    found_schema = read_schema(toml, name="v", person="pid")
    texts = ["true", "x = 1", "x = 2 and x < 3", "count(distinct pid) - count(x = 3)"]
    with load(source, person="pid", schema=toml) as alone:
        together = BitmapEngine(found_schema, made, limit=2**20)
        assert values(together, texts) == values(alone, texts)
        assert values(together, ["true"]) == [people]


@pytest.mark.parametrize("toml", [SMALL, TEXT])
def test_the_part_of_a_person_is_the_same_everywhere(toml: str) -> None:
    """It is no hash of one version of one engine."""
    schema = read_schema(toml, name="t", person="pid")
    numbers = [-(2**63), -(2**31) + 1, -1, 0, 7, 2**31 - 1, 2**63 - 1]
    people: list[int] | list[str] = numbers if toml == SMALL else ["", "ana", "né\0", "x" * 999]
    for person in people:
        kind = "BIGINT" if toml == SMALL else "VARCHAR"
        part = shard_sets.part_of_person(schema, 97)
        query = f"SELECT {part} FROM (SELECT CAST(? AS {kind}) AS pid)"
        if isinstance(person, int):
            left = abs(person) % (2**31 - 1) * (1 if person >= 0 else -1)  # as C divides
            expected = (left + 2**31 - 1) * 48271 % (2**31 - 1) % 97
        else:
            digest = hashlib.md5(person.encode()).digest()
            expected = int.from_bytes(digest[8:], "little") % 97
        assert duckdb.execute(query, [person]).fetchone() == (expected,)


@pytest.mark.parametrize("step", [1, 256, 1000, 10**6, 2**20 + 1])
def test_parts_are_of_about_the_same_size(step: int) -> None:
    """Whatever regularity there is in the numbers of people."""
    schema = read_schema(SMALL, name="t", person="pid")
    query = f"SELECT count(*) FROM (SELECT i * {step} AS pid FROM range(80000) r(i)) GROUP BY "
    sizes = [
        size for (size,) in duckdb.execute(query + shard_sets.part_of_person(schema, 8)).fetchall()
    ]
    assert len(sizes) == 8
    assert max(sizes) < 1.2 * min(sizes)


# Sets: written once, then mapped


def refuse_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(loading, "cut_up", read)


def test_a_table_beyond_memory_is_answered_from_shards(file: Path, folder: Path) -> None:
    with load(file, person="pid", schema=SMALL, memory_limit=1) as scanned:
        assert is_mapped(scanned)
        expected = values(scanned, ASKED)
        points = scanned.point_counts(["x"], max_rows=2).rows().tolist()
    assert expected == FOUND
    with kept(file, folder) as engine:
        assert is_mapped(engine)
        assert len(engine.held()) == 2  # type: ignore[attr-defined]
        assert values(engine, ASKED) == expected
        assert engine.point_counts(["x"], max_rows=2).rows().tolist() == points


def test_only_their_owner_can_read_them(file: Path, folder: Path) -> None:
    os.chmod(folder, 0o755)
    mask = os.umask(0)
    try:
        kept(file, folder).close()
    finally:
        os.umask(mask)
    (path,) = sets(folder)
    assert path.stat().st_mode & 0o777 == 0o700
    modes = {each.name: each.stat().st_mode & 0o777 for each in path.iterdir()}
    assert modes == dict.fromkeys(["0000.shard", "0001.shard", "lock", "manifest.json"], 0o600)


def test_a_file_that_has_not_changed_is_not_read_again(
    file: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(file, folder).close()
    refuse_reading(monkeypatch)
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(file.read_bytes())
    for source, name in ((file, None), (copy, "visits")):  # what is in it counts, not where it is
        with kept(source, folder, name=name) as engine:
            assert values(engine, ASKED) == FOUND
    assert len(sets(folder)) == 1


OTHERS: dict[str, dict[str, object]] = {
    "a label": {"as_of": "2026-11-01"},
    "a name": {"name": "others"},
    "people": {"person": EACH_ROW},
    "bounds": {"schema": SMALL + "bounds = [0, 3]\n"},
    "keys": {"schema": SMALL.replace("3]", "4]")},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_set_belongs_to_one_source_schema_and_label(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    kept(file, folder).close()
    with kept(file, folder, **OTHERS[other]) as engine:
        made = values(engine, ["x <= 2"])
    assert len(sets(folder)) == 2
    refuse_reading(monkeypatch)
    with kept(file, folder, **OTHERS[other]) as engine:
        assert values(engine, ["x <= 2"]) == made
    with kept(file, folder) as engine:
        assert values(engine, ASKED) == FOUND


def test_other_contents_of_the_same_size_and_time_are_read(tmp_path: Path, folder: Path) -> None:
    path = csv(tmp_path / "visits.csv", ["1", "2", "3"])
    status = path.stat()
    with kept(path, folder) as engine:
        assert values(engine, ["true", "x = 1"]) == [3, 1]
    csv(path, ["1", "2", "2"])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with kept(path, folder) as engine:
        assert values(engine, ["true", "x = 1"]) == [2, 1]


def test_the_same_bytes_under_another_ending_are_read(tmp_path: Path, folder: Path) -> None:
    path = csv(tmp_path / "visits.csv", ["1", "2", "3"])
    kept(path, folder).close()
    path.rename(tmp_path / "visits.tsv")
    with pytest.raises(tacit.errors.SchemaMismatch):  # one column called "pid,x"
        kept(tmp_path / "visits.tsv", folder)


def test_a_log_beside_a_duckdb_file_is_part_of_it(tmp_path: Path, folder: Path) -> None:
    path = stored(tmp_path / "v.duckdb", ["a", "b"])
    with kept(path, folder, schema=TEXT) as engine:
        assert values(engine, ["true"]) == [2]
    script = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); "
        "c.execute(\"SET wal_autocheckpoint = '1TB'; INSERT INTO visits VALUES ('c', 1)\"); "
        "os._exit(0)"
    )
    before = path.read_bytes()
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    assert path.read_bytes() == before
    assert Path(f"{path}.wal").exists()
    with kept(path, folder, schema=TEXT) as engine:
        assert values(engine, ["true"]) == [3]


def test_each_table_of_a_duckdb_file_has_its_own(tmp_path: Path, folder: Path) -> None:
    path = stored(tmp_path / "v.duckdb", ["a", "b"])
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE more AS FROM visits UNION ALL SELECT 'c', 1")
    for table, expected in (("visits", 2), ("more", 3), ("visits", 2)):
        with kept(path, folder, schema=TEXT, table=table, name="v") as engine:
            assert values(engine, ["true"]) == [expected]
    assert len(sets(folder)) == 2


# Only whole sets count


def flip(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a bit of a shard": lambda path: flip(path / "0001.shard"),
    "a shard cut short": lambda path: os.truncate(path / "0000.shard", 100),
    "an empty shard": lambda path: os.truncate(path / "0000.shard", 0),
    "a missing shard": lambda path: (path / "0001.shard").unlink(),
    "a manifest cut short": lambda path: os.truncate(path / "manifest.json", 40),
    "a list as manifest": lambda path: (path / "manifest.json").write_text("[]"),
    "a manifest without shards": lambda path: (path / "manifest.json").write_text("{}"),
    "a folder for all": lambda path: path.chmod(0o755),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_set_does_not_count(file: Path, folder: Path, damage: str) -> None:
    kept(file, folder).close()
    (path,) = sets(folder)
    DAMAGES[damage](path)
    with kept(file, folder) as engine:
        assert values(engine, ASKED) == FOUND
    assert len(sets(folder)) == 2


def test_a_set_of_an_earlier_version_does_not_count(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(file, folder).close()
    monkeypatch.setattr(shard_sets, "version", lambda name: "99")
    kept(file, folder).close()
    assert len(sets(folder)) == 2


KILLED = """
import os, signal, sys
import tacit.tables as tables

left = int(sys.argv[3])

def fatal(call):
    def counted(*given, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **more)
    return counted

os.fsync, os.open, os.rename = fatal(os.fsync), fatal(os.open), fatal(os.rename)
schema = "[columns.pid]\\ntype = 'integer'\\n[columns.x]\\ntype = 'integer'\\nkeys = [1, 2, 3]\\n"
tables.load(sys.argv[1], person="pid", schema=schema, memory_limit=1, shards=sys.argv[2])
print("written", flush=True)
"""


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_killed_writer_leaves_nothing_that_counts(file: Path, folder: Path, stride: int) -> None:
    """Killed with -9 before calls that open, sync or rename a file, until none is left."""
    killed = 0
    while True:
        step = str(1 + stride * killed)
        given = [sys.executable, "-c", KILLED, str(file), str(folder), step]
        ended = subprocess.run(given, check=False, capture_output=True, text=True)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        killed += 1
        assert len(sets(folder)) <= 1  # the next writer sweeps what the last one left
        for path in sets(folder):
            if (path / "manifest.json").exists():  # then all that it names is there
                assert len(list(path.iterdir())) == 4
    assert killed >= 5
    assert len(sets(folder)) == 1
    with kept(file, folder) as engine:
        assert values(engine, ASKED) == FOUND


def test_a_writer_at_work_is_not_swept(file: Path, folder: Path) -> None:
    with shard_sets.new_set(folder) as path:
        (path / "0000.shard").write_text("being written")
        kept(file, folder).close()
        assert shard_sets.clear(folder) == 1
        assert sets(folder) == [path]
    assert sets(folder) == []


def test_a_source_that_changes_meanwhile_is_not_bound(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = read_all
    status = file.stat()

    def late(*given: object) -> Shard:
        found = reading(*given)  # type: ignore[arg-type]
        flip(file)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # unseen but by its digest
        return found

    monkeypatch.setattr(loading, "read_all", late)
    with pytest.raises(EngineFailed, match="changed"):
        kept(file, folder, memory_limit="1GB")
    assert sets(folder) == []


def test_a_file_that_is_as_it_was_noted_is_not_digested_again(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_anyway(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr(shard_sets, "_SETTLED_SECONDS", -60.0)
    kept(file, folder).close()
    with monkeypatch.context() as patched:
        patched.setattr("tacit.tables.sources.source.digest", read_anyway)
        patched.setattr("tacit.tables.encoded.shards.hashlib", SimpleNamespace(sha256=read_anyway))
        kept(file, folder).close()
        assert len(sets(folder)) == 1
        flip(file)
        with pytest.raises(EngineFailed):
            kept(file, folder)


def test_what_was_noted_of_a_file_that_was_just_written_does_not_count(
    file: Path, folder: Path
) -> None:
    os.utime(file)
    kept(file, folder).close()
    (made,) = sets(folder)
    assert json.loads((made / shard_sets.MANIFEST).read_bytes())["noted"]["source"] is None


def test_a_full_disk_is_said_and_leaves_nothing(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWritten, match="No space left"):
        kept(file, folder)
    assert sets(folder) == []


# Where and when


def test_nothing_is_written_unless_a_folder_is_named(file: Path, tmp_path: Path) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    before = sorted(tmp_path.rglob("*"))
    load(file, person="pid", schema=SMALL, memory_limit=1, spill_folder=spill).close()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("memory", [1, "1GB"])
def test_a_frame_leaves_nothing(folder: Path, memory: int | str) -> None:
    """It has no contents that could be recognised, so its shards are of no use to anybody later."""
    frame = pa.table({"pid": [1, 1, 2, 3], "x": [1, 2, 2, 9]})
    with load(frame, person="pid", name="t", memory_limit=memory, shards=folder) as engine:
        assert is_mapped(engine) == (memory == 1)
        assert sets(folder) == []
        assert values(engine, ["x = 2", "true"]) == [2, 3]


def test_a_file_that_fits_is_one_shard(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(file, folder, memory_limit="1GB").close()
    refuse_reading(monkeypatch)
    with kept(file, folder) as engine:  # the limit is no part of what it was made from
        assert is_mapped(engine)
        assert len(engine.held()) == 1  # type: ignore[attr-defined]
        assert values(engine, ASKED) == FOUND


@pytest.mark.parametrize("wrong", ["nowhere", "file", "a\0b", 7])
def test_a_folder_that_cannot_be_used_is_named(file: Path, tmp_path: Path, wrong: object) -> None:
    (tmp_path / "file").write_text("no folder")
    given = tmp_path / wrong if isinstance(wrong, str) else wrong
    with pytest.raises(BadParameter, match="shards"):
        load(file, person="pid", schema=SMALL, shards=given)  # type: ignore[arg-type]


def test_clearing_removes_sets_and_nothing_else(file: Path, folder: Path) -> None:
    (folder / "somebody's").write_text("file")
    with kept(file, folder) as engine, kept(file, folder, as_of="today"):
        assert shard_sets.clear(folder) == 2
        assert [path.name for path in sets(folder)] == ["somebody's"]
        assert values(engine, ASKED) == FOUND  # an open table goes on as it is
    assert shard_sets.clear(folder) == 0


def test_hostile_values_do_not_decide_whether_shards_are_made(tmp_path: Path, folder: Path) -> None:
    """A line that is not UTF-8 is lost by itself, and the file is read from a mended copy."""
    path = tmp_path / "visits.csv"
    path.write_bytes(b'pid,x\n1,1\n2,\xff\xfe\n3,2\n4,"a\n')
    with kept(path, folder) as engine, load(path, person="pid", schema=SMALL) as alone:
        assert values(engine, ASKED) == values(alone, ASKED)


def test_a_manifest_says_what_a_set_is(file: Path, folder: Path) -> None:
    with tacit.open(
        file, person="pid", schema=SMALL, memory_limit=1, shards=folder, as_of="2026-11-01"
    ) as visits:
        assert "305" not in repr(visits.engine)
    (path,) = sets(folder)
    manifest = json.loads((path / "manifest.json").read_text())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert manifest["source"] == [".parquet", digest]
    assert manifest["as_of"] == "2026-11-01"
    assert manifest["tacit shards"] == 2
    assert [entry["file"] for entry in manifest["shards"]] == ["0000.shard", "0001.shard"]
