"""A batch under a key, in blocks: as `ask_all` answers it, each block one write of one size."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analyst.test_engine_failures import Failing
from tests.budget.watched import nothing_happens, watch, watched

import tacit
from tacit import wire
from tacit.analyst.blocks import Block
from tacit.analyst.table import Table
from tacit.budget import Budget, RetryKey
from tacit.errors import (
    BadParameter,
    EngineFailed,
    Halted,
    KeyReused,
    LedgerUnwritable,
    QuestionRefused,
    StreamEnded,
)

AGES = [98, 97, 3, 96, 4, 95, 94, 93]


def questions(ages: list[int]) -> list[str]:
    return [f"age > {age}" for age in ages]


def keys(name: str, request: object = "it"):
    return lambda start: RetryKey(name, "ana", f"ask_all from {start}", request)


@pytest.fixture
def engine(visits) -> Any:
    return Failing(visits.engine)


@pytest.fixture
def seen(tmp_path):
    with Budget.create(tmp_path / "seen.budget", epsilon=10**6, covers=["visits"]) as budget:
        yield watched(budget)


@pytest.fixture
def stream(engine, seen, calm):
    table = Table(engine, people=300)
    return table.numeric_sparse(threshold=100, at_most=4, budget=seen, name="s", **calm)


def shape(blocks: list[Block]) -> list[list[bool]]:
    return [[answer.above for answer in block.answers] for block in blocks]


def test_a_batch_ends_with_its_first_top_and_looks_once(stream, engine):
    blocks = list(stream.ask_blocks(questions(AGES), size=2, most=9, keys=keys("k")))
    assert shape(blocks) == [[False, False], [True]]
    assert [block.asked for block in blocks] == [2, 2]
    assert [block.done for block in blocks] == [False, True]
    assert engine.calls == 1
    rest = list(stream.ask_blocks(questions(AGES), size=4, most=9, keys=keys("k2"), skip=3))
    assert shape(rest) == [[False, True]]
    last = list(stream.ask_blocks(questions(AGES), size=4, most=9, keys=keys("k3"), skip=5))
    assert shape(last) == [[False, False, False]]
    assert last[-1].done
    assert stream.tops_left == 2


def test_the_same_batch_brings_the_same_blocks_and_goes_on(stream, engine, seen):
    first = stream.ask_blocks(questions(AGES[:2] * 3), size=2, most=9, keys=keys("k"))
    told = [next(first), next(first)]  # and then the connection breaks
    entries = len(seen.history)
    again = stream.ask_blocks(questions(AGES[:2] * 3), size=2, most=9, keys=keys("k"))
    assert [next(again), next(again)] == told
    assert len(seen.history) == entries
    assert next(again).done
    assert len(seen.history) == entries + 1
    assert (
        len(list(stream.ask_blocks(questions(AGES[:2] * 3), size=3, most=9, keys=keys("k")))) == 3
    )
    with pytest.raises(KeyReused):
        next(stream.ask_blocks(questions(AGES), size=2, most=9, keys=keys("k", "another body")))
    assert len(list(stream.ask_blocks([], size=2, most=9, keys=keys("none")))) == 0


def test_what_is_on_record_is_told_in_its_place(stream):
    top = stream.ask("age > 3")
    (block,) = stream.ask_blocks(
        ["age > 3", *questions([98, 97]), "age > 3", "age > 4", "age > 3"],
        size=10,
        most=9,
        keys=keys("k"),
    )
    assert shape([block]) == [[True, False, False, True, True]]
    answers = list(block.answers)
    assert answers[0] == answers[3] == top
    assert answers[3].recorded is not None
    assert answers[4].recorded is None
    assert wire.from_json(wire.to_json(block)) == block
    assert stream.tops_left == 2


def test_every_block_is_one_write_of_one_size(stream, seen):
    lengths, rows = set(), set()
    points: list[str] = []
    watch(seen, points.append)
    batches = [[98, 97, 96], [3, 97, 96], [97, 98, 4], [96, 5, 95], [98, 97, 94]]
    for number, ages in enumerate(batches):
        points.clear()
        (block,) = stream.ask_blocks(questions(ages), size=3, most=9, keys=keys(f"k{number}"))
        entry = seen.history[-1]
        (kept,) = [paid.kept for paid in seen.answers if paid.number == entry.number]
        assert kept.response is not None
        lengths.add((len(entry.text) - len(str(entry.body["top"])), len(kept.response)))
        rows.add(tuple(point.split(": ")[1] for point in points))
        assert wire.from_json(dict(wire.parsed(kept.response)), Block) == block
    assert [entry.kind for entry in seen.history][-5:] == ["told", "top", "top", "top", "told"]
    assert len(lengths) == 1
    assert len(rows) == 1


def test_a_long_question_is_cut_in_the_record_of_a_block(stream, seen):
    long = "age > 3 or " + " or ".join(f"town = 'é{n}'" for n in range(200))
    (block,) = stream.ask_blocks([long], size=3, most=9, keys=keys("k"))
    assert block.answered == 1
    assert next(block.answers).above
    assert seen.history[-1].body["answer"]["text"].endswith("characters)")
    assert stream.ask(long).recorded is not None


@pytest.mark.parametrize("ages", [[98, 97], [3, 97]])
def test_a_block_that_cannot_be_recorded_ends_the_stream(stream, seen, ages):
    def full(point: str) -> None:
        if point.endswith(": begun"):
            raise LedgerUnwritable("no space left")

    blocks = stream.ask_blocks(questions(ages), size=2, most=9, keys=keys("k"))
    watch(seen, full)
    with pytest.raises(LedgerUnwritable):
        next(blocks)
    watch(seen, nothing_happens)
    with pytest.raises(StreamEnded):
        next(stream.ask_blocks(questions(ages), size=2, most=9, keys=keys("k")))


def test_an_engine_that_fails_ends_the_stream(stream, engine):
    engine.failure = ValueError("somebody")
    with pytest.raises(EngineFailed):
        next(stream.ask_blocks(questions(AGES), size=2, most=9, keys=keys("k")))
    assert not stream.live


def test_what_is_refused_is_refused_before_the_data_are_seen(stream, engine):
    for asked, kind in (("age >", QuestionRefused), ("select sum(cost) from visits", None)):
        with pytest.raises(kind or QuestionRefused):
            next(stream.ask_blocks([asked], size=2, most=9, keys=keys("k")))
    with pytest.raises(BadParameter, match="at most 1"):
        stream.ask_blocks(["age > 3"] * 2, size=2, most=1, keys=keys("k"))
    with pytest.raises(BadParameter, match="size"):
        stream.ask_blocks(["age > 3"], size=0, most=9, keys=keys("k"))
    assert engine.calls == 0
    for number, age in enumerate((1, 2, 3, 4)):
        list(stream.ask_blocks(questions([age]), size=2, most=9, keys=keys(f"k{number}")))
    with pytest.raises(Halted):
        next(stream.ask_blocks(questions([5]), size=2, most=9, keys=keys("k9")))
    assert shape(list(stream.ask_blocks(questions([2]), size=2, most=9, keys=keys("k1")))) == [
        [True]
    ]


def test_blocks_have_the_law_of_single_questions(visits, budget):
    """⊤ in the first place that noise allows: compared with `ask`, question by question."""
    firsts: dict[str, list[int]] = {"blocks": [], "single": []}
    for number in range(150):
        options: dict[str, Any] = {"threshold": 95, "at_most": 1, "epsilon": "1/5"}
        one = visits.sparse(**options, questions=6, budget=budget)
        blocks = one.ask_blocks(
            questions([68] * 6), size=2, most=9, keys=keys(f"{number}", one.name)
        )
        told = [answer.above for block in blocks for answer in block.answers]
        firsts["blocks"].append(told.index(True) if True in told else 6)
        two = visits.sparse(**options, questions=6, budget=budget)
        place = 0
        while place < 6 and not two.ask("age > 68"):
            place += 1
        firsts["single"].append(place)
    means = {name: sum(found) / len(found) for name, found in firsts.items()}
    spread = 6 / 150**0.5
    assert abs(means["blocks"] - means["single"]) < 3 * spread, means  # 8 standard errors or more
    assert all(len(set(found)) > 2 for found in firsts.values())


def test_a_block_reads_as_it_was_written():
    block = Block(3, 2, ((1, tacit.Answer(above=True)),), done=True)
    assert Block.from_json(block.as_json()) == block


CUT = "up to 2 rows of each person; ± does not cover the rest"


@pytest.mark.parametrize("numeric", [True, False])
def test_a_block_says_what_was_cut_whatever_comes_out(visits, seen, numeric, tmp_path):
    """Of all questions, so that its length does not depend on which are ⊤; only with values."""
    rows = "SELECT COUNT(*) FROM visits WHERE age > {}"
    asked = [rows.format(age) for age in (98, 97, 3)]
    given: dict[str, Any] = {"threshold": 100, "at_most": 4, "epsilon": 1000, "budget": seen}
    declared = (tmp_path / "visits.toml").read_text()
    with tacit.open(
        tmp_path / "visits.csv", person="pid", schema=f"max_rows = 2\n{declared}"
    ) as table:
        opened = table.numeric_sparse if numeric else table.sparse
        stream = opened(name="rows", sensitivity=2, **given)
        first = list(stream.ask_blocks(asked, size=2, most=9, keys=keys("k")))
        again = list(stream.ask_blocks(asked, size=2, most=9, keys=keys("k")))
    said = CUT if numeric else ""
    assert shape(first) == [[False, False], [True]]
    for block in (*first, *again):
        assert block.covers == said
        assert wire.to_json(block).get("covers", "") == said
        assert wire.from_json(wire.to_json(block), Block) == block
    *_, top = first[1].answers
    assert top.covers == said
    assert (CUT in str(top)) is numeric
    old = {name: each for name, each in wire.to_json(first[1]).items() if name != "covers"}
    assert wire.from_json(old, Block).covers == ""
