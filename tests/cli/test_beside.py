"""``--beside``: another table of the same people, which questions may name."""

from __future__ import annotations

import pytest

PERSON = ("--person", "pid")
BESIDE = ("--beside", "labs=labs.csv", "--beside-person", "labs=patient")
BUDGET = ("--budget", "both.budget")
IN_LABS = "town = 'Bruges' and pid in (select patient from labs where result > 7)"


@pytest.fixture
def labs(tacit, folder):
    """Of people 0 to 99 one row each, of a result from 0 to 9 in turn; and a budget for both."""
    lines = ["patient,result", *(f"{pid},{pid % 10}" for pid in range(100))]
    (folder / "labs.csv").write_text("\n".join(lines) + "\n")
    (folder / "labs.toml").write_text(
        '[columns.patient]\ntype = "integer"\n[columns.result]\ntype = "integer"\n'
    )
    promise = ("--epsilon", "10000", "--covers", "visits", "labs")
    assert tacit("budget", "create", "both.budget", *promise).code == 0
    return folder


def test_count_query_check_and_ask_name_it(tacit, labs):
    paid = (*PERSON, *BESIDE, *BUDGET, "--epsilon", "1000")
    ended = tacit("count", "visits.csv", IN_LABS, *paid)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("20 ")
    sql = f"SELECT COUNT(DISTINCT pid) AS n FROM visits WHERE {IN_LABS}"
    ended = tacit("query", "visits.csv", sql, *paid)
    assert ended.out.splitlines()[1].strip() == "20 ± 0", ended.err
    (labs / "questions.txt").write_text(f"{IN_LABS}\npid not in (select patient from labs)\n")
    ended = tacit("check", "visits.csv", "questions.txt", *PERSON, *BESIDE)
    assert ended.code == 0, ended.out
    asked = (*paid, "--threshold", "15", "--at-most", "2")
    ended = tacit("ask", "visits.csv", *asked, stdin=f"{IN_LABS}\ntown = 'Ypres'\n")
    assert ended.code == 0, ended.err
    assert [line.split()[0] for line in ended.out.splitlines()] == ["⊤", "⊥"]
    ended = tacit("query", "visits.csv", sql, *PERSON, *BESIDE, "--epsilon", "1", "--plan")
    assert "A query of 1 row" in ended.out


def test_without_it_the_question_is_refused(tacit, labs):
    ended = tacit("count", "visits.csv", IN_LABS, *PERSON, *BUDGET, "--epsilon", "1")
    assert ended.code == 2
    assert "this table is not open together with visits" in ended.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--beside", "labs.csv"), "--beside is a name and what it stands for"),
        (("--beside", "labs=labs.csv", "--beside", "labs=x.csv"), "names a table twice"),
        (("--beside", "visits=labs.csv"), "two tables are called visits"),
        (("--beside-person", "labs=patient"), "--beside-person names labs"),
        (("--beside", "labs=labs.csv"), "pid"),  # which labs has not
        (("--beside", "labs=nowhere.csv"), "nowhere.csv"),
    ],
)
def test_what_is_wrong_is_said_before_it_is_paid(tacit, labs, given, said):
    ended = tacit("count", "visits.csv", IN_LABS, *PERSON, *given, *BUDGET, "--epsilon", "1")
    assert ended.code == 2, ended.err
    assert said in ended.err
    assert "ε = 0, δ = 0 spent" in tacit("budget", "show", "both.budget").out


def test_each_row_has_no_people_in_other_tables(tacit, labs):
    ended = tacit(
        "count", "visits.csv", "age > 3", "--each-row", *BESIDE, *BUDGET, "--epsilon", "1"
    )
    assert ended.code == 2
    assert "give --person" in ended.err


def test_a_server_knows_its_tables(tacit, labs):
    url = ("--url", "https://clinic.example", "--table", "visits")
    ended = tacit("count", IN_LABS, *url, *BESIDE, "--epsilon", "1")
    assert ended.code == 2
    assert "it knows the rest" in ended.err


def test_a_budget_that_does_not_cover_it_does_not_pay(tacit, labs):
    assert tacit("budget", "create", "one.budget", "--epsilon", "9", "--covers", "visits").code == 0
    ended = tacit(
        "count", "visits.csv", IN_LABS, *PERSON, *BESIDE, "--budget", "one.budget", "--epsilon", "1"
    )
    assert ended.code == 3
    assert "labs" in ended.err
