"""``make bench-peers``: the same questions about the same data at one ε, and who errs how much.

Each peer lives in an environment of its own and is run there as a script of ``peer_scripts``; a
peer whose environment is not there is left out, and said so.  Errors are computed here, from what
each of them answered; time is the processor's, for one answer, with the data loaded.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import tacit
from benchmarks.peer_scripts.timing import (
    BOUNDS,
    CODES,
    EPSILON,
    MOST_TOWNS,
    ROW_COLUMNS,
    ROWS_RUNS,
    RUNS,
    TOP,
    TOWNS,
)
from benchmarks.report import Report

PEOPLE, VISITORS, ROW_PEOPLE = 100_000, 20_000, 20_000
SCRIPTS = Path(__file__).parent / "peer_scripts"
ENVIRONMENTS = {
    "opendp": ".venv-peers",
    "diffprivlib": ".venv-peers",
    "smartnoise": ".venv-smartnoise",
    "pipelinedp": ".venv-pipelinedp",
}
KEYS = ", ".join(f'"town {n}"' for n in range(TOWNS))
SCHEMA = f"""
[columns.pid]
type = "integer"
[columns.town]
type = "text"
keys = [{KEYS}]
"""
INCOME = f"""[columns.income]
type = "real"
grid = "0.01"
bounds = [{BOUNDS[0]:.0f}, {BOUNDS[1]:.0f}]
"""


@dataclass(frozen=True)
class Truth:
    """What is being asked about."""

    income: Any
    groups: dict[str, int]
    visits: dict[str, int]
    codes: Any
    rows: dict[str, Any]

    def error(self, work: str, answer: Any) -> float:
        """How far an answer is off, in the unit of its row."""
        if work == "mean":
            return abs(float(answer) - float(self.income.mean()))
        if work == "median":
            return abs(float((self.income <= answer).mean()) - 0.5) * len(self.income)
        if work == "top":
            best = np.sort(self.codes)[::-1][:TOP]
            return float(np.mean(best - self.codes[answer]))
        if work == "rows":
            return float(abs(pair_counts(answer) - pair_counts(self.rows)).mean())
        counts = self.groups if work == "groups" else self.visits
        return fmean(abs(answer.get(town, 0) - count) for town, count in counts.items())


WORKS = {
    "mean": f"the mean of {PEOPLE:,} incomes in [0, 200 000]: off by",
    "median": "their median: ranks off",
    "groups": f"GROUP BY of {TOWNS} towns, one row a person: each count off by",
    "visits": f"the same, people in up to {MOST_TOWNS} towns: each count off by",
    "top": f"the top {TOP} of {CODES} codes: each count below the true one by",
    "rows": f"synthetic rows of {len(ROW_COLUMNS)} columns, {ROW_PEOPLE:,} people: "
    "each count of two columns off by",
}


def run(report: Report) -> None:
    """A row for each kind of work and each that can do it, the least error first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = made(folder)
        told = list(ours(folder))
        missing = []
        for peer, environment in ENVIRONMENTS.items():
            python = Path(environment) / "bin" / "python"
            if python.exists():
                told += asked(peer, python, folder)
            else:
                missing.append(peer)
        remote = remote_count(folder)
    for work, title in WORKS.items():
        found = [(truth_of(truth, each), each) for each in told if each["work"] == work]
        for error, each in sorted(found, key=lambda pair: pair[0]):
            if "failed" in each:
                report.note(f"{title} ({each['peer']})", f"it fails: {each['failed']}")
            else:
                spent = 1000 * each["seconds"]
                report.note(f"{title} ({each['peer']})", f"{error:.3g}; {spent:.3g} ms")
    report.note("a count over HTTP, without the clock (Tacit; no peer has a server)", remote)
    versions = sorted({each["versions"] for each in told if each.get("versions")})
    report.note("versions", ", ".join(versions))
    report.note("not installed", ", ".join(missing) or "none")


def truth_of(truth: Truth, told: dict[str, Any]) -> float:
    """The mean error of what was told; what failed comes last."""
    if "failed" in told:
        return float("inf")
    return fmean(truth.error(told["work"], answer) for answer in told["answers"])


def made(folder: Path) -> Truth:
    """The tables, as CSV; people are in no more towns than may count, so that only noise errs."""
    random = np.random.default_rng(7)
    income = np.clip(random.lognormal(10.2, 0.7, PEOPLE), *BOUNDS).round(2)
    town = np.minimum((random.pareto(1.2, PEOPLE) * 6).astype(int), TOWNS - 1)
    with open(folder / "people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pid", "town", "income"])
        pairs = zip(town.tolist(), income.tolist(), strict=True)
        writer.writerows([n, f"town {at}", value] for n, (at, value) in enumerate(pairs))
    visited: list[tuple[int, int]] = []
    for n in range(VISITORS):
        chosen = random.choice(TOWNS, random.integers(1, MOST_TOWNS + 1), replace=False)
        visited += [(n, at) for at in chosen.tolist()]
    with open(folder / "visits.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["pid", "town"])
        writer.writerows([n, f"town {at}"] for n, at in visited)
    codes = (1000 * np.exp(-np.arange(CODES) / 200)).astype(int)
    random.shuffle(codes)
    (folder / "codes.csv").write_text("\n".join(map(str, codes.tolist())))
    by_town = np.bincount([at for _, at in visited], minlength=TOWNS).tolist()
    return Truth(
        income,
        {f"town {n}": count for n, count in enumerate(np.bincount(town, minlength=TOWNS).tolist())},
        {f"town {n}": count for n, count in enumerate(by_town)},
        codes,
        made_rows(folder, random),
    )


def made_rows(folder: Path, random: np.random.Generator) -> dict[str, Any]:
    """People in six columns that depend on each other, more than one tree of pairs can say."""
    age = random.integers(0, 8, ROW_PEOPLE)
    region = np.minimum(random.geometric(0.4, ROW_PEOPLE) - 1, 5)
    job = (age // 2 + random.integers(0, 3, ROW_PEOPLE) + (region > 2)) % 5
    income = np.clip(2 * job + random.integers(-2, 3, ROW_PEOPLE) + (age > 4), 0, 9)
    smokes = 0.1 + 0.08 * (job % 2) + 0.02 * age
    smoker = (random.random(ROW_PEOPLE) < smokes).astype(int)
    visits = np.minimum(random.poisson(0.3 + 0.25 * age + smoker), 7)
    rows = dict(zip(ROW_COLUMNS, (age, region, job, income, visits, smoker), strict=True))
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(ROW_COLUMNS)
        writer.writerows(np.column_stack(list(rows.values())).tolist())
    return rows


def pair_counts(rows: dict[str, Any]) -> Any:
    """How many rows each cell of each two columns has."""
    found = []
    for (one, size), (other, more) in combinations(ROW_COLUMNS.items(), 2):
        cells = np.asarray(rows[one]) * more + np.asarray(rows[other])
        found.append(np.bincount(cells, minlength=size * more))
    return np.concatenate(found)


def asked(peer: str, python: Path, folder: Path) -> list[dict[str, Any]]:
    """What a peer answers, in its own environment."""
    command = [str(python.absolute()), str(SCRIPTS / f"{peer}_answers.py"), str(folder)]
    root = str(Path(__file__).parent.parent)
    given = {**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONPATH": root}
    done = subprocess.run(command, capture_output=True, text=True, env=given, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        print(f"{peer} could not be run:\n{done.stderr[-2000:]}", file=sys.stderr)
    return lines


def ours(folder: Path) -> Iterator[dict[str, Any]]:
    """What Tacit answers."""
    covers = ["people", "visits", "coded", "rows"]
    budget = tacit.Budget.in_memory(epsilon=10**6, covers=covers)
    people = tacit.open(folder / "people.csv", person="pid", schema=SCHEMA + INCOME)
    visits = tacit.open(folder / "visits.csv", person="pid", schema=SCHEMA)
    coded = tacit.open(code_rows(folder), person=tacit.EACH_ROW, schema=CODED, name="coded")
    of_rows = tacit.open(
        folder / "rows.csv", person=tacit.EACH_ROW, schema=ROWS_SCHEMA, people=ROW_PEOPLE
    )
    by_town = "SELECT town, COUNT(DISTINCT pid) AS n FROM {} GROUP BY town"

    def one(text: str) -> float:
        told = people.query(text, epsilon=EPSILON, max_rows=1, budget=budget).to_dict()
        return float(told["answer"][0])

    def counts(table: tacit.Table, most: int) -> dict[str, float]:
        text = by_town.format(table.name)
        told = table.query(text, epsilon=EPSILON, max_cells=most, budget=budget).to_dict()
        return {town: float(n) for town, n in zip(told["town"], told["n"], strict=True)}

    def largest() -> list[int]:
        cells = "SELECT COUNT(*) FROM coded GROUP BY code"
        found = coded.top(TOP, cells, epsilon=EPSILON, budget=budget)
        return [int(row) for row in found.to_dict()["code"]]

    def invented() -> dict[str, Any]:
        rows = of_rows.synthetic(list(ROW_COLUMNS), epsilon=EPSILON, rows=ROW_PEOPLE, budget=budget)
        return rows.to_dict()

    works: dict[str, Callable[[], object]] = {
        "mean": lambda: one("SELECT AVG(income) AS answer FROM people"),
        "median": lambda: one("SELECT MEDIAN(income) AS answer FROM people"),
        "groups": lambda: counts(people, 1),
        "visits": lambda: counts(visits, MOST_TOWNS),
        "top": largest,
        "rows": invented,
    }
    for name, work in works.items():
        runs = ROWS_RUNS if name == "rows" else RUNS
        work()
        start = time.process_time()
        answers = [work() for _ in range(runs)]
        spent = (time.process_time() - start) / runs
        yield {"peer": "Tacit", "work": name, "answers": answers, "seconds": spent}


ROWS_SCHEMA = "".join(
    f'[columns.{column}]\ntype = "integer"\nbounds = [0, {size - 1}]\n'
    for column, size in ROW_COLUMNS.items()
)
CODED = f"""
[columns.code]
type = "integer"
keys = [{", ".join(map(str, range(CODES)))}]
"""


def code_rows(folder: Path) -> Path:
    """A row for each person with a code."""
    counts = [int(line) for line in (folder / "codes.csv").read_text().split()]
    path = folder / "coded.csv"
    with open(path, "w") as file:
        file.write("code\n")
        file.writelines(f"{code}\n" * count for code, count in enumerate(counts))
    return path


def remote_count(folder: Path) -> str:
    """A private count of a table behind a server, beside one here."""
    from benchmarks.bench_server import prepared, running

    (place := folder / "served").mkdir()
    token = prepared(place)
    with (
        running(place, token, 0) as server,
        tacit.connect(server.url, token=server.token) as connection,
    ):
        visits = connection.table("visits")
        visits.count("score > 500", epsilon="1/100")
        start = server.processor_seconds()
        for n in range(RUNS):
            visits.count("score > :n", epsilon="1/100", n=n)
        spent = (server.processor_seconds() - start) / RUNS
    return f"{1000 * spent:.3g} ms of the server's processor"
