"""``tacit serve``: analysts ask over HTTP, and never touch the data."""

from __future__ import annotations

from pathlib import Path

from tacit.cli.exits import Misuse, say
from tacit.cli.options import File, Folder
from tacit.errors import BadParameter, NotWritten

_EXAMPLE = """\
# What `tacit serve` serves.  Paths are read from the folder of this file.
# `tacit serve --check --config tacit.toml` names every mistake in it.

# The budget: what was promised to people.  Create it once, by hand:
#     tacit budget create clinic.budget --epsilon 1 --delta 1e-9 --covers visits
# Tokens are stored next to it, in clinic.budget-tokens.
budget = "clinic.budget"
# budget = "postgresql://tacit@host/budgets#clinic"  # or in PostgreSQL; then name the tokens' file
# password_file = "/run/secrets/postgres"            # its first line is the password
# tokens = "clinic-tokens"

# The tables to serve, each under the name that the budget covers.
[tables.visits]
source = "visits.parquet"       # or .csv, .tsv, .duckdb, or "postgresql://reader@host/clinic"
person = "patient_id"           # whose row it is; each_row = true if nobody has more than one
# schema = "visits.toml"        # default: the TOML file next to the source; name it for PostgreSQL
# table = "visits"              # which table of a DuckDB file, or of PostgreSQL
# password_file = "/run/secrets/reader"  # its first line is the password for PostgreSQL
# people = 100_000              # a public number, for planning; never read from the data
# as_of = "2026-11-01"          # which state of the data this is: a public label
# grows_by = "admitted"         # a column: only rows up to as_of in it are read
# memory = "2GB"                # by default a quarter of the machine's
# spill_folder = "/var/tmp"     # for a table that does not fit into memory
# shards = "/secure/shards"     # keeps the table's codes there, unencrypted: larger tables are
#                               # faster, and an unchanged file is not read again

[listen]
address = "127.0.0.1"           # other addresses need a certificate, or --behind-proxy
port = 8765
# certificate = "server.pem"
# key = "server.key"

# A response leaves one period after its request arrived, however soon it is ready, so that its
# timing reveals nothing.  Every further `questions` questions add one period.
[clock]
milliseconds = 50
questions = 200
block = 1000                    # answers of a stream's batch that leave together
# requests = 12                 # worked on at once, others wait; by default one for each 4 ms of a
#                               # period.  Beyond a second's worth they are told to come back

[limits]
body = 1_000_000                # bytes of a request
questions = 10_000              # in a request
name = 200                      # characters
depth = 20                      # of JSON
requests_a_second = 50          # per token
in_flight_a_token = 8
in_flight = 256                 # in total
connections = 1000
header_seconds = 10
idle_seconds = 60
stream_seconds = 60             # until an idle stream is suspended
threads = 16
plans = 2                       # computed at once
plans_a_token = 2               # in flight
"""


def serve(
    *,
    config: File | None = None,
    check: bool = False,
    init: Folder | None = None,
    behind_proxy: bool = False,
) -> None:
    """Serve tables over HTTP to analysts, who never touch the data.

    One TOML file names the tables, their budget, the address, limits and the clock.
    The whole file is checked before anything is opened.  Ctrl-C or SIGTERM ends the
    server, which first finishes what it is answering.  It writes one line of JSON
    per request to standard error.

    For example:

        tacit serve --init clinic
        tacit serve --config clinic/tacit.toml --check
        tacit serve --config clinic/tacit.toml

    Parameters
    ----------
    config
        The TOML file.
    check
        Only check the file, and report every mistake with its line.
    init
        Write such a file, with comments, into a folder.  No budget is made.
    behind_proxy
        A proxy encrypts what crosses the network, so no certificate is needed.

    """
    if (config is None) == (init is None) or (init is not None and (check or behind_proxy)):
        raise Misuse("give --config FILE to serve or to check it, or --init FOLDER alone")
    if init is not None:
        _write_example(Path(init))
        return
    from tacit.server.config import read_config

    assert config is not None
    wanted = read_config(config)
    need_packages()
    from tacit.server.running import refuse_unencrypted, run

    refuse_unencrypted(wanted.listen, behind_proxy=behind_proxy)
    if check:
        tables = ", ".join(table.name for table in wanted.tables)
        print(f"{config}: no mistakes; it serves {tables} at {wanted.listen.url}")
        return
    from tacit.page import pages

    def ready(url: str) -> None:
        say(f"listening at {url}")

    run(wanted, behind_proxy=behind_proxy, pages=pages, ready=ready)


def need_packages() -> None:
    """Say what to install, before anything else is done."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("jinja2", "msgspec", "starlette", "uvicorn")):
        raise Misuse("a server needs more packages: pip install 'tacit[server]'")


def _write_example(folder: Path) -> None:
    path = folder / "tacit.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_EXAMPLE)
    except FileExistsError:
        raise BadParameter(
            "init", str(folder), f"{path} exists already, and is kept: name another folder"
        ) from None
    except (OSError, ValueError) as error:
        system = error if isinstance(error, OSError) else OSError(22, "no file has this name")
        raise NotWritten.because(path, system) from None
    print(f"wrote {path}; look through it, make the budget, then: tacit serve --config {path}")
