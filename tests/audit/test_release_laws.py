"""Releases in the auditor: the law that is listed is drawn, and it keeps its claim."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement, product
from math import exp

import numpy as np
import pytest
from tests.audit.laws.release_laws import ListedCertified, ListedWatch, releases
from tests.audit.laws.synthetic_laws import ListedRound
from tests.fit import ACCEPT, chi_square_p

import tacit
from tacit.analyst.query import Query
from tacit.analyst.query_columns import QueryColumn
from tacit.audit import exact, sample
from tacit.audit.exhibits import Listed
from tacit.audit.table import rows
from tacit.book.coins import InsecureTestCoins
from tacit.book.range_tree import RangeTree
from tacit.book.small_db import certifying, small_db
from tacit.book.synthetic import SyntheticMechanism
from tacit.book.top import TopMechanism
from tacit.book.weighted_rows import WeightedRows


def named(name: str, epsilon: object = 1) -> Listed:
    return next(one for one in releases(epsilon) if one.name == name)  # type: ignore[arg-type]


def test_the_table_refutes_the_broken_ones_and_no_other():
    found = list(rows(releases("1/10"), runs=None))
    assert len(found) == 28
    assert not any(row.surprising for row in found)
    assert {row.refuted for row in found} == {True, False}


@pytest.mark.long
def test_no_claim_is_exceeded_on_any_of_many_small_neighbours():
    results = list(rows(releases(1), runs=None, every_pair=True))
    assert not any(row.surprising for row in results)
    assert all(row.pairs > 20 for row in results if row.private)


def test_the_tree_loses_its_claim_and_no_more_on_every_pair():
    tree = named("range tree")
    for counts in product(range(3), repeat=4):
        for place in range(4):
            more = tuple(count + (at == place) for at, count in enumerate(counts))
            assert not exact(tree, counts, more).exceeds(1)
    assert exact(tree, *tree.pair).loss == pytest.approx(1, abs=1e-12)
    root = named("range tree, its root unpaid")
    assert exact(root, *root.pair).loss == pytest.approx(1.5, abs=1e-12)


def test_the_tree_that_is_released_has_the_law_that_is_listed():
    """The real mechanism, told as the law tells it; with half the noise it would be noticed."""
    tree, counts = named("range tree"), (1, 1, 0, 0)
    law, coins = tree.outcome_law(counts), InsecureTestCoins(1)
    shape, true = RangeTree(4, 2, 2), np.array(counts, np.int64)

    def p_value(epsilon: int) -> float:
        seen: Counter[tuple[int, ...]] = Counter()
        for _ in range(4000):
            measured = np.concatenate(shape.measure(true, epsilon=epsilon, coins=coins))
            seen[tuple(np.sign(measured - 2).tolist())] += 1
        first: Counter[int] = Counter()  # by how many nodes are above, so that none is rare
        expected: Counter[int] = Counter()
        for told, chance in law.items():
            assert isinstance(told, tuple)
            first[told.count(1)] += seen[told]
            expected[told.count(1)] += float(chance)  # type: ignore[assignment]
        return chi_square_p([first[n] for n in range(6)], [expected[n] for n in range(6)])

    assert p_value(1) > ACCEPT
    assert p_value(2) < 1e-9


@pytest.mark.parametrize("name", ["top 2", "top 2, δ > 0"])
def test_the_top_keeps_its_claim_on_every_pair_that_moves_one_way(name):
    top = named(name)
    for counts in product(range(3), repeat=3):
        for more in product((0, 1), repeat=3):
            there = tuple(a + b for a, b in zip(counts, more, strict=True))
            assert not exact(top, counts, there).exceeds(1, top.claimed.delta)
    assert exact(top, *top.pair).loss > 0.8
    both = named("top 2, both directions")
    assert exact(both, *both.pair).at_least() > 1.6


def test_the_top_that_is_released_has_the_law_that_is_listed():
    top, counts = named("top 2"), (3, 0, 1, 1)
    law, coins = top.outcome_law(counts), InsecureTestCoins(1)
    chances = [float(chance) for chance in law.values()]
    real = TopMechanism(2, top.claimed)
    seen = Counter(tuple(real.draw(np.array(counts), coins)) for _ in range(4000))
    assert chi_square_p([seen[told] for told in law], chances) > ACCEPT  # type: ignore[index]
    bulk = Counter(map(tuple, top(counts, 20_000).tolist()))
    assert set(bulk) == set(law)
    assert chi_square_p([bulk[told] for told in law], chances) > 1e-12  # type: ignore[index]


def test_a_round_keeps_its_claim_on_every_pair_and_its_sibling_does_not():
    found = named("synthetic rows, a round")
    rows = list(product((0, 1), repeat=4))
    for before in combinations_with_replacement((0, 3, 7, 9, 15, 16), 2):  # 16 is no row
        counts = tuple(sum(place == each for each in before) for place in range(16))
        for place in (0, 1, 7, 8, 15):
            more = tuple(count + (at == place) for at, count in enumerate(counts))
            assert not exact(found, counts, more).exceeds(1), (rows[place], before)
    assert exact(found, *found.pair).loss > 0.95
    sibling = named("synthetic rows, scores taken for counts")
    assert exact(sibling, *sibling.pair).at_least() > 1.1


def test_the_round_that_is_released_has_the_law_that_is_listed():
    found, counts = named("synthetic rows, a round", 4), (1, *[0] * 14, 1)
    assert isinstance(found, ListedRound)
    law, coins = found.outcome_law(counts), InsecureTestCoins(1)
    rows = np.array([[0] * 4, [1] * 4], np.int64)
    model = WeightedRows((2,) * 4, np.array([[0, 1, 1, 1]], np.int64), 1.0)

    def p_value(real: SyntheticMechanism) -> float:
        seen: Counter[tuple[int, ...]] = Counter()
        for _ in range(2000):
            marginal = real.round(rows, model, coins)
            seen[(*marginal.columns, *np.sign(marginal.counts - 1).tolist())] += 1
        assert set(seen) <= set(law)
        return chi_square_p([seen[told] for told in law], list(map(float, law.values())))  # type: ignore[index]

    assert p_value(found.mechanism) > ACCEPT
    assert p_value(replace(found.mechanism, epsilon=found.mechanism.epsilon / 2)) < 1e-9
    bulk = Counter(
        (int(column), *np.sign(np.array(told) - 1).tolist())
        for column, *told in found(counts, 20_000).tolist()
    )
    assert chi_square_p([bulk[told] for told in law], list(map(float, law.values()))) > 1e-12  # type: ignore[index]


def test_a_watch_keeps_its_claim_on_every_pair_and_one_noise_for_both_sides_does_not():
    found = named("watched model")
    for counts in product((-3, -1, 0, 2), repeat=2):
        for more in ((1, 0), (0, 1), (1, 1)):
            there = tuple(a + b for a, b in zip(counts, more, strict=True))
            assert not exact(found, counts, there).exceeds(1), (counts, there)
    assert exact(found, *found.pair).loss == pytest.approx(1, abs=1e-9)
    sibling = named("watched model, one noise for both sides")
    assert exact(sibling, *sibling.pair).at_least() > 1.6


def test_the_law_of_a_watch_is_the_sum_over_its_noises():
    """Against a plain sum in floats, over both threshold noises."""
    found = named("watched model")
    assert isinstance(found, ListedWatch)
    watched = found.watch().mechanism.recipe
    scales = watched.threshold_scale, watched.question_scale
    p, q = (exp(-1 / scale) for scale in scales)

    def reached(missing: int, gap: int | None) -> float:
        if gap is None:
            return 1 - q ** max(missing, 0)
        far = q ** max(missing + gap, 0)
        return far if gap == 2 else (far * (1 - q) if missing + gap >= 0 else 0.0)

    def brute(told: tuple[tuple[int, int], ...], counts: tuple[int, int]) -> float:
        up, down = 0.0, 0.0
        for noise in range(300):
            weight = (1 - p) * p**noise
            above, below = weight, weight
            for value, (side, gap) in zip(counts, told, strict=True):
                above *= reached(1 + noise - value, gap if side == 1 else None)
                if side != 1:
                    below *= reached(1 + noise + value, gap if side else None)
            up, down = up + above, down + below
        return up * down

    counts = (2, -1)
    law = found.outcome_law(counts)
    assert float(sum(law.values())) == pytest.approx(1, abs=1e-12)
    for told, chance in law.items():
        assert float(chance) == pytest.approx(brute(told, counts), abs=1e-12)  # type: ignore[arg-type]


def test_the_watch_that_runs_has_the_law_that_is_listed():
    found, counts = named("watched model", 3), (2, -1)
    assert isinstance(found, ListedWatch)
    law, coins, real = found.outcome_law(counts), InsecureTestCoins(1), found.watch()

    def told() -> tuple[tuple[int, int], ...]:
        state, said = real.start(coins), []
        for value in counts:
            answer, side, state = real.step(state, value, 0, coins)
            said.append((side, 0 if answer.gap is None else min(int(answer.gap), 2)))
        return tuple(said)

    seen = Counter(told() for _ in range(4000))
    assert set(seen) <= set(law)
    kinds = sorted(law, key=lambda each: float(law[each]))
    groups = [kinds[place::12] for place in range(12)]  # so that none is rare
    chances = [float(sum(law[each] for each in group)) for group in groups]
    assert chi_square_p([sum(seen[each] for each in group) for group in groups], chances) > ACCEPT  # type: ignore[index, misc]
    bulk = Counter(
        tuple(zip(row[::2], row[1::2], strict=True)) for row in found(counts, 20_000).tolist()
    )
    assert chi_square_p([sum(bulk[each] for each in group) for group in groups], chances) > 1e-12  # type: ignore[index, misc]


def test_a_certificate_keeps_its_claim_on_every_pair_and_its_sibling_does_not():
    found = named("SmallDB with a certificate")
    for counts in product(range(4), repeat=3):
        for place in range(3):
            more = tuple(count + (at == place) for at, count in enumerate(counts))
            if sum(more) <= 4:  # so that no score is beyond what is told apart
                assert not exact(found, counts, more).exceeds(1), (counts, more)
    assert exact(found, *found.pair).loss > 0.7
    sibling = named("SmallDB, its certificate's steps taken for people")
    assert exact(sibling, *sibling.pair).at_least() > 1.2


def test_the_certificate_that_is_released_has_the_law_that_is_listed():
    found, counts = named("SmallDB with a certificate", 4), (2, 0, 1)
    assert isinstance(found, ListedCertified)
    law, coins = found.outcome_law(counts), InsecureTestCoins(1)
    x = np.repeat(np.arange(1, 4), counts)

    def p_value(epsilon: int) -> float:
        seen: Counter[tuple[int, ...]] = Counter()
        measuring = certifying(found.CLASS, rows=found.ROWS, epsilon=epsilon)
        for _ in range(3000):
            y = small_db(x, found.CLASS, rows=found.ROWS, epsilon=2, coins=coins)
            told = measuring.draw(found.CLASS.score(x, y), coins).value / measuring.grid
            seen[(*y.tolist(), min(max(int(told), -1), 8))] += 1
        assert set(seen) <= set(law)
        return chi_square_p([seen[told] for told in law], list(map(float, law.values())))  # type: ignore[index]

    assert p_value(2) > ACCEPT
    assert p_value(4) < 1e-9
    bulk = Counter(map(tuple, found(counts, 20_000).tolist()))
    assert chi_square_p([bulk[told] for told in law], list(map(float, law.values()))) > 1e-12  # type: ignore[index]


def test_samples_do_not_refute_the_tree_and_refute_its_sibling():
    tree, root = named("range tree", 2), named("range tree, its root unpaid", 2)
    sure = "0.999999999999"  # these are real coins
    for one, claim, refuted in ((tree, 2, False), (root, "1/2", True)):
        found = sample(one, one.pair, epsilon=claim, confidence=sure, runs=20_000, workers=1)
        assert found.refuted is refuted


def test_a_query_keeps_its_claim_on_every_pair_and_its_sibling_does_not():
    found = named("query of two cells")
    for people in product(range(2), repeat=3):
        for place in range(3):
            more = tuple(count + (at == place) for at, count in enumerate(people))
            assert not exact(found, people, more).exceeds(1), (people, place)
    assert exact(found, *found.pair).loss == pytest.approx(1, abs=1e-12)
    sibling = named("query of two cells, nothing chosen")
    assert exact(sibling, *sibling.pair).loss == pytest.approx(2, abs=1e-12)


def test_the_query_that_is_released_has_the_law_that_is_listed(tmp_path):
    """The real mechanism on a table; with half the noise, or without a choice, it is noticed."""
    people = first, second, both = 1, 0, 2
    towns = ["a"] * first + ["b"] * second + ["ab"] * both
    rows = [f"{pid},{town}" for pid, each in enumerate(towns) for town in each]
    (tmp_path / "t.csv").write_text("pid,town\n" + "\n".join(rows) + "\n")
    schema = '[columns.pid]\ntype="integer"\n[columns.town]\ntype="text"\nkeys=["a","b"]\n'
    law, coins = named("query of two cells").outcome_law(people), InsecureTestCoins(1)
    sql = "select town, count(distinct pid) from t group by town"

    with tacit.open(tmp_path / "t.csv", person="pid", schema=schema) as table:

        def p_value(epsilon: int, max_cells: int) -> float:
            drawn = Query(table.plan_query(sql, epsilon=epsilon, max_cells=max_cells))
            seen: Counter[tuple[int, ...]] = Counter()
            for _ in range(1200):
                (counts,) = drawn.draw(table.engine, coins).columns
                assert isinstance(counts, QueryColumn)
                seen[tuple(np.sign(np.array(counts.steps) - 2).tolist())] += 1
            return chi_square_p([seen[told] for told in law], list(map(float, law.values())))  # type: ignore[index]

        assert p_value(1, 1) > ACCEPT
        assert p_value(2, 1) < 1e-9
        assert p_value(2, 2) < 1e-3


def test_the_query_in_bulk_has_the_law_that_is_listed():
    found, people = named("query of two cells"), (1, 0, 2)
    law = found.outcome_law(people)
    bulk = Counter(map(tuple, np.sign(found(people, 20_000) - 2).tolist()))
    chances = list(map(float, law.values()))
    assert chi_square_p([bulk[told] for told in law], chances) > 1e-12  # type: ignore[index]


def test_a_percentage_keeps_its_claim_on_every_pair_and_its_sibling_does_not():
    found = named("percentage")
    for people in product(range(2), repeat=3):
        for place in range(3):
            more = tuple(count + (at == place) for at, count in enumerate(people))
            assert not exact(found, people, more).exceeds(1), (people, place)
    assert exact(found, *found.pair).loss == pytest.approx(1, abs=1e-12)
    sibling = named("percentage, its parts not disjoint")
    assert exact(sibling, *sibling.pair).loss == pytest.approx(2, abs=1e-12)


def test_the_percentage_that_is_released_has_the_law_that_is_listed(tmp_path):
    """Also in bulk; with half the noise it is noticed."""
    people = inside, outside, both = 1, 1, 2
    lines = ["a"] * inside + ["b"] * outside + ["ab"] * both
    rows = [f"{pid},{town}" for pid, each in enumerate(lines) for town in each]
    (tmp_path / "t.csv").write_text("pid,town\n" + "\n".join(rows) + "\n")
    schema = '[columns.pid]\ntype="integer"\n[columns.town]\ntype="text"\nkeys=["a","b"]\n'
    found = named("percentage")
    law, coins = found.outcome_law(people), InsecureTestCoins(1)
    sql = "select count(distinct pid) filter (where town = 'a') / count(distinct pid) from t"

    def p_value(drawn: np.ndarray) -> float:
        seen = Counter(map(tuple, np.sign(drawn - 2).tolist()))
        return chi_square_p([seen[told] for told in law], list(map(float, law.values())))  # type: ignore[index]

    assert p_value(found(people, 20_000)) > 1e-12  # these are real coins
    with tacit.open(tmp_path / "t.csv", person="pid", schema=schema) as table:
        for epsilon, good in ((1, True), (2, False)):
            query = Query(table.plan_query(sql, epsilon=epsilon))
            drawn = [query.draw(table.engine, coins).columns[0] for _ in range(1200)]
            steps = [[part.steps[0] for part in each.measured] for each in drawn]  # type: ignore[union-attr]
            assert p_value(np.array(steps)) > ACCEPT if good else p_value(np.array(steps)) < 1e-9


def test_a_median_keeps_its_claim_on_every_pair_and_its_sibling_does_not():
    found, sibling = named("median"), named("median, its scores taken for counts")
    for counts in product(range(3), repeat=4):
        for place in range(4):
            more = tuple(count + (at == place) for at, count in enumerate(counts))
            assert not exact(found, counts, more).exceeds(1), (counts, place)
    assert exact(found, *found.pair).loss > 0.75
    assert exact(sibling, *sibling.pair).loss > 1.5


def test_the_median_that_is_released_has_the_law_that_is_listed(tmp_path):
    counts = (0, 2, 0, 3)
    rows = [f"{value}" for value, count in enumerate(counts) for _ in range(count)]
    (tmp_path / "t.csv").write_text("n\n" + "\n".join(rows) + "\n")
    schema = '[columns.n]\ntype="integer"\nbounds=[0, 3]\n'
    found, coins = named("median"), InsecureTestCoins(1)
    law = found.outcome_law(counts)
    with tacit.open(tmp_path / "t.csv", person=tacit.EACH_ROW, schema=schema) as table:

        def p_value(epsilon: int) -> float:
            drawn = Query(table.plan_query("select median(n) from t", epsilon=epsilon))
            seen = Counter(drawn.draw(table.engine, coins).columns[0].values[0] for _ in range(600))
            return chi_square_p([seen[told[0]] for told in law], list(map(float, law.values())))  # type: ignore[index]

        assert p_value(1) > ACCEPT
        assert p_value(4) < 1e-9
    bulk = Counter(found(counts, 2000)[:, 0].tolist())
    chances = list(map(float, law.values()))
    assert chi_square_p([bulk[told[0]] for told in law], chances) > 1e-12  # type: ignore[index]
