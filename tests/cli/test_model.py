"""``tacit model``: plans, pays, answers each line with a number, and goes on where it was left."""

from __future__ import annotations

import json

import pytest

from tacit import wire
from tacit.analyst.watched_answer import WatchedAnswer

WATCH = ("model", "visits.csv", "--person", "pid")
NEW = ("--epsilon", "1", "--max-rows", "1", "--columns", "age,town", "--bins", "age=4")


@pytest.fixture(autouse=True)
def visits(tacit, folder):
    rows = "\n".join(f"{n},{n % 60},{'Ghent' if n % 3 else 'Bruges'}" for n in range(300))
    (folder / "visits.csv").write_text(f"pid,age,town\n{rows}\n")
    (folder / "visits.toml").write_text(
        '[columns.pid]\ntype = "integer"\n[columns.age]\ntype = "integer"\nbounds = [0, 99]\n'
        '[columns.town]\ntype = "text"\nkeys = ["Bruges", "Ghent"]\n'
    )
    made = tacit("budget", "create", "b.budget", "--epsilon", "2", "--covers", "visits")
    assert made.code == 0, made.err


def test_a_plan_costs_nothing(tacit):
    shown = tacit(*WATCH, *NEW, "--plan")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("Watched model of visits, (ε = 1")
    assert "ε = 2, δ = 0" in tacit("budget", "show", "b.budget").out


def test_every_line_is_answered_and_it_can_be_resumed(tacit):
    asked = "age >= 30\n\n# a note\ntown = 'Ghent'\n"
    pays = ("--budget", "b.budget")
    first = tacit(*WATCH, *NEW, *pays, "--name", "m", "--surprises", "3", stdin=asked)
    assert first.code == 0, first.err
    assert len(first.out.splitlines()) == 2
    assert "95 %" in first.out
    assert "resume it with --resume m" in first.err
    again = tacit(*WATCH, *pays, "--resume", "m", "--json", stdin="age >= 30\nage / 2 > 3\n")
    assert again.code == 2
    told, refused = map(json.loads, again.out.splitlines())
    answer = wire.from_json(told, WatchedAnswer)
    assert answer.source in ("model", "measured")
    assert refused["error"] == "QuestionRefused"
    assert "ε = 1, δ = 0" in tacit("budget", "show", "b.budget").out


def test_lines_are_read_as_by_ask(tacit):
    lines = [
        '{"question": "town = :town", "parameters": {"town": "Ghent"}}',
        '{"question": "age >= 30", "threshold": 5}',
        "{age >= 30",
        "\udcff age >= 30",
    ]
    ended = tacit(*WATCH, *NEW, "--budget", "b.budget", stdin="\n".join(lines))
    assert ended.code == 2
    first, *refused = ended.out.splitlines()
    assert "95 %" in first
    assert [line.split(":")[0] for line in refused] == ["refused"] * 3
    assert "no threshold" in refused[0]
    assert "not a JSON object" in refused[1]
    assert "not valid UTF-8" in refused[2]


def test_a_public_file_is_a_model(tacit, folder):
    (folder / "public.csv").write_text("age,town\n" + "30,Ghent\n40,Bruges\n" * 20)
    ended = tacit(
        *WATCH,
        *("--epsilon", "1", "--model", "public.csv", "--people", "300", "--budget", "b.budget"),
        stdin="town = 'Ghent'\n",
    )
    assert ended.code == 0, ended.err
    assert "public already" in ended.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--budget", "b.budget"), "--epsilon"),
        (NEW, "--budget"),
        ((*NEW, "--resume", "m", "--budget", "b.budget"), "does not go with --resume"),
        (("--resume", "m", "--plan"), "--plan does not go with --resume"),
        (("--resume", "m", "--budget", "b.budget"), "m"),
        (("--epsilon", "1", "--bins", "age", "--plan"), "--bins is a list"),
        (("--epsilon", "1", "--model", "uniform", "--budget", "b.budget"), "model"),
    ],
)
def test_bad_input_is_explained(tacit, options, said):
    ended = tacit(*WATCH, *options, stdin="")
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err
