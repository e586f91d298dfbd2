"""docs/extending/add-a-ledger.md shows the toy that passes the contract suites."""

from __future__ import annotations

from tests.pages import FENCE, ROOT
from tests.toys import json_ledger

PAGE = ROOT / "docs" / "extending" / "add-a-ledger.md"


def test_the_page_shows_the_toy_that_is_tested():
    blocks = [block["body"] for block in FENCE.finditer(PAGE.read_text())]
    with open(json_ledger.__file__) as file:
        assert file.read() in blocks


def test_the_page_names_the_group_of_entry_points():
    from tacit.budget.addresses import GROUP

    assert f'[project.entry-points."{GROUP}"]' in PAGE.read_text()
