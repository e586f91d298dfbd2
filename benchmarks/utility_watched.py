"""A watched model of the census table: 12 000 three-way cells, and the questions of APEx.

``python -m benchmarks.utility_watched [--runs N]``
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

import tacit
from benchmarks.shared_data import shared, table
from benchmarks.utility_synthetic import COLUMNS, PEOPLE, Truth, opened
from tacit.analyst.table import Table
from tacit.analyst.watched import WatchedModel
from tacit.book.coins import Coins
from tacit.tables.language.prepared import Prepared

Asked = tuple[Prepared, dict[str, object]]

BOUNDS = {  # public: what a codebook says
    "age": 99,
    "hourweek": 99,
    "edunum": 16,
    "capgain": 99_999,
    "caploss": 4_999,
    "fnlwgt": 1_999_999,
}
BINS = {"capgain": [1, *range(1000, 100_000, 1000)], "caploss": [1, 1000, 2000, 3000]}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=5)
    runs = arguments.parse_args().runs
    lines = []
    with opened() as adult:
        truth = Truth(adult)
        asked, true = three_way(adult, truth)
        for model, surprises in (("synthetic", 20), ("independent", 60)):
            found = [cells(adult, model, surprises, asked, true) for _ in range(runs)]
            lines.append([model, surprises, *map(shown, np.mean(found, axis=0))])
    head = ["model", "surprises", "mean error", "95 %", "largest", "measured", "unwatched"]
    print(f"{len(asked)} three-way cells at ε = 1, average of {runs} runs\n")
    print(table(head, lines))
    questions = json.loads(shared("adult_questions.json").read_text())["questions"]
    texts = [str(one["predicate"]) for one in questions]
    counts = [float(one["true_count"]) for one in questions]
    with all_columns() as adult:
        found = [predicates(adult, texts, counts) for _ in range(runs)]
        plain = np.abs(Coins().laplaces(len(texts), runs * len(texts))).astype(np.float64)
    noise = [plain.mean(), float(np.quantile(plain, 0.95)), plain.max()]
    lines = [
        ["watched model, 20 surprises", *map(shown, np.mean(found, axis=0))],
        ["Laplace on each", *map(shown, noise), "507", "0"],
    ]
    print(f"\n{len(texts)} predicates of APEx at ε = 1, average of {runs} runs\n")
    print(table(["", *head[2:]], lines))


def shown(error: float) -> str:
    return f"{error:.1f}" if error < 100 else f"{error:.0f}"


def all_columns() -> Table:
    """All columns, with words as keys and the public bounds above."""
    path = shared("adult.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    lines = []
    for name in rows[0]:
        if name in BOUNDS:
            lines += [f"[columns.{name}]", 'type = "integer"', f"bounds = [0, {BOUNDS[name]}]"]
        else:
            words = sorted({row[name] for row in rows})
            lines += [f"[columns.{name}]", 'type = "text"', f"keys = {json.dumps(words)}"]
    schema = "\n".join(lines) + "\n"
    return tacit.open(path, person=tacit.EACH_ROW, people=PEOPLE, schema=schema)


def predicates(adult: Table, texts: Sequence[str], true: Sequence[float]) -> list[float]:
    budget = tacit.Budget.in_memory(epsilon=1, covers=["adult"])
    with adult.watched_model(
        epsilon=1, surprises=20, questions=len(texts), bins=BINS, budget=budget
    ) as watched:
        return errors(watched, texts, true)


def three_way(adult: Table, truth: Truth) -> tuple[list[Asked], list[float]]:
    """The cells that `benchmarks.utility_synthetic` looks at, as questions, in random order."""
    every: list[tuple[Sequence[int], tuple[int, ...]]] = [
        (columns, cell)
        for columns in truth.three
        for cell in product(*(range(truth.sizes[place]) for place in columns))
    ]
    prepared: dict[tuple[int, ...], Prepared] = {}
    asked: list[Asked] = []
    for place in truth.asked.tolist():
        columns, cell = every[place]
        key = tuple(columns)
        if key not in prepared:
            parts = (f"{COLUMNS[c]} between :low_{c} and :high_{c}" for c in columns)
            prepared[key] = adult.prepare(" and ".join(parts))
        values: dict[str, object] = {}
        for c, at in zip(columns, cell, strict=True):
            values |= ends(truth, c, at)
        asked.append((prepared[key], values))
    return asked, truth.true[1].tolist()


def ends(truth: Truth, column: int, place: int) -> dict[str, object]:
    """The first and the last value of a bin."""
    binned = truth.columns[column]
    if binned.starts is None:
        key = (binned.column.keys or ())[place]
        return {f"low_{column}": key, f"high_{column}": key}
    last = [*(start - 1 for start in binned.starts[1:]), binned.column.range[1]]
    return {f"low_{column}": binned.starts[place], f"high_{column}": last[place]}


def cells(
    adult: Table, model: str, surprises: int, asked: Iterable[Asked], true: Sequence[float]
) -> list[float]:
    budget = tacit.Budget.in_memory(epsilon=1, covers=["adult"])
    with adult.watched_model(
        epsilon=1, surprises=surprises, model=model, questions=12_000, budget=budget
    ) as watched:
        return errors(watched, asked, true)


def errors(watched: WatchedModel, asked: Iterable[object], true: Sequence[float]) -> list[float]:
    """Mean, 95 % and largest error; how many answers were measured, and how many unwatched."""
    told = list(watched.ask_all(asked))  # type: ignore[arg-type]
    off = np.abs(np.array([float(each.value) for each in told]) - np.array(true))
    sources = [each.source for each in told]
    return [
        off.mean(),
        float(np.quantile(off, 0.95)),
        off.max(),
        sources.count("measured"),
        sources.count("unwatched"),
    ]


if __name__ == "__main__":
    main()
