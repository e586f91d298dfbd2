"""The command ``tacit audit``: is it as private as it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.exits import CHECK_FAILED, DONE
from tacit.cli.options import File, Number, Whole, check_outputs

if TYPE_CHECKING:
    from rich.console import Console


def audit(
    *names: str,
    epsilon: Number = "0.1",
    questions: Whole = 10,
    runs: Whole = 1_000_000,
    confidence: Number = "0.95",
    exact_only: bool = False,
    every_pair: bool = False,
    workers: Whole | None = None,
    plot: File | None = None,
) -> int:
    """Audit the gallery of broken sparse vector algorithms and Tacit's own streams.

    Prints one table: what each claims, its exact privacy loss on the worst
    neighbours found, a lower bound from samples, and the verdict.  "Not refuted"
    never means "private": only the proofs say that.  The exit code is 1 if a
    mechanism that is known to be private was refuted, or a broken one was not.

    For example:

        tacit audit                          # everything, in a minute or two
        tacit audit SVT4 SVT5 --exact-only   # two of them, no samples
        tacit audit --every-pair             # and hundreds of neighbours of each
        tacit audit SVT1 --runs 20000000     # a sharper lower bound
        tacit audit SVT1 SVT4 --plot curves.png

    Parameters
    ----------
    names
        Which mechanisms, by the beginning of their names; by default all.
    epsilon
        What they claim (the literal E5 claims its own).
    questions
        How many questions they are asked.
    runs
        Runs on each of the two databases, for the sampled bound.
    confidence
        The probability that samples refute any true claim of the table is at most
        1 − confidence; each bound holds with at least this confidence.
    exact_only
        Leave the samples out.
    every_pair
        Also compute the exact loss of many small neighbours of each mechanism that is
        known to be private, and leave the samples out; the table says how many.
    workers
        Processes that share the sampling; all cores by default.
    plot
        Draw δ(ε), exact against claimed, into this file.

    """
    from rich.console import Console

    from tacit.audit import table
    from tacit.audit.exhibits import gallery, ours
    from tacit.support import check_can_plot

    if plot is not None:
        check_outputs({"plot": plot})
        check_can_plot(plot)
    chosen = table.chosen((*gallery(epsilon), *ours(epsilon)), names)
    errors = Console(stderr=True)
    audited = list(
        table.rows(
            chosen,
            questions=questions,
            runs=None if exact_only or every_pair else runs,
            confidence=confidence,
            workers=workers,
            every_pair=every_pair,
            starting=lambda name: _show_progress(errors, f"auditing {name} ..."),
        )
    )
    _show_progress(errors, "")
    shown = None if exact_only or every_pair else confidence
    Console().print(table.as_table(audited, questions=questions, confidence=shown))
    if plot is not None:
        table.draw(chosen, Path(plot), questions=questions)
        errors.print(f"δ(ε) was drawn into {plot}")
    return CHECK_FAILED if any(row.surprising for row in audited) else DONE


def _show_progress(console: Console, what: str) -> None:
    """On one line of a terminal, which the bar of the samples takes over.

    Not rich's own status: that has a thread, and the samples are shared among forked processes.
    """
    if console.is_terminal:
        console.print(what.ljust(console.width - 1), end="\r")
