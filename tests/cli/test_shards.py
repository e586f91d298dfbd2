"""``--shards`` keeps a table's codes in a folder, and ``tacit shards clear`` removes them."""

from __future__ import annotations

import pytest
from tests.cli.running import ASK, NEW

from tacit.tables import opening as loading


def test_a_table_is_read_once_and_cleared(tacit, folder, monkeypatch):
    (folder / "kept").mkdir()
    assert (
        tacit("budget", "create", "clinic.budget", "--epsilon", "500", "--covers", "visits").code
        == 0
    )
    question = "town = 'Bruges'\n"
    ended = tacit(*ASK, *NEW, "--shards", "kept", "--memory", "1", stdin=question)
    assert (ended.code, "⊤" in ended.out) == (0, True)
    assert len(list((folder / "kept").iterdir())) == 1

    def read(*_):
        raise AssertionError

    monkeypatch.setattr(loading, "cut_up", read)
    ended = tacit(*ASK, "--resume", "watch", "--shards", "kept", stdin="town = 'Ypres'\n")
    assert (ended.code, "⊥" in ended.out) == (0, True)
    ended = tacit("shards", "clear", "kept")
    assert (ended.code, ended.out) == (0, "1 removed\n")
    assert not list((folder / "kept").iterdir())


@pytest.mark.parametrize("name", ["nowhere", "visits.csv"])
def test_a_folder_that_is_not_there(tacit, name):
    ended = tacit("shards", "clear", name)
    assert (ended.code, ended.out) == (2, "")
    assert "FOLDER" in ended.err
    ended = tacit(*ASK, *NEW, "--shards", name, stdin="true\n")
    assert ended.code == 2
