"""PipelineDP on its local backend; run with the folder of `peer_answers` as argument."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import pipeline_dp

from benchmarks.peer_scripts.timing import BOUNDS, DELTA, EPSILON, MOST_TOWNS, TOWNS, Answers

Row = dict[str, str]


def main(folder: Path) -> None:
    tables = {}
    for name in ("people", "visits"):
        with open(folder / f"{name}.csv", newline="") as file:
            tables[name] = list(csv.DictReader(file))
    towns = [f"town {n}" for n in range(TOWNS)]

    def told(
        rows: list[Row], metric: object, most: int, cell: Callable[[Row], str], cells: list[str]
    ) -> dict[str, float]:
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        asked = pipeline_dp.AggregateParams(
            metrics=[metric],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=most,
            max_contributions_per_partition=1,
            min_value=BOUNDS[0],
            max_value=BOUNDS[1],
        )
        read = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row["pid"],
            partition_extractor=cell,
            value_extractor=lambda row: float(row.get("income", 0)),
        )
        found = engine.aggregate(rows, asked, read, public_partitions=cells)
        accountant.compute_budgets()
        return {key: float(value[0]) for key, value in found}

    def everybody(metric: object) -> float:
        return told(tables["people"], metric, 1, lambda row: "all", ["all"])["all"]

    def mean() -> float:
        return everybody(pipeline_dp.Metrics.MEAN)

    def median() -> float:
        return everybody(pipeline_dp.Metrics.PERCENTILE(50))

    def groups() -> dict[str, float]:
        counted = pipeline_dp.Metrics.PRIVACY_ID_COUNT
        return told(tables["people"], counted, 1, lambda row: row["town"], towns)

    def visits() -> dict[str, float]:
        counted = pipeline_dp.Metrics.PRIVACY_ID_COUNT
        return told(tables["visits"], counted, MOST_TOWNS, lambda row: row["town"], towns)

    Answers("PipelineDP", "pipeline-dp").run(mean, median, groups, visits)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
