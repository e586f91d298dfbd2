"""The command line as a client: ``tacit ask --url`` and ``tacit budget show --url``."""

from __future__ import annotations

import io
import sys
from fractions import Fraction
from typing import Any

import pytest
from tests.server.conftest import Running, served

from tacit import Budget, wire
from tacit.cli.exits import run


@pytest.fixture
def server(tmp_path):
    with served(tmp_path) as running:
        for name, token in running.tokens.items():
            (tmp_path / f"{name}.token").write_text(f"{token}\n")
        yield running


@pytest.fixture
def command(capsys, monkeypatch):
    monkeypatch.delenv("TACIT_URL", raising=False)
    monkeypatch.delenv("TACIT_TOKEN", raising=False)

    def call(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run(words)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return code, told.out, told.err

    return call


def reach(server: Running, name: str) -> tuple[str, ...]:
    return ("--url", server.url, "--token-file", str(server.folder / f"{name}.token"))


NEW = ("--table", "visits", "--threshold", "100", "--at-most", "3", "--questions", "100")
QUESTIONS = """\
# the towns
town = 'Bruges'
town = 'Ypres'
{"question": "town = :t and age >= 0", "parameters": {"t": "Ghent"}, "threshold": 50}
"""


def test_a_stream_is_asked_suspended_and_resumed(server, command):
    here = reach(server, "ana")
    new = (*NEW, "--epsilon", "1", "--name", "watch")
    code, out, err = command("ask", *here, *new, stdin=QUESTIONS)
    assert code == 0, err
    assert out == "⊤  town = 'Bruges'\n⊥  town = 'Ypres'\n⊤  count(town = 'Ghent' and age >= 0)\n"
    assert "stream 'watch': (ε = 1, δ = 0) paid; 3 of 3 ⊤ left" in err
    assert "left in the budget: ε = 1, δ = 0" in err  # of the share, which is 2
    assert "stream 'watch' is suspended, 1 of 3 ⊤ left" in err
    with Budget.open(server.folder / "clinic.budget") as budget:
        (state,) = budget.streams()
        assert (state.status, state.tops, state.lost, state.analyst) == ("suspended", 2, 0, "ana")
        assert budget.shares[1].spent.epsilon == 1

    again = ("ask", *here, "--table", "visits", "--resume", "watch", "--json")
    code, out, err = command(*again, stdin="town = 'Bruges'\nage > 200\n")
    assert code == 0, err
    first, second = map(wire.from_line, out.splitlines())
    assert first.answer.recorded is not None
    assert second.answer.above is False
    assert (first.tops_left, first.halted) == (1, False)
    cells = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town\n"
    code, out, _ = command(*again[:-1], stdin=cells)
    assert code == 0
    assert out.count("town = ") >= 1


def test_questions_are_checked_for_nothing(server, command, tmp_path):
    here = (*reach(server, "ana"), "--table", "visits")
    code, out, err = command("check", *here, stdin=QUESTIONS)
    assert code == 0, err
    assert out.count("sensitivity  1") == 3
    assert "line 4" in out
    (tmp_path / "asked.txt").write_text("age >= 60\nheight > 3\n")
    code, out, err = command("check", str(tmp_path / "asked.txt"), *here, "--json")
    assert code == 1, err
    assert [bool(wire.from_line(line)) for line in out.splitlines()] == [True, False]
    with Budget.open(server.folder / "clinic.budget") as budget:
        assert {entry.kind for entry in budget.history} <= {"created", "share"}
    for words in (("visits.csv", "asked.txt", *here), reach(server, "ana"), ("--table", "visits")):
        code, out, err = command("check", *words, stdin="age >= 60\n")
        assert (code, out) == (2, "")
        assert "--url and --table" in err


def test_questions_are_asked_again_and_of_at_most(server, command):
    new = (*NEW, "--epsilon", "1", "--name", "twice", "--rounds", "2", "--again")
    code, out, err = command("ask", *reach(server, "ana"), *new, stdin="age > 200\nage >= 0\n")
    assert code == 0, err
    assert out == "⊥  age > 200\n⊤  age >= 0\n"
    low = '{"question": "age > 98", "below": true}\n'
    counts = (*NEW, "--epsilon", "1", "--name", "low")
    code, out, err = command("ask", *reach(server, "ana"), *counts, stdin=low)
    assert (code, out) == (2, "")
    assert "kind='directed'" in err
    directed = (*counts, "--kind", "directed")
    code, out, err = command("ask", *reach(server, "ana"), *directed, stdin=low)
    assert code == 0, err
    assert out == "⊤  -count(age >= 99)\n"


def test_a_model_is_watched_and_resumed(server, command):
    here = (*reach(server, "ana"), "--table", "visits")
    about = ("--epsilon", "1", "--columns", "town", "--max-rows", "1")
    code, out, err = command("model", *here, *about, "--plan")
    assert code == 0, err
    assert out.startswith("Watched model of visits, (ε = 1")
    asked = "# towns\ntown = 'Bruges'\nage / 2 > 1\n"
    code, out, err = command("model", *here, *about, "--name", "m", stdin=asked)
    assert code == 2, err
    told, refused, *_ = out.splitlines()
    assert "95 %" in told
    assert refused.startswith("refused: ")
    assert "resume it with --resume m" in err
    code, out, err = command("model", *here, "--resume", "m", "--json", stdin="town = 'Ghent'\n")
    assert code == 0, err
    assert wire.from_line(out).source in ("model", "measured")
    with Budget.open(server.folder / "clinic.budget") as budget:
        assert budget.shares[1].spent.epsilon == 1
    for words, said in (
        ((*here, *about, "--analyst", "ana"), "--analyst goes with a FILE"),
        ((*here, *about, "--budget", "b"), "--url and --table"),
        (("visits.csv", *here, *about, "--budget", "b"), "not both"),
    ):
        code, out, err = command("model", *words, stdin="age >= 60\n")
        assert (code, out) == (2, "")
        assert said in err


RELEASES = {  # what is released, and a column of its CSV
    "ranges": (("--ranges", "age", "--max-rows", "1"), "age"),
    "top": (
        ("--top", "select count(distinct pid) from visits group by town", "--places", "1"),
        "town",
    ),
    "synthetic": (("--synthetic", "town", "--max-rows", "1", "--rows", "5"), "town"),
    "prefixes": (("--prefixes", "age", "--rows", "3", "--max-rows", "1"), "age"),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_a_release_is_planned_paid_and_written(server, command, kind):
    wanted, column = RELEASES[kind]
    here = (*reach(server, "ana"), "--table", "visits", *wanted, "--epsilon", "1/2")
    code, planned, err = command("release", *here, "--plan")
    assert code == 0, err
    assert "ε = 0.5" in planned
    saved = server.folder / f"{kind}.json"
    code, out, err = command("release", *here, "--save", str(saved))
    assert code == 0, err
    assert planned.strip() in err
    assert column in out.splitlines()[0].split(",")
    assert saved.exists()
    with Budget.open(server.folder / "clinic.budget") as budget:
        assert budget.shares[1].spent.epsilon == Fraction(1, 2)
    for words, said in (
        ((*here, "--analyst", "ana"), "--analyst goes with a FILE"),
        ((*here, "--budget", "b"), "--url and --table"),
        (("visits.csv", *here, "--budget", "b"), "not both"),
    ):
        code, out, err = command("release", *words)
        assert (code, out) == (2, "")
        assert said in err


def test_a_question_that_would_be_refused_costs_nothing(server, command):
    new = (*NEW, "--epsilon", "1")
    code, out, err = command("ask", *reach(server, "ana"), *new, stdin="age > 3\nage / 2 > 1\n")
    assert (code, out) == (2, "")
    assert "refused (line 2)" in err
    assert "nothing was paid" in err
    with Budget.open(server.folder / "clinic.budget") as budget:
        assert budget.spent.epsilon == 0
        assert budget.streams() == []


def test_what_the_share_does_not_allow_is_told_as_locally(server, command):
    new = (*NEW, "--epsilon", "5")
    code, _, err = command("ask", *reach(server, "ana"), *new, stdin="age > 3\n")
    assert code == 3
    assert "what is left of ana's share is ε = 2, δ = 0" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("ask", *NEW, "--epsilon", "1", "--budget", "b"), "--url and --table"),
        (("ask", *NEW, "--epsilon", "1", "--person", "pid"), "--url and --table"),
        (("ask", *NEW[2:], "--epsilon", "1"), "--url and --table"),
        (("ask", *NEW, "--epsilon", "1", "--analyst", "ana"), "the token says whose share"),
        (("ask", *NEW, "--epsilon", "1"), "TACIT_URL"),
        (("ask", "f.csv", *NEW, "--epsilon", "1", "--each-row"), "--budget FILE is missing"),
        (
            ("ask", "f.csv", *NEW, "--epsilon", "1", "--url", "http://127.0.0.1:1"),
            "not both",
        ),
        (("budget", "show"), "TACIT_URL"),
        (("budget", "show", "--compare", "--url", "http://127.0.0.1:1"), "needs the FILE"),
        (("budget", "show", "b", "--url", "http://127.0.0.1:1"), "not both"),
    ],
)
def test_options_that_do_not_go_together(command, words, said):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_a_budget_is_shown_as_far_as_the_token_may_see_it(server, command):
    with Budget.open(server.folder / "clinic.budget") as budget:
        budget.share("ben", epsilon=1)
        shown: dict[str, Any] = {}
        for name in ("ana", "vera", "boss"):
            code, out, _ = command("budget", "show", *reach(server, name))
            assert code == 0
            assert f"{server.url}: (ε = 10, δ = 0) promised to the people of visits, labs" in out
            shown[name] = [word for word in ("  ana ", "  ben ", "not shared") if word in out]
            line = command("budget", "show", *reach(server, name), "--json")[1]
            told = wire.from_line(line, wire.ShownBudget)
            assert told.whole == budget.whole
            assert told.promise == budget.promise
        assert shown == {"ana": ["  ana "], "vera": [], "boss": ["  ana ", "  ben ", "not shared"]}


def test_a_query_is_planned_and_paid_for_from_the_tokens_share(server, command):
    sql = "SELECT town, COUNT(DISTINCT pid) AS n FROM visits GROUP BY town"
    asked = ("query", sql, *reach(server, "ana"), "--table", "visits", "--max-cells", "1")
    code, out, err = command(*asked, "--epsilon", "1", "--plan")
    assert (code, err) == (0, "")
    assert "A query of 2 rows" in out
    code, out, err = command(*asked, "--epsilon", "1")
    assert code == 0, err
    assert out.splitlines()[0].split() == ["town", "n"]
    with Budget.open(server.folder / "clinic.budget") as budget:
        assert budget.shares[1].spent.epsilon == 1
    code, _, err = command(*asked, "--epsilon", "1", "--analyst", "ana")
    assert code == 2
    assert "the token says whose share pays" in err
