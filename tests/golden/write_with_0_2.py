"""How ``tests/golden/0.2`` was written: a record, run once with version 0.2 and never again.

    git worktree add ../v02 5333d27          # the last commit of 0.2, with these scripts added
    cd ../v02 && make check                  # sets up .venv
    .venv/bin/python .../tests/golden/write_with_0_2.py .../tests/golden/0.2

The folder holds what people write: schemas, a server's file and a watch file.  Everything else in
it is written here: the tables, budgets in every state with what 0.2 itself says about them, answers
that were kept, keys that were paid for and never answered, what a server said to each request, and
what the commands print.  Noise and clocks differ in every run, so a second run gives other files,
and later versions are held to these.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # for the server that tests start

from noting import Notes, command, die, killed, write_json, write_notes
from stored import called, opened_together
from tests.postgres import OwnServer, own_server, wheel_binaries

import tacit
from tacit import wire
from tacit.analyst.count import NoisyCount
from tacit.analyst.live_stream import as_secret
from tacit.analyst.opening import StreamOpening, priced_opening
from tacit.analyst.stream import Stream
from tacit.analyst.task import Task
from tacit.book.sparse_vector import State
from tacit.server.tokens import TokenFile

FAR = 10**6  # a threshold that nothing passes; its negative, one that everything passes
LABEL, EARLIER = "2026-11-01", "2026-10-01"
SURE = 200  # so much ε that an answer far from the threshold is certain


# Tables -------------------------------------------------------------------------------------------


def write_tables(folder: Path) -> None:
    """Invented rows with every type, with NULLs and with values that are none."""
    towns = ["Bruges", "Ghent", "Liège", "", '"Gent, Noord"']
    rows = ["pid,age,cost,town,smoker,day"]
    for row in range(90):
        smoker = ("yes", "no", "")[row % 3]
        day = f"2026-0{2 + row % 2}-{1 + row % 28:02}"
        rows.append(f"{row * 2 // 3},{row % 97},{row * 1.5 - 50},{towns[row % 5]},{smoker},{day}")
    rows.append(",old,nan,Ghent,perhaps,someday")
    (folder / "visits.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["patient,result", *(f"{row * 2},{row % 10}" for row in range(40))]
    (folder / "labs.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["sensor;level"]
    rows += [f"{('north', 'south', 'NA')[row % 3]};{row / 8}".replace(".", ",") for row in range(9)]
    (folder / "readings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["age,cost,town,smoker,day", *(f"{age},0,Ghent,true,2026-02-28" for age in (20, 30, 70))]
    (folder / "model.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def tables_in(folder: str | Path, as_of: str = LABEL) -> Any:
    return opened_together(Path(folder), as_of=as_of)


def digest_of(budget: Any) -> dict[str, Any]:
    """The history as it is exported, in short."""
    text = io.StringIO()
    budget.export(text)
    told = text.getvalue().encode()
    return {"bytes": len(told), "sha256": hashlib.sha256(told).hexdigest()}


# Releases under keys ------------------------------------------------------------------------------

OF_TOWNS = "SELECT town, COUNT(*) AS n, SUM(cost) AS paid, AVG(cost) AS each FROM visits"
LARGE = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town HAVING COUNT(*) > 5"
LARGEST = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town ORDER BY n DESC LIMIT 2"
LEVELS = ["age <= 30", "age <= 60", "age <= 90"]

CALLS: dict[str, list[Any]] = {  # the method, what it takes by position, and by name
    "count": ["count", ["age >= 65 and smoker"], {"epsilon": "1/10"}],
    "count of a town": ["count", ["town = :t"], {"epsilon": 0.1, "params": {"t": "Liège"}}],
    "count of rows": ["count", ["SELECT COUNT(*) FROM visits"], {"epsilon": "1/3", "max_rows": 2}],
    "count of others": [
        "count",
        ["pid in (select patient from labs where result > 5)"],
        {"epsilon": "1/4"},
    ],
    "sum": ["sum", ["cost"], {"where": "smoker", "epsilon": "1/4"}],
    "histogram": ["histogram", ["town", "smoker"], {"epsilon": 1, "max_rows": 2}],
    "query": [
        "query",
        [OF_TOWNS + " GROUP BY town"],
        {"epsilon": 1, "max_rows": 2, "max_cells": 2, "weights": [1, 2, 1]},
    ],
    "query of one": ["query", ["SELECT COUNT(DISTINCT pid) AS n FROM visits"], {"epsilon": "1/7"}],
    "query of quantiles": [
        "query",
        ["SELECT MEDIAN(age) AS middle, COUNT(*) AS n FROM visits WHERE smoker"],
        {"epsilon": 1, "max_rows": 1},
    ],
    "query of large cells": [
        "query",
        [LARGE],
        {"epsilon": 1, "delta": "1e-9", "at_most": 2, "max_rows": 2, "max_cells": 2},
    ],
    "query of the largest": ["query", [LARGEST], {"epsilon": 1, "max_rows": 1, "max_cells": 1}],
    "ranges": ["ranges", ["day"], {"epsilon": 1, "max_rows": 1}],
    "running": ["running", ["day"], {"epsilon": "1/2", "max_rows": 2}],
    "top": [
        "top",
        [2, "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"],
        {"epsilon": 1, "counts_epsilon": "1/2"},
    ],
    "top of a list": ["top", [1, LEVELS], {"epsilon": 1}],
    "synthetic": [
        "synthetic",
        [["age", "smoker"]],
        {"epsilon": 1, "rows": 12, "max_rows": 1, "bins": {"age": 4}},
    ],
    "synthetic in rounds": [
        "synthetic",
        [["town", "smoker", "age"]],
        {"epsilon": 1, "rows": 8, "max_rows": 1, "bins": {"age": [0, 40, 80]}, "rounds": 1},
    ],
    "small_db": ["small_db", [{"prefixes": "age"}], {"epsilon": 2, "rows": 6, "max_rows": 1}],
    "small_db of intervals": [
        "small_db",
        [{"intervals": "day"}],
        {"epsilon": 2, "rows": 4, "max_rows": 2, "certificate_epsilon": "1/5"},
    ],
    "small_db of a list": [
        "small_db",
        [["town = 'Ghent' and smoker", "not smoker"]],
        {"epsilon": 2, "rows": 5, "max_rows": 1},
    ],
}
FEW = ("count", "query", "histogram", "synthetic", "small_db")  # one of each kind


def written(release: Any) -> Any:
    return wire.to_json(release)


def kept_answers(table: Any, budget: Any, names: Any, analyst: str | None) -> list[dict[str, Any]]:
    """Each is told, and told again under its key."""
    told = []
    for name in names:
        asked: dict[str, Any] = {"call": CALLS[name], "key": name, "analyst": analyst}
        first = called(table, asked, budget)
        spent = budget.spent
        again = called(table, asked, budget)
        assert budget.spent == spent
        told.append({**asked, "first": written(first), "again": written(again)})
    return told


def write_failed(table: Any, budget: Any) -> list[dict[str, Any]]:
    """A draw that failed is kept like an answer."""

    def fail(*_: Any) -> None:
        raise RuntimeError("the engine's words")

    drawn, NoisyCount.draw = NoisyCount.draw, fail  # type: ignore[method-assign,assignment]
    asked: dict[str, Any] = {"call": CALLS["count"], "key": "failed", "analyst": None}
    with suppress(tacit.errors.EngineFailed):
        called(table, asked, budget)
        raise AssertionError
    NoisyCount.draw = drawn  # type: ignore[method-assign]
    return [asked]


def unanswered(folder: Path, place: str, names: Any) -> list[dict[str, Any]]:
    """Charged, and dead before the answer was kept; nothing of it is on the disk."""
    told = []
    for name in names:
        asked: dict[str, Any] = {"call": CALLS[name], "key": f"unanswered {name}", "analyst": None}
        killed("die-drawing", folder, place, json.dumps(asked))
        told.append(asked)
    return told


def die_drawing(folder: str, place: str, asked: str) -> None:
    budget, tables = tacit.Budget.open(place), tables_in(folder)
    budget.keep = lambda *_: die()  # type: ignore[method-assign]
    called(tables["visits"], json.loads(asked), budget)


# Watched models -----------------------------------------------------------------------------------

COUNTS = [
    "smoker",
    "town = 'Ghent'",
    "town = 'Ghent' and smoker",
    "not smoker",
    "town = 'Bruges'",
]
SYNTHETIC: dict[str, Any] = {"columns": ["town", "smoker"], "max_rows": 1}
WATCHES: dict[str, dict[str, Any]] = {
    "watched": {"epsilon": 400, "surprises": 9, "questions": 50, **SYNTHETIC},
    "independent": {"epsilon": 400, "surprises": 8, "model": "independent", **SYNTHETIC},
    "public": {"epsilon": SURE, "surprises": 7, "questions": 50, "model": "model.csv"},
    "used up": {"epsilon": SURE, "surprises": 1, "questions": 50, "model": "model.csv"},
}


def write_watched(
    folder: Path, table: Any, budget: Any, names: Any, analyst: str | None = None
) -> list[dict[str, Any]]:
    """Watched models with surprises on record, suspended; and with a question under a key."""
    told = []
    for name in names:
        options = dict(WATCHES[name])
        given = None
        if options.get("model") == "model.csv":
            given = options["model"] = folder / "model.csv"
        model = table.watched_model(
            **options, name=name, analyst=analyst, budget=budget, retry_key=f"open {name}"
        )
        for question in COUNTS:
            model.ask(question)
        keyed = model.ask("town = 'Liège'", retry_key=f"asked {name}")
        answers = [written(model.ask(question)) for question in COUNTS]
        told.append(
            {
                "name": name,
                "options": WATCHES[name],
                "analyst": analyst,
                "questions": COUNTS,
                "answers": answers,
                "keyed": ["town = 'Liège'", f"asked {name}", written(keyed)],
                "surprises_left": model.surprises_left,
            }
        )
        if model.surprises_left:
            model.suspend()
        assert given is None or model.surprises_left < options["surprises"]
    return told


def write_half_opened(folder: Path, place: str) -> list[dict[str, Any]]:
    """Dead before the model was told; and before its watch was paid."""
    options = {"epsilon": 2, "surprises": 2, **SYNTHETIC}
    told = []
    for where in ("keep", "open_stream"):
        asked: dict[str, Any] = {"key": f"watched until {where}", "options": options}
        killed("die-watching", folder, place, where, json.dumps(asked))
        told.append(asked)
    return told


def die_watching(folder: str, place: str, where: str, asked: str) -> None:
    told, budget, tables = json.loads(asked), tacit.Budget.open(place), tables_in(folder)
    setattr(budget, where, lambda *_, **__: die())
    tables["visits"].watched_model(**told["options"], budget=budget, retry_key=told["key"])


# Streams ------------------------------------------------------------------------------------------

NEW: dict[str, dict[str, Any]] = {  # every kind of stream
    "above": {"threshold": FAR},
    "sparse": {"threshold": 10, "at_most": 4},
    "numeric": {"threshold": 10, "at_most": 4, "numeric": True},
    "fresh": {"threshold": 10, "at_most": 4, "numeric": True, "values": "fresh"},
    "any": {
        "threshold": "12.5",
        "at_most": 4,
        "kind": "any",
        "sensitivity": "2.5",
        "grid": "0.5",
    },
    "directed": {"threshold": 30, "at_most": 6, "kind": "directed", "numeric": True},
    "priced": {"threshold": 10, "least_scale": "1/3"},
    "priced numeric": {"threshold": 10, "least_scale": "1/3", "numeric": True},
    "priced directed": {"threshold": 30, "least_scale": "1/3", "kind": "directed"},
    "in rounds": {"threshold": 10, "at_most": 9, "numeric": True, "rounds": 3, "questions": 50},
    "book": {"threshold": 10, "at_most": 4, "recipe": "book"},
    "book numeric": {"threshold": 10, "at_most": 4, "recipe": "book", "numeric": True},
    "gaussian": {"threshold": 10, "at_most": 4, "delta": "1e-8"},
}
BY_TOWN = "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY town"


def new_stream(table: Any, budget: Any, name: str, **more: Any) -> Any:
    options = dict(NEW[name])
    if name == "above":
        return table.above_threshold(**options, epsilon=SURE, budget=budget, name=name, **more)
    return table.sparse(**options, epsilon=SURE, budget=budget, **{"name": name, **more})


def ask_some(table: Any, stream: Any, notes: Notes) -> None:
    """At least one ⊤ for every stream but one, in the ways that its kind knows."""
    name = stream.name
    if name == "above":
        assert not notes.ask(table, stream, "age >= 0")
    elif name == "any":
        assert notes.ask(table, stream, "0.5 * count(smoker) + 2 * count(age >= 0)")
        assert notes.ask(table, stream, "count(age >= 0) - 0.5 * count(smoker)", threshold=-1)
    elif "directed" in name:
        assert notes.ask(table, stream, "age >= 0")
        assert notes.ask(table, stream, "age >= 90", options={"below": True})
        notes.ask_all(table, stream, ["age >= 91", "age >= 92"], options={"below": True})
    elif "priced" in name:
        assert notes.ask(table, stream, "age >= 0")
        assert notes.ask(table, stream, "age >= 1", options={"scale": 1})
        notes.ask_all(table, stream, BY_TOWN, options={"descending": True})
    elif name == "in rounds":
        notes.ask_all(table, stream, BY_TOWN, options={"again": True})
        notes.ask_all(table, stream, ["age >= 0", "age >= 1"], options={"again": True})
    else:
        assert notes.ask(table, stream, "age >= 0")
        assert notes.ask(table, stream, "town = :town", town="Bruges", threshold="21/2")


def write_streams(table: Any, budget: Any, notes: Notes, names: Any) -> None:
    """Suspended in the middle."""
    for name in names:
        stream = new_stream(table, budget, name)
        ask_some(table, stream, notes)
        stream.suspend()


def write_ends(folder: Path, table: Any, budget: Any, notes: Notes) -> None:
    """Left in every other way, for an analyst, about other tables, under keys, with two labels."""
    sure = {"epsilon": SURE, "budget": budget, "threshold": 10}
    halted = table.sparse(**sure, at_most=1, name="halted", kind="counts")
    assert notes.ask(table, halted, "age >= 0")
    closed = table.numeric_sparse(**sure, at_most=3, name="closed")
    assert notes.ask(table, closed, "age >= 0")
    closed.close()
    twice = table.sparse(**sure, at_most=6, name="suspended twice")
    assert notes.ask(table, twice, "age >= 0")
    twice.suspend()
    twice = table.resume("suspended twice", budget=budget)
    assert notes.ask(table, twice, "pid in (select patient from labs where result > 2)")
    assert notes.ask(table, twice, "age >= :a", a=1)
    twice.suspend()
    theirs = table.numeric_sparse(**sure, at_most=2, name="ana's", analyst="ana")
    assert notes.ask(table, theirs, "age >= 0")
    theirs.suspend()
    named_by_the_budget = table.sparse(**sure, at_most=1, questions=200, beta="1/10")
    named_by_the_budget.suspend()
    with tables_in(folder, EARLIER) as tables:
        before = tables["visits"]
        labels = before.numeric_sparse(**sure, at_most=5, name="two labels")
        assert notes.ask(before, labels, "age >= 0")
        notes.of(labels, before)[-1]["as_of"] = EARLIER
        labels.suspend()
    labels = table.resume("two labels", budget=budget)
    assert notes.ask(table, labels, "age >= 0")
    labels.suspend()


def write_keyed(table: Any, budget: Any, notes: Notes) -> list[dict[str, Any]]:
    """A stream that was opened and asked under keys."""
    options = {"threshold": 10, "at_most": 5, "epsilon": SURE, "numeric": True, "name": "keyed"}
    stream = table.sparse(**options, budget=budget, retry_key="the opening")
    told = []
    for question, threshold in (("age >= 0", None), ("age >= 1", FAR), ("age >= 0", None)):
        key = f"question {len(told)}"
        answer = stream.ask(question, threshold=threshold, retry_key=key)
        told.append(
            {"question": question, "threshold": threshold, "key": key, "answer": written(answer)}
        )
    notes.of(stream, table)
    stream.suspend()
    return [{"opening": "the opening", "options": options, "asked": told}]


def write_recipes(table: Any, budget: Any, notes: Notes) -> None:
    """Every recipe that 0.2 plans, stored with a stream that has one ⊤ and has more left."""
    for numeric in (False, True):
        for kind in ("counts", "directed", "any"):
            for delta in ("0", "1e-7") if kind == "counts" else ("0",):
                asked: dict[str, Any] = {"at_most": 6, "epsilon": 20, "delta": delta, "kind": kind}
                planner = tacit.plan.numeric_sparse if numeric else tacit.plan.sparse
                for option in planner(questions=100, **asked).options:
                    name = f"{option.name}, {kind}, {delta}" + ", numeric" * numeric
                    stream = table.sparse(
                        **asked,
                        threshold=-FAR,
                        recipe=option.recipe,
                        numeric=numeric,
                        budget=budget,
                        name=name,
                    )
                    assert notes.ask(table, stream, "age >= 60")
                    stream.suspend()


# Budgets ------------------------------------------------------------------------------------------


def write_clinic(folder: Path) -> None:
    """(ε, δ) added up: every kind of release and of stream, requests, shares, covers, ties."""
    path, notes = folder / "clinic.budget", Notes()
    covers = ["visits", "labs"]
    with tacit.Budget.create(path, epsilon=10**5, delta="1e-4", covers=covers) as budget:
        budget.share("ana", epsilon=500, delta="1e-9")
        budget.share("ben", epsilon=20)
        budget.cover("staff")
        write_requests(budget)
    lost = unanswered(folder, str(path), CALLS)
    killed("die-opening", folder, path)
    with tacit.Budget.open(path) as budget, tables_in(folder) as tables:
        visits = tables["visits"]
        kept = kept_answers(visits, budget, CALLS, None)
        kept += kept_answers(visits, budget, FEW, "ana")
        visits.count("smoker", epsilon="1/9", budget=budget)  # kept, under no key
        failed = write_failed(visits, budget)
        write_streams(visits, budget, notes, NEW)
        write_ends(folder, visits, budget, notes)
        keyed = write_keyed(visits, budget, notes)
        budget.tie("visits", visits.identity)
        write_notes(
            *(budget, path, notes),
            exported=digest_of(budget),
            answers=kept,
            unanswered=lost,
            failed=failed,
            keyed=keyed,
            requests=[written(one) for one in budget.requests],
        )


def write_watched_budget(folder: Path) -> None:
    """Watched models; apart, since a model that was paid for has 100 000 rows."""
    path = folder / "watched.budget"
    covers = ["visits", "labs"]
    tacit.Budget.create(path, epsilon=10**5, covers=covers).close()
    half = write_half_opened(folder, str(path))
    with tacit.Budget.open(path) as budget, tables_in(folder) as tables:
        models = write_watched(folder, tables["visits"], budget, WATCHES)
        write_notes(
            budget, path, Notes(), exported=digest_of(budget), watched=models, half_opened=half
        )


def write_requests(budget: Any) -> None:
    asked = [
        budget.requests.ask("ana", epsilon="1/4", reason="more towns"),
        budget.requests.ask("ben", epsilon=10**4, delta="1e-9", reason="all of them"),
        budget.requests.ask("cy", epsilon=1, reason="I am new here: é, 🏥"),
    ]
    budget.requests.approve(asked[0].number)
    budget.requests.decline(asked[1].number, reason="ask for less")


def die_opening(folder: str, place: str) -> None:
    """A stream is opened under a key, and its process dies before anybody learns of it."""
    budget, tables = tacit.Budget.open(place), tables_in(folder)
    stream = tables["visits"].sparse(
        threshold=10, at_most=3, epsilon=1, budget=budget, retry_key="opened, never told"
    )
    assert stream.tops_left == 3
    die()


def write_recipe_budget(folder: Path) -> None:
    """Every recipe; apart, since it is long."""
    path, notes = folder / "recipes.budget", Notes()
    with (
        tacit.Budget.create(path, epsilon=10**5, delta="1e-4", covers=["visits", "labs"]) as budget,
        tables_in(folder) as tables,
    ):
        write_recipes(tables["visits"], budget, notes)
        write_notes(budget, path, notes, exported=digest_of(budget))


def write_research(folder: Path) -> None:
    """zCDP: ρ is added up."""
    path, notes = folder / "research.budget", Notes()
    with tacit.Budget.create(
        path, epsilon=10**6, delta="1e-6", covers=["visits", "labs"], accountant="zcdp"
    ) as budget:
        budget.share("ana", rho=10**5)
        budget.share("ben", epsilon=2)
        budget.requests.ask("ana", rho="1/8", reason="more")
    lost = unanswered(folder, str(path), FEW)
    with tacit.Budget.open(path) as budget, tables_in(folder) as tables:
        visits = tables["visits"]
        kept = kept_answers(visits, budget, FEW, None)
        kept += kept_answers(visits, budget, ["count"], "ana")
        models = write_watched(folder, visits, budget, ["public"], "ana")
        pure = [name for name in NEW if "delta" not in NEW[name] and name in ("sparse", "numeric")]
        write_streams(visits, budget, notes, [*pure, "directed", "priced", "book numeric"])
        write_notes(
            *(budget, path, notes),
            exported=digest_of(budget),
            answers=kept,
            unanswered=lost,
            watched=models,
            requests=[written(one) for one in budget.requests],
        )


def write_killed(folder: Path) -> None:
    """A budget as kill −9 leaves it: streams that are live, the log beside the file."""
    path = folder / "killed.budget"
    with tacit.Budget.create(path, epsilon=10**4, covers=["visits", "labs"]) as budget:
        budget.share("ana", epsilon=SURE)
    told = live_and_killed(folder, str(path))
    with tempfile.TemporaryDirectory() as elsewhere:  # looking at the file itself would tidy it up
        for file in folder.glob("killed.budget*"):
            shutil.copy2(file, elsewhere)
        with tacit.Budget.open(Path(elsewhere) / "killed.budget") as budget:
            write_notes(budget, path, told[0], exported=digest_of(budget), watched=told[1])


def live_and_killed(folder: Path, place: str) -> tuple[Notes, list[dict[str, Any]]]:
    killed("live", folder, place, "first")
    killed("live", folder, place, "second")
    notes, live = Notes(), folder / "live.json"
    notes.asked, models = json.loads(live.read_text())
    live.unlink()
    return notes, models


def live(folder: str, place: str, time: str) -> None:
    """The first holder is killed with streams open; so is the second, who resumed one of them."""
    notes, told = Notes(), Path(folder) / "live.json"
    budget, tables = tacit.Budget.open(place), tables_in(folder)
    visits = tables["visits"]
    models: list[dict[str, Any]] = []
    if time == "first":
        held = []
        for name in ("numeric", "directed", "priced", "in rounds"):
            stream = new_stream(visits, budget, name)
            ask_some(visits, stream, notes)
            held.append(stream)
        twice = visits.sparse(
            threshold=10, at_most=7, epsilon=50, budget=budget, name="killed twice"
        )
        assert notes.ask(visits, twice, "age >= 0")
        model = visits.watched_model(**_public(folder), name="public", budget=budget)
        for question in COUNTS[:2]:
            model.ask(question)
        answers = [written(model.ask(question)) for question in COUNTS[:2]]
        left = model.surprises_left - 1  # the reserved one is lost
        models = [
            {
                "name": "public",
                "options": WATCHES["public"],
                "analyst": None,
                "questions": COUNTS[:2],
                "answers": answers,
                "keyed": None,
                "surprises_left": left,
            }
        ]
        kept = [  # or it would be suspended when it is forgotten
            visits.sparse(threshold=10, at_most=2, epsilon=50, budget=budget, name="live, unasked"),
            visits.above_threshold(
                threshold=10, epsilon=50, budget=budget, name="live-with-its-only-top"
            ),
            visits.sparse(
                threshold=10, at_most=2, epsilon=50, budget=budget, name="ana's", analyst="ana"
            ),
        ]
        assert len(kept) == 3
    else:
        notes.asked, models = json.loads(told.read_text())
        again = visits.resume("killed twice", budget=budget)
        assert notes.ask(visits, again, "age >= 1")
        middle = visits.sparse(
            threshold=10, at_most=4, epsilon=50, budget=budget, name="killed while telling"
        )
        notes.of(middle, visits)
        told.write_text(json.dumps([notes.asked, models]))
        keep = Stream._keep

        def keep_and_die(*given: Any) -> None:
            keep(*given)
            die()

        Stream._keep = keep_and_die  # type: ignore[method-assign]
        middle.ask("age >= 0")  # on record, and nobody saw it
        raise AssertionError
    told.write_text(json.dumps([notes.asked, models]))
    die()


def _public(folder: str | Path) -> dict[str, Any]:
    return {**WATCHES["public"], "model": Path(folder) / "model.csv"}


def write_ledger(folder: Path) -> None:
    """The same in PostgreSQL, as a dump; it also holds what is killed and unanswered."""
    with own_server() as server, server.database() as database:
        place, notes = f"{server.url(database)}#ledger", Notes()
        covers = ["visits", "labs"]
        with tacit.Budget.create(place, epsilon=10**5, delta="1e-4", covers=covers) as budget:
            budget.share("ana", epsilon=SURE)
            budget.requests.ask("ana", epsilon="1/4", reason="more towns")
        lost = unanswered(folder, place, ["count", "query"])
        notes, models = live_and_killed(folder, place)
        with tacit.Budget.open(place) as budget, tables_in(folder) as tables:
            visits = tables["visits"]
            kept = kept_answers(visits, budget, ["count", "histogram"], "ana")
            write_streams(visits, budget, notes, ["above", "sparse", "fresh", "any"])
            keyed = write_keyed(visits, budget, notes)
            write_notes(
                *(budget, folder / "ledger.budget", notes),
                exported=digest_of(budget),
                answers=kept,
                unanswered=lost,
                watched=models,
                keyed=keyed,
                requests=[written(one) for one in budget.requests],
            )
        write_dump(server, database, folder / "ledger.sql")


def write_dump(server: OwnServer, database: str, path: Path) -> None:
    """As SQL that any client can run, of any version; without what belongs to this server."""
    binaries = wheel_binaries()
    assert binaries is not None
    dumped = subprocess.run(
        [binaries / "pg_dump", "--inserts", "--no-owner", "--no-privileges", server.url(database)],
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    settings = r"^(\\|--|SET (?!default_|check_function)|SELECT pg_catalog.set_config).*\n"
    path.write_text(re.sub(r"\n\n+", "\n", re.sub(settings, "", dumped, flags=re.M)).lstrip())


def write_secrets(folder: Path) -> None:
    """Streams whose noisy threshold is known: it was put far off, with hardly any noise beside it.

    Whoever resumes one must find the threshold where it was put; a lost ⊤ that ends a group draws
    a new one, near 0, and one that does not leaves it where it was.
    """
    path = folder / "secrets.budget"
    told: dict[str, Any] = {}
    with (
        tacit.Budget.create(path, epsilon=10**6, delta="1e-4", covers=["visits", "labs"]) as budget,
        tables_in(folder) as tables,
    ):
        visits = tables["visits"]
        for offset in (5000, -7000):
            for numeric, delta in ((False, "0"), (True, "0"), (False, "1e-7")):
                planner = tacit.plan.numeric_sparse if numeric else tacit.plan.sparse
                planned = planner(questions=100, at_most=6, epsilon=3000, delta=delta)
                for option in planned.options:
                    name = f"{option.name}, {delta}, {offset}" + ", numeric" * numeric
                    task = Task.read(
                        questions=100, at_most=6, beta="1/20", kind="counts", numeric=numeric
                    )
                    opening = StreamOpening.planned(
                        *(visits.schema, task, tacit.Privacy(3000, delta), option.recipe),
                        threshold=0,
                        sensitivity=1,
                        grid=1,
                    )
                    told[name] = put_away(budget, visits, opening, name, offset)
            task = Task.read(questions=100, at_most=1, beta="1/20", kind="counts", numeric=False)
            opening = priced_opening(
                *(visits.schema, task, tacit.Privacy(3000), "1/3"),
                threshold=0,
                sensitivity=1,
                grid=1,
            )
            told[f"priced, {offset}"] = put_away(
                budget, visits, opening, f"priced, {offset}", offset
            )
        write_notes(budget, path, Notes(), exported=digest_of(budget))
    write_json(folder / "offsets.json", told)


def put_away(
    budget: Any, table: Any, opening: StreamOpening, name: str, offset: int
) -> dict[str, Any]:
    recipe = opening.recipe
    priced = recipe.least_scale is not None
    lease = budget.open_stream(
        name,
        cost=recipe.cost,
        table="visits",
        at_most=recipe.at_most,
        binding=opening.binding,
        secret=as_secret(State(offset, 0)),
        identity=table.identity,
    )
    lease.suspend()
    groups = recipe.as_json()["groups"]
    return {
        "offset": offset,
        "tops_in_a_group": None if priced else 6 // int(groups),
        "tells_its_gap": recipe.as_json()["noise"] == "one-sided",
    }


# A server -----------------------------------------------------------------------------------------

KEYED = {"table": "visits", "epsilon": "1/10"}
STREAM = {"algorithm": "sparse", "threshold": 10, "at_most": 9, "questions": 50}
PRICED = {"algorithm": "numeric_sparse", "least_scale": "1/3", "threshold": 10, "questions": 50}
PUBLIC = {"columns": ["town", "smoker"], "codes": [[1, 1], [2, 0]], "people": [40, 20]}
SENT: list[list[Any]] = [  # whose token, where to, what
    ["ana", "/v1/count", {"question": "age > :a", "parameters": {"a": 3}, **KEYED}],
    ["ana", "/v1/count", {"question": "smoker", "table": "labs", "epsilon": 1}],
    ["ana", "/v1/sum", {"column": "cost", "where": "smoker", **KEYED}],
    ["ana", "/v1/histogram", {"columns": ["town"], "max_rows": 1, **KEYED}],
    ["ana", "/v1/query", {"query": OF_TOWNS + " GROUP BY town", "max_cells": 1, **KEYED}],
    ["ana", "/v1/ranges", {"column": "day", "max_rows": 1, **KEYED}],
    ["ana", "/v1/running", {"column": "day", "max_rows": 1, **KEYED}],
    ["ana", "/v1/top", {"n": 1, "questions": {"question": BY_TOWN}, **KEYED}],
    ["ana", "/v1/top", {"n": 1, "questions": [{"question": one} for one in LEVELS], **KEYED}],
    [
        *("ana", "/v1/small_db"),
        {
            "questions": {"kind": "prefixes", "column": "age"},
            "rows": 4,
            "max_rows": 1,
            "certificate_epsilon": "1/100",
            **KEYED,
        },
    ],
    ["ana", "/v1/synthetic", {"columns": ["town"], "rows": 9, "max_rows": 1, **KEYED}],
    ["ana", "/v1/streams/open", {**KEYED, **STREAM, "name": "asked", "epsilon": SURE}],
    ["ana", "/v1/streams/ask", {"stream": "asked", "question": "age >= 0"}],
    ["ana", "/v1/streams/ask", {"stream": "asked", "question": "age >= 1", "threshold": FAR}],
    ["ana", "/v1/streams/ask_all", {"stream": "asked", "questions": {"question": BY_TOWN}}],
    [
        *("ana", "/v1/streams/ask_all"),
        {
            "stream": "asked",
            "questions": [{"question": one} for one in ("age >= 98", "age >= 99", "age >= 2")],
        },
    ],
    ["ana", "/v1/streams/open", {**KEYED, **PRICED, "name": "priced", "epsilon": SURE}],
    ["ana", "/v1/streams/ask", {"stream": "priced", "question": "age >= 0", "scale": 1}],
    [
        *("ana", "/v1/watched/open"),
        {**KEYED, "model": PUBLIC, "surprises": 3, "name": "model", "epsilon": SURE},
    ],
    ["ana", "/v1/watched/ask", {"stream": "model", "question": "smoker"}],
    [
        *("ana", "/v1/watched/ask_all"),
        {"stream": "model", "questions": [{"question": one} for one in COUNTS]},
    ],
    ["ben", "/v1/count", {"question": "result > 4", "table": "labs", "epsilon": "1/10"}],
]
LOOKS: list[list[Any]] = [  # what is answered without a key, after all that
    ["ana", "GET", "/v1/tables", None],
    ["ana", "GET", "/v1/budget", None],
    ["ana", "GET", "/v1/streams", None],
    ["ana", "GET", "/v1/requests", None],
    ["vera", "POST", "/v1/answers", {}],
    ["boss", "POST", "/v1/answers", {"after": 3, "most": 5}],
    ["boss", "GET", "/v1/stopped", None],
    ["boss", "GET", "/v1/tokens", None],
    ["boss", "GET", "/v1/budget", None],
    ["ana", "POST", "/v1/check", {"table": "visits", "questions": [{"question": "age > 3"}]}],
    ["ana", "POST", "/v1/price", {"epsilon": "1/10"}],
    ["ana", "POST", "/v1/plan", {"algorithm": "sparse", "questions": 9, "epsilon": 1}],
    ["ana", "POST", "/v1/streams/show", {"stream": "asked"}],
    ["ana", "POST", "/v1/streams/recorded", {"stream": "asked"}],
    ["cy", "GET", "/v1/tables", None],
    ["old", "GET", "/v1/tables", None],
]


def write_served(folder: Path) -> None:
    """A server's budget, its tokens and stops, and what it said to each request."""
    from tests.server.conftest import started

    path = folder / "served.budget"
    with tacit.Budget.create(path, epsilon=10**4, covers=["visits", "labs", "readings"]) as budget:
        budget.share("ana", epsilon=10**3)
        budget.share("ben", epsilon=1)
    file = TokenFile(folder / "served.budget-tokens")
    tokens = {
        "ana": file.add("ana", share="ana"),
        "ben": file.add("ben", tables=["labs"], share="ben", expires="2999-12-31"),
        "cy": file.add("cy", share="cy"),
        "vera": file.add("vera", role="viewer"),
        "boss": file.add("boss", role="steward"),
        "old": file.add("old", share="old"),
    }
    file.revoke("old")
    paid, looked = [], []
    with started(folder / "tacit.toml", tokens) as server:
        for number, (who, where, body) in enumerate(SENT):
            sent = {"key": f"key {number}", **body}
            got = server.ask("POST", where, sent, token=who)
            paid.append({"who": who, "path": where, "body": sent, **_got(got)})
        more = {"epsilon": "1/4", "reason": "more"}
        assert server.ask("POST", "/v1/request", more).status == 200
        for what in ({"kind": "token", "name": "cy"}, {"kind": "table", "name": "readings"}):
            stop = {**what, "reason": "the wrong file"}
            assert server.ask("POST", "/v1/stop", stop, token="boss").status == 200
        for who, method, where, asked in LOOKS:
            told = server.ask(method, where, asked, token=who)
            looked.append(
                {"who": who, "method": method, "path": where, "body": asked, **_got(told)}
            )
        server.stop()
    told = {"tokens": tokens, "paid": paid, "looked": looked}
    with tacit.Budget.open(path) as budget:
        write_notes(budget, path, Notes(), exported=digest_of(budget), **told)


def _got(got: Any) -> dict[str, Any]:
    return {"status": got.status, "lines": [json.loads(line) for line in got.body.splitlines()]}


# Shards -------------------------------------------------------------------------------------------


def write_shards(folder: Path) -> None:
    """The codes of a table, as they lie in a folder."""
    shards = folder / "shards"
    shards.mkdir()
    with tacit.open(
        folder / "visits.csv", person="pid", as_of=LABEL, shards=shards, memory_limit="1GB"
    ) as visits:
        asked = [visits.prepare(text).question() for text in (*COUNTS, "town = 'Ghent'")]
        values = [int(value) for value in visits.engine.values(asked)]
    told = {"questions": [*COUNTS, "town = 'Ghent'"], "values": values}
    write_json(folder / "shards.json", told)


# Commands -----------------------------------------------------------------------------------------

TABLE = ["visits.csv", "--person", "pid", "--people", "60", "--as-of", LABEL]
PAYS = ["--budget", "clinic.budget", "--json"]
TOGETHER = [*TABLE, "--beside", "labs=labs.csv", "--beside-person", "labs=patient"]
ASK = ["ask", *TOGETHER]
LINES = [
    "# what is on record, and what nothing passes",
    "age >= 0",
    '{"question": "town = :t", "parameters": {"t": "Bruges"}, "threshold": "21/2"}',
    "age / 2 > 1",
    "",
    '{"question": "age >= 5000", "threshold": ' + str(FAR) + "}",
]
PLAN = ["--questions", "100", "--epsilon", "1", "--json"]
OPTIONS = ["--epsilon", "1/2", "--max-rows", "1"]
WATCHED = ["--budget", "watched.budget"]
SELECT = ["query", *TABLE, OF_TOWNS + " GROUP BY town", *OPTIONS, "--max-cells", "1"]
RELEASE = ["release", *TABLE, "--budget", "clinic.budget", "--epsilon", "1/2"]


def write_commands(folder: Path) -> None:
    """What the commands print, and whether the very values must come again."""
    tacit.Budget.create(folder / "watching.budget", epsilon=1000, covers=["visits"]).close()

    def ran(values: bool, *arguments: str, **more: Any) -> dict[str, Any]:
        return command(folder, values, *arguments, **more)

    asked = json.loads((folder / "clinic.json").read_text())["requests"]
    (waiting,) = [str(one["number"]) for one in asked if one["status"] == "open"]
    budgets = ("clinic", "research", "killed", "recipes")
    told = [
        *(ran(True, "budget", "show", f"{name}.budget", "--json") for name in budgets),
        ran(True, "budget", "share", "clinic.budget", "cy", "--epsilon", "3", "--json"),
        ran(True, "budget", "share", "research.budget", "cy", "--rho", "1/5", "--json"),
        ran(True, "budget", "history", "clinic.budget", "--stream", "keyed", "--json"),
        ran(True, "budget", "history", "killed.budget", "--last", "4", "--json"),
        ran(True, "budget", "answers", "research.budget", "--json"),
        *(ran(True, "budget", "verify", f"{name}.budget", "--json") for name in budgets),
        ran(True, "request", "list", "--budget", "clinic.budget", "--json"),
        ran(False, "request", "approve", waiting, *PAYS),
        ran(False, "request", "decline", waiting, "--reason", "no", *PAYS),
        ran(
            *(False, "request", "ask", "--epsilon", "1/4", "--reason", "more"),
            *("--analyst", "ana", *PAYS),
        ),
        ran(False, "plan", "above", *PLAN),
        ran(False, "plan", "sparse", *PLAN, "--at-most", "5", "--delta", "1e-6"),
        ran(False, "plan", "sparse", *PLAN, "--at-most", "5", "--threshold", "50"),
        ran(False, "plan", "numeric", *PLAN, "--at-most", "5", "--kind", "directed"),
        ran(False, "plan", "numeric", *PLAN, "--at-most", "5", "--values", "fresh"),
        ran(False, "plan", "priced", *PLAN, "--least-scale", "20"),
        ran(
            *(False, "compose", "--k", "100", "--epsilon-each", "1/10"),
            *("--delta", "1e-6", "--json"),
        ),
        ran(False, "check", *TABLE, "--json", stdin=f"age >= 60\n{BY_TOWN}\n"),
        ran(True, *ASK, *PAYS, "--resume", "sparse", stdin="\n".join(LINES)),
        ran(
            *(False, *ASK, *PAYS, "--threshold", str(-FAR), "--at-most", "6", "--epsilon", "9"),
            *("--numeric", "--name", "new"),
            stdin=f"age >= 60\nsmoker\n{BY_TOWN}\n",
        ),
        ran(
            *(False, *ASK, *PAYS, "--threshold", "10", "--least-scale", "1/3"),
            *("--epsilon", str(SURE), "--name", "new"),
            stdin='{"question": "age >= 0", "scale": 1}\nage >= 5000\n',
        ),
        ran(
            *(False, *ASK, *PAYS, "--threshold", "10", "--at-most", "3", "--kind", "directed"),
            *("--epsilon", str(SURE)),
            stdin='{"question": "age >= 90", "below": true}\n',
        ),
        ran(False, "count", *TABLE, "age >= 60", "--epsilon", "1/2", *PAYS),
        ran(False, "sum", *TABLE, "cost", "smoker", "--epsilon", "1/2", *PAYS),
        ran(False, "histogram", *TABLE, "town", *OPTIONS, *PAYS),
        ran(False, *SELECT, *PAYS),
        ran(False, *SELECT, *PAYS, "--csv", "rows.csv", "--save", "rows.json"),
        *(
            ran(False, *RELEASE, *how, "--csv", "rows.csv", "--save", "rows.json")
            for how in (
                ["--ranges", "day", "--max-rows", "1"],
                ["--running", "day", "--max-rows", "1"],
                ["--top", BY_TOWN, "--places", "2", "--counts-epsilon", "1/4"],
                ["--synthetic", "age,town", "--bins", "age=4", "--rows", "9", "--max-rows", "1"],
                ["--prefixes", "age", "--rows", "5", "--max-rows", "1"],
                [
                    *("--intervals", "day", "--rows", "5", "--max-rows", "1"),
                    *("--certificate-epsilon", "1/10"),
                ],
            )
        ),
        ran(
            *(False, "model", *TABLE, *OPTIONS, "--columns", "town,smoker"),
            *("--budget", "clinic.budget", "--json"),
            stdin="\n".join(COUNTS),
        ),
        ran(
            *(False, "model", *TOGETHER, "--resume", "watched", *PAYS[2:], *WATCHED),
            stdin="\n".join(COUNTS),
        ),
        ran(False, "watch", "watch.toml", "--as-of", "2026-03-01", "--json"),
        ran(True, "stop", "--config", "tacit.toml", "--json"),
        ran(False, "stop", "--stream", "asked", "--config", "tacit.toml", "--json"),
        ran(False, "stop", "--token", "cy", "--undo", "--config", "tacit.toml", "--json"),
    ]
    write_json(folder / "commands.json", told)


def main(folder: Path) -> None:
    """All of it, anew."""
    assert tacit.__version__ == "0.2.0"
    for file in folder.iterdir():
        if file.is_dir():
            shutil.rmtree(file)
        elif file.suffix != ".toml":
            file.unlink()
    os.umask(0o077)
    write_tables(folder)
    write_clinic(folder)
    write_recipe_budget(folder)
    write_watched_budget(folder)
    write_research(folder)
    write_killed(folder)
    write_ledger(folder)
    write_secrets(folder)
    write_served(folder)
    write_shards(folder)
    write_commands(folder)
    pack(folder)


def pack(folder: Path) -> None:
    """Budgets are mostly spaces."""
    for file in folder.glob("*.budget*"):
        Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        file.unlink()


ACTS: dict[str, Callable[..., None]] = {
    "die-drawing": die_drawing,
    "die-watching": die_watching,
    "die-opening": die_opening,
    "live": live,
}

if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]).resolve())
    else:
        ACTS[sys.argv[1]](*sys.argv[2:])
