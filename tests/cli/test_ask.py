"""``tacit ask``: questions in, answers out, whatever is piped in."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from tests.cli.running import POISON

from tacit.analyst.stream import Stream
from tacit.analyst.table import open_table
from tacit.budget import Budget, Lease
from tacit.cli import conversation as clocks
from tacit.cli.conversation import LONGEST, Clock, seconds
from tacit.errors import BadParameter, EngineFailed, LedgerUnwritable
from tacit.privacy import Cost


def objects(ended):
    return [json.loads(line) for line in ended.out.splitlines()]


def left(name="clinic.budget"):
    with Budget.open(name) as budget:
        return budget.left.epsilon


def test_each_line_is_answered_with_its_question_beside_it(ask):
    ended = ask("town = 'Bruges'\ntown = 'Ghent'\n")
    assert ended.code == 0
    assert ended.out == "⊤  town = 'Bruges'\n⊥  town = 'Ghent'\n"
    assert "(ε = 100, δ = 0) paid; 3 of 3 ⊤ left" in ended.err
    assert "suspended, 2 of 3 ⊤ left" in ended.err


def test_empty_lines_and_comments_say_nothing_but_are_counted(ask):
    ended = ask("# towns\n\n   \ntown = 'Ghent'\n", "--json")
    assert [each["line"] for each in objects(ended)] == [4]


def test_json_has_the_same_keys_every_time(ask):
    ended = ask(
        "town = 'Bruges'\ntown = 'Ghent'\nage / 2 > 1\n", "--json", "--numeric", "--one-by-one"
    )
    above, below, refused = objects(ended)
    told = ["above", "value", "error", "gap", "recorded", "value_from", "interval", "unbiased"]
    told.append("exact")
    answered = ["tacit reply", "line", "question", *told, "tops_left", "halted"]
    assert list(above) == list(below) == answered
    assert list(refused) == ["tacit reply", "line", "question", "refused", "tops_left", "halted"]
    assert above["above"] is True
    assert abs(above["value"] - 200) <= 20
    assert above["error"] >= 0
    assert above["value_from"] == "gap"
    assert above["interval"][0] <= above["unbiased"] <= above["interval"][1]
    assert (below["value_from"], below["interval"], below["unbiased"]) == (None, None, None)
    assert isinstance(above["gap"], int)
    assert (below["above"], below["value"], below["gap"]) == (False, None, None)
    assert (above["tops_left"], refused["halted"]) == (2, False)
    assert "division" in refused["refused"]


def test_a_refused_question_is_told_why_and_the_stream_goes_on(ask):
    ended = ask("age / 2 > 1\nnosuch = 1\nselect 1; drop\ntown = 'Bruges'\n", "--one-by-one")
    assert ended.code == 0
    assert ended.out == "⊤  town = 'Bruges'\n"
    assert "refused (line 1): division" in ended.err
    assert "^^^^^^^" in ended.err
    assert "refused (line 2)" in ended.err


def test_a_line_of_json_brings_parameters_and_a_threshold_of_its_own(ask):
    town = {"question": "town = :t", "parameters": {"t": "Ghent"}}
    lines = [town, {**town, "threshold": 50}, {**town, "threshold": "101/2"}]
    lines.append({"question": "age > :threshold", "parameters": {"threshold": 3}})
    ended = ask("\n".join(map(json.dumps, lines)), "--json")
    assert [each["above"] for each in objects(ended)][:3] == [False, True, True]
    assert objects(ended)[3]["question"] == "count(age >= 4)"
    assert objects(ended)[0]["question"] == "count(town = 'Ghent')"


UNREADABLE = pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"question": "age > 3"', "not a JSON object"),
        ('{"question": ' + '{"a":' * 19_000, "not a JSON object"),
        ('{"question": "age > 3", "threshold": NaN}', "not a JSON object"),
        ('{"question": "age > 3", "theshold": 3}', "no entry 'theshold'"),
        ('{"threshold": 3}', "must be text"),
        ('{"question": "age > 3", "below": 1}', "must be true or false"),
        ('{"question": "age > :a", "parameters": [3]}', "must be an object"),
        ('{"question": "age > :a"}', ":a has no value"),
        ('{"question": "age > 3", "threshold": "many"}', "finite number"),
        ('{"question": "age > 3", "threshold": [1]}', "finite number"),
        ('{"question": "age > 3", "threshold": 1e999}', "finite number"),
        ("age > " + "1" * LONGEST, "at most"),
        ("town = '\udcff'", "UTF-8"),
        ("(" * 5000 + "age > 3" + ")" * 5000, ""),
        ("\x1b[2Jage > 3", ""),
    ],
)


@UNREADABLE
def test_a_line_that_cannot_be_read_is_refused_and_the_next_one_answered(ask, line, why):
    refused, answered = objects(ask(line + "\nage >= 0\n", "--json", "--one-by-one"))
    assert why in refused["refused"]
    assert answered["above"]
    assert answered["line"] == 2


@UNREADABLE
def test_what_would_be_refused_is_told_with_its_line_before_anything_is_paid(ask, line, why):
    ended = ask("age >= 0\n\n" + line + "\ntown = 'Ghent'\n", "--json")
    (refused,) = objects(ended)
    assert why in refused["refused"]
    assert (refused["line"], refused["tops_left"], refused["halted"]) == (3, 3, False)
    assert ended.code == 2
    assert "nothing was paid and nothing was asked" in ended.err
    assert left() == 1000


def test_every_line_that_would_be_refused_is_told(ask):
    ended = ask("age / 2 > 1\nage >= 0\nnosuch = 1\n")
    assert (ended.code, ended.out) == (2, "")
    assert "refused (line 1): division" in ended.err
    assert "refused (line 3)" in ended.err
    assert left() == 1000


@pytest.mark.parametrize(
    ("question", "options", "why"),
    [
        ("2 * count(age >= 0)", (), "open a stream with sensitivity=2"),
        ("count(age < 3) - count(age > 3)", (), "kind='any'"),
        ("0.5 * count(age >= 0)", (), "not on this stream's grid"),
        ('{"question": "age >= 0", "threshold": 1e30}', (), "threshold"),
        ("SELECT COUNT(*) FROM visits GROUP BY town", (), "max_rows"),
        ("2 * count(age >= 0)", ("--sensitivity", "2"), None),
        ("count(age < 3) - count(age > 3)", ("--kind", "any", "--recipe", "book"), None),
        ("0.5 * count(age >= 0)", ("--grid", "1/2", "--numeric"), None),
    ],
)
def test_a_question_that_the_stream_would_not_cover_is_found_before_paying(
    ask, question, options, why
):
    ended = ask(f"age >= 0\n{question}\n", "--json", *options)
    assert ended.code == (2 if why else 0), ended.err
    assert (left() == 1000) is (why is not None)
    if why:
        (refused,) = objects(ended)
        assert refused["line"] == 2
        assert why in refused["refused"]


def test_a_resumed_stream_is_paid_and_answers_what_it_can(ask):
    ask("", "--name", "watch")
    ended = ask("age / 2 > 1\nage >= 0\n", "--resume", "watch", "--json")
    assert ended.code == 0
    assert [each["line"] for each in objects(ended)] == [1, 2]


def test_an_input_that_does_not_end_is_told_so_and_costs_nothing(ask, monkeypatch):
    monkeypatch.setattr("tacit.cli.conversation.MOST_TOGETHER", 1000)
    ended = ask("age >= 0\n" * 112)
    assert (ended.code, ended.out) == (2, "")
    assert "--one-by-one" in ended.err
    assert left() == 1000
    assert ask("age >= 0\n" * 111, "--at-most", "1").code == 0


@pytest.mark.parametrize(
    "broken", ["tacit.tables.language.shapes.readable", "tacit.cli.conversation.read"]
)
@pytest.mark.parametrize("error", [IndexError(POISON), MemoryError(POISON)])
def test_an_error_that_nobody_expected_is_one_line_s_own(ask, monkeypatch, broken, error):
    """Whatever a parser raises is told before paying, and the lines after it are answered."""
    module, _, name = broken.rpartition(".")
    real = getattr(import_module(module), name)

    def read(text, *rest):
        if "distinct" in text:
            raise error
        return real(text, *rest)

    monkeypatch.setattr(broken, read)
    asked = "town = 'Bruges'\ncount(distinct)\ntown = 'Ghent'\n"
    ended = ask(asked, "--json")
    assert ended.code == 2
    assert [each["line"] for each in objects(ended)] == [2]
    assert left() == 1000
    ended = ask(asked, "--json", "--one-by-one")
    assert ended.code == 0
    first, second, third = objects(ended)
    assert (first["above"], third["above"]) == (True, False)
    assert type(error).__name__ in second["refused"]
    assert POISON not in ended.out + ended.err


def test_nothing_typed_moves_the_cursor_of_a_terminal(ask):
    ended = ask("age > \x1b[2J3\ntown = '\x1b[2J' or age >= 0\n", "--one-by-one")
    assert "\x1b" not in ended.out + ended.err
    assert ended.out.startswith("⊤")


def test_group_by_is_one_answer_for_each_cell(ask):
    ended = ask("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town\n", "--json")
    cells = objects(ended)
    assert [(each["cell"], each["cells"], each["above"]) for each in cells] == [
        (1, 3, True),
        (2, 3, False),
        (3, 3, False),
    ]
    assert cells[1]["question"] == "count(town = 'Ghent')"
    assert {each["line"] for each in cells} == {1}
    assert "for the 3 cells of town" in ended.err  # errs less than a stream


def test_cells_after_the_halt_are_counted(ask):
    ended = ask("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town\n", "--at-most", "1")
    assert len(ended.out.splitlines()) == 1
    assert "2 cells of the last question were not answered" in ended.err


def test_it_says_that_it_halts_and_reads_no_further(ask):
    ended = ask("town = 'Bruges'\nage >= 0\n", "--at-most", "1", "--json")
    (only,) = objects(ended)
    assert ended.code == 0
    assert (only["halted"], only["tops_left"]) == (True, 0)
    assert "has halted: the last of its 1 ⊤ is gone" in ended.err


def test_resuming_is_free_and_shows_what_was_answered(ask):
    ask("town = 'Bruges'\n", "--name", "watch", "--numeric")
    before = left()
    ended = ask("town = 'Bruges'\n", "--resume", "watch", "--json")
    assert left() == before
    assert "not paid again; 2 of 3 ⊤ left" in ended.err
    assert "answered before: ⊤ " in ended.err
    (again,) = objects(ended)
    assert again["tops_left"] == 2


def test_a_resumed_stream_goes_on_as_it_was_opened(ask):
    ask("", "--name", "watch")
    ended = ask("", "--resume", "watch", "--epsilon", "5", "--kind", "any")
    assert ended.code == 2
    assert ended.err.startswith(
        "tacit: --epsilon, --kind: stream 'watch' continues as it was opened"
    )
    assert ask("", "--resume", "nosuch").code == 2


def test_a_resumed_stream_needs_the_table_it_was_opened_on(ask, folder):
    ask("", "--name", "watch")
    declared = (folder / "visits.toml").read_text()
    (folder / "visits.toml").write_text(declared.replace("[0, 120]", "[0, 99]"))
    ended = ask("", "--resume", "watch")
    assert ended.code == 3
    assert "column age: bounds [0, 120] when it was opened, [0, 99] now" in ended.err


def test_ended_streams_stay_ended(ask):
    ask("town = 'Bruges'\n", "--at-most", "1", "--name", "watch")
    ended = ask("", "--resume", "watch")
    assert ended.code == 3
    assert "halted" in ended.err


def test_somebody_elses_stream_is_refused(ask, clinic):
    with Budget.open(clinic) as budget, open_table("visits.csv", person="pid") as table:
        mine = table.sparse(threshold=1, at_most=1, epsilon=1, budget=budget, name="mine")
        ended = ask("", "--resume", "mine")
        assert mine.tops_left == 1
    assert ended.code == 3
    assert "held" in ended.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give --person COLUMN, or --each-row"),
        (["--person", "pid", "--each-row"], "not both"),
        (["--person", "nosuch"], "person column 'nosuch' is not declared"),
    ],
)
def test_who_a_person_is_must_be_said(tacit, clinic, options, said):
    new = ["--threshold", "1", "--at-most", "1", "--epsilon", "1"]
    ended = tacit("ask", "visits.csv", "--budget", clinic, *new, *options)
    assert ended.code == 2
    assert said in ended.err
    assert left() == 1000


def test_a_new_stream_says_what_it_is(tacit, clinic):
    ended = tacit("ask", "visits.csv", "--person", "pid", "--budget", clinic, "--epsilon", "1")
    assert ended.code == 2
    assert "a new stream needs --threshold, --at-most" in ended.err


def test_an_exhausted_budget_says_what_is_left_and_loses_nothing(ask):
    ended = ask("age >= 0\n", "--epsilon", "2e3")
    assert ended.code == 3
    assert ended.out == ""
    assert "asks for ε = 2000, δ = 0; what is left is ε = 1000, δ = 0" in ended.err
    assert "tacit budget show" in ended.err
    assert left() == 1000


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--called", "labs"], 3, "covers visits, not 'labs'"),
        (["--analyst", "zoe"], 3, "'zoe' has no share"),
        (["--budget", "nosuch.budget"], 2, "tacit budget create"),
        (["--schema", "nosuch.toml"], 2, "nosuch.toml"),
        (["--table", "visits"], 2, "only a DuckDB file"),
        (["--threshold", "many"], 2, "--threshold 'many' is not allowed"),
        (["--at-most", "few"], 2, "'few' is not a whole number"),
        (["--at-most", "-1"], 2, "--at-most -1 is not allowed"),
        (["--delta", "2"], 2, "--delta '2'"),
        (["--kind", "all"], 2, 'Invalid value "all" for --kind'),
        (["--memory", "much"], 2, "--memory much"),
        (["--every", "often"], 2, "--every 'often'"),
        (["--every"], 2, "--every needs a value"),
        (["--epsilom", "1"], 2, "tacit ask --help"),
    ],
)
def test_bad_options_are_told_and_cost_nothing(ask, options, code, said):
    ended = ask("age >= 0\n", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert left() == 1000


def test_a_missing_or_broken_table_shows_nothing_of_itself(tacit, clinic, folder):
    new = ["--threshold", "1", "--at-most", "1", "--epsilon", "1", "--person", "pid"]
    assert tacit("ask", "nosuch.csv", "--budget", clinic, *new).code == 2
    (folder / "broken.parquet").write_text(POISON)
    ended = tacit("ask", "broken.parquet", "--budget", clinic, *new, "--called", "visits")
    assert ended.code == 4
    assert "not a Parquet file" in ended.err
    assert POISON not in ended.err
    assert left() == 1000
    # One field without its closing quote says nothing of itself either: it is NULL, like any other
    # value that cannot be read, and the table opens.
    (folder / "visits.csv").write_text(f'pid,town,age\n1,"{POISON}\n')
    ended = tacit("ask", "visits.csv", "--budget", clinic, *new, "--called", "visits")
    assert ended.code == 0
    assert POISON not in ended.out + ended.err


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError(POISON), 70), (EngineFailed("it failed"), 4)]
)
def test_an_error_while_asking_suspends_the_stream_and_quotes_nothing(
    ask, monkeypatch, error, code
):
    def fail(self, *args, **kwargs):
        raise error

    monkeypatch.setattr(Stream, "ask", fail)
    ended = ask("age >= 0\n", "--name", "watch")
    assert (ended.code, ended.out) == (code, "")
    assert POISON not in ended.err
    assert "suspended, 3 of 3 ⊤ left" in ended.err
    assert ("ValueError" in ended.err) is (code == 70)


def test_an_answer_that_could_not_be_recorded_is_not_shown_and_its_top_is_lost(ask, monkeypatch):
    def fail(self, *args, **kwargs):
        raise LedgerUnwritable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Lease, "record_top", fail)
        ended = ask("town = 'Ghent'\ntown = 'Bruges'\nage >= 0\n", "--name", "watch")
    assert (ended.code, ended.out) == (4, "⊥  town = 'Ghent'\n")
    assert "the disk is full" in ended.err
    assert "is suspended" not in ended.err
    again = ask("", "--resume", "watch")
    assert "2 of 3 ⊤ left (1 lost to unclean ends)" in again.err


def test_each_row_kind_and_the_book_can_be_asked_for(tacit, clinic):
    ended = tacit(
        *("ask", "visits.csv", "--each-row", "--budget", clinic, "--threshold", "0"),
        *("--at-most", "1", "--epsilon", "100", "--kind", "any", "--recipe", "book", "--json"),
        stdin="count(town = 'Ypres') - count(town = 'Bruges')\ncount(town = 'Bruges')\n",
    )
    assert [each["above"] for each in objects(ended)] == [False, True]
    assert "book noise" in ended.err


class FakeTime:
    """A clock that moves when it is slept on, or told to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def time(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr(clocks, "monotonic", fake.monotonic)
    monkeypatch.setattr(clocks, "sleep", fake.sleep)
    return fake


@pytest.mark.parametrize(
    ("took", "shown"), [(0.0, 0.05), (0.03, 0.05), (0.0499, 0.05), (0.06, 0.1), (0.31, 0.35)]
)
@pytest.mark.parametrize("asked_at", [0.0, 0.01, 0.0499])
def test_an_answer_is_shown_at_the_first_tick_after_its_question(time, took, shown, asked_at):
    clock = Clock(0.05)
    time.now += asked_at  # a tick missed must not tell where between two ticks it was asked
    start = time.now
    clock.start()
    time.now += took
    clock.wait()
    assert time.now - start == pytest.approx(shown)


def test_cells_come_one_a_tick_and_without_a_clock_nothing_waits(time):
    clock, start = Clock(0.5), time.now
    clock.start()
    for _ in range(3):
        clock.wait()
    assert time.now - start == pytest.approx(1.5)
    Clock(None).wait()
    assert time.now - start == pytest.approx(1.5)


def test_asking_on_a_clock_waits_for_refusals_too(ask, time):
    start = time.now
    asked = "age >= 0\nage / 2 > 1\ntown = 'Ghent'\n"
    ended = ask(asked, "--every", "2s", "--json", "--one-by-one")
    assert len(objects(ended)) == 3
    assert time.now - start == pytest.approx(6)


@pytest.mark.parametrize("text", ["", "50", "ms", "0ms", "-1s", "1e3s", "9999s", "1..2s", "5 min"])
def test_periods_that_are_none(text):
    with pytest.raises(BadParameter):
        seconds(text)


def test_what_was_paid_is_told_in_full(ask):
    assert "(ε = 1/3, δ = 0) paid" in ask("", "--epsilon", "1/3").err
    long = "0.33333333333333333333333333333333333"
    assert "(ε = 0.33333333333334, δ = 0) paid" in ask("", "--epsilon", long).err


def test_the_error_is_told_for_the_number_of_questions_it_was_computed_for(ask):
    assert "with 4 questions, all" in ask("", "--at-most", "3", "--questions", "1").err
    assert "with 50 questions, all" in ask("", "--at-most", "3", "--questions", "50").err


def test_a_resumed_stream_says_again_what_it_was_planned_for(ask):
    planned = "noise: with 200 questions, all answers are right with probability 0.9 if none is"
    options = ("--epsilon", "1/10", "--questions", "200", "--beta", "1/10", "--name", "watch")
    (opened,) = [line for line in ask("", *options).err.splitlines() if planned in line]
    assert opened in ask("", "--resume", "watch").err.splitlines()
    again = ask("", "--resume", "watch", "--questions", "10000")
    assert opened in again.err.splitlines()
    assert (
        "as asked: with 10 000 questions, all answers are right with probability 0.9" in again.err
    )
    other = ask("", "--resume", "watch", "--beta", "1/4")
    assert "as asked: with 200 questions, all answers are right with probability 0.75" in other.err


def test_what_version_0_1_did_not_keep_is_not_made_up(ask, clinic):
    with Budget.open(clinic) as budget, open_table("visits.csv", person="pid") as table:
        new = table.sparse(threshold=100, at_most=3, epsilon=1, budget=budget, name="new")
        stored = dict(budget.stream("new").binding)
        kept = {k: v for k, v in stored.items() if not k.startswith(("column.", "planned."))}
        old = {**kept, "schema": table.schema.digest}
        budget.open_stream(
            "old", cost=Cost.pure(1), table="visits", at_most=3, binding=old, secret=b"[0, 0]"
        )
        new.close()
    ended = ask("", "--resume", "old")
    assert "it was opened by Tacit 0.1, which did not store what it was planned for" in ended.err
    assert "10 000" not in ended.err
    ended = ask("", "--resume", "old", "--questions", "50")
    assert "as asked: with 50 questions, all" in ended.err
    ended = ask("", "--resume", "old", "--beta", "1/4")
    assert (ended.code, "--questions is missing: it is not known how many" in ended.err) == (
        2,
        True,
    )


def test_a_label_keeps_answers_apart_and_is_shown_with_them(ask):
    first = ask("town = 'Bruges'\n", "--as-of", "2026-10-31", "--name", "watch", "--json")
    again = ask("town = 'Bruges'\n", "--as-of", "2026-10-31", "--resume", "watch", "--json")
    later = ask("town = 'Bruges'\n", "--as-of", "2026-11-30", "--resume", "watch", "--json")
    told = [objects(ended)[0] for ended in (first, again, later)]
    assert [line["tops_left"] for line in told] == [2, 2, 1]
    assert [line["recorded"] and line["recorded"]["as_of"] for line in told] == [
        None,
        "2026-10-31",
        None,
    ]
    shown = ask("town = 'Bruges'\n", "--as-of", "2026-11-30", "--resume", "watch")
    assert shown.err.count("as of 2026-10-31  town") == 1
    assert "as of 2026-11-30  town = 'Bruges'" in shown.out


BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"


def test_again_asks_all_lines_in_rounds_and_tells_each_once(ask):
    lines = [
        "age / 2 > 1",
        BY_TOWN,
        "",
        "age >= 0",
        '{"question": "age > :a", "parameters": {"a": 120}}',
    ]
    ended = ask("\n".join(lines[1:]), "--json", "--again", "--rounds", "3")
    told = [(each["line"], each.get("cell"), each["above"]) for each in objects(ended)]
    towns = [(1, 1, True), (1, 2, False), (1, 3, False)]
    assert told == [*towns, (3, None, True), (4, None, False)]
    assert "each asked up to 3 times" in ended.err
    assert objects(ended)[-1]["tops_left"] == 1
    refused = ask("\n".join(lines), "--again", "--rounds", "3", "--name", "other")
    assert refused.code == 2
    assert "nothing was paid" in refused.err


@pytest.mark.parametrize(
    ("options", "lines", "why"),
    [
        (["--again"], "age > 3", "--again needs --rounds"),
        (["--again", "--rounds", "1"], "age > 3", "--again needs --rounds"),
        (["--again", "--rounds", "2", "--one-by-one"], "age > 3", "leave --one-by-one out"),
        (
            ["--again", "--rounds", "2"],
            'age > 3\n{"question": "age > 3", "threshold": 7}',
            "thresholds of their own",
        ),
    ],
)
def test_again_is_refused_before_anything_is_paid(ask, options, lines, why):
    before = left()
    ended = ask(lines, *options)
    assert ended.code == 2
    assert why in ended.err
    assert left() == before


def test_at_most_is_asked_with_below(ask):
    low = {"question": "town = 'Ghent'", "below": True}
    lines = [low, {**low, "question": "town = 'Bruges'"}, {**low, "threshold": 5}, low]
    ended = ask("\n".join(map(json.dumps, lines)), "--json", "--kind", "directed")
    told = objects(ended)
    assert [each["above"] for each in told] == [True, False, False, True]
    assert told[0]["question"] == "-count(town = 'Ghent')"
    assert told[3]["recorded"]
    refused = ask(json.dumps(low), "--name", "other")
    assert refused.code == 2
    assert "kind='directed'" in refused.err
    both = ask("town = 'Ghent'\n" + json.dumps(low), "--again", "--rounds", "2", "--name", "third")
    assert both.code == 2


PRICED = (
    *("--least-scale", "1", "--threshold", "20", "--epsilon", "12", "--questions", "50"),
    *("--beta", "1e-9"),  # noise alone makes no ⊤
)


def test_each_top_has_a_price(ask):
    low = {"question": "town = 'Ghent'", "scale": 3}
    ended = ask(f"town = 'Bruges'\n{json.dumps(low)}", *PRICED, "--scale", "2", "--json")
    assert ended.code == 0
    assert "100 % of what pays for ⊤ left" in ended.err
    assert "% of what pays for ⊤ left; --resume stream-1" in ended.err
    told = objects(ended)
    assert told[0]["above"]
    assert told[0]["tops_left"] == 9  # at scale 1, from what was 10.07 and is 9.57
    again = ask("age >= 0", "--resume", "stream-1", "--scale", "2", "--json")
    assert objects(again)[0]["above"]
    unpayable = ask("age >= 0\nage >= 1\nage >= 2", "--resume", "stream-1", "--one-by-one")
    assert unpayable.code == 0


def test_a_line_that_is_too_dear_is_refused_and_the_next_is_read(ask):
    lines = ["town = 'Bruges'", "age >= 0", '{"question": "age >= 1", "scale": 30}']
    options = ("--least-scale", "1", "--threshold", "20", "--epsilon", "2", "--questions", "50")
    ended = ask("\n".join(lines), *options)
    assert ended.code == 0
    assert "ask at scale" in ended.err
    assert len(ended.out.splitlines()) == 2


def test_a_scan_descends(ask):
    lines = "town = 'Bruges'\nage >= 0\ntown = 'Nowhere'"
    ended = ask(lines, *PRICED, "--descending", "--scale", "8")
    assert [line[0] for line in ended.out.splitlines()] == ["⊤", "⊤", "⊥"]


@pytest.mark.parametrize(
    "options",
    [
        ["--scale", "3"],
        ["--descending"],
        [*PRICED, "--at-most", "3"],
        [*PRICED, "--descending", "--one-by-one"],
        [*PRICED, "--scale", "1/2"],
    ],
)
def test_wrong_prices_are_refused_before_anything_is_paid(ask, options):
    before = left()
    assert ask("age > 3", *options).code == 2
    assert left() == before


def test_what_a_server_does_not_take_is_refused_before_it_is_asked(tacit):
    new = ["--threshold", "9", "--epsilon", "1", "--at-most", "1", "--table", "visits"]
    ended = tacit("ask", "--url", "http://127.0.0.1:9", "--token-file", "t", *new, "--descending")
    assert ended.code == 2
    assert "goes with a FILE" in ended.err
