"""``make bench``: run every ``bench_*.py`` here, or the ones named, and print a table.

``python -m benchmarks [name ...] [--write FILE]``; ``peers`` and ``peer_answers``, which compare
with other libraries, and ``spark`` are run only when they are named (``make bench-peers`` and
``make bench-spark`` give them environments of their own).
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report import Report, Row

NAMED = ("peers", "peer_answers", "spark")  # only when they are
PACKAGES = ("numpy", "duckdb", "sqlglot", "cryptography")


def main() -> None:
    """Each module has ``run(report)``."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    arguments.add_argument("names", nargs="*", help="such as stream or coins; all if none is named")
    arguments.add_argument("--write", type=Path, metavar="FILE", help="also write it as Markdown")
    options = arguments.parse_args()
    names = options.names or sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    console = Console()
    table = Table("benchmark", "what", "measured", "target", "")
    measured: list[tuple[str, Sequence[Row]]] = []
    for name in names:
        report = Report()
        module = f"benchmarks.{name}" if name in NAMED else f"benchmarks.bench_{name}"
        with console.status(f"measuring {name} ..."):
            import_module(module).run(report)
        measured.append((name, report.rows))
        for row in report.rows:
            mark = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
            table.add_row(name, row.what, row.figure, row.target, mark)
    console.print(table)
    console.print(machine())
    if options.write:
        options.write.write_text(as_markdown(measured))


def machine() -> str:
    """What it was measured on."""
    model = platform.processor() or platform.machine()
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    for line in lines:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    libraries = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"{os.cpu_count()} cores ({model}), {platform.system()}, "
        f"Python {platform.python_version()}, {libraries}"
    )


def as_markdown(measured: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """The same table for the documentation."""
    parts = [f"# The table of make bench\n\nMeasured on {machine()}.\n"]
    for name, rows in measured:
        parts.append(f"\n### {name}\n\n| what | measured | target | |\n|---|---|---|---|\n")
        for row in rows:
            mark = {True: "met", False: "**missed**", None: ""}[row.met]
            parts.append(f"| {row.what} | {row.figure} | {row.target} | {mark} |\n")
    return "".join(parts)


if __name__ == "__main__":
    main()
