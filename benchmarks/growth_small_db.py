"""How the time of a SmallDB draw grows with people, rows and domain, as a picture.

``python -m benchmarks.growth_small_db FILE.png``
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.report import seconds
from tacit.book.coins import Coins
from tacit.book.small_db import Intervals, Prefixes, small_db

COINS = Coins()
USUAL = {"n": 10**4, "m": 100, "N": 10**5}
GROWING = {
    "n": (10**3, 10**4, 10**5, 10**6),
    "m": (10, 30, 100, 300),
    "N": (10**2, 10**4, 10**6, 10**9, 10**14, 2**62),
}
NAMES = {"n": "people n", "m": "rows m", "N": "values in the domain N"}


def time_of(kind: type[Prefixes], n: int, m: int, N: int) -> float:
    """Seconds for a draw at ε = 1, the best of a few: trials are random."""
    share = np.random.default_rng(0).beta(2, 5, n)
    x = np.sort((share * N).astype(np.int64).clip(0, N - 1) + 1)
    return seconds(lambda: small_db(x, kind(N), rows=m, epsilon=1, coins=COINS), 4)


def main() -> None:
    measured = {
        (kind.__name__, which): [time_of(kind, **{**USUAL, which: value}) for value in values]
        for kind in (Prefixes, Intervals)
        for which, values in GROWING.items()
    }
    for (kind, which), times in measured.items():
        figures = zip(GROWING[which], times, strict=True)
        print(f"{kind}, by {which}:", ", ".join(f"{at:.3g}: {time:.3g} s" for at, time in figures))
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), measured)


def draw(path: Path, measured: dict[tuple[str, str], list[float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for axes, (which, values) in zip(figure.subplots(1, 3), GROWING.items(), strict=True):
        for kind, style in (("Prefixes", "o-"), ("Intervals", "s-")):
            axes.plot(values, measured[kind, which], style, label=kind.lower())
        fixed = ", ".join(f"{name} = {at:,}" for name, at in USUAL.items() if name != which)
        axes.set(xscale="log", yscale="log", xlabel=NAMES[which], ylabel="seconds")
        axes.set_title(fixed.replace(",000", " 000"), fontsize=9)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
