"""How a benchmark measures and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter


def seconds(
    work: Callable[[], object], repeats: int = 7, clock: Callable[[], float] = perf_counter
) -> float:
    """The best of several runs: what the machine can do when nobody disturbs it."""
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def memory(name: str) -> int:
    """Bytes of this process: VmRSS is what it has, VmHWM the most that it had since its start."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, the ratio, what it should be, and whether it is."""

    what: str
    figure: str
    target: str
    met: bool | None  # None: reported only


@dataclass
class Report:
    """All rows, in the order in which they were measured."""

    rows: list[Row] = field(default_factory=list)

    def at_least(self, what: str, value: float, target: float, unit: str = "×") -> None:
        """The value should be at least the target."""
        self.rows.append(Row(what, f"{value:.3g} {unit}", f"≥ {target:g} {unit}", value >= target))

    def at_most(self, what: str, value: float, target: float, unit: str = "×") -> None:
        """The value should be at most the target."""
        self.rows.append(Row(what, f"{value:.3g} {unit}", f"≤ {target:g} {unit}", value <= target))

    def note(self, what: str, figure: str) -> None:
        """A figure without a target."""
        self.rows.append(Row(what, figure, "", None))
