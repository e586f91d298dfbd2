"""docs/proofs.md has a row for whatever ``tacit audit`` lists, and says what is computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audit.laws.release_laws import releases

from tacit.audit import gallery, ours
from tacit.audit.exhibits import Listed, Variant
from tacit.audit.table import pair_loss, rows

PAGE = Path(__file__).parents[2] / "docs" / "proofs.md"


def audited() -> list[Variant | Listed]:
    return [*gallery(1), *ours(1)]


def table(columns: int) -> dict[str, list[str]]:
    """The rows of the table that has so many columns, by their first."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    _, *rest = [row for row in cells if len(row) == columns]
    return {name: others for name, *others in rest}


def test_every_claim_and_every_mistake_has_a_row():
    assert set(table(5)) == {one.name for one in audited() if one.private}
    assert set(table(3)) == {one.name for one in audited() if not one.private}


def test_the_rows_say_what_is_claimed_and_how_many_pairs_there_are():
    for one in audited():
        if one.private:
            claim, proof, pairs, loss = table(5)[one.name]
            assert claim == ("ε = 1, δ = 10⁻⁶" if one.claimed.delta else "ε = 1")
            assert proof
            small = [pair for pair in one.neighbours() if pair[0] != pair[1]]
            assert int(pairs) == 1 + len(small) > 20
            assert 0 < float(loss) <= 1
        else:
            why, _ = table(3)[one.name]
            assert why == one.why != ""


@pytest.mark.parametrize("name", ["one-sided, monotone", "one-sided, directed", "SVT1"])
def test_the_computation_is_repeated_for_some(name):
    (one,) = [each for each in audited() if each.name == name]
    (row,) = rows([one], runs=None, every_pair=True)
    _, _, pairs, loss = table(5)[name]
    assert (row.pairs, row.refuted) == (int(pairs), False)
    assert row.exact == pytest.approx(float(loss), abs=1e-4)


def test_every_pair_is_looked_at():
    """A mechanism that loses too much on a single pair is refuted, wherever that pair is."""
    (one,) = [each for each in releases(1) if each.name == "median, its scores taken for counts"]
    *_, last = (pair for pair in one.neighbours() if pair_loss(one, pair)[1] > 1.05)

    class Hidden(type(one)):  # type: ignore[misc]
        def neighbours(self):
            return [((0, 1, 0, 0), (0, 1, 0, 0)), ((9, 9, 9, 9), (9, 9, 9, 10)), last]

    hidden = Hidden(
        name="hidden",
        claimed=one.claimed,
        private=True,
        pair=((0,) * 4, (0, 1, 0, 0)),
        one_way=True,
    )
    (row,) = rows([hidden], runs=None)
    assert not row.refuted
    (row,) = rows([hidden], runs=None, every_pair=True)
    assert (row.refuted, row.pairs) == (True, 3)
