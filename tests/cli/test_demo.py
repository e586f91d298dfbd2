"""``tacit demo``: it writes where it may, and touches nobody's budget."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from fractions import Fraction

import duckdb
import pytest
from tests.cli.running import ENVIRONMENT
from tests.signals import as_usual

import tacit as library
from tacit import Budget
from tacit.cli import demo
from tacit.privacy import Cost

PATIENT = "patient_id"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_with_a_real_budget_is_refused_and_left_as_it_is(tacit, clinic, folder):
    before = files(folder)
    ended = tacit("demo", "--folder", str(folder))
    assert (ended.code, ended.out) == (2, "")
    assert "nothing was touched" in ended.err
    assert files(folder) == before


def test_a_file_is_no_folder(tacit, folder):
    ended = tacit("demo", "--folder", str(folder / "visits.csv"))
    assert ended.code == 2
    assert "nothing was touched" in ended.err


def test_a_demo_replaces_what_an_earlier_one_left(tmp_path):
    place = tmp_path / "new" / "demo"
    for _ in range(2):
        demo._clear(place)
        assert [path.name for path in place.iterdir()] == [demo.MARKER]
        for name in ("clinic.budget", "clinic.budget-wal"):
            (place / name).write_text("of invented people")


def test_an_empty_folder_will_do(tmp_path):
    demo._clear(tmp_path)
    assert (tmp_path / demo.MARKER).is_file()


@pytest.fixture
def told_before(folder):
    """What a demo leaves, of fewer people."""
    place = folder / "story"
    demo._clear(place)
    (place / "visits.toml").write_text((folder / "visits.toml").read_text().replace("pid", PATIENT))
    with duckdb.connect() as connection:
        rows = f"SELECT range AS {PATIENT}, 'Ghent' AS town, 30 AS age FROM range(300)"
        connection.execute(f"COPY ({rows}) TO '{place}/visits.parquet'")
    with Budget.create(place / "clinic.budget", epsilon=2, covers=["visits"]) as budget:
        budget.charge(Cost.pure("3/2"), table="visits", what="the story")
    return place


def test_it_serves_what_an_earlier_one_left(told_before):
    for _ in range(2):  # the second time from the same folder, with new tokens
        with as_usual():
            process = subprocess.Popen(
                [sys.executable, "-m", "tacit", "demo", "--serve", "--folder", str(told_before)],
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
        assert process.stdout is not None
        try:
            said = ""
            while "visits.count(" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            url = re.search(r"at (http://127\.0\.0\.1:\d+)", said)
            assert url
            tokens = dict(re.findall(r"^  (\w+), .*: (tct_\S+)$", said, re.MULTILINE))
            assert tokens.keys() == {"ana", "ben", "desk"}
            with library.connect(url[1], token=tokens["ana"]) as clinic:
                assert clinic.budget.own is not None
                assert clinic.budget.own.limit.epsilon == Fraction(1, 4)
                told = clinic.table("visits").count("town = 'Ghent'", epsilon="1/20")
                assert abs(told.value - 300) < 2000  # Laplace noise of scale 20
            with library.connect(url[1], token=tokens["desk"]) as clinic:
                assert len(list(clinic.answers)) >= 1
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0
            process.stdout.close()


def test_it_serves_nothing_from_a_folder_that_is_not_its_own(tacit, clinic, folder):
    before = files(folder)
    ended = tacit("demo", "--serve", "--folder", str(folder))
    assert (ended.code, ended.out) == (2, "")
    assert "nothing was touched" in ended.err
    assert files(folder) == before


@pytest.mark.long
def test_the_whole_demo_runs_twice(tacit, folder):
    for _ in range(2):
        ended = tacit("demo", "--folder", "story")
        assert ended.code == 0, ended.err
        assert "of 8 outbreaks found" in ended.out
        assert "A number for every count" in ended.out
        assert re.search(r"measured; in truth \d", ended.out)
        assert "Advice" not in ended.err
        assert "tacit demo --serve --folder story" in ended.out
    assert {"ages.csv", "clinic.budget", "visits.parquet"} <= files(folder / "story").keys()
