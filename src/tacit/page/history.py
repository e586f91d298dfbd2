"""The history: who spent what when, as a table and as a picture of what was left."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tacit.budget import Amount, Share
from tacit.page.pictures import across, path, round_steps, tick, upwards
from tacit.page.rendering import UNITS, amount, fragment, page
from tacit.server.desk import verify_history
from tacit.server.endpoints import Content
from tacit.server.service import Service, show_budget
from tacit.server.spent import SpentLine, list_spent, sees_all_spent, shown_head
from tacit.server.tokens import TokenRecord
from tacit.wire import from_json

_MOST_LINES = 500
_MOST_STEPS = 400  # of the picture


@dataclass(frozen=True, slots=True)
class StepPicture:
    """What was left after each payment, of the unit that runs out first."""

    line: str
    heights: tuple[tuple[float, str], ...]
    unit: str  # ε, δ or ρ
    first: str
    last: str
    words: str


def history_page(service: Service, who: TokenRecord) -> Content:
    """The payments that a token may see, the newest first."""
    lines = list_spent(service, who)
    facts = show_budget(service, who)
    told = facts.whole if who.role == "steward" else facts.own
    # What is left after payments that are not shown would be more than there is.
    drawn = told is not None and sees_all_spent(service, who)
    share = from_json(told, Share) if drawn else None
    entries, head = shown_head(service)
    return page(
        "history.html",
        who,
        here="history",
        lines=lines[: -_MOST_LINES - 1 : -1],
        more=len(lines) > _MOST_LINES,
        picture=None if share is None else step_picture(lines, share, whole=who.role == "steward"),
        head=head,
        entries=entries,
    )


def verified(service: Service, who: TokenRecord) -> Content:
    """Read all of it again; whoever noted the head elsewhere can compare it."""
    verify_history(service, who)
    entries, head = shown_head(service)
    return fragment("_verified.html", verified=True, entries=entries, head=head)


def step_picture(lines: list[SpentLine], share: Share, *, whole: bool) -> StepPicture | None:
    """What was left of the whole, or of one's own share, whose limit may have changed."""
    limit = share.limit if whole else share.limit.zero()
    spent, steps = share.limit.zero(), [(lines[0].at, limit)] if lines and whole else []
    for line in lines:
        if line.table is not None:
            spent = spent + line.amount
        elif not whole:
            limit = line.amount
        else:
            continue  # who may spend it changed, and nothing else
        steps.append((line.at, limit - spent))
    return _drawn(steps, share) if steps else None


def _drawn(steps: list[tuple[str, Amount]], share: Share) -> StepPicture:
    both = list(share.spent.beside(share.limit))
    parts = [used / most if most else Fraction(0) for used, most in both]
    unit = parts.index(max(parts))
    every = max(1, -(-len(steps) // _MOST_STEPS))
    kept = steps[::every] if (len(steps) - 1) % every == 0 else [*steps[::every], steps[-1]]
    left = [float(amount.numbers[unit]) for _, amount in kept]
    ticks = round_steps(0, max(left))
    x, y = across(0, len(kept)), upwards(0, ticks[-1])
    places = []
    for place, number in enumerate(left):
        places += [(x(place), y(number)), (x(place + 1), y(number))]
    words = amount(steps[-1][1])
    return StepPicture(
        line=path(places),
        heights=tuple((y(height), tick(height)) for height in ticks),
        unit=UNITS[share.limit.units[unit]],
        first=kept[0][0],
        last=kept[-1][0],
        words=f"{words} is left",
    )
