from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.book.small_db_oracle import databases

from tacit.draws import candidates as enumeration
from tacit.draws.candidates import EveryMultiset
from tacit.draws.linear_queries import linear_queries


def _dense(counts, atoms):
    dense = [0] * atoms
    for atom, times in counts:
        dense[atom] += times
    return tuple(dense)


@pytest.mark.parametrize("table", [1, 4, 1 << 13])
@pytest.mark.parametrize("block", [1, 7, 1 << 15])
@pytest.mark.parametrize(
    ("atoms", "rows"), [(1, 1), (1, 5), (2, 4), (3, 5), (5, 3), (7, 2), (9, 1)]
)
def test_every_multiset_comes_once_with_its_sum(monkeypatch, table, block, atoms, rows):
    monkeypatch.setattr(enumeration, "_TABLE", table)
    monkeypatch.setattr(enumeration, "_BLOCK", block)
    values = np.random.default_rng(0).integers(0, 100, (2, atoms))
    seen: Counter[tuple[int, ...]] = Counter()
    for head, tail in enumeration.Enumeration(
        atoms, rows, lambda atom, times: values[:, atom, None] * times
    ).pairs():
        for i in range(head.sums.shape[1]):
            for j in range(tail.sums.shape[1]):
                counts = _dense(head.counts(i) + tail.counts(j), atoms)
                seen[counts] += 1
                both = head.sums[:, i] + tail.sums[:, j]
                assert both.tolist() == (values @ np.array(counts)).tolist()
    expected = {_dense(Counter(y).items(), atoms) for y in databases(range(atoms), rows)}
    assert set(seen) == expected
    assert set(seen.values()) == {1}


@pytest.mark.parametrize("at_once", [1, 1 << 16])
@pytest.mark.parametrize("people", [0, 3, 10**6, 10**9, 2**50, 2**61])
def test_levels_are_the_scores_in_any_type_of_number(monkeypatch, at_once, people):
    monkeypatch.setattr("tacit.draws.candidates._AT_ONCE", at_once)
    queries = linear_queries([[1, 0, "1/3", 0], [0, 1, "1/5", 0], [0, 0, 1, "4/5"]])
    x = np.array([people // 2, 0, people // 3, people - people // 2 - people // 3])
    rows, number = 3, 0
    for block in EveryMultiset(queries, x, rows).blocks():
        for i, level in enumerate(block.levels):
            counts = _dense(block.counts(i), 4)
            scores = [
                abs(
                    rows * sum(int(a) * int(n) for a, n in zip(question, x, strict=True))
                    - people * sum(int(a) * z for a, z in zip(question, counts, strict=True))
                )
                for question in queries.answers
            ]
            assert int(level) == max(scores)
            number += 1
    assert number == 20
