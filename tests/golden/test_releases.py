"""A release saved by 0.1 is read, says what it said, and is saved again with the same fields."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from tests.golden.stored import GOLDENS, noted, privacy, still_says

import tacit

RELEASES = noted("releases")


@pytest.fixture(params=RELEASES)
def read(request):
    path = GOLDENS / "0.1" / f"release-{request.param}.json"
    return tacit.load_release(path), RELEASES[request.param], path


def test_it_holds_the_same_rows(read):
    release, told, _ = read
    assert release.rows == told["rows"]
    columns = {name: list(map(str, values)) for name, values in release.to_dict().items()}
    assert columns == told["columns"]


def test_it_gives_the_same_answers(read):
    release, told, _ = read
    for question, answer in told["answers"].items():
        assert str(release.answer(question)) == answer
        assert str(release.count(question)) == told["counts"][question]
    with pytest.raises(tacit.errors.QuestionRefused):
        release.answer("stay <= 3")


def test_it_promises_no_less(read):
    release, told, _ = read
    assert privacy(release.privacy) == told["privacy"]
    assert release.plan.people == told["people"]
    assert release.guarantee() <= Fraction(told["guarantee"])


def test_saved_again_it_says_the_same(read, tmp_path):
    release, _, path = read
    release.save(tmp_path / "again.json")
    again, before = (json.loads(each.read_text()) for each in (tmp_path / "again.json", path))
    assert still_says(again, before)
