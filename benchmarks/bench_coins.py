"""Exact, secure noise against numpy's insecure floats, a list iterator and OpenDP."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import perf_counter

import numpy as np

from benchmarks.report import Report, seconds
from tacit.book.coins import Coins

_SIZE = 1 << 20
_SINGLES = 200_000


def run(report: Report) -> None:
    coins = Coins()
    peer = np.random.default_rng(1)
    steps = peer.integers(0, 60, _SIZE)
    long_steps = peer.integers(0, 30_000, _SIZE)

    def per_second_of_numpy(work: Callable[[], object]) -> float:
        """The rate of `work` over that of numpy's Laplace, measured in turns."""
        ours, theirs = float("inf"), float("inf")
        for _ in range(7):
            ours = min(ours, seconds(work, 2))
            theirs = min(theirs, seconds(lambda: peer.laplace(0, 20, _SIZE), 2))
        return theirs / ours

    bulk = "of the rate of numpy's Generator.laplace"
    for scale, target in ((20, 1.0), (10**4, 0.6), (10**6, None)):
        ratio = per_second_of_numpy(partial(coins.laplaces, scale, _SIZE))
        _compare(report, f"discrete Laplace, scale {scale:g}, {bulk}", ratio, target)
    for name, array, rate in (("1/20", steps, "1/20"), ("10⁻⁴", long_steps, "1e-4")):
        ratio = per_second_of_numpy(partial(coins.bernoulli_exps, array, rate))
        _compare(report, f"Bernoulli(e^(−n·{name})), {bulk}", ratio, 0.7)
    ratio = per_second_of_numpy(lambda: coins.bernoullis("1/3", _SIZE))
    _compare(report, f"Bernoulli(1/3), {bulk}", ratio, None)

    values = list(range(1000, 1000 + _SINGLES))
    for scale in (20, 10**4):
        draw = coins.laplace_sampler(scale).draw
        iterator = min(_each(iter(values).__next__) for _ in range(9))
        single = min(_each(draw) for _ in range(9))
        what = f"one draw of a prepared sampler, scale {scale:g}, over a list iterator's __next__()"
        report.at_most(what, single / iterator, 3)
    report.note("one draw of a prepared sampler", f"{single * 1e9:.0f} ns")
    for name, work in (
        ("laplace(2⁶⁰), which is never prepared", lambda: coins.laplace(2**60)),
        ("laplace(10⁴), prepared after 50 draws", lambda: coins.laplace(Fraction(10**4))),
        ("bernoulli_exp(22/7)", lambda: coins.bernoulli_exp(Fraction(22, 7))),
        ("below(1000)", lambda: coins.below(1000)),
    ):
        report.note(f"scalar {name}", f"{_each(work, 2000) * 1e6:.1f} µs")
    _against_opendp(report, single)


def _each(work: Callable[[], object], count: int = _SINGLES) -> float:
    start = perf_counter()
    for _ in range(count):
        work()
    return (perf_counter() - start) / count


def _compare(report: Report, what: str, ratio: float, target: float | None) -> None:
    if target is None:
        report.note(what, f"{ratio:.3g} ×")
    else:
        report.at_least(what, ratio, target)


def _against_opendp(report: Report, single: float) -> None:
    try:
        import opendp.prelude as dp
    except ImportError:
        report.note("one draw against OpenDP's make_laplace", "opendp is not installed")
        return
    dp.enable_features("contrib")
    theirs = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1e4)
    peer = min(_each(lambda: theirs(0), 500) for _ in range(5))
    report.at_least("OpenDP's scalar make_laplace, scale 10⁴, over ours", peer / single, 100)
