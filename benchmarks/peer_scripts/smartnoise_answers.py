"""SmartNoise SQL over pandas frames; run with the folder of `peer_answers` as argument."""

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import snsql

from benchmarks.peer_scripts.timing import BOUNDS, DELTA, EPSILON, MOST_TOWNS, Answers


def main(folder: Path) -> None:
    people, visits = (pd.read_csv(folder / f"{name}.csv") for name in ("people", "visits"))

    def reader(frame: pd.DataFrame, epsilon: float, most: int) -> Any:
        columns = {
            "pid": {"type": "int", "private_id": True},
            "town": {"type": "string"},
            "income": {"type": "float", "lower": BOUNDS[0], "upper": BOUNDS[1]},
        }
        known = {name: columns[name] for name in frame.columns}
        table = {"row_privacy": False, "max_ids": most, "censor_dims": False, **known}
        privacy = snsql.Privacy(epsilon=epsilon, delta=DELTA)
        return snsql.from_df(frame, privacy=privacy, metadata={"": {"s": {"t": table}}})

    def mean() -> float:
        """It charges for a sum and a count: half of ε each."""
        told = reader(people, EPSILON / 2, 1).execute("SELECT AVG(income) AS m FROM s.t")
        return float(told[1][0])

    def counted(frame: pd.DataFrame, most: int) -> dict[str, float]:
        asked = "SELECT town, COUNT(DISTINCT pid) AS n FROM s.t GROUP BY town"
        return {town: float(n) for town, n in reader(frame, EPSILON, most).execute(asked)[1:]}

    def groups() -> dict[str, float]:
        return counted(people, 1)

    def visits_by_town() -> dict[str, float]:
        return counted(visits, MOST_TOWNS)

    visits_by_town.__name__ = "visits"
    Answers("SmartNoise SQL", "smartnoise-sql").run(mean, groups, visits_by_town)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
