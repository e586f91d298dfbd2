"""The line of every entry of a TOML text, against texts whose lines are known as they are made."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.server.toml_lines import Path, lines_of

KEYS = st.sampled_from(
    ["a", "b-1", '"x y"', "'l.m'", '"="', '"#"', '"[c]"', '"\\" ]"', "'\"'", '"]]"']
)
VALUES = st.sampled_from(
    [
        "1",
        '"text # no comment"',
        "'[not] = a table'",
        "[1, 2]",
        '[\n  1, # one\n  "]",\n]',
        '"""\n[no]\nkey = 1\n\\"""still\n"""',
        "'''\n# text\n[no]''''",
        '{p = "}", q = [1]}',
        "2026-11-01",
        '""',
        '""""quoted""""',
    ]
)
NOISE = st.sampled_from(["", "# [a] = 1", "   # '", "\t"])


@st.composite
def documents(draw) -> tuple[str, dict[Path, int]]:
    """A text, and the line on which each of its entries stands."""
    lines: list[str] = []
    places: dict[Path, int] = {}
    for number in range(draw(st.integers(0, 4))):
        inside: Path = ()
        if number:
            parts = draw(st.lists(KEYS, min_size=1, max_size=3))
            inside = (f"t{number}", *map(read, parts))
            places[inside] = len(lines) + 1
            lines.append(f" [ t{number} . {' . '.join(parts)} ] # a table")
        for key in draw(st.lists(KEYS, unique=True, max_size=3)):
            lines += draw(st.lists(NOISE, max_size=2))
            dotted = draw(st.booleans())
            path = (*inside, read(key), "z") if dotted else (*inside, read(key))
            places[path] = len(lines) + 1
            lines += f"{key}{' . z' if dotted else ''} = {draw(VALUES)}".split("\n")
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines), places


def read(key: str) -> str:
    (name,) = tomllib.loads(f"{key} = 1")
    return name


@given(documents())
def test_every_entry_is_found_on_its_line(made):
    text, places = made
    tomllib.loads(text)  # it is TOML
    found = lines_of(text)
    assert {path: found[path] for path in places} == places


def test_every_entry_that_the_reader_sees_has_a_line():
    text = "[[a.b]]\nc = 1\n[[a.b]]\nc = 2\n[d]\ne.f = 3\ne.g = 4\n"
    assert lines_of(text) == {
        ("a",): 1,
        ("a", "b"): 1,
        ("a", "b", "c"): 2,
        ("d",): 5,
        ("d", "e"): 6,
        ("d", "e", "f"): 6,
        ("d", "e", "g"): 7,
    }


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing", "\r\n# nothing\r\n"])
def test_a_text_without_entries_has_none(text):
    assert lines_of(text) == {}
