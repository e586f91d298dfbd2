"""Means, shares, deviations and quantiles of the census table, by `table.query`.

``python -m benchmarks.utility_query [--runs N]``
"""

from __future__ import annotations

import argparse
import csv
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np

import tacit
from benchmarks.shared_data import shared, table
from benchmarks.utility_watched import all_columns
from tacit.analyst.table import Table

EPSILONS = ("0.1", "1")
OLD = "COUNT(*) FILTER (WHERE age >= 60)"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=200)
    runs = arguments.parse_args().runs
    with shared("adult.csv").open() as file:
        rows = list(csv.DictReader(file))
    ages = sorted(int(row["age"]) for row in rows)
    hours = np.array([int(row["hourweek"]) for row in rows])
    old = sum(age >= 60 for age in ages)
    people, years = len(ages), sum(ages)
    asked = [  # each with what it is divided by
        ("mean age", "AVG(age)", np.mean(ages), people),
        ("deviation of hours", "STDDEV_POP(hourweek)", np.std(hours), people),
        ("share of 60 and over", f"{OLD} / COUNT(*)", old / people, people),
        ("hours by years of age", "SUM(hourweek) / SUM(age)", hours.sum() / years, years),
    ]
    lines: list[list[object]] = []
    with all_columns() as adult:
        for name, selected, true, among in asked:
            for epsilon in EPSILONS:
                figures = moments(adult, selected, float(true), among, epsilon, runs)
                lines.append([name, epsilon, *figures])
        weights = sorted(int(row["fnlwgt"]) for row in rows)
        lines += [["median of fnlwgt", e, *ranks(adult, weights, e, runs)] for e in EPSILONS]
    head = [
        "",
        "ε",
        "true value",
        "root mean square error",
        "planned (95 %)",
        "inside its interval",
    ]
    print(f"{len(rows)} people, {runs} runs; the median's errors are in ranks\n")
    print(table(head, lines))


def drawn(adult: Table, selected: str, epsilon: str, runs: int) -> list[tacit.QueryResult]:
    found = []
    for _ in range(runs):
        budget = tacit.Budget.in_memory(epsilon=epsilon, covers=["adult"])
        sql = f"SELECT {selected} AS x FROM adult"
        found.append(adult.query(sql, epsilon=epsilon, budget=budget))
    return found


def moments(
    adult: Table, selected: str, true: float, among: int, epsilon: str, runs: int
) -> list[object]:
    """The truth, the error that was met and the one that was planned, and the share inside."""
    columns = [result.column("x") for result in drawn(adult, selected, epsilon, runs)]
    off = np.array([float(column.values[0]) - true for column in columns])
    ends = [column.intervals()[0] for column in columns]  # type: ignore[union-attr]
    inside = np.mean([low <= true <= high for low, high in ends])
    planned = adult.plan_query(f"SELECT {selected} AS x FROM adult", epsilon=epsilon)
    said = float(planned.error("x", values=among))
    return [f"{true:.4g}", f"{np.sqrt(np.mean(off**2)):.3g}", f"{said:.3g}", f"{inside:.3f}"]


def ranks(adult: Table, true: list[int], epsilon: str, runs: int) -> list[object]:
    """The same for the median, in ranks: how many values lie between it and the true one."""
    columns = [result.column("x") for result in drawn(adult, "MEDIAN(fnlwgt)", epsilon, runs)]
    middle, off = Fraction(len(true), 2), list[float]()
    for column in columns:
        told = column.values[0]
        below, up_to = bisect_left(true, told), bisect_right(true, told)
        off.append(max(0.0, float(below - middle), float(middle - up_to)))
    sql = "SELECT MEDIAN(fnlwgt) AS x FROM adult"
    said = int(adult.plan_query(sql, epsilon=epsilon).error("x"))
    met = f"{np.sqrt(np.mean(np.square(off))):.3g}"
    return [str(true[len(true) // 2]), met, said, f"{np.mean(np.array(off) <= said):.3f}"]


if __name__ == "__main__":
    main()
