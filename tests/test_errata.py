"""The errata are part of the package, and the page shows the same table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tacit
from tacit.errors import BadParameter

ROOT = Path(__file__).parents[1]


def test_the_page_shows_the_table_of_the_package():
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| \[(E\d+)\]\(#e\d+\) (\|.*)$", page, re.MULTILINE)
    shipped = re.findall(r"^\| (E\d+) (\|.*)$", tacit.errata.TEXT, re.MULTILINE)
    assert shown == shipped
    assert [number for number, _ in shown] == [f"E{number}" for number in range(1, 23)]
    assert all(f"\n## {number}\n" in page for number, _ in shown)


def test_each_is_found_by_its_number():
    assert list(tacit.errata.ERRATA) == [f"E{number}" for number in range(1, 23)]
    assert tacit.errata.entry("E5").true.startswith("ε₂ = 2ε/(√512+1)")
    assert "|Q| ≥ 2^{|S|}" in str(tacit.errata.entry("E11"))
    with pytest.raises(BadParameter, match="number = 'E23'"):
        tacit.errata.entry("E23")


def test_every_number_that_the_package_cites_is_explained():
    cited = set()
    for module in (ROOT / "src" / "tacit").rglob("*.py"):
        cited |= set(re.findall(r"\bE(?:[1-9]|[12]\d)\b", module.read_text(encoding="utf-8")))
    assert {"E2", "E3", "E16"} <= cited <= set(tacit.errata.ERRATA)


def test_it_is_declared_as_data_of_the_package():
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'tacit = \[[^\]]*"errata\.md"', declared)
