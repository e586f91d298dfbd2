"""``make bench``: run every ``bench_*.py`` here, or the ones named, and print a table."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report import Report


def main() -> None:
    """Each module has ``run(report)``."""
    names = sys.argv[1:] or sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    console = Console()
    table = Table("benchmark", "what", "measured", "target", "")
    for name in names:
        report = Report()
        with console.status(f"measuring {name} ..."):
            import_module(f"benchmarks.bench_{name}").run(report)
        for row in report.rows:
            mark = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
            table.add_row(name, row.what, row.figure, row.target, mark)
    console.print(table)


main()
