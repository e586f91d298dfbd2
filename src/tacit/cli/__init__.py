"""The command line: commands and printing, no logic.

Each command lives in a module of its own and is imported when it is called, so that
``tacit --help`` stays quick and no command imports what it does not use.  What a command raises
becomes a message on standard error and an exit code in `tacit.cli.exits`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

# What ``tacit --help`` lists, in this order.  A command is the function of its name in the module
# of its name; a command of a group is a function in the group's module.  Each summary is the first
# line of that function's docstring, written here so that a list needs no import.
COMMANDS: dict[str, str] = {
    "schema": "Propose a schema for a table, to its steward.",
    "budget": "What was promised to people, what is spent and what is left.",
    "plan": "Which error do I get, and which ε do I need?",
    "compose": "Say what several mechanisms come to together.",
    "ask": "Ask a table, one question a line, from a terminal or a pipe.",
    "check": "Say what would be promised about questions, or why they are refused.",
    "count": "Release the answer to one question, as a noisy number.",
    "sum": "Release the sum of a column, as a noisy number.",
    "histogram": "Release a noisy count for every declared cell of some columns.",
    "query": "Release a SELECT of counts and sums, with a row for every declared cell.",
    "watch": "Ask a table that grows the same questions, after every refresh.",
    "model": "Ask for counts of people, one a line; every one gets a number.",
    "release": "Release what answers a whole class of questions: counts of ranges, or rows.",
    "shards": "The codes of tables that lie in a folder.",
    "serve": "Serve tables to analysts over HTTP, who never touch the data.",
    "token": "Who may ask a server for what.",
    "request": "Ask for more of a budget, and let its steward decide.",
    "refresh": "Let a server read the next version of a table, without a restart.",
    "stop": "Stop a stream, a token or a table of a server at once, or let it go on.",
    "audit": "Audit the gallery of broken sparse vector algorithms and Tacit's own mechanisms.",
    "demo": "Watch a clinic of a million invented people for outbreaks, privately.",
}
GROUPS: dict[str, dict[str, str]] = {
    "budget": {
        "create": "Promise (ε, δ) to the people of some tables, in a new budget file.",
        "show": "Show what is left, the shares and the streams.",
        "share": "Set aside a part of a budget for an analyst.",
        "cover": "Let a budget cover one more table of the same people.",
        "tie": "Say that another column identifies a table's people from now on.",
        "history": "Print every entry of a budget, oldest first.",
        "answers": "Print the answers that were paid for, as they were told.",
        "verify": "Read the whole history again and find whatever was changed.",
        "export": "Write the history as JSON lines; no secrets are in it.",
    },
    "plan": {
        "above": "Plan a stream that halts at its first ⊤ (AboveThreshold).",
        "sparse": "Plan a stream with at most c answers ⊤ (Sparse).",
        "numeric": "Plan a stream whose ⊤ bring a noisy value (NumericSparse).",
        "priced": "Plan a stream in which each ⊤ costs by the scale of its question.",
    },
    "shards": {
        "make": "Let Spark make the shards of a table, to be opened without it.",
        "clear": "Remove the codes of all tables from a folder.",
    },
    "token": {
        "add": "Make a token, and show it once.",
        "list": "List the tokens: names, roles, tables and expiries.",
        "revoke": "Refuse a token from now on; a server that runs need not be restarted.",
    },
    "request": {
        "ask": "Ask that an analyst's share of a budget grow.",
        "list": "List the requests for more, and how they were decided.",
        "approve": "Let a share grow by what was asked, from what is neither spent nor shared.",
        "decline": "Leave a share as it is, and say why.",
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
    tacit request ask --epsilon 1/4 --reason "more towns" --url https://clinic.example:8443
    tacit request list --budget clinic.budget
    tacit request approve 17 --budget clinic.budget""",
}


def _default(value: object) -> str | None:
    """A default as help shows it: none for what is simply absent."""
    return None if value is None or value is False else str(value)


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
