"""One contract for the local table and the one on a server: the same values, the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from tests.server.clinic import write_clinic
from tests.server.conftest import Running, served
from tests.server.faces import Face, local_face, refused, remote_face

import tacit
from tacit import wire
from tacit.errors import (
    Advice,
    BadParameter,
    BudgetExhausted,
    Halted,
    KeyReused,
    QuestionRefused,
    StreamEnded,
    StreamMismatch,
)

MUCH = 10**12  # of ε in all: at ε = 1000 noise is 0 but with probability e^-1000
CALM: dict[str, Any] = {"epsilon": 1000, "questions": 10}
TOWNS = "select count(distinct pid) from visits group by town"


@pytest.fixture(scope="module")
def calm_server(tmp_path_factory) -> Iterator[Running]:
    with served(tmp_path_factory.mktemp("calm"), epsilon=MUCH, share=MUCH // 2) as running:
        yield running


@pytest.fixture
def remote(calm_server) -> Iterator[Face]:
    with tacit.connect(calm_server.url, token=calm_server.tokens["ana"]) as connection:
        yield remote_face(connection, "visits")


@pytest.fixture
def local(tmp_path) -> Iterator[Face]:
    write_clinic(tmp_path, epsilon=MUCH)
    with (
        tacit.Budget.open(tmp_path / "clinic.budget") as budget,
        tacit.open(tmp_path / "visits.csv", person="pid", people=300, as_of="2026-11-01") as visits,
    ):
        budget.share("ana", epsilon=MUCH // 2)
        yield local_face(visits, budget, "ana")


@pytest.fixture(params=["local", "remote"])
def face(request) -> Face:
    found: Face = request.getfixturevalue(request.param)
    return found


# Releases ---------------------------------------------------------------------------------------

RELEASES: dict[str, Any] = {
    "count": lambda face, **more: face.count("town = 'Ghent'", epsilon=1000, **more),
    "parameters": lambda face, **more: face.count(
        "town = :town and age < :age", town="Ghent", age=Fraction(101, 2), epsilon="1000", **more
    ),
    "a list": lambda face, **more: face.count(
        "age in :ages", ages=[3, Decimal("4.0"), 5], epsilon=1000.0, **more
    ),
    "prepared": lambda face, **more: face.count(
        face.prepare("age >= :age"), age=60, epsilon=1000, **more
    ),
    "label": lambda face, **more: face.count("age >= 60", epsilon=Fraction(3001, 3), **more),
    "sum": lambda face, **more: face.sum(
        "cost", where="town = :town", town="Ghent", epsilon=10**6, **more
    ),
    "histogram": lambda face, **more: face.histogram(
        "town", "age", max_rows=1, epsilon=1000, **more
    ),
    "query": lambda face, **more: face.query(
        "SELECT town, COUNT(DISTINCT pid) AS n, SUM(cost) FROM visits WHERE age < :a GROUP BY town",
        params={"a": Fraction(101, 2)},
        epsilon=10**6,
        weights=[2, Decimal("1.5")],
        max_cells=3,
        **more,
    ),
    "query, quotients": lambda face, **more: face.query(
        "SELECT 100.0 * COUNT(*) FILTER (WHERE age > 50) / COUNT(*) AS p, STDDEV(cost) FROM visits",
        epsilon=10**10,
        max_rows=9,
        **more,
    ),
    "query, largest": lambda face, **more: face.query(
        "SELECT town, COUNT(DISTINCT pid) FROM visits GROUP BY town ORDER BY 2 DESC LIMIT 2",
        epsilon=10**6,
        weights=[1, 2],
        max_cells=1,
        **more,
    ),
    "query, rows": lambda face, **more: face.query(
        "SELECT COUNT(*) FROM visits", epsilon=10**6, max_rows=2, **more
    ),
    "query, having": lambda face, **more: face.query(
        "SELECT town, AVG(cost) FROM visits GROUP BY town HAVING COUNT(DISTINCT pid) > 150",
        epsilon=10**6,
        weights=[1, 2],
        max_rows=1,
        at_most=1,
        **more,
    ),
    "ranges": lambda face, **more: face.ranges("age", epsilon=10**6, max_rows=1, **more),
    "running": lambda face, **more: face.running("age", epsilon=10**6, max_rows=1, **more),
    "top": lambda face, **more: face.top(2, TOWNS, epsilon=10**6, counts_epsilon=10**6, **more),
    "top, listed": lambda face, **more: face.top(
        1, ["age > 3", ("age > :a", {"a": 50})], epsilon=10**6, **more
    ),
    "small_db": lambda face, **more: face.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=10**9, rows=3, **more
    ),
    "small_db, certified": lambda face, **more: face.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=10**9, rows=3, certificate_epsilon=10**9, **more
    ),
    "predicates": lambda face, **more: face.small_db(
        ["age <= 3", "age > 7"], max_rows=1, epsilon=10**9, rows=3, **more
    ),
    "synthetic": lambda face, **more: face.synthetic(
        ["town", "age"], epsilon=10**6, rows=50, bins={"age": [0, 20, 60]}, max_rows=1, **more
    ),
    "synthetic, in rounds": lambda face, **more: face.synthetic(
        ["town", "age"],
        epsilon=Fraction(10**7, 3),
        rounds=1,
        marginals=[["age", "town"]],
        rows=20,
        bins={"age": 4},
        max_rows=1,
        **more,
    ),
}
DRAWN = {"small_db", "small_db, certified", "predicates"}  # several are as good as one another
INVENTED = {"synthetic", "synthetic, in rounds"}  # rows are drawn from what was measured


@pytest.mark.parametrize("kind", RELEASES)
def test_a_release_is_the_same(local, remote, kind):
    here, there = RELEASES[kind](local), RELEASES[kind](remote)
    assert type(here) is type(there)
    told, other = wire.to_json(here), wire.to_json(there)
    if kind in INVENTED:
        assert here.plan == there.plan
        assert all(each.pop("codes") for each in (told, other))
        told.pop("tacit synthetic"), other.pop("tacit synthetic")
        assert told == other
    elif kind in DRAWN:
        assert told.keys() == other.keys()
        assert here.guarantee("1/20") == there.guarantee("1/20")
        assert here.certified("1/20") == there.certified("1/20")
    else:
        assert told == other


@pytest.mark.parametrize("kind", RELEASES)
def test_a_key_brings_it_again_and_costs_nothing(face, kind):
    key = f"{kind}, {face.table!r:.5}"
    first = wire.to_json(RELEASES[kind](face, retry_key=key))
    spent = face.budget.spent
    assert wire.to_json(RELEASES[kind](face, retry_key=key)) == first
    assert face.budget.spent == spent
    other = "label" if kind == "count" else "count"
    if kind in ("count", "parameters", "prepared", "label", "a list"):  # the same call
        assert refused(RELEASES[other], face, retry_key=key)[0] is KeyReused
        assert face.budget.spent == spent


@pytest.mark.parametrize(
    ("name", "given", "named"),
    [
        ("count", ["age /"], {"epsilon": 1}),
        ("count", ["age > :a"], {"epsilon": 1}),
        ("count", ["age > 3"], {"epsilon": 0}),
        ("count", ["age > 3"], {"epsilon": "x"}),
        ("count", [TOWNS], {"epsilon": 1}),
        ("count", ["age > 3"], {"epsilon": 1, "retry_key": ""}),
        ("count", ["town = :d"], {"epsilon": 1, "d": date(2026, 1, 1)}),
        ("count", [3], {"epsilon": 1}),
        ("sum", ["town"], {"epsilon": 1}),
        ("sum", ["nothing"], {"epsilon": 1}),
        ("sum", ["cost"], {"epsilon": 1, "where": "(("}),
        ("histogram", ["pid"], {"epsilon": 1}),
        ("histogram", [], {"epsilon": 1}),
        ("histogram", ["town"], {"epsilon": 1, "max_rows": 0}),
        ("query", ["age > 3"], {"epsilon": 1}),
        ("query", ["SELECT COUNT(DISTINCT pid) FROM visits"], {"epsilon": 0}),
        ("query", ["SELECT COUNT(DISTINCT pid) FROM visits"], {"epsilon": 1, "weights": [1, 2]}),
        ("query", [TOWNS], {"epsilon": 1}),
        ("query", [TOWNS], {"epsilon": 1, "max_cells": 0}),
        ("query", [3], {"epsilon": 1}),
        ("ranges", ["town"], {"epsilon": 1}),
        ("ranges", ["age"], {"epsilon": 1}),
        ("running", ["town"], {"epsilon": 1}),
        ("top", [3, TOWNS], {"epsilon": 1}),
        ("top", [1, ["age > 3"]], {"epsilon": 1}),
        ("top", [1, 5], {"epsilon": 1}),
        ("synthetic", [["nothing"]], {"epsilon": 1}),
        ("synthetic", [["town", "age"]], {"epsilon": 1, "max_rows": 0}),
        ("synthetic", [["town", "age"]], {"epsilon": 1, "max_rows": 1, "bins": {"age": "x"}}),
        ("synthetic", [["town", "age"]], {"epsilon": 1, "max_rows": 1, "marginals": [["no"]]}),
        ("sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "rounds": 0}),
        ("small_db", [tacit.prefixes("nothing")], {"epsilon": 1}),
        ("small_db", ["age > 3"], {"epsilon": 1}),
        ("small_db", [tacit.prefixes("age")], {"epsilon": 1, "rows": -1}),
        ("small_db", [tacit.prefixes("age")], {"epsilon": 1, "certificate_epsilon": 0}),
        ("sparse", [], {"threshold": 1, "at_most": 0, "epsilon": 1}),
        ("sparse", [], {"threshold": "x", "at_most": 1, "epsilon": 1}),
        ("sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "kind": "all"}),
        ("sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "recipe": "mine"}),
        ("sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "recipe": 3}),
        ("sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "name": ""}),
        ("sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "name": 3}),
        ("above_threshold", [], {"threshold": 1, "epsilon": 1, "beta": 2}),
        ("numeric_sparse", [], {"threshold": 1, "at_most": 1, "epsilon": 1, "values": "x"}),
        ("resume", ["nothing"], {}),
        ("resume", [3], {}),
    ],
)
def test_an_error_is_the_same(local, remote, name, given, named):
    assert local.refused(name, *given, **named) == remote.refused(name, *given, **named)


def test_rows_of_a_person_are_bounded_by_the_call_where_the_schema_says_nothing(local, remote):
    rows = "select count(*) from visits where town = 'Bruges'"
    towns = "select count(*) from visits group by town"
    for face in (local, remote):
        counted = face.count(rows, epsilon=1000, max_rows=3)
        assert counted.value == 200
        assert counted.noise_scale == Fraction(3, 1000)
        assert face.top(1, towns, epsilon=1000, max_rows=3).to_dict()["town"] == ["Bruges"]
        assert face.plan_top(1, towns, epsilon=1, max_rows=3).mechanism.sensitivity == 3
    for call, given in (
        ("count", (rows,)),
        ("top", (1, towns)),
    ):
        assert local.refused(call, *given, epsilon=1) == remote.refused(call, *given, epsilon=1)
        bad = {"epsilon": 1, "max_rows": 0}
        assert local.refused(call, *given, **bad) == remote.refused(call, *given, **bad)
    prepared = local.prepare("select count(distinct pid) from visits")
    kind, words = local.refused("count", prepared, epsilon=1, max_rows=3)
    assert kind is BadParameter
    assert "give its text" in words


def test_what_does_not_fit_is_refused_and_costs_nothing(face):
    spent = face.budget.spent
    kind, words = face.refused("count", "age > 3", epsilon=MUCH)
    assert kind is BudgetExhausted
    assert "left" in words
    assert face.budget.spent == spent


def test_what_is_planned_is_the_same(local, remote):
    for plan in (
        lambda face: str(face.plan_ranges("age", epsilon=1, max_rows=1)),
        lambda face: str(face.plan_histogram("town", max_rows=1, epsilon=1)),
        lambda face: str(face.plan_top(1, TOWNS, epsilon=1)),
        lambda face: str(face.plan_synthetic(["town", "age"], epsilon=1, max_rows=1)),
        lambda face: str(face.plan_query(TOWNS, epsilon=1, max_cells=2)),
        lambda face: str(face.plan_small_db(tacit.intervals("age"), max_rows=1, epsilon=1, rows=4)),
        lambda face: face.questions(tacit.prefixes("age")).vc_dimension().dimension,
        lambda face: face.prepare("age > :a").shape,
    ):
        assert plan(local) == plan(remote)


# Streams ----------------------------------------------------------------------------------------


def opened(face: Face, **more: Any) -> Any:
    return face.sparse(**{"threshold": 100, "at_most": 3, **CALM, **more})


def test_a_stream_answers_looks_and_halts_alike(face):
    stream = opened(face, numeric=True)
    assert (stream.threshold, stream.tops_left, stream.halted) == (100, 3, False)
    assert stream.planned.questions == 10
    assert stream.accuracy(questions=100).alpha >= stream.accuracy().alpha
    answers = [stream.ask("town = :town and age < :age", town="Ghent", age=a) for a in (9, 99)]
    assert [answer.above for answer in answers] == [False, False]
    top = stream.ask("town = 'Bruges'")
    assert top.above
    assert abs(top.value - 200) <= top.error()
    assert stream.tops_left == 2
    again = stream.ask("town = 'Bruges'")
    assert again == top
    assert again.recorded.as_of == "2026-11-01"
    assert stream.ask("town = 'Ghent'", threshold=50).above
    assert [each.question for each in stream.recorded] == ["town = 'Bruges'", "town = 'Ghent'"]
    assert [entry.answer.above for entry in stream.history] == [False, False, True, True, True]
    assert stream.history[0].question == "count(town = 'Ghent' and age <= 8)"
    assert stream.ask(face.prepare("age >= :age"), age=0).above
    assert (stream.halted, stream.tops_left) == (True, 0)
    assert refused(stream.ask, "age > 3")[0] is Halted
    assert stream.ask("town = 'Bruges'") == top  # it is on record


def test_each_top_has_a_price_alike(face):
    options: dict[str, Any] = {"least_scale": 1, "threshold": 20, "epsilon": 6, "beta": "1e-9"}
    stream = opened(face, at_most=None, name="priced", **options)
    paid = stream.recipe.question_epsilon
    assert stream.epsilon_left == paid
    assert stream.ask("town = 'Bruges'", scale=4).above
    assert 0 <= paid - stream.epsilon_left - Fraction(1, 4) < paid / 10**6
    answers = [answer.above for answer in stream.ask_all(["age > 98", "age > 3"], scale=2)]
    assert answers == [False, True]
    assert stream.tops_left == (stream.epsilon_left * 10**6 / paid) // stream.recipe.price
    assert refused(stream.ask, "age > 3", scale="1/2")[0] is BadParameter
    assert not stream.check("age > 3", scale="1/2")
    assert refused(opened(face).ask, "age > 3", scale=3)[0] is BadParameter
    assert refused(opened, face, least_scale=3)[0] is BadParameter
    asked = [f"age >= {age}" for age in range(9)]
    tops = list(stream.ask_all(asked))
    assert 0 < len(tops) < 9
    assert stream.unanswered == tuple(asked[len(tops) :])
    assert refused(stream.ask, "age >= 8")[0] is Halted
    stream.suspend()
    assert face.resume("priced").epsilon_left < 1


def test_large_surprises_are_found_first_alike(local, remote):
    asked = ["age > 98", "town = 'Bruges'", "age > 97", "town = 'Ghent'", "age > 96"]
    told = []
    for face in (local, remote):
        stream = opened(face, at_most=None, least_scale=1, threshold=50, epsilon=10**4)
        paid = stream.recipe.question_epsilon
        answers = list(stream.ask_all(asked, descending=True, scale="1.5"))
        assert "".join("⊤" if answer else "⊥" for answer in answers) == "⊥⊤⊥⊤⊥"
        spent = paid - stream.epsilon_left
        assert 2 * Fraction(2, 3) <= spent < 2 * Fraction(2, 3) + paid / 10**5
        assert stream.unanswered == ()
        numeric = opened(
            face, at_most=None, least_scale=1, threshold=50, epsilon=10**4, numeric=True, rounds=2
        )
        tops = list(numeric.ask_all(asked, descending=True, again=True, scale="1.5"))
        told.append([top.gap_noise.rounds for top in tops if top] + [len(numeric.history)])
        rounds = told[-1][0]
        assert told[-1] == [rounds, rounds, 5 + 3 * (rounds - 1)]
    assert told[0] == told[1]
    here, there = (opened(face, name="not descending") for face in (local, remote))
    for named in ({"descending": True}, {"descending": 1}, {"scale": 2}):
        words = [refused(stream.ask_all, asked, **named) for stream in (here, there)]
        assert words[0] == words[1]


@pytest.mark.parametrize(
    ("questions", "named"),
    [
        ("select count(distinct pid) from visits group by town", {}),
        (["age > 98", "age > 3", "age > 97", "town = 'Bruges'", "age > 96", "age > 3"], {}),
        ([("age > :a", {"a": a}) for a in (99, 98, 3, 97)], {"threshold": 200}),
        ([], {}),
        (["age > 98"] * 700, {}),
    ],
)
def test_a_batch_is_answered_alike(face, questions, named):
    stream = opened(face, at_most=3)
    stream.ask("town = 'Bruges'")  # is on record
    answers = [answer.above for answer in stream.ask_all(questions, **named)]
    expected = {
        0: [],
        2: [True, False],
        4: [False, False, True, False],
        6: [False, True, False, True, False, True],
        700: [False] * 700,
    }
    size = 2 if isinstance(questions, str) else len(questions)
    assert answers == expected[size]
    assert stream.unanswered == ()
    assert len(stream.history) == 1 + size


def test_a_group_by_is_told_what_errs_less(face):
    stream = opened(face, at_most=3, epsilon="1/2")
    with pytest.warns(Advice, match="for the 2 cells of town") as heard:
        batch = stream.ask_all(TOWNS)
    assert heard[0].filename == __file__
    assert str(heard[0].message) == batch.instead


def test_questions_of_at_most(face):
    stream = opened(face, kind="directed", numeric=True, at_most=4)
    few = "town = 'Ghent' and age < 9"
    assert stream.check(few, below=True).refusal is None
    assert not stream.ask("town = 'Bruges'", below=True)
    low = stream.ask(few, below=True, retry_key="low")
    assert low.above
    assert 0 <= low.value + low.error() < 100
    assert stream.ask(few, below=True, retry_key="low") == low
    assert stream.ask(few, below=True, retry_key="recorded") == low
    assert not stream.ask(few), "the other direction is another question"
    assert stream.ask("town = 'Bruges'").above
    assert not stream.ask("town = 'Bruges'", below=True, threshold=150)
    batch = stream.ask_all(["town = 'Bruges'", few, "age < 3"], below=True, threshold=99)
    assert [answer.above for answer in batch] == [False, True, True]
    assert stream.halted
    assert [str(each.question)[:1] for each in stream.history][:2] == ["-", "-"]
    history = [(each.answer.above, each.threshold) for each in stream.history]
    assert history[0] == (False, -100)
    assert history[-1] == (True, -99)
    assert refused(opened(face).ask, "age > 3", below=True)[0] is QuestionRefused


def test_what_at_most_is_refused_for_is_the_same(local, remote):
    here, there = opened(local, name="at most"), opened(remote, name="at most")
    for named in ({"below": True}, {"below": 1}, {"below": True, "threshold": "x"}):
        assert refused(here.ask, "age > 3", **named) == refused(there.ask, "age > 3", **named)
        for batch in (["age > 3"], TOWNS):
            words = [refused(stream.ask_all, batch, **named) for stream in (here, there)]
            assert words[0] == words[1]
    for named in ({"again": True}, {"again": 1}):
        words = [refused(stream.ask_all, ["age > 3"], **named) for stream in (here, there)]
        assert words[0] == words[1]


@pytest.mark.parametrize(
    ("questions", "at_most", "expected"),
    [
        (["age > 98", "age > 3", "age > 97", "town = 'Bruges'", "age > 96"], 4, "⊥⊤⊥⊤⊥"),
        ([f"age > {age}" for age in (98, 3, 97, 4, 5, 96)], 2, "⊥⊤⊥⊤"),
        ("select count(distinct pid) from visits group by town", 3, "⊤⊥"),
        (["age > 98"], 1, "⊥"),
        (["age > 3"], 1, "⊤"),
        ([], 1, ""),
    ],
)
def test_what_is_below_is_asked_again(face, questions, at_most, expected):
    threshold = 150 if isinstance(questions, str) else 100
    stream = opened(face, at_most=at_most, rounds=3, numeric=True, threshold=threshold)
    assert stream.planned.rounds == 3
    assert stream.accuracy(rounds=5).alpha >= stream.accuracy().alpha
    answers = list(stream.ask_all(questions, again=True))
    assert "".join("⊤" if answer else "⊥" for answer in answers) == expected
    tops = [answer for answer in answers if answer]
    assert all(top.gap_noise is None or top.gap_noise.rounds == 3 for top in tops)
    assert stream.tops_left == at_most - len(tops)
    asked = len(expected)  # then what is left, twice more, if it has not halted
    left = 0 if stream.halted else expected.count("⊥")
    assert len(stream.history) == asked + 2 * left
    recorded = [each.answer for each in stream.recorded]
    assert all(top.gap_noise is None or top.gap_noise.rounds == 3 for top in recorded)


def test_a_batch_stops_when_the_stream_halts(face):
    stream = opened(face, at_most=2)
    answers = stream.ask_all([f"age > {age}" for age in (98, 3, 97, 4, 5, 96)])
    assert [answer.above for answer in answers] == [False, True, False, True]
    assert stream.unanswered == ("age > 5", "age > 96")
    assert stream.halted
    assert refused(stream.ask_all, ["age > 98"])[0] is Halted


def test_leaving_a_batch_early(face):
    stream = opened(face)
    for answer in stream.ask_all([f"age > {age}" for age in (98, 3, 97, 4)]):
        if answer:
            break
    assert stream.unanswered == ("age > 97", "age > 4")
    assert stream.tops_left == 2
    assert not stream.ask("age > 98")


def test_what_a_batch_is_refused_for_is_the_same(local, remote):
    here, there = opened(local, name="batches"), opened(remote, name="batches")
    for questions, named in (
        (["age >"], {}),
        (["age > 3", "select sum(cost) from visits"], {}),
        (3, {}),
        ([3], {}),
        (["age > 3"], {"threshold": "x"}),
    ):
        assert refused(here.ask_all, questions, **named) == refused(
            there.ask_all, questions, **named
        )
    for stream in (here, there):
        stream.suspend()
    words = [refused(lambda s=s: list(s.ask_all(["age > 3"]))) for s in (here, there)]
    assert words[0] == words[1]


def test_what_a_stream_refuses_is_the_same(local, remote):
    here, there = opened(local, name="refusing"), opened(remote, name="refusing")
    assert here.recipe == there.recipe
    assert here.planned == there.planned
    for question, named in (
        ("age >", {}),
        ("age > :a", {}),
        (3, {}),
        (TOWNS, {}),
        ("select sum(cost) from visits", {}),
        ("select - count(distinct pid) from visits", {}),
        ("age > 3", {"threshold": "1/3x"}),
        ("age > 3", {"retry_key": ""}),
    ):
        assert refused(here.ask, question, **named) == refused(there.ask, question, **named)
        named.pop("retry_key", None)
        if isinstance(question, str):
            assert here.check(question, **named) == there.check(question, **named)
    assert here.tops_left == there.tops_left == 3
    assert refused(opened, local, name="refusing") == refused(opened, remote, name="refusing")
    for stream in (here, there):
        stream.close()
        stream.close()
    assert refused(here.ask, "age > 3") == refused(there.ask, "age > 3")
    assert local.refused("resume", "refusing") == remote.refused("resume", "refusing")


def test_a_stream_is_suspended_and_resumed(face):
    with opened(face, name="coming back") as stream:
        top = stream.ask("town = 'Bruges'")
    assert refused(stream.ask, "age > 3")[0] is StreamEnded
    assert refused(stream.close)[0] is StreamEnded
    again = face.resume("coming back")
    assert again.tops_left == 2
    assert again.ask("town = 'Bruges'") == top
    assert not again.ask("town = 'Nowhere'")
    again.close()
    assert refused(face.resume, "coming back")[0] is StreamEnded


def test_the_same_key_asks_once(face):
    stream = opened(face)
    first = [stream.ask("age > 3", retry_key="a"), stream.ask("age > 98", retry_key="b")]
    for _ in range(3):
        again = [stream.ask("age > 3", retry_key="a"), stream.ask("age > 98", retry_key="b")]
        assert wire.to_json(again[0]) == wire.to_json(first[0])
        assert again == first
    assert stream.tops_left == 2
    assert refused(stream.ask, "age > 4", retry_key="a")[0] is KeyReused
    assert stream.tops_left == 2


def test_the_same_key_opens_one_stream(face):
    spent = face.budget.spent.epsilon
    one = opened(face, name="once", retry_key="k")
    one.suspend()
    two = opened(face, name="once", retry_key="k")
    assert two.name == one.name
    assert face.budget.spent.epsilon == spent + 1000
    assert refused(opened, face, name="twice", retry_key="k")[0] is KeyReused


def test_recipes_of_a_plan(face):
    plan = tacit.plan.sparse(questions=10, at_most=3, epsilon=1000)
    for option in plan.options[:2]:
        stream = opened(face, recipe=option.recipe)
        assert stream.recipe == option.recipe
    assert opened(face, recipe="book").recipe == plan.recipe("book")
    other = tacit.plan.sparse(questions=10, at_most=2, epsilon=1000).best
    assert refused(opened, face, recipe=other)[0] is BadParameter


def test_a_stream_of_another_table_is_not_resumed_here(calm_server, remote, local):
    opened(remote, name="of visits")
    with tacit.connect(calm_server.url, token=calm_server.tokens["ana"]) as connection:
        kind, words = refused(connection.table("labs").resume, "of visits")
    assert kind is StreamMismatch
    opened(local, name="of visits").suspend()
    with tacit.open(local.table.engine and _labs(local), person=tacit.EACH_ROW) as labs:
        assert (kind, words) == refused(labs.resume, "of visits", budget=local.budget)


def _labs(local: Face) -> Any:
    """The file of the other table, beside the local budget."""
    place = local.budget._ledger.place
    return place.removesuffix("clinic.budget") + "labs.csv"
