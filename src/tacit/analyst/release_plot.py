"""Pictures of a release: its prefix curve, or the answers to its questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.analyst.question_class import Ordered
from tacit.drawing import check_can_draw

if TYPE_CHECKING:
    from tacit.analyst.release import Release


def plot_release(release: Release, path: Path) -> None:
    """Draw to a file, as its ending says."""
    check_can_draw(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(release.asked, Ordered):
        _prefix_curve(release, axes)
    else:
        _answers(release, axes)
    axes.set_title(str(release), fontsize=9)
    figure.savefig(path, dpi=120)


def _prefix_curve(release: Release, axes: Any) -> None:
    (name, values), *_ = release.to_dict().items()
    ordered = sorted(values)
    heights = [(place + 1) / len(ordered) for place in range(len(ordered))]
    axes.step(ordered, heights, where="post", color="tab:blue", label="released")
    error = release.guarantee()
    if error is not None and error < 1:
        low = [max(height - float(error), 0) for height in heights]
        high = [min(height + float(error), 1) for height in heights]
        axes.fill_between(
            ordered, low, high, step="post", color="tab:blue", alpha=0.15, label="promised, 95 %"
        )
    axes.set(xlabel=name, ylabel=f"fraction with {name} at most this", ylim=(0, 1.02))
    axes.legend(loc="lower right")


def _answers(release: Release, axes: Any) -> None:
    texts = list(release.asked)  # type: ignore[arg-type]
    fractions = [float(release.answer(text)) for text in texts]
    axes.barh(range(len(texts)), fractions, color="tab:blue")
    axes.set_yticks(range(len(texts)), labels=texts, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="fraction of people", xlim=(0, 1))
