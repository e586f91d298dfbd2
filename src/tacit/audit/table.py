"""One table: mechanism, claimed, exact, sampled lower bound, verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.audit.exact_law import ExactLoss, certainly, exact
from tacit.audit.exhibits import Listed, Pair, Variant
from tacit.audit.sampling import SampledLoss, sample
from tacit.audit.search import best_pair_to_sample, worst
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number, probability, show
from tacit.privacy import Privacy
from tacit.support import check_can_plot

if TYPE_CHECKING:
    from rich.table import Table


Audited = Variant | Listed

_RUNS_TO_SEE = 10**6
_INVISIBLE = 1e-7  # of δ, in a picture


@dataclass(frozen=True, slots=True)
class Row:
    """What both auditors found out about one mechanism."""

    name: str
    claimed: Privacy
    private: bool = field(repr=False)  # what is known about it
    exact: float  # the largest loss found, or ε at the claimed δ
    at_least: float = field(repr=False)  # what that certainly is, beyond all errors
    sampled: SampledLoss | None
    why: str = field(default="", repr=False)
    pairs: int = field(default=1, repr=False)  # of neighbours, beside those of the search

    @property
    def refuted(self) -> bool:
        """By the exact loss, beyond its error, or by samples."""
        certainly = self.at_least > self.claimed.epsilon
        return certainly or (self.sampled is not None and self.sampled.refuted)

    @property
    def verdict(self) -> str:
        """Refuted, or not: nothing here can say more."""
        return "refuted" if self.refuted else "not refuted"

    @property
    def surprising(self) -> bool:
        """A mechanism that is known to be private was refuted, or a broken one was not."""
        return self.refuted == self.private


def chosen(known: Sequence[Audited], names: Sequence[str]) -> list[Audited]:
    """Those whose names begin so, in whatever case; all of them without a name."""
    for name in names:
        if not any(_begins(one, name) for one in known):
            listed = "".join(f"\n    {one.name}" for one in known)
            raise BadParameter("names", name, f"give the beginning of one of{listed}")
    return [one for one in known if not names or any(_begins(one, name) for name in names)]


def _begins(mechanism: Audited, name: str) -> bool:
    return mechanism.name.lower().startswith(name.lower())


def rows(
    audited: Iterable[Audited],
    *,
    questions: int = 10,
    runs: int | None = 1_000_000,
    confidence: Number = "0.95",
    workers: int | None = None,
    every_pair: bool = False,
    starting: Callable[[str], None] = lambda name: None,
) -> Iterator[Row]:
    """Audit one after another; ``runs=None`` leaves the samples out.

    ``every_pair`` computes the exact loss of all `neighbours` of a mechanism as well, where its
    claim is known to be true: of the others one pair is enough.

    Only a true claim can be refuted falsely.  So the n mechanisms whose claims are known to be
    true share the probability of a false alarm, an n-th part each (Bonferroni): samples refute
    any of them with probability 1 − ``confidence`` at most.  Every single bound holds with at
    least that confidence.
    """
    mechanisms = list(audited)
    true_claims = sum(mechanism.private for mechanism in mechanisms)
    each_confidence = 1 - (1 - probability(confidence, "confidence")) / max(true_claims, 1)
    for mechanism in mechanisms:
        starting(mechanism.name)
        losses, pairs = [worst_loss(mechanism, questions)], 1
        if every_pair and mechanism.private:
            small = [pair for pair in mechanism.neighbours() if pair[0] != pair[1]]
            losses += [pair_loss(mechanism, pair) for pair in small]
            pairs += len(small)
        loss, at_least = max(loss for loss, _ in losses), max(least for _, least in losses)
        sampled = None
        if runs is not None:
            sampled = sample(
                mechanism,
                pair_to_sample(mechanism, questions, runs),
                epsilon=mechanism.claimed.epsilon,
                delta=mechanism.claimed.delta,
                confidence=each_confidence,
                runs=runs,
                workers=workers,
            )
        yield Row(
            name=mechanism.name,
            claimed=mechanism.claimed,
            private=mechanism.private,
            exact=loss,
            at_least=at_least,
            sampled=sampled,
            why=mechanism.why,
            pairs=pairs,
        )


def pair_loss(mechanism: Audited, pair: Pair) -> tuple[float, float]:
    """The exact loss on one pair, at the claimed δ, and what it certainly is."""
    delta = mechanism.claimed.delta
    law = exact(mechanism if isinstance(mechanism, Listed) else mechanism.law, *pair)
    return law.epsilon(delta) if delta else law.loss, law.at_least(delta)


def worst_loss(mechanism: Audited, questions: int) -> tuple[float, float]:
    """The exact loss on the worst pair found, at the claimed δ, and what it certainly is."""
    delta = mechanism.claimed.delta
    if delta:
        # The largest loss may be in a pattern that δ covers: another pair is then worse.
        laws = (worst_law(mechanism, questions), law_to_sample(mechanism, questions))
        law = max(laws, key=lambda law: law.epsilon(delta))
        return law.epsilon(delta), law.at_least(delta)
    if mechanism.pair is not None:
        law = worst_law(mechanism, questions)
        return law.loss, law.at_least()
    pair = worst(mechanism.law, questions=questions)
    return pair.loss, certainly(pair.loss, pair.error)


def worst_law(mechanism: Audited, questions: int) -> ExactLoss:
    """The whole law on the worst pair found; of the bits alone if more cannot be listed."""
    if isinstance(mechanism, Listed):
        return exact(mechanism, *mechanism.pair)
    law = mechanism.law
    if mechanism.pair is not None:
        return exact(law, *mechanism.pair)
    pair = worst(law.bits_only(), questions=questions)
    loss = exact(law, pair.answers, pair.neighbour_answers)
    try:
        loss.delta(0)
    except Infeasible:
        loss = exact(law.bits_only(), pair.answers, pair.neighbour_answers)
    return loss


def law_to_sample(mechanism: Audited, questions: int) -> ExactLoss:
    """The whole law on a pair that differs where there is something to see."""
    law = mechanism if isinstance(mechanism, Listed) else mechanism.law
    pair = pair_to_sample(mechanism, questions, _RUNS_TO_SEE)
    loss = exact(law, *pair)
    try:
        loss.delta(0)
    except Infeasible:
        assert isinstance(mechanism, Variant)
        loss = exact(mechanism.law.bits_only(), *pair)
    return loss


def pair_to_sample(mechanism: Audited, questions: int, runs: int) -> Pair:
    """Two answer vectors that samples tell apart as well as possible."""
    if isinstance(mechanism, Listed) or mechanism.pair is not None:
        return mechanism.pair or ((), ())
    pair = best_pair_to_sample(mechanism.law, questions=questions, runs=runs)
    return (
        tuple(int(answer) for answer in pair.answers),
        tuple(int(answer) for answer in pair.neighbour_answers),
    )


def as_table(audited: Iterable[Row], *, questions: int, confidence: Number | None) -> Table:
    """For a terminal; ``confidence`` is that of the sampled bounds, if there are any."""
    from rich.table import Table

    table = Table(title=f"Is it as private as it says?  ({questions} questions)")
    if confidence is not None:
        table.caption = f"{confidence} confidence: of each bound, and for all true claims together"
    listed = list(audited)
    several = any(row.pairs > 1 for row in listed)
    table.add_column("mechanism", min_width=14)
    headings = ("claimed", "exact", "pairs", "sampled lower bound", "verdict")
    for heading in headings:
        if heading != "pairs" or several:
            table.add_column(heading)
    for row in listed:
        colour = "red" if row.refuted else "green"
        why = f" ({row.why})" if row.why else ""
        sampled = "—" if row.sampled is None else f"≥ {row.sampled.lower_bound:.4f}"
        delta = f", δ = {show(row.claimed.delta)}" if row.claimed.delta else ""
        table.add_row(
            row.name,
            f"ε = {show(row.claimed.epsilon)}{delta}",
            written_loss(row.exact),
            *([str(row.pairs)] if several else []),
            sampled,
            f"[{colour}]{row.verdict}[/]{why}",
        )
    return table


def written_loss(loss: float) -> str:
    """∞, or a short number.

    >>> written_loss(inf), written_loss(0.1000000000000003)
    ('∞', '0.1')
    """
    return "∞" if loss == inf else show(loss, 5)


# δ(ε), exact against claimed, as a picture: needs matplotlib, the extra ``plot`` ------------------


def claimed_delta(claimed: Privacy, epsilon: float) -> float:
    """The largest δ that a mechanism with this claim can have at another ε.

    Randomised response with the claim's ε attains it (Kairouz, Oh, Viswanath 2015).

    >>> claimed_delta(Privacy(1), 1), round(claimed_delta(Privacy(1), 0), 6)
    (0.0, 0.462117)
    """
    most, delta = float(claimed.epsilon), float(claimed.delta)
    if epsilon >= most:
        return delta
    return delta + (1 - delta) * (exp(most) - exp(epsilon)) / (1 + exp(most))


def draw(audited: Iterable[Audited], file: Path, *, questions: int) -> None:
    """One small picture a mechanism: where exact passes claimed, the claim is refuted."""
    check_can_plot(file)
    from matplotlib.figure import Figure

    mechanisms = list(audited)
    wide = min(len(mechanisms), 3 if len(mechanisms) <= 6 else 4)
    high = -(-len(mechanisms) // wide)
    figure = Figure(figsize=(3.4 * wide, 2.8 * high), layout="constrained")
    axes = figure.subplots(high, wide, squeeze=False)
    for axis in axes.flat[len(mechanisms) :]:
        axis.set_visible(False)
    for axis, mechanism in zip(axes.flat, mechanisms, strict=False):
        law = law_to_sample(mechanism, questions)
        epsilons = np.linspace(0, 2 * float(mechanism.claimed.epsilon), 81)
        exact = np.array([law.delta(float(epsilon)) for epsilon in epsilons])
        axis.plot(
            epsilons,
            [max(claimed_delta(mechanism.claimed, e), _INVISIBLE / 10) for e in epsilons],
            "--",
            color="grey",
            label="claimed, at most",
        )
        axis.plot(epsilons, np.maximum(exact, _INVISIBLE / 10), label="exact")
        axis.set_yscale("log")
        axis.set_ylim(_INVISIBLE, 1)
        axis.set_title(mechanism.name, fontsize=9)
    figure.supxlabel("ε")
    figure.supylabel("δ(ε)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.savefig(file)
