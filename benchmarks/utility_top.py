"""Frequent items by drawing the largest: SER and FNR, as in `benchmarks.utility_frequent_items`.

``python -m benchmarks.utility_top [--draws N]``
"""

from __future__ import annotations

import argparse
import csv

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared_data import shared, table
from tacit.book.coins import Coins
from tacit.book.top import TopMechanism
from tacit.privacy import Privacy

SIZES = (25, 50, 100, 200, 300)
PROMISES = {"top, pure": Privacy("0.1"), "top, δ = 10⁻⁶": Privacy("0.1", "1e-6")}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--draws", type=int, default=50)
    options = arguments.parse_args()
    with shared("retail_counts.csv").open() as file:
        counts = np.sort([int(row["count"]) for row in csv.DictReader(file)])[::-1]
    counts = np.ascontiguousarray(counts, np.int64)
    rows = [
        [name, *[score(TopMechanism(size, promise), counts, options.draws) for size in SIZES]]
        for name, promise in PROMISES.items()
    ]
    print(f"SER / FNR, ε = 0.1, {options.draws} draws\n")
    print(table(["", *[f"c = {size}" for size in SIZES]], rows))


def score(top: TopMechanism, counts: NDArray[np.int64], draws: int) -> str:
    """The counts are sorted, largest first."""
    coins, size, figures = Coins(), top.places, []
    for _ in range(draws):
        drawn = np.array(top.draw(counts, coins))
        missed = 1 - np.count_nonzero(drawn < size) / size
        figures.append((1 - counts[drawn].sum() / counts[:size].sum(), missed))
    return "{:.3f} / {:.2f}".format(*np.mean(figures, axis=0))


if __name__ == "__main__":
    main()
