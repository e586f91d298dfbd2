"""OpenDP's Polars context, noisy top k, AIM and MST; run with the folder of `peer_answers`."""

import sys
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl

from benchmarks.peer_scripts.timing import (
    BOUNDS,
    EPSILON,
    MOST_TOWNS,
    ROW_COLUMNS,
    ROWS_RUNS,
    TOP,
    TOWNS,
    Answers,
)

dp.enable_features("contrib", "honest-but-curious")

INCOME: Any = pl.col("income").cast(float).fill_null(0).fill_nan(0)


def context(frame: pl.LazyFrame, unit: object = None, **margins: object) -> Any:
    """One that spends all of ε on one query."""
    return dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1) if unit is None else unit,
        privacy_loss=dp.loss_of(epsilon=EPSILON),
        split_evenly_over=1,
        **margins,
    )


def main(folder: Path) -> None:
    for name in ("people", "visits", "rows"):
        pl.read_csv(folder / f"{name}.csv").write_parquet(folder / f"{name}.parquet")
    people, visited = (pl.scan_parquet(folder / f"{name}.parquet") for name in ("people", "visits"))
    towns = pl.LazyFrame({"town": [f"town {n}" for n in range(TOWNS)]})
    longest = [dp.polars.Margin(max_length=1_000_000)]

    def mean() -> float:
        """Of a table whose size is secret: a sum and a count, with half of ε each."""
        asked = context(people, margins=longest).query()
        told = asked.select(INCOME.dp.sum(BOUNDS), dp.len()).release().collect()
        return float(told["income"][0] / told["len"][0])

    def median() -> float:
        """Among the multiples of 10: it takes a list of candidates."""
        candidates = [float(value) for value in range(0, int(BOUNDS[1]) + 1, 10)]
        asked = context(people, margins=longest).query()
        told = asked.select(INCOME.dp.median(candidates)).release().collect()
        return float(told["income"][0])

    def groups() -> dict[str, float]:
        asked = context(people).query().group_by("town").agg(dp.len()).with_keys(towns)
        told = asked.release().collect()
        return dict(zip(told["town"], told["len"], strict=True))

    def visits() -> dict[str, float]:
        unit = dp.unit_of(contributions=1, identifier=pl.col("pid"))
        asked = context(visited, unit).query().truncate_per_group(MOST_TOWNS)  # one row a town
        told = asked.group_by("town").agg(dp.len()).with_keys(towns).release().collect()
        return dict(zip(told["town"], told["len"], strict=True))

    def top() -> list[int]:
        counts = [int(line) for line in (folder / "codes.csv").read_text().split()]
        space = dp.vector_domain(dp.atom_domain(T="i32")), dp.linf_distance(T="i32", monotonic=True)
        drawn = dp.binary_search_chain(
            lambda scale: space >> dp.m.then_noisy_top_k(dp.max_divergence(), TOP, scale),
            1,
            EPSILON,
        )
        return list(drawn(counts))

    Answers("OpenDP", "opendp", "polars").run(mean, median, groups, visits, top)
    synthetic(folder, "OpenDP, AIM of pairs", dp.mbi.AIM(queries=2))
    synthetic(folder, "OpenDP, MST", dp.mbi.MST())


def synthetic(folder: Path, title: str, algorithm: object) -> None:
    """Rows in all columns, with δ = 0 as ours, for which neither was made.

    It adds a null to each column; those rows go.
    """
    keys = {column: list(range(size)) for column, size in ROW_COLUMNS.items()}

    def rows() -> Any:
        asked = context(pl.scan_parquet(folder / "rows.parquet")).query().select(*ROW_COLUMNS)
        told = asked.contingency_table(keys=keys, algorithm=algorithm).release().synthesize()
        return told.drop_nulls().cast(pl.Int64).to_dict(as_series=False)

    Answers(title, "opendp", "mbi").run(rows, runs=ROWS_RUNS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
