"""Top: seconds to draw the largest of many cells, however they are spread."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.coins import Coins
from tacit.book.top import TopMechanism
from tacit.privacy import Privacy


def run(report: Report) -> None:
    random, cells, coins = np.random.default_rng(0), 10**5, Coins()
    spreads = {
        "up to 100 each": random.integers(0, 100, cells),
        "Zipf": np.minimum(random.zipf(1.3, cells), 10**6),
        "all far apart": np.arange(cells) * 1000,
        "exponential": random.exponential(1000, cells).astype(np.int64),
    }
    top = TopMechanism(100, Privacy(1))
    times = {name: seconds(partial(top.draw, v, coins), 3) for name, v in spreads.items()}
    report.at_most("the top 100 of 10⁵ cells, the slowest of four", max(times.values()), 1, "s")
    report.note("each", ", ".join(f"{name} {time:.2g} s" for name, time in times.items()))
