"""Data that change: a public label says which state they are in, and answers belong to it."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import pytest

import tacit
from tacit.errors import BadParameter, QuestionRefused
from tacit.tables.language.question_key import question_key, question_key_0_1

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent"]
[columns.admitted]
type = "date"
[columns.seen]
type = "timestamp"
"""
GHENT = "town = 'Ghent'"
BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"


@pytest.fixture
def opened(tmp_path):
    """Open a table of so many people in Ghent, half of them admitted in October, under a label."""

    def table(people, as_of=None):
        days = ("2026-10-15", "2026-11-15")
        rows = [f"{pid},Ghent,{days[pid % 2]},{days[pid % 2]} 08:00:00" for pid in range(people)]
        (tmp_path / "visits.csv").write_text("\n".join(["pid,town,admitted,seen", *rows, ""]))
        source = tmp_path / "visits.csv"
        return tacit.open(source, person="pid", schema=SCHEMA, as_of=as_of)

    return table


@pytest.fixture
def stream(calm):
    def new(table, budget):
        return table.numeric_sparse(threshold=100, at_most=9, budget=budget, name="flu", **calm)

    return new


def test_an_answer_on_record_belongs_to_its_label(opened, stream, budget):
    with opened(1000, "2026-10-31") as october, stream(october, budget) as first:
        assert first.ask(GHENT).value == pytest.approx(1000, abs=50)
    with opened(3000, "2026-11-30") as november, november.resume("flu", budget=budget) as second:
        fresh = second.ask(GHENT)
        assert fresh.value == pytest.approx(3000, abs=50)
        assert fresh.recorded is None
        assert second.tops_left == 7
    with opened(9999, "2026-10-31") as october, october.resume("flu", budget=budget) as third:
        again = third.ask(GHENT)
        assert again.value == pytest.approx(1000, abs=50)
        assert again.recorded.as_of == "2026-10-31"
        assert third.tops_left == 7
        assert [entry.answer.recorded.as_of for entry in third.recorded] == [
            "2026-10-31",
            "2026-11-30",
        ]


@pytest.mark.parametrize("as_of", [None, "2026-10-31", "the autumn census"])
@pytest.mark.parametrize("again", ["in this sitting", "in the next"])
def test_an_answer_from_the_record_says_so_and_since_when(opened, stream, budget, as_of, again):
    with opened(1000, as_of) as table:
        asked = stream(table, budget)
        first = asked.ask(GHENT)
        assert first.recorded is None
        if again == "in the next":
            asked.suspend()
            asked = table.resume("flu", budget=budget)
        for shown in (asked.ask(GHENT), *asked.ask_all([GHENT]), *list(asked.ask_all(BY_TOWN))[1:]):
            assert shown == first  # the same answer, drawn once
        shown = asked.ask(GHENT)
        (entry,) = [entry.body for entry in budget.history if entry.kind == "top"][:1]
        assert (shown.recorded.at, shown.recorded.as_of) == (entry["at"], as_of)
        assert entry.get("as_of", None) == as_of
        assert ("as_of" in entry) is (as_of is not None)
        label = f" as of {as_of}" if as_of else ""
        assert str(shown) == f"{first}, on record since {entry['at'][:10]}{label}"
        assert str(shown) in str(asked.history)
        assert str(shown) in str(asked.recorded)
        asked.suspend()
    budget.verify()


def test_the_same_label_finds_its_cells_by_value(opened, stream, budget):
    with opened(1000, "2026-10-31") as table, stream(table, budget) as asked:
        assert [answer.above for answer in asked.ask_all(BY_TOWN)] == [False, True]
    with opened(1000, "2026-10-31") as table, table.resume("flu", budget=budget) as asked:
        assert [bool(answer.recorded) for answer in asked.ask_all(BY_TOWN)] == [False, True]
        assert asked.tops_left == 8


# The key of a recorded answer -----------------------------------------------------------------


def test_without_a_label_the_key_is_what_version_0_1_stored(visits):
    asked = visits.prepare("town = 'Bruges'").question(), visits.prepare("age >= 0").question()
    stored = (
        "50f325293b99b8183a9e4e0483ba34e90cbe2c2e35eaff6db7771208c6eca541",
        "842351d4956fe4c9112987a74873a86a3a78e1155fafac722714b481e244aecc",
    )
    found = (
        question_key_0_1(asked[0], None, None),
        question_key_0_1(asked[1], Fraction(250), None),
    )
    assert found == stored


def test_keys_do_not_run_together(visits):
    asked = visits.prepare("age >= 0").question()
    limits = [None, Fraction(1), Fraction(1, 2), Fraction(12)]
    labels = [None, "None", '"None"', "1", "1/2", "2", "1 2", ' "1"', "\\", "é", "e\u0301"]
    for form in (question_key, question_key_0_1):
        keys = {form(asked, limit, label) for limit in limits for label in labels}
        assert len(keys) == len(limits) * len(labels)


def test_a_label_s_key_stays(visits):
    asked = visits.prepare("age >= 0").question()
    assert question_key_0_1(asked, None, "2026-11-01") == (
        "a9153a948c3ce0167feb3dbd9301b597401ca7f3fa22993860f95dd1683d2c62"
    )


# :as_of in questions --------------------------------------------------------------------------


def test_the_label_s_date_stands_for_as_of(opened, stream, budget):
    with opened(1000, "2026-10-31") as table:
        assert table.as_of == "2026-10-31"
        assert "as of 2026-10-31" in repr(table)
        asked = stream(table, budget)
        assert asked.ask("admitted <= :as_of").value == pytest.approx(500, abs=50)
        assert asked.history[-1].question == "count(admitted <= '2026-10-31')"
        assert not asked.ask("admitted > :as_of and town = :town", town="Bruges")
        assert asked.ask("seen < :as_of")
        cells = "SELECT COUNT(DISTINCT pid) FROM visits WHERE admitted > :as_of GROUP BY town"
        assert [bool(answer) for answer in asked.ask_all(cells)] == [False, True]
        prepared = table.prepare("admitted <= :as_of and town = :t")
        pairs = [(prepared, {"t": town}) for town in ("Bruges", "Ghent")]
        assert [bool(answer) for answer in asked.ask_all(pairs)] == [False, True]
        counted = table.count("admitted <= :as_of", epsilon=50, budget=budget)
        assert counted.value == pytest.approx(500, abs=50)
        for question in ("admitted <= :as_of", "admitted <= :as_of and town = :town"):
            assert table.check(question)
        assert "admitted <= '2026-10-31'" in str(table.check("admitted <= :as_of"))
        filled = table.check("admitted <= :as_of and town = :town", town="Ghent")
        assert "2026-10-31" in str(filled)
        asked.suspend()


def test_a_label_with_a_time_stands_for_that_time(opened):
    with opened(1, "2026-10-15T08:00:00Z") as table:
        assert "seen <= '2026-10-15 08:00:00'" in str(table.check("seen <= :as_of"))
        assert "the column holds dates" in str(table.check("admitted <= :as_of"))


@pytest.mark.parametrize("as_of", [None, "the autumn census", "2026-13-01", "20261101"])
def test_without_a_date_as_of_is_refused(opened, stream, budget, as_of):
    with opened(1, as_of) as table, stream(table, budget) as asked:
        for refused in (
            lambda: asked.ask("admitted <= :as_of"),
            lambda: asked.ask_all(["admitted <= :as_of"]),
            lambda: table.count("admitted <= :as_of", epsilon=1, budget=budget),
        ):
            with pytest.raises(QuestionRefused, match="its steward must open it with a date"):
                refused()
        assert "its steward must open it with a date" in str(table.check("admitted <= :as_of"))


@pytest.mark.parametrize("name", ["as_of", "AS_OF"])
def test_a_label_is_not_given_by_the_analyst(opened, stream, budget, name):
    given = {name: date(2026, 1, 1)}
    with opened(1, "2026-10-31") as table, stream(table, budget) as asked:
        for question in (f"admitted <= :{name}", "town = 'Ghent'"):
            with pytest.raises(QuestionRefused, match="is the label of the table"):
                asked.ask(question, **given)
            with pytest.raises(QuestionRefused, match="is the label of the table"):
                asked.ask_all([(question, given)])
            assert "is the label of the table" in str(table.check(question, **given))
        assert not asked.ask(f"admitted <= :{name}")  # which the table fills in


def test_a_table_without_a_label_leaves_the_name_to_the_analyst(opened):
    with opened(1) as table:
        assert table.as_of is None
        filled = table.check("admitted <= :as_of", as_of="2026-01-01")
        assert "admitted <= '2026-01-01'" in str(filled)


@pytest.mark.parametrize(
    "label", ["", " 2026", "a\nb", "a\0", "\ud800", "x" * 201, 20261101, date(2026, 11, 1), b"x"]
)
def test_what_is_no_label(opened, label):
    with pytest.raises(BadParameter, match="the steward chooses it"):
        opened(1, label)
