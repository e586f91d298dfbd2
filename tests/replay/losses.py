"""What calls cost: by how much the chance of the same outputs may differ on a neighbour.

Computed from the secret inputs of both runs, call by call, and never from what the package says of
its sensitivities.  A stream's bits are paid for as in the proof of `tacit.book.one_sided`: ρ is
shifted once, so that no ⊥ becomes less likely, and each ⊤ pays for what then is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from tests.replay.calls import RHO, Call

from tacit.book.quantile import QuantileMechanism
from tacit.privacy import Cost

Pair = tuple[Call, Call]
Step = tuple[int, bool, Fraction]  # by how much a question's value rose, ⊤ or ⊥, ν's scale


class Unpaid(AssertionError):
    """Calls whose inputs differ by more than was charged."""


def check_paid(here: Sequence[Call], there: Sequence[Call], costs: Sequence[Cost]) -> Fraction:
    """The loss between two runs, in the worse direction; `Unpaid` if it exceeds the charge."""
    pairs = list(zip(here, there, strict=True))
    losses = [losses_of(pairs), losses_of([(after, before) for before, after in pairs])]
    for each in losses:
        _refuse_unpaid(each, costs)
    return max(sum(each, Fraction(0)) for each in losses)


def _refuse_unpaid(losses: Sequence[Fraction], costs: Sequence[Cost]) -> None:
    """With δ = 0 losses add up; with δ > 0 they must fit into the pieces, and add up in each."""
    charged, lost = sum(cost.privacy.epsilon for cost in costs), sum(losses)
    if not any(cost.privacy.delta for cost in costs):
        if lost > charged:
            raise Unpaid(f"ε = {charged} was charged, and the loss is {lost}")
        return
    pieces = [piece for cost in costs for times, piece in cost.pieces for _ in range(times)]
    left = list(pieces)
    for loss in sorted(filter(None, losses), reverse=True):
        room = min((each for each in left if each >= loss), default=None)
        if room is None:
            raise Unpaid(f"the pieces that were charged are {pieces}, and the losses {losses}")
        left[left.index(room)] -= loss


def losses_of(pairs: Iterable[Pair]) -> list[Fraction]:
    """What each call costs, and what each ρ with all its bits does."""
    found: list[Fraction] = []
    steps: dict[int, list[Step]] = {}
    rhos: list[Fraction] = []
    for here, there in pairs:
        moved = [after - before for before, after in zip(here.secret, there.secret, strict=False)]
        if here.kind == "rho":
            rhos.append(here.public[1])
        elif here.kind in ("bits", "gap"):
            _stream_steps(here, moved, steps)
        elif here.kind == "add":
            found.append(sum(map(abs, moved)) / here.public[0])
        elif here.kind == "TopMechanism":
            mechanism, rate, _ = here.public
            found += [(max(moved) - min(moved)) * rate] * mechanism.places
        elif here.kind == "QuantileMechanism":
            found.append(_of_quantile(here, there))
        elif here.kind in ("Prefixes", "FiniteQuestions"):
            found.append(2 * here.public[1] * _rows_apart(here, there))
        else:
            assert not here.secret, here.kind
    return found + [_of_rho(rhos[number - 1], each) for number, each in steps.items()]


def _stream_steps(here: Call, moved: Sequence[int], steps: dict[int, list[Step]]) -> None:
    """Sort bits by the ρ in their distance.  A gap has the shift of its ⊤ and costs no more."""
    if here.kind == "gap":
        return
    for distance, by, above in zip(here.secret, moved, here.output, strict=True):
        number = (distance + RHO // 2) // RHO
        if number < 1:
            raise Unpaid("a bit was decided without ρ")
        steps.setdefault(number, []).append((-by, above, here.public[1]))


def _of_rho(scale: Fraction, steps: Sequence[Step]) -> Fraction:
    """The loss of all bits with one ρ, here against there: ρ is shifted by what rose most.

    Noise ν with a log-concave tail: a distance that grows by x costs a ⊤ x/b, and no ⊥ anything.
    """
    shift = max(0, max(rose for rose, _, _ in steps))
    tops = sum(((shift - rose) / scale_of for rose, above, scale_of in steps if above), Fraction(0))
    return shift / scale + tops


def _of_quantile(here: Call, there: Call) -> Fraction:
    """The spread of what the score of each value of the domain changes by, times the rate."""
    mechanism, rate = here.public
    before, after = (_ranks_off(call.secret, mechanism) for call in (here, there))
    moved = [now - then for then, now in zip(before, after, strict=True)]
    spread: Fraction = (max(moved) - min(moved)) * rate
    return spread


def _ranks_off(places: Sequence[int], asked: QuantileMechanism) -> list[Fraction]:
    """d(y) = max(0, #{x < y} − target, target − #{x ≤ y}) for every y, as in `quantile`."""
    target = {
        0: asked.share * len(places),
        -1: Fraction(asked.rank),
        1: Fraction(len(places) - asked.rank),
    }[asked.end]
    less, found = 0, []
    for each in range(asked.domain_size):
        up_to = less + sum(place == each for place in places)
        found.append(max(Fraction(0), less - target, target - up_to) * asked.unit)
        less = up_to
    return found


def _rows_apart(here: Call, there: Call) -> int:
    """How many rows were added or removed; each moves the score of any candidate by at most 1."""
    if here.kind == "FiniteQuestions":  # a histogram
        return sum(abs(b - a) for a, b in zip(here.secret, there.secret, strict=True))
    before, after = Counter(here.secret), Counter(there.secret)
    return ((before - after) + (after - before)).total()
