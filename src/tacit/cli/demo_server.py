"""``tacit demo --serve``: the demo's clinic over HTTP, for two analysts and a steward."""

from __future__ import annotations

from pathlib import Path

from tacit.cli.clinic import PEOPLE
from tacit.cli.serve import need_packages

SHARES = {"ana": "1/4", "ben": "1/8"}
_CONFIG = f"""\
# What `tacit demo --serve` serves: people who never existed.
budget = "clinic.budget"

[tables.visits]
source = "visits.parquet"
person = "patient_id"
people = {PEOPLE}

[listen]
port = 0    # any that is free
"""


def is_there(folder: Path) -> bool:
    """Whether a demo has been here and left a clinic to serve."""
    return all((folder / name).is_file() for name in ("clinic.budget", "visits.parquet"))


def serve_clinic(folder: Path) -> None:
    """Serve it until Ctrl-C; tokens are made anew each time, and shown."""
    need_packages()
    from tacit.page import pages
    from tacit.server.config import read_config
    from tacit.server.running import run

    path = folder / "tacit.toml"
    path.write_text(_CONFIG, encoding="utf-8")
    config = read_config(path)
    tokens = _new_tokens(config.budget, config.tokens)

    def ready(url: str) -> None:
        print(f"Serving the clinic at {url} from {path}; Ctrl-C ends it.\n")
        for who, token in tokens.items():
            print(f"  {who}: {token}")
        ana = next(iter(tokens.values()))
        print(
            f"\nIn a browser, sign in at {url} with a token.\n"
            "\nIn another terminal, in Python:\n\n"
            "  import tacit\n"
            f'  clinic = tacit.connect("{url}", token="{ana}")\n'
            '  visits = clinic.table("visits")\n'
            '  print(visits.count("town = \'Ghent\'", epsilon="1/20"))\n',
            flush=True,
        )

    run(config, pages=pages, ready=ready)


def _new_tokens(place: str, file: Path) -> dict[str, str]:
    """A share and a token for each analyst, and a token for a steward, by who they are for."""
    from tacit.budget import Budget
    from tacit.server.tokens import TokenFile

    file.unlink(missing_ok=True)
    tokens, made = TokenFile(file), {}
    with Budget.open(place) as budget:
        for name, epsilon in SHARES.items():
            share = budget.share(name, epsilon=epsilon)
            made[f"{name}, an analyst with {share.left} left"] = tokens.add(name, share=name)
    made["desk, a steward"] = tokens.add("desk", role="steward")
    return made
