"""`tacit watch`: the same questions after every refresh, on a schedule that no data decide."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

import pytest

from tacit import wire
from tacit.budget import Budget
from tacit.cli import watch as watching
from tacit.cli.exits import BAD_INPUT, DONE, run
from tacit.cli.watch_file import label_at, period, read_watch_file
from tacit.errors import BadConfiguration, BadParameter

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.admitted]
type = "date"
"""
FILE = """
budget = "clinic.budget"
every = "1 day"
questions = ["town = 'Bruges' and admitted = :as_of", "town = 'Ghent'"]
[table]
source = "visits.csv"
person = "pid"
grows_by = "admitted"
[stream]
name = "towns"
threshold = 500
at_most = 3
epsilon = 100
questions = 100
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A thousand people come to Bruges on 3 October, and ten on every other day."""
    rows = [
        f"{1000 * day + n},Bruges,2026-10-{day:02}"
        for day in range(1, 8)
        for n in range(1000 if day == 3 else 10)
    ]
    (tmp_path / "visits.csv").write_text("\n".join(["pid,town,admitted", *rows, ""]))
    (tmp_path / "visits.toml").write_text(SCHEMA)
    (tmp_path / "watch.toml").write_text(FILE)
    with Budget.create(tmp_path / "clinic.budget", epsilon=1000, covers=["visits"]):
        pass
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # paths are read from the file's folder
    return tmp_path


def ran(folder: Path, *labels: str, more: tuple[str, ...] = ()) -> int:
    given = [part for label in labels for part in ("--as-of", label)]
    return run(["watch", str(folder / "watch.toml"), *given, *more])


def edit(folder: Path, *changes: tuple[str, str]) -> None:
    text = (folder / "watch.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "watch.toml").write_text(text)


DAYS = [f"2026-10-0{day}" for day in range(1, 6)]


def test_only_a_top_is_told_and_the_stream_goes_on_another_day(folder, capsys):
    assert ran(folder, *DAYS[:2]) == DONE
    told = capsys.readouterr()
    assert told.out == ""
    assert "asking visits as of 2026-10-01" in told.err
    assert "3 of 3 ⊤ left" in told.err
    assert ran(folder, *DAYS[2:]) == DONE
    told = capsys.readouterr()
    assert told.out == "2026-10-03  ⊤  count(town = 'Bruges' and admitted = '2026-10-03')\n"
    assert "2 of 3 ⊤ left" in told.err
    with Budget.open(folder / "clinic.budget") as budget:
        assert budget.spent.epsilon == 100  # once


def test_an_alarm_is_given_again_from_the_record(folder, capsys):
    ran(folder, DAYS[2])
    capsys.readouterr()
    ran(folder, DAYS[2])
    told = capsys.readouterr()
    assert "on record since" in told.out
    assert "2 of 3 ⊤ left" in told.err


def test_alarms_as_json_are_replies_that_say_where(folder, capsys):
    assert ran(folder, *DAYS, more=("--json",)) == DONE
    (line,) = capsys.readouterr().out.splitlines()
    alarm = json.loads(line)
    assert alarm["table"] == "visits"
    assert alarm["stream"] == "towns"
    assert alarm["as_of"] == "2026-10-03"
    reply = wire.from_json(alarm)
    assert isinstance(reply, wire.Reply)
    assert reply.answer is not None
    assert reply.answer.above


def test_a_command_gets_the_alarm_on_its_standard_input(folder, capfd):
    (folder / "tell.py").write_text("import sys; open(sys.argv[1], 'a').write(sys.stdin.read())\n")
    told = folder / "told.jsonl"
    command = json.dumps([sys.executable, str(folder / "tell.py"), str(told)])
    edit(folder, ("every =", f"command = {command}\nevery ="))
    assert ran(folder, *DAYS) == DONE
    (line,) = told.read_text().splitlines()
    assert json.loads(line)["question"].startswith("count(town = 'Bruges'")
    assert capfd.readouterr().out.startswith("2026-10-03  ⊤")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit(3)", "ended with 3"),
        ("import time; time.sleep(600)", "took too long"),
    ],
)
def test_a_command_that_fails_stops_nothing(folder, capfd, monkeypatch, program, said):
    monkeypatch.setattr(watching, "COMMAND_SECONDS", 1)
    command = json.dumps([sys.executable, "-c", program])
    edit(folder, ("every =", f"command = {command}\nevery ="))
    assert ran(folder, *DAYS) == DONE
    told = capfd.readouterr()
    assert said in told.err
    assert "asking visits as of 2026-10-05" in told.err


def test_it_ends_when_the_stream_halts(folder, capsys):
    edit(folder, ("at_most = 3", "at_most = 1"))
    assert ran(folder, *DAYS) == DONE
    told = capsys.readouterr()
    assert "has halted" in told.err
    assert "2026-10-04" not in told.err


def test_questions_are_checked_before_anything_is_paid(folder, capsys):
    edit(folder, ("town = 'Ghent'", "twon = 'Ghent'"))
    assert ran(folder, DAYS[0]) == BAD_INPUT
    assert "twon" in capsys.readouterr().err
    with Budget.open(folder / "clinic.budget") as budget:
        assert budget.spent.epsilon == 0


def test_a_label_that_is_no_later_ends_it_in_order(folder, capsys):
    assert ran(folder, DAYS[1], DAYS[0]) == BAD_INPUT
    told = capsys.readouterr()
    assert "give a later" in told.err
    assert "is suspended, 3 of 3 ⊤ left" in told.err


def test_without_labels_there_must_be_a_clock(folder, capsys):
    edit(folder, ('every = "1 day"\n', ""))
    assert ran(folder) == BAD_INPUT
    assert "--as-of LABEL" in capsys.readouterr().err


# The clock


class Time:
    """Time that passes only while somebody sleeps, and a little more than they asked for."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds + 0.25


def test_the_clock_types_the_labels(folder, capsys, monkeypatch):
    """It begins on 1 October at noon, and on the 3rd the only ⊤ is gone."""
    monkeypatch.setattr(watching, "time", Time(1_790_812_800 + 43_200))
    edit(folder, ("at_most = 3", "at_most = 1"))
    assert ran(folder) == DONE
    told = capsys.readouterr()
    days = [line.rpartition(" ")[2] for line in told.err.splitlines() if "asking visits" in line]
    assert days == DAYS[:3]
    assert told.out.startswith("2026-10-03  ⊤")


def test_ticks_are_multiples_of_the_period(monkeypatch):
    clock = Time(1_790_899_200 + 43_201)
    monkeypatch.setattr(watching, "time", clock)
    ticks = watching._ticks(21_600)
    assert [*islice(ticks, 2)] == ["2026-10-02 12:00:00", "2026-10-02 18:00:00"]
    clock.now += 3 * 21_600  # late: the ticks that passed are not left out
    assert [*islice(ticks, 2)] == ["2026-10-03 00:00:00", "2026-10-03 06:00:00"]


def test_periods_and_labels():
    assert [period(text) for text in ("30 s", "1 second", "2 min", "1h", "2 weeks", "7 days")] == [
        *(30, 1, 120, 3600, 1_209_600, 604_800)
    ]
    for text in ("", "1", "0 days", "-1 day", "1 month", "1.5 days", "s", "9999999 s"):
        with pytest.raises(BadParameter, match="every"):
            period(text)
    assert label_at(0, 86_400) == "1970-01-01"


# The file


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("budget =", "bugdet =", r"line 2: bugdet: there is no such entry"),
        ('budget = "clinic.budget"', "", "budget: it is missing"),
        ('"1 day"', '"now and then"', "line 3: every: give a period"),
        ('"1 day"', "1", "line 3: every: give a text"),
        ('questions = ["town', 'questions = [7, "town', "line 4: questions: give a list of texts"),
        ('person = "pid"\n', "", "table.person: name a column"),
        ('person = "pid"', 'person = "pid"\neach_row = true', "table.person"),
        ("threshold = 500", "treshold = 500", "stream.treshold: there is no such entry"),
        ("threshold = 500\n", "", "stream.threshold: it is missing"),
        ("at_most = 3", "at_most = true", "stream.at_most: give a whole number"),
        ("[table]", "[[table]]", "table: give a table"),
        ("every =", 'command = ["no such program"]\nevery =', "there is no program"),
        ("[stream]", "[stream", "it is not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named(folder, old, new, said):
    edit(folder, (old, new))
    with pytest.raises(BadConfiguration, match=said):
        read_watch_file(str(folder / "watch.toml"))


def test_a_file_that_cannot_be_read(folder):
    with pytest.raises(BadParameter, match="No such file"):
        read_watch_file(str(folder / "nothing.toml"))
    (folder / "watch.toml").write_bytes(b"\xff")
    with pytest.raises(BadConfiguration, match="UTF-8"):
        read_watch_file(str(folder / "watch.toml"))
