"""LIKE on the sorted words of a column, against matching every word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.tables.encoded import words
from tacit.tables.encoded.words import WordSearch
from tacit.tables.language.functions import like

LETTERS = "ab%_\n\0é水😀ÿ\U0010ffff"
TEXTS = st.text(st.sampled_from(LETTERS), max_size=6)


@pytest.fixture(params=[0, 1000], ids=["together", "one by one"])
def few(request, monkeypatch):
    monkeypatch.setattr(words, "_FEW", request.param)


@given(some=st.sets(TEXTS, max_size=30), pattern=TEXTS)
def test_a_search_finds_what_matching_every_word_finds(some, pattern):
    listed = sorted(some)
    expected = [place for place, word in enumerate(listed) if like(pattern)(word)]
    for few in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(words, "_FEW", few)
            assert list(WordSearch(listed).like(pattern)) == expected


@pytest.mark.parametrize(
    "pattern",
    ["%", "a%", "%a%", "%a", "a", "", "_%", "%ab%a%", "é%", "%é%", "%\U0010ffff", "a_%b%"],
)
def test_patterns_of_every_shape(few, pattern):
    listed = sorted(
        {"", "a", "ab", "aba", "abab", "b", "é", "éa", "aé", "\U0010ffff", "水", "a\nb"}
    )
    expected = [place for place, word in enumerate(listed) if like(pattern)(word)]
    assert list(WordSearch(listed).like(pattern)) == expected


def test_a_piece_that_crosses_the_border_of_a_block_is_found(monkeypatch):
    monkeypatch.setattr(words, "_BLOCK", 7)
    monkeypatch.setattr(words, "_FEW", 0)
    listed = sorted(f"{number:04d}" for number in range(300))
    for piece in ("1", "12", "012", "0299", "99"):
        expected = [place for place, word in enumerate(listed) if piece in word]
        found = WordSearch(listed).like(f"%{piece}%")
        assert isinstance(found, np.ndarray)
        assert found.tolist() == expected


def test_words_that_end_and_begin_like_the_piece_are_not_joined():
    words_apart = ["xa", "bx"] + [f"c{number:05d}" for number in range(2000)]
    assert list(WordSearch(sorted(words_apart)).like("%ab%")) == []
