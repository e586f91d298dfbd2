"""What theory suspects: the outcomes of a known law that samples tell two databases apart by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.audit.exact_law import exact
from tacit.audit.law import Law
from tacit.audit.learning import Suspicion
from tacit.audit.ratio import RELIABLY, slack
from tacit.audit.streams import WORD
from tacit.audit.walk import Pattern
from tacit.errors import TacitError

_MOST_PATTERNS = 1 << 11  # beyond that, listing the law takes longer than learning


def suspicion(
    law: Law, pair: tuple[Sequence[int], Sequence[int]], runs: int, threshold: int = 0
) -> Suspicion | None:
    """Patterns that give the best bound from so many runs a side, as `Streams` codes them.

    None where numbers are told besides, since the worst of those are better learned.
    """
    if law.told != "bits" or law.value_noise is not None:
        return None
    questions = len(pair[0])
    if not questions <= WORD or law.pattern_count(questions) > _MOST_PATTERNS:
        return None
    moved = max((abs(a - b) for a, b in zip(*pair, strict=False)), default=0)
    try:
        found = exact(law, *pair, threshold=threshold, sensitivity=max(moved, 1))
    except TacitError:
        return None  # the black box itself will say what is wrong with the pair
    best: tuple[float, Suspicion] | None = None
    chances = found.probabilities, found.neighbour_probabilities
    for swapped in (False, True):
        order = np.argsort(found.log_ratios if swapped else -found.log_ratios, kind="stable")[:-1]
        p, other = (
            np.clip(np.cumsum(side[order]), 0.25 / runs, 1.0)
            for side in chances[:: -1 if swapped else 1]
        )
        promises = np.log(p / other) - slack(p, other, 0.0, runs, RELIABLY)
        if not len(order):
            continue
        place = int(promises.argmax())
        if best is None or promises[place] > best[0]:
            codes = [_code(found.patterns[index]) for index in order[: place + 1]]
            best = float(promises[place]), Suspicion(codes, swapped)
    return None if best is None else best[1]


def _code(pattern: Pattern) -> int:
    return sum(above << index for index, above in enumerate(pattern))
