"""``make bench-peers``: the same work by OpenDP, diffprivlib and dp-accounting, as ratios.

One private number at a time is what these libraries offer, so that is what is compared: noise, a
private count on a table, composition.  A peer that is not installed is left out, and said so.
"""

from __future__ import annotations

import math
import os
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.coins import Coins
from tacit.book.composition import optimal_delta, optimal_epsilon

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROWS = int(os.environ.get("TACIT_PEER_ROWS", "1_000_000"))
PEERS = ("opendp", "polars", "diffprivlib", "dp-accounting", "numpy")


def versions() -> str:
    found = []
    for name in PEERS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def run(report: Report) -> None:
    report.note("versions", versions())
    for part in (_noise, _counts, _composition):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            part(report)


def _each(work: Callable[[], object], count: int) -> float:
    def many() -> None:
        for _ in range(count):
            work()

    return seconds(many, 7) / count


def _ratio(report: Report, what: str, theirs: float, ours: float) -> None:
    times = theirs / ours
    report.note(what, f"{_shown(theirs)}, {times:{',.0f' if times >= 100 else '.2g'}} × ours")


def _shown(time: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time * 1e9:.3g} ns"


# Noise --------------------------------------------------------------------------------------


def _noise(report: Report) -> None:
    coins = Coins()
    one = _each(coins.laplace_sampler(20).draw, 20_000)
    bulk = seconds(lambda: coins.laplaces(20, 1 << 20), 7) / (1 << 20)
    report.note("one draw, ours, prepared", _shown(one))
    report.note("one draw in bulk, ours", _shown(bulk))
    try:
        import opendp.prelude as dp
    except ImportError:
        report.note("one draw, OpenDP", "not installed")
    else:
        dp.enable_features("contrib")
        scalar = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=20.0)
        _ratio(report, "one draw, OpenDP make_laplace", _each(lambda: scalar(0), 300), one)
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        vector, zeros = dp.m.make_laplace(*space, scale=20.0), [0] * 10_000
        _ratio(
            report,
            "one draw in bulk, OpenDP make_laplace",
            _each(lambda: vector(zeros), 1) / 1e4,
            bulk,
        )
    try:
        from diffprivlib.mechanisms import Geometric, Laplace
    except ImportError:
        report.note("one draw, diffprivlib", "not installed")
    else:
        geometric = Geometric(epsilon=1 / 20, sensitivity=1)
        laplace = Laplace(epsilon=1 / 20, sensitivity=1)
        _ratio(
            report,
            "one draw, diffprivlib Geometric",
            _each(lambda: geometric.randomise(0), 500),
            one,
        )
        _ratio(
            report, "one draw, diffprivlib Laplace", _each(lambda: laplace.randomise(0), 500), one
        )


# A private count on a table -------------------------------------------------------------------


def _table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "age": rng.integers(0, 100, ROWS).astype(np.int32),
        "week": rng.integers(1, 51, ROWS).astype(np.int32),
        "smoker": rng.integers(0, 4, ROWS) == 0,
    }


def _counts(report: Report) -> None:
    """Count those with age >= a, week = w and smoker; each peer with its own budget."""
    try:
        import polars as pl
    except ImportError:
        report.note("a private count", "polars is not installed")
        return
    frame = pl.DataFrame(_table())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        frame.write_parquet(path)
        ours = _our_count(path)
        report.note(f"a private count on {ROWS:,} rows, ours, charged in memory", _shown(ours[0]))
        report.note(f"a private count on {ROWS:,} rows, ours, charged on disk", _shown(ours[1]))
        report.note("a stream's answer on the same rows, ours", _shown(ours[2]))
        _opendp_count(report, path, ours[0])
    _diffprivlib_count(report, frame, ours[0])


def _our_count(path: Path) -> tuple[float, float, float]:
    import tacit

    schema = "".join(
        f'[columns.{name}]\ntype = "{kind}"\n'
        for name, kind in (("age", "integer"), ("week", "integer"), ("smoker", "boolean"))
    )
    text = "age >= :age and week = :week and smoker"
    with tacit.open(path, person=tacit.EACH_ROW, schema=schema) as visits:
        prepared = visits.prepare(text)
        questions: list[dict[str, Any]] = [
            {"age": 20 + n % 40, "week": 1 + n % 10} for n in range(40)
        ]
        for question in questions:
            visits.engine.values([prepared.question(**question)])
        turn = iter(range(10**9))
        figures = []
        for budget in (
            tacit.Budget.in_memory(epsilon=10**6, covers=["visits"]),
            tacit.Budget.create(path.with_suffix(".budget"), epsilon=10**6, covers=["visits"]),
        ):

            def count(budget: tacit.Budget = budget) -> None:
                question = questions[next(turn) % len(questions)]
                visits.count(prepared, epsilon="1/10", budget=budget, **question)

            figures.append(_each(count, 40))
        stream = visits.sparse(threshold=ROWS, at_most=1, epsilon=1, budget=budget)
        asked = _each(lambda: stream.ask(prepared, **questions[next(turn) % len(questions)]), 40)
        stream.close()
    return figures[0], figures[1], asked


def _opendp_count(report: Report, path: Path, ours: float) -> None:
    """Over a scan of the file: the search for a scale would copy a frame in memory at each step."""
    try:
        import opendp.prelude as dp
        import polars as pl
    except ImportError:
        report.note("a private count, OpenDP's Polars context", "not installed")
        return
    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=10,
    )
    turn = iter(range(10**9))

    def count() -> None:
        n = next(turn)
        kept = (pl.col("age") >= 20 + n % 40) & (pl.col("week") == 1 + n % 10) & pl.col("smoker")
        context.query().filter(kept).select(dp.len()).release().collect()

    _ratio(report, "a private count, OpenDP's Polars context", seconds(count, 5), ours)


def _diffprivlib_count(report: Report, frame: object, ours: float) -> None:
    try:
        from diffprivlib.tools import count_nonzero
    except ImportError:
        report.note("a private count, diffprivlib", "not installed")
        return
    columns = {name: frame[name].to_numpy() for name in ("age", "week", "smoker")}  # type: ignore[index]
    turn = iter(range(10**9))

    def count() -> None:
        n = next(turn)
        kept = (columns["age"] >= 20 + n % 40) & (columns["week"] == 1 + n % 10) & columns["smoker"]
        count_nonzero(kept, epsilon=0.1)

    _ratio(report, "a private count, diffprivlib over numpy arrays", _each(count, 10), ours)


# Composition ----------------------------------------------------------------------------------


def _composition(report: Report) -> None:
    ours = _each(lambda: optimal_epsilon(500, "0.01", "1e-6"), 20)
    try:
        from dp_accounting.pld import accountant, common
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        report.note("composition, dp-accounting", "not installed")
        return
    each = common.DifferentialPrivacyParameters(0.01, 0)
    theirs = _each(lambda: accountant.advanced_composition(each, 500, 1e-6), 2)
    _ratio(report, "ε of 500 × ε₀ = 0.01, dp-accounting advanced_composition", theirs, ours)
    try:
        told = accountant.advanced_composition(each, 10_000, 1e-6)
        outcome = "it overflows" if told is None or not math.isfinite(told) else f"ε = {told:.4g}"
    except (OverflowError, ValueError):
        outcome = "it overflows"
    mine = float(optimal_epsilon(10_000, "0.01", "1e-6"))
    report.note("the same, 10 000 ×", f"{outcome}; ours: ε = {mine:.4g}")
    curve = _each(lambda: optimal_delta(10_000, "0.001", "0.5"), 20)
    single = pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(0.001, 0), value_discretization_interval=1e-4
    )
    theirs = _each(lambda: single.self_compose(10_000).get_delta_for_epsilon(0.5), 1)
    _ratio(report, "δ of 10 000 × ε₀ = 0.001, dp-accounting's loss distributions", theirs, curve)
    delta, exact = (
        single.self_compose(10_000).get_delta_for_epsilon(0.5),
        optimal_delta(10_000, "0.001", "0.5"),
    )
    report.note("the same: their δ against the optimum", f"{delta / float(exact):.4g} ×")
    try:
        from diffprivlib import BudgetAccountant
    except ImportError:
        return
    spent = BudgetAccountant(slack=1e-6)
    for _ in range(500):
        spent.spend(0.01, 0)
    theirs = _each(spent.total, 2)
    _ratio(report, "ε of 500 × ε₀ = 0.01, diffprivlib BudgetAccountant.total", theirs, ours)
    total, best = float(spent.total()[0]), float(optimal_epsilon(500, "0.01", "1e-6"))
    report.note("the same: their ε against ours", f"{total:.4g} against {best:.4g}")
