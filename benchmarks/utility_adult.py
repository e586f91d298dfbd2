"""The census table: every count right, and icebergs found by a stream.

- each predicate of ``adult_questions.json`` gives its true count through the engine;
- the iceberg questions, "do more than 3 256.1 people satisfy this?", as a Sparse stream: recall
  and precision of its ⊤ against the truth, on average over many streams;
- ``pums_dup.csv`` counts people, not rows; ``pums_null.csv`` follows SQL's NULL.

``python -m benchmarks.utility_adult [--streams N]``
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Sequence
from typing import Literal

import tacit
from benchmarks.shared_data import shared, table
from tacit.analyst.table import Table
from tacit.tables.schema.schema import EachRow
from tacit.tables.steward.propose import propose_schema


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--streams", type=int, default=100)
    streams = arguments.parse_args().streams
    asked = json.loads(shared("adult_questions.json").read_text())
    with opened("adult.csv", tacit.EACH_ROW) as adult:
        questions = asked["questions"]
        right = sum(
            adult.engine.values([adult.prepare(one["predicate"]).question()]) == [one["true_count"]]
            for one in questions
        )
        print(f"adult.csv: {right} of {len(questions)} predicates give their true count\n")
        print(
            f"Icebergs past {asked['iceberg_threshold']}: recall / precision, {streams} streams\n"
        )
        print(icebergs(adult, questions, asked["iceberg_threshold"], streams))
    people_not_rows()
    nulls()


def opened(name: str, person: str | EachRow) -> Table:
    path = shared(name)
    schema = propose_schema(path)
    return tacit.open(path, person=person, schema=schema)


def icebergs(
    adult: Table, questions: Sequence[dict[str, object]], threshold: float, streams: int
) -> str:
    """Each workload as one stream, asked in its order, with c = the icebergs there are; then all.

    No ⊤ at all counts as precision 1; without an iceberg there is no recall.
    """
    workloads: dict[str, dict[str, int]] = {}
    for one in questions:
        for name in (str(one["workload"]), "all in one stream"):
            counts = workloads.setdefault(name, {})
            counts[str(one["predicate"])] = int(str(one["true_count"]))
    rows: list[list[object]] = []
    for name, truth in sorted(workloads.items(), key=lambda item: len(item[1])):
        icebergs = {text for text, count in truth.items() if count > threshold}
        row: list[object] = [name, len(truth), len(icebergs)]
        for epsilon in ("0.1", "1"):
            for recipe in ("book", "best"):
                row.append(
                    _found(adult, list(truth), icebergs, threshold, epsilon, recipe, streams)
                )
        rows.append(row)
    head = ["workload", "questions", "icebergs"]
    return table([*head, "book, ε = 0.1", "best, ε = 0.1", "book, ε = 1", "best, ε = 1"], rows)


def _found(
    adult: Table,
    texts: list[str],
    icebergs: set[str],
    threshold: float,
    epsilon: str,
    recipe: Literal["book", "best"],
    streams: int,
) -> str:
    recall = precision = 0.0
    for _ in range(streams):
        stream = adult.sparse(
            threshold=threshold,
            at_most=max(len(icebergs), 1),
            epsilon=epsilon,
            budget=tacit.Budget.in_memory(epsilon=epsilon, covers=["adult"]),
            questions=len(texts),
            recipe=recipe,
        )
        tops = {text for text, answer in zip(texts, stream.ask_all(texts), strict=False) if answer}
        stream.close()
        recall += len(tops & icebergs) / max(len(icebergs), 1)
        precision += len(tops & icebergs) / len(tops) if tops else 1
    shown = f"{recall / streams:.2f}" if icebergs else "–"
    return f"{shown} / {precision / streams:.2f}"


def people_not_rows() -> None:
    with shared("pums_dup.csv").open() as file:
        rows = list(csv.DictReader(file))
    print("\npums_dup.csv, person = pid")
    with opened("pums_dup.csv", "pid") as pums:
        predicates: dict[str, Callable[[dict[str, str]], bool]] = {
            "age >= 60": lambda row: int(row["age"]) >= 60,
            "sex = 1 and married = 1": lambda row: row["sex"] == row["married"] == "1",
            "educ >= 13": lambda row: int(row["educ"]) >= 13,
        }
        for predicate, holds in predicates.items():
            matching = [row["pid"] for row in rows if holds(row)]
            (people,) = pums.engine.values([pums.prepare(predicate).question()])
            assert people == len(set(matching)), predicate
            print(f"  {predicate}: {len(matching)} rows, {people} people")


def nulls() -> None:
    with shared("pums_null.csv").open() as file:
        rows = list(csv.DictReader(file))
    print("\npums_null.csv, person = pid: a comparison with NULL is neither TRUE nor FALSE")
    with opened("pums_null.csv", "pid") as pums:
        predicates: dict[str, Callable[[str], bool]] = {
            "age >= 60": lambda age: age != "" and int(age) >= 60,
            "not (age >= 60)": lambda age: age != "" and int(age) < 60,
            "age is null": lambda age: age == "",
            "age >= 60 or age is null": lambda age: age == "" or int(age) >= 60,
        }
        for predicate, holds in predicates.items():
            matching = {row["pid"] for row in rows if row["pid"] and holds(row["age"])}
            (people,) = pums.engine.values([pums.prepare(predicate).question()])
            assert people == len(matching), predicate
            print(f"  {predicate}: {people} people")
    everybody = {row["pid"] for row in rows if row["pid"]}
    nobody = sum(1 for row in rows if not row["pid"])
    print(f"  {len(rows)} rows, {len(everybody)} people, {nobody} rows of nobody")


if __name__ == "__main__":
    main()
