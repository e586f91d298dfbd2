"""Optimal composition of a million mechanisms, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.report import Report, seconds
from tacit.book.composition import optimal_delta, optimal_each, optimal_epsilon, two_point_delta
from tacit.numerics import binomial as binomial_term

MILLION = 10**6


def run(report: Report) -> None:
    slowest = max(
        _milliseconds(partial(optimal_delta, MILLION, "0.001", epsilon))
        for epsilon in ("0", "0.5", "1", "5", "10")
    )
    report.at_most("optimal_delta, k = 10⁶, slowest of five ε", slowest, 1, "ms")
    for what, work in {
        "two_point_delta, k = 10⁶": lambda: two_point_delta(MILLION, "0.001", "0.0005", "3"),
        "optimal_epsilon, k = 10⁶": lambda: optimal_epsilon(MILLION, "0.001", "1e-9"),
        "optimal_each, k = 10⁶": lambda: optimal_each(MILLION, 1, "1e-9"),
        "optimal_delta, k = 10⁹": lambda: optimal_delta(10**9, "1e-5", 1),
    }.items():
        report.note(what, f"{_milliseconds(work):.3g} ms")
    _against_dp_accounting(report)


def _milliseconds(work: Callable[[], object]) -> float:
    def afresh() -> object:
        binomial_term.pair.cache_clear()  # as a first call with these parameters
        return work()

    return seconds(afresh, repeats=15) * 1000


def _against_dp_accounting(report: Report) -> None:
    """K = 500, because its sum overflows from k = 1000 or so on."""
    what = "optimal_epsilon, k = 500, times as fast as dp-accounting"
    try:
        from dp_accounting.pld import accountant, common
    except ImportError:
        report.note(what, "dp-accounting is not installed")
        return
    each = common.DifferentialPrivacyParameters(0.01, 0)
    theirs = seconds(lambda: accountant.advanced_composition(each, 500, 1e-6), repeats=3) * 1000
    ours = _milliseconds(lambda: optimal_epsilon(500, "0.01", "1e-6"))
    report.note(what, f"{theirs / ours:.3g} ×")
