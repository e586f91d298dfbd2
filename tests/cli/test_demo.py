"""``tacit demo``: it writes where it may, and touches nobody's budget."""

from __future__ import annotations

import pytest

from tacit.cli import demo


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


@pytest.mark.long
def test_the_whole_demo_runs_twice(tacit, folder):
    for _ in range(2):
        ended = tacit("demo", "--folder", "story")
        assert ended.code == 0, ended.err
        assert "of 8 outbreaks found" in ended.out
    assert {"ages.csv", "clinic.budget", "visits.parquet"} <= files(folder / "story").keys()
