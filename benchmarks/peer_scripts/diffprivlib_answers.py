"""diffprivlib's tools over numpy arrays; run with the folder of `peer_answers` as argument."""

import csv
import sys
from pathlib import Path

import numpy as np
from diffprivlib import tools

from benchmarks.peer_scripts.timing import BOUNDS, EPSILON, TOWNS, Answers


def main(folder: Path) -> None:
    with open(folder / "people.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    income = np.array([float(row["income"]) for row in rows])
    town = np.array([int(row["town"].split()[1]) for row in rows])

    def mean() -> float:
        """It takes the number of people as public."""
        return float(tools.mean(income, epsilon=EPSILON, bounds=BOUNDS))

    def median() -> float:
        return float(tools.median(income, epsilon=EPSILON, bounds=BOUNDS))

    def groups() -> dict[str, float]:
        counts, _ = tools.histogram(town, epsilon=EPSILON, bins=TOWNS, range=(0, TOWNS))
        return {f"town {n}": float(count) for n, count in enumerate(counts)}

    Answers("diffprivlib", "diffprivlib").run(mean, median, groups)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
