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


def test_a_misspelt_key_is_noted_before_it_is_paid_for_and_with_the_answer(tacit, clinic, folder):
    note = "'Gent' is not one of the declared keys of town; did you mean 'Ghent'?"
    counted = tacit("count", "visits.csv", "town = 'Gent'", *PAID)
    assert f"note: {note}" in counted.err
    assert counted.out == f"0 ± 0 (95 %); note: {note}\n"
    told = tacit("count", "visits.csv", "town = 'Gent'", *PAID[:3], "1", *PAID[4:], "--json")
    assert json.loads(told.out)["notes"] == [note]
    assert wire.from_json(json.loads(told.out)).notes == (note,)
    sql = "SELECT COUNT(DISTINCT pid) FROM visits WHERE town = 'Gent'"
    planned = tacit("query", "visits.csv", sql, *PAID[:4], "--plan")
    assert f"note: {note}" in planned.err
    asked = tacit("query", "visits.csv", sql, *PAID[:3], "1", *PAID[4:])
    assert f"note: {note}" in asked.err
    assert asked.out.endswith(f"; note: {note}\n")
    poor = ("--epsilon", "9999", "--budget", "clinic.budget")
    refused = tacit("count", "visits.csv", "town = 'Gent'", "--person", "pid", *poor)
    assert refused.code != 0
    assert f"note: {note}" in refused.err.split("tacit: ")[1]  # first of all
    stream = ("--threshold", "5", "--at-most", "1", "--epsilon", "1", "--budget", "clinic.budget")
    said = tacit("ask", "visits.csv", "--person", "pid", *stream, stdin="town = 'Gent'\n")
    assert said.err.count(note) == 1
    assert said.err.index(note) < said.err.index("stream-1")


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


def test_no_note_moves_the_cursor_of_a_terminal(tacit, clinic, folder):
    asked = "town = '\x1b[2J'"
    sql = f"SELECT COUNT(DISTINCT pid) FROM visits WHERE {asked}"
    (folder / "asked.txt").write_text(f"{asked}\n")
    for words in (
        ("count", "visits.csv", asked, *PAID[:3], "1", *PAID[4:]),
        ("query", "visits.csv", sql, *PAID[:3], "1", *PAID[4:]),
        ("query", "visits.csv", sql, *PAID[:4], "--plan"),
        ("check", "visits.csv", "asked.txt", *PAID[:2]),
    ):
        ended = tacit(*words)
        assert "·[2J" in ended.out + ended.err
        assert "\x1b" not in ended.out + ended.err
