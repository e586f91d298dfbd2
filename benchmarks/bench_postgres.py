"""A budget in PostgreSQL: durable charges against those in a SQLite file, on the same disk."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter

from tests.postgres import own_server

from benchmarks.report import Report
from tacit.budget import Budget
from tacit.privacy import Cost

COST = Cost.pure("1/1000000")
AT_ONCE = 20
ROUNDS = 40
PROCESSES = multiprocessing.get_context("spawn")


def run(report: Report) -> None:
    """All on the disk of the working directory; /tmp may be memory."""
    here = str(Path.cwd())
    with tempfile.TemporaryDirectory(dir=here, prefix=".bench-postgres-") as folder:
        os.chmod(folder, 0o755)  # PostgreSQL does not run as root, and must get there
        with own_server(within=folder) as server:
            for clients, target in ((1, 0.5), (8, 0.7)):
                sqlite, postgres = _rates(
                    [f"{folder}/{clients}.budget", f"{server.url()}#with_{clients}"], clients
                )
                called = "one client" if clients == 1 else f"{clients} clients"
                what = f"durable charges, PostgreSQL against SQLite, {called}"
                report.at_least(what, postgres / sqlite, target)
                report.note(f"durable charges in PostgreSQL, {called}", f"{postgres:,.0f}/s")


def _rates(addresses: list[str], clients: int) -> list[float]:
    """Charges a second at each; they take turns, so that a busy machine disturbs all alike."""
    for address in addresses:
        Budget.create(address, epsilon=10, covers=["visits"]).close()
    groups = [[_start(address) for _ in range(clients)] for address in addresses]
    taken = [0.0] * len(groups)
    for turn in range(ROUNDS + 2):
        for position, group in enumerate(groups):
            start = perf_counter()
            for client in group:
                client.send(AT_ONCE)
            for client in group:
                client.recv()
            if turn >= 2:  # the first ones connect and prepare
                taken[position] += perf_counter() - start
    for group in groups:
        for client in group:
            client.send(0)
    return [ROUNDS * AT_ONCE * clients / seconds for seconds in taken]


def _start(address: str) -> Connection:
    ours, theirs = PROCESSES.Pipe()
    PROCESSES.Process(target=_client, args=(address, theirs), daemon=True).start()
    return ours


def _client(address: str, told: Connection) -> None:
    """Charge as often as it is told to."""
    with Budget.open(address, wait=600) as budget:
        while times := told.recv():
            for _ in range(times):
                budget.charge(COST, table="visits", what="count of smokers")
            told.send("done")
