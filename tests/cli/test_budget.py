"""``tacit budget``: what is shown follows from what the budget holds."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest

from tacit import wire
from tacit.budget import Budget, RetryKey
from tacit.privacy import Cost


def charge(file, epsilon, **more):
    with Budget.open(file) as budget:
        budget.charge(Cost.pure(epsilon), table="visits", what="count", **more)


def test_create_makes_a_file_once_and_only_once(tacit, folder):
    create = ("budget", "create", "b.budget", "--epsilon", "1/2", "--delta", "1e-9")
    ended = tacit(*create, "--covers", "visits", "labs")
    assert ended.code == 0
    assert "promised ε = 0.5, δ = 1e-09" in ended.out
    assert "covers visits, labs" in ended.out
    before = (folder / "b.budget").read_bytes()
    again = tacit(*create, "--covers", "visits")
    assert (again.code, again.out) == (2, "")
    assert "never overwritten" in again.err
    assert (folder / "b.budget").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--epsilon", "0", "--covers", "a"], "--epsilon '0'"),
        (["--epsilon", "-1", "--covers", "a"], "--epsilon '-1'"),
        (["--epsilon", "much", "--covers", "a"], "--epsilon 'much'"),
        (["--epsilon", "1", "--covers", "a", "a"], "each one once"),
        (["--epsilon", "1"], "--covers"),
        (["--covers", "a"], "--epsilon"),
        (["--epsilon", "1", "--covers", "a", "--accountant", "zcdp"], "delta"),
        (["--epsilon", "1", "--covers", "a", "--accountant", "magic"], "--accountant"),
    ],
)
def test_create_refuses_bad_promises_and_makes_nothing(tacit, folder, options, said):
    ended = tacit("budget", "create", "b.budget", *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not list(folder.glob("b.budget*"))


def test_show_has_a_bar_for_the_whole_and_for_each_share(tacit, clinic):
    tacit("budget", "share", clinic, "ana", "--epsilon", "100")
    charge(clinic, 75, analyst="ana")
    ended = tacit("budget", "show", clinic)
    lines = {line.split("ε")[0].strip(): line for line in ended.out.splitlines() if "█" in line}
    assert list(lines) == ["whole", "ana", "not shared"]
    assert "█████████░ 92 %" in lines["whole"]
    assert "ε = 25, δ = 0" in lines["ana"]
    assert "██░░░░░░░░ 25 %" in lines["ana"]
    assert "██████████ 100 %" in lines["not shared"]
    assert "ε = 75, δ = 0 spent" in ended.out


def test_show_lists_the_streams(ask, tacit, clinic):
    opened = ask("town = 'Bruges'\n", "--name", "watch", "--threshold", "100.00625")
    assert "threshold 100.00625;" in opened.err
    ended = tacit("budget", "show", clinic)
    row = next(line.split() for line in ended.out.splitlines() if line.split()[:1] == ["watch"])
    assert row == ["watch", "visits", "100.00625", "1", "of", "3", "0", "2", "suspended"]


def test_show_as_json_is_exact(ask, tacit, clinic):
    tacit("budget", "share", clinic, "ana", "--epsilon", "1/3")
    charge(clinic, "1/11", analyst="ana")
    ask("town = 'Bruges'\n", "--name", "watch")
    told = json.loads(tacit("budget", "show", clinic, "--json").out)
    names = ["promise", "accountant", "covers", "whole", "pots", "streams", "head"]
    assert list(told) == ["tacit budget", *names]
    assert told["promise"] == {"epsilon": "1000", "delta": "0"}
    assert told["whole"]["spent"]["epsilon"] == str(100 + Fraction(1, 11))
    assert told["pots"][1] == {
        "analyst": "ana",
        "limit": {"epsilon": "1/3", "delta": "0"},
        "spent": {"epsilon": "1/11", "delta": "0"},
        "left": {"epsilon": "8/33", "delta": "0"},
    }
    assert told["streams"] == [
        {
            "name": "watch",
            "table": "visits",
            "analyst": None,
            "status": "suspended",
            "at_most": 3,
            "tops": 1,
            "lost": 0,
            "tops_left": 2,
            "threshold": "100",
            "in_parts": False,
        }
    ]
    with Budget.open(clinic) as budget:
        assert told["head"] == budget.head


def test_show_compares_with_other_theorems_when_asked(tacit, clinic):
    assert "Nothing was charged" in tacit("budget", "show", clinic, "--compare").out
    charge(clinic, "1/10")
    charge(clinic, "1/10")
    ended = tacit("budget", "show", clinic, "--compare")
    assert "2 parts of ε = 0.1, by basic composition ε = 0.2." in ended.out
    assert "Rogers" in ended.out


def test_tiny_numbers_are_shown_in_full(tacit):
    tacit(
        *[
            "budget",
            "create",
            "b.budget",
            "--epsilon",
            "1e-7",
            "--delta",
            "3e-12",
            "--covers",
            "visits",
        ]
    )
    shown = tacit("budget", "show", "b.budget").out
    assert "ε = 1e-07, δ = 3e-12" in shown
    charge("b.budget", "99999/1000000000000")  # all but 10⁻¹²
    assert "under 1 %" in tacit("budget", "show", "b.budget").out


def test_share_gives_and_refuses(tacit, clinic):
    ended = tacit("budget", "share", clinic, "ana", "--epsilon", "1/4", "--json")
    assert json.loads(ended.out)["limit"] == {"epsilon": "1/4", "delta": "0"}
    too_much = tacit("budget", "share", clinic, "ben", "--epsilon", "1001")
    assert too_much.code == 3
    assert "does not fit" in too_much.err
    assert tacit("budget", "share", clinic, "ben", "--rho", "1").code == 2
    assert tacit("budget", "share", clinic, "ben").code == 2
    with Budget.open(clinic) as budget:
        assert [pot.analyst for pot in budget.pots] == [None, "ana"]


def test_cover_adds_a_table_once(tacit, clinic):
    assert tacit("budget", "cover", clinic, "labs").out == "covers visits, labs\n"
    assert tacit("budget", "cover", clinic, "labs").code == 2


def test_tie_says_that_another_column_is_meant(ask, tacit, clinic):
    ask("town = 'Bruges'\n")
    with Budget.open(clinic) as budget:
        before = budget.spent
    refused = ask("age > 30\n", "--person", "town")
    assert refused.code == 3
    assert "identifies them by town (text). Nothing was spent" in refused.err
    assert "tacit budget tie" in refused.err
    with Budget.open(clinic) as budget:
        assert budget.spent == before
    told = tacit("budget", "tie", clinic, "visits", "--person", "town").out
    assert told == "the people of visits are identified by town from now on\n"
    assert ask("age > 30\n", "--person", "town").code == 0
    assert "visits  town" in tacit("budget", "history", clinic).out
    assert tacit("budget", "tie", clinic, "payroll", "--each-row").code == 2
    assert tacit("budget", "tie", clinic, "visits").code == 2
    assert tacit("budget", "verify", clinic).code == 0


def test_history_tells_every_entry(ask, tacit, clinic):
    tacit("budget", "share", clinic, "ana", "--epsilon", "5")
    ask("town = 'Bruges'\n", "--name", "watch", "--numeric")
    told = tacit("budget", "history", clinic).out.splitlines()
    kinds = [line.split()[2] for line in told]
    assert kinds == ["created", "share", "tie", "open", "top", "suspend"]
    assert "ε = 1000, δ = 0  covers visits" in told[0]
    assert "ana  ε = 5, δ = 0" in told[1]
    assert "visits  pid" in told[2]
    assert "at most 3 ⊤" in told[3]
    assert "95 %)  town = 'Bruges'" in told[4]
    only = tacit("budget", "history", clinic, "--stream", "watch", "--last", "2").out
    assert only.splitlines() == told[-2:]
    as_json = tacit("budget", "history", clinic, "--json").out.splitlines()
    assert [json.loads(line)["kind"] for line in as_json] == kinds
    assert tacit("budget", "history", clinic, "--stream", "nosuch").code == 2
    assert tacit("budget", "history", clinic, "--last", "0").code == 2


def test_answers_are_printed_as_they_were_told(tacit, clinic, folder):
    import tacit as library

    tacit("budget", "share", clinic, "ana", "--epsilon", "5")
    with (
        Budget.open(clinic) as budget,
        library.open(folder / "visits.csv", person="pid") as visits,
    ):
        count = visits.count("age > 30", epsilon=1, budget=budget, analyst="ana")
        cells = visits.histogram("town", max_rows=1, epsilon=1, budget=budget)
        first, second = budget.answers
    told = tacit("budget", "answers", clinic).out
    assert f"count: age > 30  ana\n        {count}\n" in told
    assert all(line in told for line in str(cells).splitlines())
    mine = tacit("budget", "answers", clinic, "--analyst", "ana", "--json").out.splitlines()
    assert [wire.from_line(line).value for line in mine] == [count]
    one = tacit("budget", "answers", clinic, "--number", str(second.number), "--json").out
    assert wire.from_line(one).number == second.number != first.number
    assert tacit("budget", "answers", clinic, "--number", "1").code == 2
    assert tacit("budget", "answers", clinic, "--number", "5", "--analyst", "ana").code == 2
    assert tacit("budget", "answers", clinic, "--analyst", "ben").out == ""


def test_a_charge_that_was_never_answered_says_so(tacit, clinic):
    with Budget.open(clinic) as budget:
        key = RetryKey("first", None, "count", "a count")
        budget.charge(Cost.pure(1), table="visits", what="count", retry=key)
        other = budget.charge(Cost.pure(1), table="visits", what="of my own")
        budget.keep(other.number, {"mine": 3})
    told = tacit("budget", "answers", clinic).out
    assert "count  (nothing was returned)" in told
    assert "of my own\n        {'mine': 3}" in told


def test_names_in_a_history_do_not_move_a_terminal(tacit, clinic, monkeypatch):
    charge(clinic, 1)
    with Budget.open(clinic) as budget, monkeypatch.context() as earlier:
        earlier.setattr("tacit.budget.budget.checked_name", lambda name, _: name)  # took any text
        budget.cover("evil\x1b[2Jtable")
    for command in (("show",), ("history",)):
        ended = tacit("budget", *command, clinic)
        assert "evil" in ended.out
        assert "\x1b" not in ended.out


def test_cover_names_the_group_of_people(tacit, clinic):
    covers = "covers visits; of other people (staff): staff"
    assert tacit("budget", "cover", clinic, "staff", "--people", "staff").out.strip() == covers
    assert "visits; of other people (staff): staff" in tacit("budget", "show", clinic).out
    shown = json.loads(tacit("budget", "show", clinic, "--json").out)
    assert (shown["covers"], shown["people"]) == (["visits", "staff"], {"staff": "staff"})


def test_verify_prints_the_head_and_finds_what_was_changed(tacit, clinic):
    charge(clinic, 1)
    told = json.loads(tacit("budget", "verify", clinic, "--json").out)
    assert told["entries"] == 2
    assert tacit("budget", "verify", clinic, "--head", told["head"]).code == 0
    wrong = tacit("budget", "verify", clinic, "--head", "0" * 64)
    assert (wrong.code, wrong.out) == (1, "")
    assert "old copy" in wrong.err
    with closing(sqlite3.connect(clinic)) as file, file:
        guards = file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (guard,) in guards:
            file.execute(f'DROP TRIGGER "{guard}"')
        file.execute("UPDATE entries SET text = replace(text, 'count', 'gift')")
    ended = tacit("budget", "verify", clinic)
    assert (ended.code, ended.out) == (1, "")


@pytest.mark.parametrize("content", [b"", b"not a budget at all, whatever it is called"])
def test_a_file_that_is_no_budget(tacit, folder, content):
    (folder / "b.budget").write_bytes(content)
    ended = tacit("budget", "show", "b.budget")
    assert (ended.code, ended.out) == (1, "")
    assert (folder / "b.budget").read_bytes() == content


def test_no_file_and_a_folder(tacit, folder):
    assert tacit("budget", "show", "b.budget").code == 2
    (folder / "b.budget").mkdir()
    assert tacit("budget", "show", "b.budget").code == 1
    assert tacit("budget", "create", "no/b.budget", "--epsilon", "1", "--covers", "a").code == 4


def test_export_writes_json_lines_and_no_secrets(ask, tacit, clinic, folder):
    ask("town = 'Bruges'\n", "--name", "watch")
    on_screen = tacit("budget", "export", clinic)
    assert [json.loads(line)["entry"]["number"] for line in on_screen.out.splitlines()] == [
        *(1, 2, 3, 4, 5)
    ]
    ended = tacit("budget", "export", clinic, "history.jsonl")
    assert "5 entries" in ended.err
    assert (folder / "history.jsonl").read_text() == on_screen.out
    assert tacit("budget", "export", clinic, "history.jsonl").code == 2


def test_a_zcdp_budget_is_created_with_the_promise_that_was_typed(tacit):
    promise = ("--epsilon", "1/3", "--delta", "1e-6", "--covers", "a")
    ended = tacit("budget", "create", "z.budget", *promise, "--accountant", "zcdp")
    assert "promised ρ" in ended.out
    assert "what is promised to people: ε = 1/3, δ = 1e-06" in ended.out
