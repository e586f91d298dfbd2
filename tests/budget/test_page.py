"""docs/budget.md says what really happens: its code runs and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "budget.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n((?:    [^\n]*\n)+))?", re.MULTILINE | re.DOTALL)


def test_the_page_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    shown = 0
    for code, output in BLOCK.findall(PAGE.read_text()):
        exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - that is the test
        printed = capsys.readouterr().out
        if output:
            shown += 1
            assert printed == re.sub(r"^    ", "", output, flags=re.MULTILINE)
    assert shown == 8
