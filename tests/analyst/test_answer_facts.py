"""What an answer is: what it is about, and how one computes with it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.analyst.histogram import CellSum
from tacit.analyst.ranges import RangeCount
from tacit.book.answer import BELOW, Answer, GapNoise
from tacit.book.laplace import Estimate
from tacit.errors import BadParameter
from tacit.privacy import Privacy

ESTIMATE = Estimate(value=Fraction(1204), noise_scale=Fraction(20), privacy=Privacy("1/20"))
FRESH = Answer(above=True, value=Fraction(1204), noise_scale=Fraction(20), gap=Fraction(9))
NOISE = GapNoise(Fraction(20), Fraction(5), value_shift=-15, groups=2)
FROM_GAP = Answer(above=True, value=Fraction(1204), gap=Fraction(9), gap_noise=NOISE)
SUM = CellSum(value=Fraction(90), noise_scale=Fraction(2), privacy=Privacy(1), cells=3)
RANGE = RangeCount(
    value=Fraction(90), noise_scale=Fraction(2), privacy=Privacy(1), noises=Fraction(7, 2)
)
NUMBERS = [ESTIMATE, FRESH, FROM_GAP, SUM, RANGE]
CONSTANTS = [3, -2, 0.5, Fraction(-1, 3), Decimal("1.21"), np.int64(4)]


def ends(number):
    """The least and the largest that the truth may be, as the number says."""
    if isinstance(number, Answer):
        return number.interval()
    return number.value - number.error(), number.value + number.error()


@pytest.mark.parametrize("constant", CONSTANTS, ids=repr)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
def test_the_error_bar_follows_what_is_computed(number, constant):
    c = Fraction(str(constant))
    low, high = ends(number)
    assert ends(number + constant) == ends(constant + number) == (low + c, high + c)
    assert ends(number - constant) == (low - c, high - c)
    assert ends(constant - number) == (c - high, c - low)
    assert ends(number * constant) == ends(constant * number)
    assert ends(number * constant) == tuple(sorted([low * c, high * c]))
    assert ends(number / constant) == tuple(sorted([low / c, high / c]))
    assert ends(-number) == (-high, -low)
    assert type(number * constant) is type(number)
    for computed in (number * constant, number + constant):
        assert (computed / constant if computed == number * constant else computed - constant) == (
            number
        )


def test_what_is_unbiased_follows_too():
    found = FROM_GAP.unbiased
    assert found is not None
    for c in (Fraction(3), Fraction(-2)):
        assert (FROM_GAP * c + 5).unbiased == found * c + 5


@pytest.mark.parametrize("number", [ESTIMATE / 8, FRESH / 8, FROM_GAP / 8])
def test_as_a_number(number):
    assert (int(number), round(number), round(number, 1), float(number)) == (150, 150, 150.5, 150.5)
    assert (f"{number:.0f}", f"{number:08.2f}", f"{number}") == ("150", "00150.50", str(number))
    assert f"{number * 8000:,}" == "1,204,000"
    assert f"{number * 8:d}" == "1204"
    assert 150.5 <= number < 151
    assert 150 < number <= Decimal("150.5")
    assert number < ESTIMATE
    assert not number > ESTIMATE
    assert sorted([ESTIMATE, number]) == [number, ESTIMATE]
    assert (number == 150.5) is False  # all of it would have to be the same


@pytest.mark.parametrize(
    "wrong",
    [lambda n: n + n, lambda n: n * "2", lambda n: n < "2", lambda n: 2 / n, lambda n: n + True],
)
def test_what_is_no_constant_is_refused(wrong):
    with pytest.raises(TypeError):
        wrong(ESTIMATE)


def test_what_cannot_be_computed_is_told():
    with pytest.raises(BadParameter, match="divisor = 0"):
        ESTIMATE / 0
    with pytest.raises(BadParameter, match="constant = nan"):
        ESTIMATE * float("nan")
    with pytest.raises(BadParameter, match=r"format = \.1q is not allowed"):
        f"{ESTIMATE:.1q}"
    for answer, called in ((BELOW, "⊥"), (Answer(above=True), "⊤ without a value")):
        for compute in (int, float, round, lambda a: a * 2, lambda a: a + 1, lambda a: a > 3):
            with pytest.raises(BadParameter, match=f"answer = {called} is not allowed: it has no"):
                compute(answer)


# What it is about --------------------------------------------------------------------------------

SCHEMA = """
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = ["Bruges", "Ghent", "Ypres"]
[columns.above]
type = "integer"
keys = [1]
"""


@pytest.fixture
def visits(tmp_path):
    rows = "".join(f"{n},{'Ghent' if n < 900 else 'Bruges'},1\n" for n in range(1000))
    (tmp_path / "visits.csv").write_text("pid,town,above\n" + rows)
    with tacit.open(tmp_path / "visits.csv", person="pid", schema=SCHEMA) as table:
        yield table


@pytest.fixture
def budget():
    return tacit.Budget.in_memory(epsilon=100, covers=["visits"])


def test_an_estimate_knows_its_question(visits, budget):
    found = visits.count("town = :town", town="Ghent", epsilon=1, budget=budget, retry_key="a")
    assert (found.question, found.table, found.cell) == ("count(town = 'Ghent')", "visits", {})
    assert (found.on_record, found.privacy) == (False, Privacy(1))
    again = visits.count("town = :town", town="Ghent", epsilon=1, budget=budget, retry_key="a")
    assert (again, again.on_record, again.question) == (found, True, found.question)
    assert again.at == budget.history[-1].body["at"] <= found.at
    assert (found * 2).question == found.question
    assert "count(town = &#x27;Ghent&#x27;) · visits" in found._repr_html_()
    cell = visits.histogram("town", max_rows=1, epsilon=1, budget=budget)["Ghent"]
    assert (cell.cell, cell.table) == ({"town": "Ghent"}, "visits")


def test_an_answer_knows_its_question_and_its_cell(visits, budget):
    with visits.numeric_sparse(threshold=400, at_most=3, epsilon=20, budget=budget) as stream:
        top = stream.ask("town = 'Ghent'")
        assert (top.question, top.table, top.recorded) == ("town = 'Ghent'", "visits", None)
        assert top.privacy == stream.recipe.privacy
        assert budget.history[-1].body["at"] <= top.at
        again = stream.ask("town = 'Ghent'")
        assert (again.question, again.at) == (top.question, again.recorded.at)
        assert stream.ask("town = 'Ypres'") is BELOW  # one object: what it is about costs nothing
        below = stream.history[-1].answer
        assert (below, below.question, below.table) == (BELOW, "town = 'Ypres'", "visits")
        assert (below.at, below.privacy) == (stream.history[-1].at, stream.recipe.privacy)
        (recorded,) = stream.recorded
        assert recorded.answer.question == "town = 'Ghent'"
        assert recorded.answer.at == again.at <= top.at
        told = stream.ask_all("SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town, above")
        cells = [{"town": town, "above": 1} for town in ("Bruges", "Ghent", "Ypres")]
        assert [dict(answer.cell) for answer in told if answer] == [cells[1]]
        assert [dict(each.cell) for each in stream.history[-3:]] == cells
        assert [dict(each.answer.cell) for each in stream.history[-3:]] == cells


def test_a_batch_and_a_history_become_frames(visits, budget, tmp_path):
    pytest.importorskip("pandas")
    with visits.numeric_sparse(threshold=400, at_most=2, epsilon=20, budget=budget) as stream:
        asked = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town, above"
        told = stream.ask_all(asked)
        assert next(told) is BELOW
        frame = told.to_pandas()
        assert list(frame.columns) == [
            *("town", "above_", "question", "above", "value", "error", "recorded", "unbiased"),
            *("lower", "upper"),
        ]
        low, high = told.told[1].interval()
        assert (frame["lower"][1], frame["upper"][1]) == (low, high)
        assert list(frame["above"]) == [False, True, False]
        assert list(frame["town"]) == ["Bruges", "Ghent", "Ypres"]
        assert abs(frame["value"][1] - 900) < 50
        assert stream.unanswered == ()
        halted = stream.ask_all(["town = 'Bruges'", "pid >= 0", "pid >= 1"])
        assert halted.to_dict()["above"] == [False, True, None]
        assert stream.unanswered == ("pid >= 1",)
        stream.history.to_csv(tmp_path / "history.csv")
        lines = (tmp_path / "history.csv").read_text().splitlines()
        own = "question,above,value,error,recorded,unbiased,lower,upper,threshold,at"
        assert lines[0] == f"town,above_,{own}"
        assert len(lines) == 1 + 5


def test_everything_is_a_table_in_a_notebook(visits, budget):
    shown = visits._repr_html_()
    assert "visits, one person: pid" in shown
    assert "keys &#x27;Bruges&#x27;, &#x27;Ghent&#x27;, &#x27;Ypres&#x27;" in shown
    assert "<td style='text-align:left'>whole</td>" in budget._repr_html_()
    assert "1 for each person" in visits.check("town = 'Ghent'")._repr_html_()
    assert "refused" in visits.check("town < <b>")._repr_html_()
    assert "<b>" not in visits.check("town = '<i>'")._repr_html_().split("</b>", 1)[1]
    assert BELOW._repr_html_() == "<b>⊥</b>"
