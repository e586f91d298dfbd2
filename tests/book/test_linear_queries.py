from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.book.small_db_oracle import score

from tacit.draws.linear_queries import linear_queries
from tacit.errors import BadParameter
from tacit.numbers import Number

answers = st.fractions(min_value=0, max_value=1, max_denominator=6)


@st.composite
def matrices(draw):
    universe = draw(st.integers(1, 5))
    row = st.lists(answers, min_size=universe, max_size=universe)
    return draw(st.lists(row, min_size=1, max_size=5))


@given(matrices(), st.data())
@settings(max_examples=50)
def test_the_score_is_the_same(matrix, data):
    queries = linear_queries(matrix)
    rows = st.lists(st.integers(0, len(matrix[0]) - 1), min_size=1, max_size=5)
    x, y = data.draw(rows), data.draw(rows)
    atoms = queries.answers
    compressed = max(
        (
            abs(
                sum(int(question[queries.atom_of[row]]) for row in x) * len(y)
                - sum(int(question[queries.atom_of[row]]) for row in y) * len(x)
            )
            for question in atoms
        ),
        default=0,
    )
    assert Fraction(compressed, len(y) * queries.denominator) == score(matrix, x, y, 0)
    assert atoms.size == 0 or 0 <= atoms.min() <= atoms.max() <= queries.denominator


@given(matrices(), st.data())
@settings(max_examples=50)
def test_disguises_make_the_same_problem(matrix, data):
    disguised = list(matrix)
    for _ in range(data.draw(st.integers(1, 8))):
        row = data.draw(st.sampled_from(matrix))
        disguise = data.draw(st.sampled_from(["repeat", "complement", "fainter", "constant"]))
        if disguise == "repeat":
            disguised.append(list(row))
        elif disguise == "complement":
            disguised.append([1 - value for value in row])
        elif disguise == "fainter":
            scale = data.draw(answers)
            disguised.append([scale * value + (1 - scale) / 2 for value in row])
        else:
            disguised.append([data.draw(answers)] * len(row))
    assert linear_queries(matrix) == linear_queries(data.draw(st.permutations(disguised)))


def test_a_thousand_disguises_of_one_question():
    smoker = [1, 0, 1, 0, 0]
    many: list[Sequence[Number]] = [smoker, [1 - value for value in smoker], [True] * 5] * 1000
    assert linear_queries([smoker]) == linear_queries(many)
    assert linear_queries(many).atoms == 2


def test_other_questions_are_another_problem():
    asked = [[1, 0, 1, 0, 0], [1, 1, 1, 0, 0]]
    others: list[list[list[Any]]] = [
        asked[:1],
        [[1, 0, 1, 0, 0], [1, 0, 0, 0, 0]],
        [[1, 0, 1, 0], [1, 1, 1, 0]],
    ]
    others.append([[1, 0, 1, 0, 0], ["1/2", "1/2", "1/2", 0, 0]])
    assert all(linear_queries(asked) != linear_queries(other) for other in others)
    assert len({linear_queries(each) for each in [asked, asked[::-1], *others]}) == 5


def test_atoms_know_their_elements():
    queries = linear_queries([[1, 0, 1, 0, 0], [1, 1, 1, 0, 0]])
    assert queries.members(2).tolist() == [3, 4]
    assert queries.histogram(np.array([1, 10, 100, 1000, 10000])).tolist() == [101, 10, 11000]


def test_only_constant_questions_leave_one_atom():
    queries = linear_queries(np.ones((3, 4), dtype=bool))
    assert (queries.atoms, queries.answers.shape) == (1, (0, 1))


def test_floats_are_read_by_their_shortest_decimal():
    assert linear_queries(np.array([[0.1, 0.3]])) == linear_queries([["1/10", "3/10"]])


@pytest.mark.parametrize(
    "matrix",
    [[], [[]], [[0, 1], [0]], [[0, 2]], [["-1/3"]], [[float("nan")]], [["a"]], [0, 1], [[None]]],
)
def test_bad_matrices(matrix):
    with pytest.raises(BadParameter):
        linear_queries(matrix)


def test_a_denominator_too_fine():
    with pytest.raises(BadParameter, match="round them"):
        linear_queries([[Fraction(1, 3**40), 0]])
