"""``tacit release``: what it says before paying, and what it writes."""

from __future__ import annotations

import pytest

RELEASE = ("release", "visits.csv", "--person", "pid")


@pytest.fixture(autouse=True)
def paid(tacit):
    assert tacit("budget", "create", "b.budget", "--epsilon", "2", "--covers", "visits").code == 0


def test_a_plan_costs_nothing_and_needs_no_budget(tacit):
    ended = tacit(
        *RELEASE, "--prefixes", "age", "--epsilon", "1", "--rows", "9", "--people", "300", "--plan"
    )
    assert ended.code == 0, ended.err
    assert "m = 9 rows" in ended.out
    assert "ε = 2, δ = 0" in tacit("budget", "show", "b.budget").out


def test_rows_go_to_standard_output_and_files(tacit, folder):
    ended = tacit(
        *RELEASE,
        "--prefixes",
        "age",
        "--epsilon",
        "1/2",
        "--rows",
        "9",
        "--budget",
        "b.budget",
        "--save",
        "r.json",
        "--plot",
        "r.png",
    )
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == "age"
    assert len(ended.out.splitlines()) == 10
    assert "prefixes by slack" in ended.err
    assert (folder / "r.json").exists()
    assert (folder / "r.png").exists()
    (folder / "list.txt").write_text("# old people\nage >= 60\n\nage >= 80\n")
    more = tacit(
        *RELEASE,
        "--questions",
        "list.txt",
        "--epsilon",
        "1/2",
        "--rows",
        "4",
        "--budget",
        "b.budget",
        "--csv",
        "r.csv",
    )
    assert (more.code, more.out) == (0, "")
    assert len((folder / "r.csv").read_text().splitlines()) == 5


def test_a_file_that_cannot_be_written_does_not_lose_what_was_paid(tacit):
    ended = tacit(
        *RELEASE,
        "--prefixes",
        "age",
        "--epsilon",
        "1/2",
        "--rows",
        "3",
        "--budget",
        "b.budget",
        "--csv",
        "no/such/folder.csv",
    )
    assert len(ended.out.splitlines()) == 4
    assert "standard output instead" in ended.err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "--prefixes, --intervals and --questions"),
        (("--prefixes", "age", "--intervals", "age"), 2, "one of"),
        (("--prefixes", "age", "--rows", "3"), 2, "--budget"),
        (("--prefixes", "agee", "--rows", "3", "--budget", "b.budget"), 2, "column"),
        (("--questions", "nosuch.txt", "--budget", "b.budget"), 2, "cannot be read"),
        (("--prefixes", "age", "--rows", "3", "--budget", "nosuch.budget"), 2, "nosuch.budget"),
    ],
)
def test_bad_input_is_explained(tacit, options, code, said):
    ended = tacit(*RELEASE, "--epsilon", "1/2", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_release_that_the_budget_cannot_pay_is_refused(tacit):
    ended = tacit(
        *RELEASE, "--prefixes", "age", "--epsilon", "3", "--rows", "3", "--budget", "b.budget"
    )
    assert (ended.code, ended.out) == (3, "")
    assert "Nothing was spent" in ended.err
