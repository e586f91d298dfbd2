"""What a budget stores of a stream may be damaged: an error of ours, without the secret."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress

import pandas as pd
import pytest

import tacit
from tacit.analyst.live_stream import as_secret, from_secret
from tacit.book.sparse_vector import State
from tacit.budget import Budget
from tacit.budget.chain import canonical, digest
from tacit.errors import BudgetError, LedgerDamaged

SECRETS = [
    *(b"", b"918273645", b"[918273645", b"[918273645, ", b'["918273645", 0]', b"[918273645, -1]"),
    *(b"[918273645.5, 0]", b"[918273645, 0, 0]", b"\xff918273645", b"{}", b"null", b"[" * 100_000),
    *(b"[true, 918273645]", b"[NaN, 918273645]", b"9" * 5000, b'{"offset": 918273645}'),
]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:20].decode("latin1"))
def test_a_secret_that_cannot_be_read_is_not_quoted(secret):
    with pytest.raises(LedgerDamaged) as caught:
        from_secret(secret)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None  # a JSONDecodeError would carry all of it in its ``doc``
    assert "918273645" not in f"{error!r} {vars(error)}"


def test_a_secret_comes_back():
    for state in (State(-(10**40)), State(0, 7)):
        again = from_secret(as_secret(state))
        assert (again.offset, again.tops) == (state.offset, state.tops)


@pytest.fixture(scope="module")
def visits():
    rows = pd.DataFrame({"pid": range(100), "age": [n % 50 for n in range(100)]})
    with tacit.open(rows, person="pid", name="visits") as table:
        yield table


@pytest.fixture
def path(visits, tmp_path):
    where = tmp_path / "clinic.budget"
    with Budget.create(where, epsilon=100, covers=["visits"]) as budget:
        stream = visits.numeric_sparse(
            threshold=5, at_most=3, epsilon=50, budget=budget, name="flu"
        )
        assert stream.ask("age > 1")
        stream.suspend()
    return where


def refused(visits, path):
    with pytest.raises(BudgetError), Budget.open(path) as budget:
        visits.resume("flu", budget=budget)


HOSTILE = [None, "", "1/0", "-1", "7"]  # also what could be true of another stream


def test_a_binding_of_another_shape(visits, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        ((stored,),) = connection.execute("SELECT binding FROM streams").fetchall()
        for key in json.loads(stored):
            for hostile in HOSTILE:
                binding = json.loads(stored) | {key: hostile}
                if hostile is None:
                    del binding[key]
                text = json.dumps(binding, sort_keys=True)
                connection.execute("UPDATE streams SET binding = ?", (text,))
                refused(visits, path)


def test_a_recorded_answer_of_another_shape(visits, path):
    """With its hash mended: a hash that does not fit is found before."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        ((number, stored),) = connection.execute(
            'SELECT number, text FROM entries WHERE text LIKE \'%"kind":"top"%\''
        ).fetchall()

        def put(body):
            text = canonical(body)
            change = "UPDATE entries SET text = ?, hash = ? WHERE number = ?"
            connection.execute(change, (text, digest(text), number))

        hostile: object
        for key in ("above", "grid", "value", "gap", "noise_scale", "text"):
            for hostile in (None, "x", "1/0", [], 5.5):
                body = json.loads(stored)
                body["answer"][key] = hostile
                if hostile is None:
                    del body["answer"][key]
                put(body)
                with suppress(BudgetError), Budget.open(path) as budget:
                    stream = visits.resume("flu", budget=budget)
                    str(stream.recorded)
                    stream.ask("age > 1")
                    stream.suspend()
        for answer in (None, 5, "text", [], [1]):
            put(json.loads(stored) | {"answer": answer})
            refused(visits, path)
