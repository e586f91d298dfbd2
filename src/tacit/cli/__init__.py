"""The command line: commands and printing, no logic.

Each command lives in a module of its own and is imported when it is called, so that
``tacit --help`` stays quick and no command imports what it does not use.  What a command raises
becomes a message on standard error and an exit code in `tacit.cli.exits`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.help import DefaultFormatter, HelpPanel
    from rich.console import Console, ConsoleOptions

# What ``tacit --help`` lists, in this order.  A command is the function of its name in the module
# of its name; a command of a group is a function in the group's module.  Each summary is the first
# line of that function's docstring, written here so that a list needs no import.
COMMANDS: dict[str, str] = {
    "schema": "Propose a schema for a table; for its steward.",
    "budget": "Create, show, share and verify a privacy budget.",
    "plan": "Compute the error for an ε, or the ε for an error.",
    "compose": "Compute the total cost of several mechanisms.",
    "ask": "Ask a table, one question per line, from a terminal or a pipe.",
    "check": "Say what would be promised about questions, or why they are refused.",
    "count": "Release the answer to one question, as a noisy number.",
    "sum": "Release the sum of a column, as a noisy number.",
    "histogram": "Release a noisy count for every declared cell of some columns.",
    "query": "Release a SELECT of aggregates, with a row for every declared cell.",
    "watch": "Ask a growing table the same questions after every refresh.",
    "model": "Ask for counts of people, one per line; each gets a number.",
    "release": "Release counts of ranges, the largest cells, or rows to publish.",
    "shards": "Make or remove the encoded tables in a folder.",
    "serve": "Serve tables over HTTP to analysts, who never touch the data.",
    "token": "Make, list and revoke the tokens of a server's users.",
    "request": "Ask for more of a budget, or decide on such requests.",
    "refresh": "Make a server read the next version of a table, without a restart.",
    "stop": "Stop a stream, a token or a table of a server at once, or allow it again.",
    "audit": "Audit the gallery of broken sparse vector algorithms and Tacit's own streams.",
    "demo": "Watch a clinic of a million invented people for outbreaks, privately.",
}
GROUPS: dict[str, dict[str, str]] = {
    "budget": {
        "create": "Promise (ε, δ) to the people of some tables, in a new budget file.",
        "show": "Show what is left, the shares and the streams.",
        "share": "Set aside a share of a budget for an analyst.",
        "cover": "Let a budget cover one more table, of the same people or of another group.",
        "tie": "Declare that another column identifies a table's people from now on.",
        "history": "Print every entry of a budget, oldest first.",
        "answers": "Print the answers that were paid for.",
        "verify": "Read the whole history again and find whatever was changed.",
        "export": "Write the history as JSON lines, without secrets.",
    },
    "plan": {
        "above": "Plan a stream that halts at its first ⊤ (AboveThreshold).",
        "sparse": "Plan a stream with at most c ⊤ (Sparse).",
        "numeric": "Plan a stream whose ⊤ come with a noisy value (NumericSparse).",
        "priced": "Plan a stream in which each ⊤ has a price.",
    },
    "shards": {
        "make": "Make the shards of a table with Spark, to be opened without it.",
        "clear": "Remove the encoded tables from a folder.",
    },
    "token": {
        "add": "Make a token and show it once.",
        "list": "List the tokens: names, roles, tables and expiries.",
        "revoke": "Disable a token from now on, without restarting the server.",
    },
    "request": {
        "ask": "Ask for a larger share of a budget.",
        "list": "List the requests for more, and the decisions.",
        "approve": "Let a share grow by what was asked, from what is neither spent nor shared.",
        "decline": "Decline a request, and say why.",
    },
}
_WHAT = "Ask as many questions as you like; only the surprising answers cost privacy."
ENDS: dict[str, str] = {
    "tacit": """\
First steps:
    tacit schema visits.csv > visits.toml      then look through it
    tacit budget create clinic.budget --epsilon 1 --covers visits
    tacit plan sparse --questions 10000 --at-most 10 --epsilon 1/2
    tacit ask visits.csv --person patient_id --threshold 500 --at-most 10 \\
        --epsilon 1/2 --budget clinic.budget --name flu-watch

Exit codes: 0 done, 1 a check failed, 2 bad input, 3 the budget does not allow
it, 4 the disk or the data engine failed, 70 an error inside Tacit.
tacit COMMAND --help shows examples of each command.""",
    "budget": """\
For example:
    tacit budget create clinic.budget --epsilon 1 --delta 1e-9 --covers visits
    tacit budget share clinic.budget ana --epsilon 1/4
    tacit budget show clinic.budget""",
    "plan": """\
For example:
    tacit plan sparse --questions 10000 --at-most 10 --epsilon 1/2
    tacit plan sparse --questions 10000 --at-most 10 --alpha 100
    tacit plan numeric --questions 10000 --at-most 10 --epsilon 1 --plot a.png""",
    "shards": """\
For example:
    tacit ask visits.parquet --shards /secure/shards --person patient_id ...
    tacit shards make lake.visits --called visits --person patient_id \\
        --schema visits.toml --shards /secure/shards --as-of 2026-11-16
    tacit shards clear /secure/shards""",
    "token": """\
For example:
    tacit token add ana --share 1/2 --config clinic/tacit.toml
    tacit token list --config clinic/tacit.toml
    tacit token revoke ana --config clinic/tacit.toml""",
    "request": """\
For example:
    tacit request ask --epsilon 1/4 --reason "more towns" \\
        --budget clinic.budget --analyst ana
    tacit request list --budget clinic.budget
    tacit request approve 17 --budget clinic.budget""",
}


def _default(value: object) -> str | None:
    """A default as help shows it: none for what is simply absent."""
    return None if value is None or value is False else str(value) or None


class _WholeLines:
    """Shows help with the line ends of docstrings taken out; what it needs is imported late."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        from rich.text import Text

        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                text.plain = text.plain.replace("\n", " ")
        self._default(console, options, panel)

    @property
    def _default(self) -> DefaultFormatter:
        from cyclopts.help import DefaultFormatter

        return DefaultFormatter()

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        self._default.render_usage(console, options, usage)

    def render_description(self, console: Console, options: ConsoleOptions, about: Any) -> None:
        self._default.render_description(console, options, about)


def main() -> None:
    """The entry point ``tacit``."""
    from tacit.cli.exits import run

    sys.exit(run(sys.argv[1:]))


def application(arguments: Sequence[str] = ()) -> App:
    """All commands, none of them imported yet.

    A command that is named in the arguments shows its own docstring when it is asked for help;
    the others stand in lists with their summaries.
    """
    from cyclopts import App, Parameter  # late: they take most of the start-up time

    import tacit

    def new(name: str, summary: str, place: int = 0) -> App:
        return App(
            name=name,
            help=summary,
            sort_key=place,
            version=tacit.__version__,
            help_format="plaintext",
            help_formatter=_WholeLines(),
            help_epilogue=ENDS[name],
            default_parameter=Parameter(negative=(), show_default=_default),
            end_of_options_delimiter="--",
            suppress_keyboard_interrupt=False,
            exit_on_error=False,
            print_error=False,
        )

    def add(app: App, where: str, name: str, summary: str, place: int) -> None:
        shown = None if name in arguments else summary
        target = f"tacit.cli.{where}:{name}"
        app.command(target, name=name, help=shown, help_epilogue="", sort_key=place)

    root = new("tacit", _WHAT)
    for place, (name, summary) in enumerate(COMMANDS.items()):
        if name not in GROUPS:
            add(root, name, name, summary, place)
            continue
        group = new(name, summary, place)
        for spot, (command, what) in enumerate(GROUPS[name].items()):
            add(group, name, command, what, spot)
        root.command(group)
    return root
