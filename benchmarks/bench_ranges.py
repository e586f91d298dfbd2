"""Ranges: seconds to draw a tree and to answer from it."""

from __future__ import annotations

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.coins import Coins
from tacit.book.range_tree import best_tree, rising


def run(report: Report) -> None:
    coins, values = Coins(), 1 << 20
    counts = np.random.default_rng(0).integers(0, 9, values)
    tree = best_tree(values)

    def draw() -> None:
        measured = tree.measure(counts, epsilon=1, coins=coins)
        tree.prefixes(measured)

    report.at_most("a tree over 2²⁰ values, drawn and made consistent", seconds(draw), 1, "s")
    prefixes = np.rint(tree.prefixes(tree.measure(counts, epsilon=1, coins=coins)))
    smooth = seconds(lambda: rising(prefixes.astype(np.int64)), repeats=3)
    report.note("its nearest curve that never falls", f"{smooth:.3g} s")
    one = seconds(lambda: tree.noises(12_345, 987_654))
    report.note("the error of one range", f"{one * 1e6:.3g} µs")
