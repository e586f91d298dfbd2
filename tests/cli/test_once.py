"""``tacit count``, ``sum``, ``histogram`` and ``check``."""

from __future__ import annotations

import json

import pytest

from tacit import wire

PAID = ("--person", "pid", "--epsilon", "500", "--budget", "clinic.budget")


def test_a_count_is_printed_with_its_error(tacit, clinic):
    ended = tacit("count", "visits.csv", "town = 'Ghent'", *PAID)
    assert (ended.code, ended.out) == (0, "90 ± 0 (95 %)\n"), ended.err
    told = tacit("count", "visits.csv", "town = :t", *PAID, "--params", '{"t": "Ghent"}', "--json")
    assert wire.from_json(json.loads(told.out)).value == 90
    assert "ε = 1000, δ = 0 spent" in tacit("budget", "show", clinic).out


def test_a_sum_of_some_rows(tacit, clinic, folder):
    schema = (folder / "visits.toml").read_text()
    schema = schema.replace("[columns.age]\n", "[columns.age]\ntotal = [0, 120]\n")
    (folder / "visits.toml").write_text(schema)
    whole = tacit("sum", "visits.csv", "age", *PAID, "--json")
    some = tacit("sum", "visits.csv", "age", "town = 'Ghent'", *PAID, "--json")
    values = [wire.from_json(json.loads(ended.out)).value for ended in (whole, some)]
    assert 0 < values[1] < values[0]


def test_a_histogram_needs_to_know_how_many_rows_count(tacit, clinic):
    refused = tacit("histogram", "visits.csv", "town", *PAID)
    assert refused.code == 2
    assert "how many rows of each person count" in refused.err
    ended = tacit("histogram", "visits.csv", "town", *PAID, "--max-rows", "1")
    assert ended.code == 0, ended.err
    assert "town" in ended.out
    assert "1 row of each person" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("count", "visits.csv", *PAID), "give FILE and the question in quotes"),
        (("sum", "visits.csv", *PAID), "give FILE and a column"),
        (("count", "visits.csv", "age > 3", "--person", "pid", "--epsilon", "1"), "--budget FILE"),
        (("count", "visits.csv", "age > 3", *PAID, "--params", "[1]"), "--params is a JSON object"),
        (("check", "visits.csv", "no.txt", "--person", "pid"), "no.txt cannot be read"),
        (("check", "--person", "pid"), "give the FILE of the table"),
    ],
)
def test_what_is_missing_is_said(tacit, clinic, words, said):
    ended = tacit(*words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_questions_are_checked_for_nothing(tacit, clinic, folder):
    good = 'age >= 60\n# a comment\n\n{"question": "town = :t", "parameters": {"t": "Ghent"}}\n'
    (folder / "good.txt").write_text(good)
    ended = tacit("check", "visits.csv", "good.txt", "--person", "pid")
    assert ended.code == 0, ended.err
    assert ended.out.count("sensitivity  1") == 2
    assert "line 4" in ended.out
    (folder / "bad.txt").write_text(good + "age / 2 > 3\n{oh\n")
    ended = tacit("check", "visits.csv", "bad.txt", "--person", "pid", "--json")
    assert ended.code == 1
    stated = [wire.from_json(json.loads(line)) for line in ended.out.splitlines()]
    assert [bool(each) for each in stated] == [True, True, False, False]
    assert len(tacit("budget", "history", clinic, "--json").out.splitlines()) == 1  # it was created


def test_rows_are_counted_up_to_a_bound_of_the_call(tacit, clinic):
    sql = "SELECT COUNT(*) FROM visits WHERE town = 'Ghent'"
    paid = ("--person", "pid", "--epsilon", "500", "--budget", "clinic.budget")
    ended = tacit("count", "visits.csv", sql, *paid, "--max-rows", "2")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("180 ")
    assert tacit("count", "visits.csv", sql, *paid).code == 2
