"""The command line: commands and printing, no logic.

Each command lives in a module of its own and is imported when it is called, so that
``tacit --help`` stays quick.  Exit codes: 0 done, 1 a promise was refuted or a check failed,
2 bad input or a refusal (said on standard error), 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App


def main() -> None:
    """The entry point ``tacit``."""
    from tacit.errors import TacitError

    try:
        _app()()
    except TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("tacit: interrupted", file=sys.stderr)
        sys.exit(130)


def _app() -> App:
    from cyclopts import App  # late: it takes most of the start-up time

    import tacit

    app = App(
        name="tacit",
        help="Ask as many questions as you like; only the surprising answers cost privacy.",
        version=tacit.__version__,
    )
    for name, summary in _COMMANDS.items():
        app.command(f"tacit.cli.{name}:{name}", name=name, help=summary)
    return app


_COMMANDS = {
    "demo": "Run the three algorithms on generated counts and see what was promised.",
}
