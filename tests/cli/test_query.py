"""``tacit query``: what it says before paying, what it prints and writes."""

from __future__ import annotations

import json
import os

import pytest

import tacit as library
from tacit import wire

TOWNS = "SELECT town, COUNT(DISTINCT pid) AS n FROM visits GROUP BY town"
QUERY = ("query", "visits.csv", TOWNS, "--person", "pid", "--max-cells", "1")
PAID = ("--epsilon", "500", "--budget", "clinic.budget")


def test_a_plan_costs_nothing_and_needs_no_budget(tacit):
    ended = tacit(*QUERY, "--epsilon", "1", "--plan")
    assert ended.code == 0, ended.err
    assert "A query of 3 rows, (ε = 1, δ = 0); each person counts in 1 cell" in ended.out


def test_the_table_is_printed_and_written(tacit, clinic, folder):
    ended = tacit(*QUERY, *PAID, "--csv", "q.csv", "--save", "q.json")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[:3] == ["town          n", "Bruges  200 ± 0", "Ghent    90 ± 0"]
    first = (folder / "q.csv").read_text().splitlines()[1]
    assert first.startswith("Bruges,200,0,200,200,")
    assert first.endswith('± does not cover the rest"')
    assert library.load_query(folder / "q.json").to_dict()["n"] == [200, 90, 10]
    assert "ε = 500, δ = 0 spent" in tacit("budget", "show", clinic).out


def test_options_say_what_the_call_takes(tacit, clinic):
    sql = "SELECT COUNT(*) AS a, COUNT(*) AS b FROM visits WHERE town = :t"
    more = ("--max-rows", "2", "--weights", "3, 1", "--params", '{"t": "Ghent"}', "--json")
    ended = tacit("query", "visits.csv", sql, "--person", "pid", *PAID, *more)
    assert ended.code == 0, ended.err
    found = wire.from_json(json.loads(ended.out))
    assert [str(column.privacy.epsilon) for column in found.columns] == ["375", "125"]
    assert found.to_dict()["a"] == [180]


def test_having_tells_the_cells_above_and_what_is_not_answered(tacit, clinic):
    above = f"{TOWNS} HAVING n > 50"
    words = ("query", "visits.csv", above, "--person", "pid")
    ended = tacit(*words, "--epsilon", "1", "--at-most", "1", "--plan")
    assert "A query of up to 1 of 3 cells, (ε = 1, δ = 0)" in ended.out, ended.err
    ended = tacit(*words, *PAID, "--at-most", "1", "--json")
    assert ended.code == 0, ended.err
    found = wire.from_json(json.loads(ended.out))
    assert found.to_dict()["town"] == ["Bruges"]
    assert found.unanswered == [{"town": "Ghent"}, {"town": "Ypres"}]
    ended = tacit(*words, *PAID)
    assert ended.code == 2
    assert "how many cells may HAVING return" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("query", "--epsilon", "1"), "give FILE and the SELECT in quotes"),
        ((*QUERY, "more", "--epsilon", "1"), "give FILE and the SELECT in quotes"),
        (("query", TOWNS, "--epsilon", "1"), "name the FILE with the table"),
        ((*QUERY, "--epsilon", "1"), "--budget FILE is missing"),
        ((*QUERY, *PAID, "--params", "[1]"), "--params is a JSON object"),
        ((*QUERY, *PAID, "--params", "{"), "--params is a JSON object"),
        ((*QUERY, *PAID, "--weights", "1,2"), "--weights"),
        ((*QUERY, *PAID, "--csv", "no/such/q.csv"), "--csv"),
        ((*QUERY[:-2], *PAID), "max_cells"),
        (("query", "visits.csv", "age > 3", "--person", "pid", *PAID), "a query must be a SELECT"),
    ],
)
def test_what_cannot_be_done_is_said_before_it_is_paid(tacit, clinic, words, said):
    ended = tacit(*words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "ε = 0, δ = 0 spent" in tacit("budget", "show", clinic).out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
def test_a_file_that_cannot_be_written_does_not_lose_what_was_paid(tacit, clinic):
    ended = tacit(*QUERY, *PAID, "--csv", "/dev/full")
    assert ended.code == 4
    assert "Bruges  200 ± 0" in ended.out
    assert "this is paid for and drawn, but:\n  /dev/full could not be written" in ended.err
