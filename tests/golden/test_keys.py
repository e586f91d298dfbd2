"""Questions keep the keys under which their ⊤ are found, and schemas their digests."""

from __future__ import annotations

import json
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest
from tests.golden.stored import PEOPLE, noted, parameters

import tacit
from tacit.tables import parse_batch, read_schema
from tacit.tables.language import tree as question_module
from tacit.tables.language.question_key import fingerprint_0_1, question_key, question_key_0_1

QUESTIONS = noted("questions")
# The same questions with the keys of 0.2, written once and never again.
KEYS = json.loads((Path(__file__).parent / "question-keys-2.json").read_text(encoding="utf-8"))


def schema_of(table, stored):
    text = (stored.folder / f"{table}.toml").read_text()
    return read_schema(text, name=table, person=PEOPLE["0.1"][table])


def questions_of(told, stored):
    return parse_batch(
        told["question"], schema_of(told["table"], stored), parameters(told)
    ).questions


def check_keys_of_0_1(stored):
    for told in QUESTIONS:
        found = questions_of(told, stored)
        assert [fingerprint_0_1(each) for each in found] == told["fingerprints"], told["question"]
        for limit, keys in ((None, "keys"), (Fraction(1, 3), "keys_at_a_third")):
            assert [question_key_0_1(each, limit, None) for each in found] == told[keys]


def check_keys_of_0_2(stored):
    for told in KEYS:
        found, label = questions_of(told, stored), "2026-11-01"
        assert [question_key(each, None, None) for each in found] == told["keys"], told["question"]
        assert [question_key(each, Fraction(1, 3), label) for each in found] == told[
            "keys_at_a_third_of_november"
        ]


def test_keys_of_0_1_are_the_same(stored):
    check_keys_of_0_1(stored)


def test_keys_of_0_2_are_the_same(stored):
    check_keys_of_0_2(stored)


@contextmanager
def other_names():
    """All classes that a question is made of under other names."""
    own = [
        thing
        for thing in vars(question_module).values()
        if isinstance(thing, type) and thing.__module__ == question_module.__name__
    ]
    names = [(each, each.__name__, each.__qualname__) for each in own]
    try:
        for each, name, _ in names:
            each.__name__ = each.__qualname__ = f"Renamed{name}"
        yield
    finally:
        for each, name, qualified in names:
            each.__name__, each.__qualname__ = name, qualified


def test_no_name_in_the_package_has_a_part_in_a_key(stored):
    """Whoever renames a class does not make a stream draw again what is on record."""
    with other_names():
        assert "RenamedRange(" in repr(questions_of(QUESTIONS[0], stored)[0])
        check_keys_of_0_1(stored)
        check_keys_of_0_2(stored)
    assert "Renamed" not in repr(questions_of(QUESTIONS[0], stored)[0])


@pytest.mark.parametrize("table", PEOPLE["0.1"])
def test_promises_are_the_same(stored, table):
    for told in QUESTIONS:
        if told["table"] == table:
            found = questions_of(told, stored)
            assert str(found[0].sensitivity) == told["sensitivity"]
            assert str(found[0].grid) == told["grid"]
            assert found[0].direction == told["direction"]


@pytest.mark.parametrize("table", PEOPLE["0.1"])
def test_a_top_is_recorded_under_its_key(stored, table):
    """As a stream of this version records it; the history says under which key."""
    budget = tacit.Budget.in_memory(epsilon=10**9, covers=[table])
    stream = stored.table(table).sparse(
        threshold=-(10**9),  # everything passes this
        at_most=400,
        epsilon=10**9,
        budget=budget,
        kind="any",
        sensitivity=20_000,
        grid="1/1000",
    )
    wanted = []
    for told in KEYS:
        if told["table"] == table:
            answers = list(stream.ask_all(told["question"], **parameters(told)))
            wanted += [key for key, answer in zip(told["keys"], answers, strict=True) if answer]
    recorded = [entry.body["question"] for entry in budget.history if entry.kind == "top"]
    assert recorded == list(dict.fromkeys(wanted))
    assert len(recorded) >= 5


def test_a_stream_with_records_of_both_forms_finds_them_all(stored):
    """Resumed from 0.1, asked something new, and resumed once more."""
    budget, name = stored.budget("clinic"), "suspended twice"
    with stored.table().resume(name, budget=budget) as stream:
        before = [entry.question for entry in stream.recorded]
        new = stream.ask("age <> 100", threshold=-(10**14))
        assert new
        assert new.recorded is None
    with stored.table().resume(name, budget=budget) as stream:
        again = stream.ask("age <> 100", threshold=-(10**14))
        assert again.recorded is not None
        assert again.value == new.value
        left = stream.tops_left
        assert len(stream.recorded) == len(before) + 1
        (told,) = [told for told in noted("clinic")["streams"] if told["name"] == name]
        for asked in told["asked"]:
            if asked.get("answer", {}).get("above"):
                limit = None if asked["threshold"] is None else Fraction(asked["threshold"])
                found = stream.ask(asked["question"], threshold=limit, **parameters(asked))
                assert found.recorded is not None
        assert stream.tops_left == left
    forms = {entry.body["question"][:2] == "2:" for entry in budget.history if entry.kind == "top"}
    assert forms == {True, False}


def test_there_are_hundreds_of_different_questions():
    fingerprints = {each for told in QUESTIONS for each in told["fingerprints"]}
    assert len(fingerprints) > 250
    assert len({each for told in KEYS for each in told["keys"]}) == len(fingerprints)


@pytest.mark.parametrize("told", noted("schemas"), ids=lambda told: told["name"])
def test_digests_are_the_same(told):
    person = tacit.EACH_ROW if told["person"] is None else told["person"]
    schema = read_schema(told["schema"], name=told["name"], person=person)
    assert schema.digest == told["digest"]
