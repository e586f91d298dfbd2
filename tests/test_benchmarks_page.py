"""The command that docs/benchmarks.md names writes the page beside it, heading and all."""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import as_markdown
from benchmarks.report import Report

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-table.md"


def test_the_command_writes_a_page_like_the_one_that_is_kept():
    report = Report()
    report.at_least("one draw of a prepared sampler", 2, 3)
    report.note("scalar below(1000)", "1.1 µs")
    written, kept = (
        text.splitlines() for text in (as_markdown([("around", report.rows)]), PAGE.read_text())
    )
    assert written[:2] == kept[:2] == ["# The table of make bench", ""]
    assert written[2].startswith("Measured on ")
    assert kept[2].startswith("Measured on ")
    assert written[3:8] == kept[3:8]
    assert written[8] == "| one draw of a prepared sampler | 2 × | ≥ 3 × | **missed** |"
