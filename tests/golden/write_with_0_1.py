"""How ``tests/golden/0.1`` was written: a record, run once with version 0.1 and never again.

    git worktree add ../v01 00668c4          # the last commit of 0.1
    cd ../v01 && make check                  # sets up .venv
    .venv/bin/python .../tests/golden/write_with_0_1.py .../tests/golden/0.1

The folder holds the tables' schemas; everything else in it is written here: the tables, budget
files in every state with what 0.1 itself says about them, questions with their keys, schemas with
their digests, releases, and what the commands print with ``--json``.  Noise and clocks differ in
every run, so a second run gives other files, and later versions are held to these.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import questions_of_0_1 as questions
from noting import (
    Notes,
    command,
    die,
    killed,
    noted,
    privacy_of,
    text_or_none,
    write_json,
    write_notes,
)

import tacit
from tacit.analyst.binding import binding_of
from tacit.analyst.stream import as_secret
from tacit.book.one_sided import prepare as prepare_mechanism
from tacit.book.sparse_vector import State
from tacit.tables import EACH_ROW, parse_batch, read_schema

PEOPLE = {"visits": "pid", "readings": EACH_ROW, "staff": "each row"}
FAR = 10**12  # a threshold that nothing passes; its negative, one that everything passes


# Tables -------------------------------------------------------------------------------------------


def write_tables(folder: Path) -> None:
    """Invented rows with every type, with NULLs and with values that are none."""
    towns = ["Bruges", "Ghent", "Sint-Niklaas", "Liège", "", "O'Hara", '"Gent, Noord"']
    rows = ["pid,age,week,stay,cost,score,town,smoker,day,at,order,two words,Größe"]
    for row in range(120):
        pid, day = row // 2, f"2026-0{1 + row % 3}-{28 + row % 4 if row % 3 != 1 else 1 + row % 28}"
        rows.append(
            f"{pid},{row % 97},{1 + row % 5},{row % 40},{row * 1.37 - 50:.3f},{row / 7},"
            f"{towns[row % len(towns)]},{('yes', 'no', '')[row % 3]},{day},"
            f"2026-01-31T{row % 24:02}:30:00,{row % 11},word {row % 4},{row * 3}"
        )
    rows.append(",old,,x,nan,inf,Ghent,perhaps,someday,never,,,")
    (folder / "visits.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["sensor,level,ok,seen"]
    rows += [
        f"{('north', 'south', 'east')[row % 3]},{row / 8},{row % 2},2026-01-{1 + row % 31:02}"
        for row in range(60)
    ]
    (folder / "readings.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["each row,role,since"]
    roles = ["nurse,2020-01-01", "doctor,2021-06-30T12:00:00.5"]
    names = ["ann", "ben", "bea", "cy", "dan"] * 3
    rows += [f"{name},{roles[place % 2]}" for place, name in enumerate(names)]
    (folder / "staff.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def opened(folder: Path, name: str = "visits", **options: Any) -> Any:
    return tacit.open(folder / f"{name}.csv", person=PEOPLE[name], **options)


def write_history(budget: Any, path: Path) -> None:
    """The history as JSON lines."""
    path.with_suffix(".jsonl").unlink(missing_ok=True)
    budget.export(path.with_suffix(".jsonl"))


# Budgets ------------------------------------------------------------------------------------------


def write_clinic(folder: Path) -> None:
    """(ε, δ) added up: every kind of entry, every kind of stream, every way to leave one."""
    path, notes = folder / "clinic.budget", Notes()
    tacit.Budget.create(path, epsilon=10**5, delta="1e-4", covers=["visits", "readings"]).close()
    killed("lose", folder)
    with tacit.Budget.open(path) as budget, opened(folder, people=60) as visits:
        budget.cover("staff")
        budget.share("ana", epsilon="100/3", delta="1e-9")
        budget.share("ben", epsilon=20)
        budget.share("ana", epsilon="200/3", delta="1e-9")
        write_releases(folder, visits, budget)
        write_lost(visits, budget, notes)
        write_streams(visits, budget, notes)
        write_recipes(visits, budget, notes)
        write_all_questions(folder, budget, notes)
        write_notes(budget, path, notes)
        write_history(budget, path)


def lose(folder: str) -> None:
    """A stream with one ⊤, whose holder is killed, and one whose only ⊤ is reserved then."""
    budget = tacit.Budget.open(Path(folder) / "clinic.budget")
    visits = opened(Path(folder))
    lost = visits.sparse(threshold=10, at_most=4, epsilon=50, budget=budget, name="lost")
    assert lost.ask("age >= 0")
    kept = visits.above_threshold(
        threshold=10, epsilon=1, budget=budget, name="lost-its-only-top"
    )  # one that is simply forgotten would be suspended
    assert kept.tops_left == 1
    die()


def write_lost(visits: Any, budget: Any, notes: Notes) -> None:
    """Resumed after the kill: one ⊤ is lost, and the stream goes on, or has halted by that."""
    lost = visits.resume("lost", budget=budget)
    assert notes.ask(visits, lost, "age >= 0")
    assert notes.ask(visits, lost, "smoker")
    lost.suspend()
    try:
        visits.resume("lost-its-only-top", budget=budget)
    except tacit.errors.StreamEnded:
        return
    raise AssertionError("its only ⊤ was lost")


def write_releases(folder: Path, visits: Any, budget: Any) -> None:
    """Counts, sums, a histogram and small databases, with and without an analyst."""
    visits.count("age >= 65 and smoker", epsilon="1/10", budget=budget)
    visits.count("town = :t", epsilon=0.1, budget=budget, analyst="ana", t="Liège")
    visits.sum("cost", where="smoker", epsilon="1/4", budget=budget)
    visits.sum("stay", epsilon="1/4", budget=budget, analyst="ben")
    visits.histogram("town", "smoker", epsilon=1, budget=budget, analyst="ana")
    releases = {
        "prefixes": (tacit.prefixes("age"), ["age <= 39", "age <= 0", "age <= 120"], {}),
        "intervals": (
            tacit.intervals("week"),
            ["week between 2 and 3", "week = 4"],
            {"analyst": "ben"},
        ),
        "dates": (tacit.prefixes("day"), ["day <= '2026-01-31'"], {"max_rows": 2}),
        "list": (
            ["town = 'Ghent' and smoker", "town in ('Bruges', 'Liège')", "not smoker"],
            ["town = 'Ghent' and smoker", "not smoker"],
            {},
        ),
    }
    told = {}
    for name, (asked, answered, options) in releases.items():
        drawn = visits.small_db(asked, epsilon=2, rows=12, budget=budget, **options)
        drawn.save(folder / f"release-{name}.json")
        again = tacit.load_release(folder / f"release-{name}.json")
        told[name] = {
            "rows": again.rows,
            "privacy": privacy_of(again.privacy),
            "people": again.plan.people,
            "guarantee": text_or_none(again.guarantee()),
            "columns": {
                column: list(map(str, values)) for column, values in again.to_dict().items()
            },
            "answers": {question: str(again.answer(question)) for question in answered},
            "counts": {question: str(again.count(question)) for question in answered},
        }
    write_json(folder / "releases.json", told)


def write_streams(visits: Any, budget: Any, notes: Notes) -> None:
    """Streams of every kind, left in every way."""
    new = {"budget": budget, "epsilon": 50}
    above = visits.above_threshold(threshold=1000, name="above", **new)
    assert not notes.ask(visits, above, "age >= 0")
    above.suspend()
    halted = visits.above_threshold(threshold=10, name="above-halted", **new)
    assert notes.ask(visits, halted, "age >= 0")
    both = visits.sparse(threshold=10, at_most=2, name="halted", **new)
    assert notes.ask(visits, both, "smoker")
    assert notes.ask(visits, both, "age >= 0")
    closed = visits.numeric_sparse(threshold=10, at_most=3, name="closed", **new)
    assert notes.ask(visits, closed, "smoker")
    closed.close()
    visits.sparse(threshold=10, at_most=2, name="closed-unasked", **new).close()
    twice = visits.sparse(threshold=10, at_most=6, name="suspended twice", **new)
    assert notes.ask(visits, twice, "town = 'Ghent'")
    twice.suspend()
    twice = visits.resume("suspended twice", budget=budget)
    assert notes.ask(visits, twice, "town = :town", town="Bruges", threshold="21/2")
    assert not notes.ask(visits, twice, "town = :town", town="Bruges", threshold=FAR)
    twice.suspend()
    theirs = visits.numeric_sparse(
        threshold=20,
        at_most=2,
        epsilon=2,
        delta="1e-10",
        budget=budget,
        analyst="ana",
        name="ana's",
    )
    theirs.suspend()
    unnamed = visits.sparse(threshold=10, at_most=1, questions=200, beta="1/10", **new)
    unnamed.suspend()
    steps = visits.sparse(
        **new,
        threshold="12.345",
        at_most=3,
        kind="any",
        name="steps",
        sensitivity="2.5",
        grid="0.01",
    )
    assert notes.ask(visits, steps, "0.5 * count(smoker) + 2 * count(age >= 0)")
    assert notes.ask(visits, steps, "count(age >= 0) - 0.01 * count(smoker)", threshold=-1)
    steps.suspend()


def write_recipes(visits: Any, budget: Any, notes: Notes) -> None:
    """Every recipe that 0.1 plans, stored with a stream that has one ⊤ and has more left."""
    for numeric in (False, True):
        planner = tacit.plan.numeric_sparse if numeric else tacit.plan.sparse
        for kind in ("counts", "any"):
            for delta in ("0", "1e-7"):
                asked = {"at_most": 6, "epsilon": 20, "delta": delta, "kind": kind}
                planned = planner(questions=100, **asked)
                for option in planned.options:
                    name = f"{option.name}, {kind}, {delta}" + ", numeric" * numeric
                    stream = visits.sparse(
                        **asked,
                        threshold=-1000,
                        recipe=option.recipe,
                        numeric=numeric,
                        budget=budget,
                        name=name,
                    )
                    assert notes.ask(visits, stream, "age >= 60")
                    stream.suspend()
    for recipe in ("best", "book"):
        stream = visits.numeric_sparse(
            threshold=-1000,
            at_most=3,
            epsilon=20,
            budget=budget,
            recipe=recipe,
            name=f"recipe={recipe}",
        )
        assert notes.ask(visits, stream, "age >= 60")
        stream.suspend()


def write_all_questions(folder: Path, budget: Any, notes: Notes) -> None:
    """A ⊤ on record for every question of the list, and for every cell."""
    for name in PEOPLE:
        with opened(folder, name) as table:
            stream = table.numeric_sparse(
                threshold=-FAR,
                at_most=400,
                epsilon=1000,
                kind="any",
                sensitivity=10**5,
                grid="1/1000",
                budget=budget,
                name=f"all questions about {name}",
            )
            asked = getattr(questions, name)()
            for text, parameters in asked:
                assert notes.ask(table, stream, text, **parameters)
            for text, parameters in asked[:5]:
                assert notes.ask(table, stream, text, threshold=Fraction(-FAR, 3), **parameters)
                assert notes.ask(table, stream, text, threshold=-(10**11), **parameters)
            for text, parameters in getattr(questions, f"{name}_in_cells")():
                notes.ask_all(table, stream, text, **parameters)
            stream.suspend()


def write_research(folder: Path) -> None:
    """zCDP: ρ is added up."""
    path, notes = folder / "research.budget", Notes()
    with (
        tacit.Budget.create(
            path, epsilon=100, delta="1e-6", covers=["visits"], accountant="zcdp"
        ) as budget,
        opened(folder) as visits,
    ):
        budget.share("ana", rho="1/3")
        budget.share("ben", epsilon=2)
        visits.count("smoker", epsilon="1/10", budget=budget)
        visits.count("smoker", epsilon="1/10", budget=budget, analyst="ana")
        visits.histogram("town", epsilon="1/3", budget=budget, analyst="ben")
        for name, options in {
            "pure": {"epsilon": 5},
            "numeric": {"epsilon": 4, "numeric": True},
            "book": {"epsilon": 4, "recipe": "book"},
        }.items():
            stream = visits.sparse(threshold=-100, at_most=3, budget=budget, name=name, **options)
            assert notes.ask(visits, stream, "age >= 60 and smoker")
            stream.suspend()
        theirs = visits.above_threshold(
            threshold=-100, epsilon="1/2", budget=budget, analyst="ana", name="ana's"
        )
        assert notes.ask(visits, theirs, "smoker")
        write_notes(budget, path, notes)
        write_history(budget, path)


def write_killed(folder: Path) -> None:
    """A budget as kill −9 leaves it: streams that are live, the log beside the file."""
    path = folder / "killed.budget"
    with tacit.Budget.create(path, epsilon=1000, covers=["visits"]) as budget:
        budget.share("ana", epsilon=100)
    killed("live", folder, "first")
    killed("live", folder, "second")
    notes = Notes()
    notes.asked = json.loads((folder / "live.json").read_text())
    (folder / "live.json").unlink()
    with tempfile.TemporaryDirectory() as elsewhere:  # looking at the file itself would tidy it up
        for file in folder.glob("killed.budget*"):
            shutil.copy2(file, elsewhere)
        with tacit.Budget.open(Path(elsewhere) / "killed.budget") as budget:
            write_notes(budget, folder / "killed.budget", notes)
            write_history(budget, folder / "killed.budget")


def live(folder: str, time: str) -> None:
    """The first holder is killed with streams open; so is the second, who resumed one of them."""
    notes, place = Notes(), Path(folder) / "live.json"
    budget = tacit.Budget.open(Path(folder) / "killed.budget")
    visits = opened(Path(folder))
    new = {"threshold": 10, "epsilon": 50, "budget": budget}
    if time == "first":
        streams = [
            visits.numeric_sparse(at_most=5, name="live", **new),
            visits.sparse(at_most=7, name="killed twice", **new),
            visits.sparse(at_most=3, name="suspended", **new),
        ]
        for stream in streams:
            assert notes.ask(visits, stream, "age >= 0")
        streams[-1].suspend()
        kept = [  # or it would be suspended when it is forgotten
            visits.sparse(at_most=2, name="live-unasked", **new),
            visits.above_threshold(name="live-with-its-only-top", **new),
            visits.sparse(at_most=2, name="ana's", analyst="ana", **new),
        ]
        assert len(kept) == 3
    else:
        notes.asked = json.loads(place.read_text())
        twice = visits.resume("killed twice", budget=budget)
        assert notes.ask(visits, twice, "smoker")
    write_json(place, notes.asked)
    die()


def write_secrets(folder: Path) -> None:
    """Streams whose noisy threshold is known: it was put far off, with hardly any noise beside it.

    Whoever resumes one must find the threshold where it was put; a lost ⊤ that ends a group draws
    a new one, near 0, and one that does not leaves it where it was.
    """
    path = folder / "secrets.budget"
    told: dict[str, Any] = {}
    with (
        tacit.Budget.create(path, epsilon=10**6, delta="1e-4", covers=["visits"]) as budget,
        opened(folder) as visits,
    ):
        for offset in (5000, -7000):
            for numeric, delta in ((False, "0"), (True, "0"), (False, "1e-7")):
                planner = tacit.plan.numeric_sparse if numeric else tacit.plan.sparse
                planned = planner(questions=100, at_most=6, epsilon=3000, delta=delta)
                for option in planned.options:
                    name = f"{option.name}, {delta}, {offset}" + ", numeric" * numeric
                    lease = budget.open_stream(
                        name,
                        cost=option.recipe.cost,
                        table="visits",
                        at_most=6,
                        binding=binding_of(
                            visits.schema, prepare_mechanism(option.recipe, threshold=0), "counts"
                        ),
                        secret=as_secret(State(offset, 0)),
                    )
                    told[name] = {
                        "offset": offset,
                        "tops_in_a_group": 6 // int(option.recipe.as_json()["groups"]),
                        "tells_its_gap": option.recipe.as_json()["noise"] == "one-sided",
                    }
                    lease.suspend()
        write_notes(budget, path, Notes())
        write_history(budget, path)
    write_json(folder / "offsets.json", told)


# Keys and digests ---------------------------------------------------------------------------------


def write_keys(folder: Path) -> None:
    """Each question with its fingerprint, and the key under which its ⊤ is on record."""
    from tacit.analyst.stream import _key

    with tacit.Budget.open(folder / "clinic.budget") as budget:
        tops = [entry.body for entry in budget.history if entry.kind == "top"]
    told = []
    for name, person in PEOPLE.items():
        schema = read_schema((folder / f"{name}.toml").read_text(), name=name, person=person)
        on_record = {
            body["question"] for body in tops if body["stream"] == f"all questions about {name}"
        }
        asked = getattr(questions, name)() + getattr(questions, f"{name}_in_cells")()
        for text, parameters in asked:
            found = parse_batch(text, schema, parameters).questions
            keys = [_key(question, None) for question in found]
            assert on_record.issuperset(keys), text
            told.append(
                {
                    "table": name,
                    **noted(text, parameters),
                    **promise_of(found[0]),
                    "fingerprints": [question.fingerprint for question in found],
                    "keys": keys,
                    "keys_at_a_third": [_key(question, Fraction(1, 3)) for question in found],
                }
            )
    write_json(folder / "questions.json", told)


def promise_of(question: Any) -> dict[str, Any]:
    return {
        "sensitivity": str(question.sensitivity),
        "direction": question.direction,
        "grid": str(question.grid),
    }


def write_digests(folder: Path) -> None:
    """Schemas that declare every entry, each with its digest."""
    texts = {name: (folder / f"{name}.toml").read_text() for name in PEOPLE}
    texts["types"] = "".join(
        f'[columns.{kind}]\ntype = "{kind}"\n'
        for kind in ("integer", "real", "text", "boolean", "date", "timestamp")
    )
    texts["bounds"] = (
        '[columns.a]\ntype = "integer"\nbounds = [-5, 5]\n'
        '[columns.b]\ntype = "real"\ngrid = "0.5"\nbounds = ["-1/2", 7.5]\ntotal = [-9, 9]\n'
        '[columns.c]\ntype = "date"\nbounds = [2020-01-01, "2021-01-01"]\n'
        '[columns.d]\ntype = "timestamp"\nbounds = [2020-01-01T00:00:00, "2021-01-01 12:00"]\n'
    )
    texts["keys"] = (
        'max_rows = 3\n[columns.a]\ntype = "integer"\nkeys = [3, 1, 2]\n'
        '[columns.b]\ntype = "text"\nkeys = ["é", "", "🏥", "\\"\\\\"]\n'
        '[columns.c]\ntype = "date"\nkeys = {from = 2020-02-27, to = 2020-03-01}\n'
        '[columns.d]\ntype = "boolean"\nkeys = [true]\n'
        '[columns.e]\ntype = "real"\nkeys = [0.1, 1e300]\n'
    )
    told = []
    for name, text in texts.items():
        person = PEOPLE.get(name, EACH_ROW)
        schema = read_schema(text, name=name, person=person)
        told.append(
            {
                "name": name,
                "person": None if person is EACH_ROW else person,
                "schema": text,
                "digest": schema.digest,
            }
        )
    write_json(folder / "schemas.json", told)


# Commands -----------------------------------------------------------------------------------------

ASK = ["ask", "visits.csv", "--person", "pid", "--budget", "clinic.budget", "--json"]
LINES = [
    "# what is on record, and what nothing passes",
    "age = 3",
    '{"question": "town = :t", "parameters": {"t": "Ghent"}}',
    "SELECT COUNT(DISTINCT pid) FROM visits GROUP BY smoker, week",
    "age / 2 > 1",
    "",
    '{"question": "age >= 5000", "threshold": ' + str(FAR * 100) + "}",
]


def write_commands(folder: Path) -> None:
    """What the commands print with --json, and whether the very values must come again."""
    told = [
        command(folder, True, "budget", "show", "clinic.budget", "--json"),
        command(folder, True, "budget", "show", "research.budget", "--json"),
        command(folder, True, "budget", "show", "killed.budget", "--json"),
        command(folder, True, "budget", "share", "clinic.budget", "cy", "--epsilon", "3", "--json"),
        command(folder, True, "budget", "share", "research.budget", "cy", "--rho", "1/5", "--json"),
        command(folder, True, "budget", "history", "research.budget", "--json"),
        command(folder, True, "budget", "history", "clinic.budget", "--stream", "lost", "--json"),
        command(folder, True, "budget", "history", "killed.budget", "--last", "3", "--json"),
        command(folder, True, "budget", "verify", "clinic.budget", "--json"),
        command(folder, True, "budget", "verify", "killed.budget", "--json"),
        command(folder, True, "budget", "export", "research.budget"),
        command(folder, False, "plan", "above", "--questions", "100", "--epsilon", "1", "--json"),
        command(
            *(folder, False, "plan", "sparse", "--questions", "100", "--at-most", "5"),
            *("--epsilon", "1/2", "--delta", "1e-6", "--json"),
        ),
        command(
            *(folder, False, "plan", "numeric", "--questions", "100", "--at-most", "5"),
            *("--alpha", "50", "--kind", "any", "--json"),
        ),
        command(
            *(folder, True, *ASK, "--resume", "all questions about visits"),
            stdin="\n".join(LINES),
        ),
        command(
            *(folder, False, *ASK, "--threshold", str(-FAR), "--at-most", "4", "--epsilon", "9"),
            *("--numeric", "--name", "new"),
            stdin="age >= 60\nsmoker\nSELECT COUNT(DISTINCT pid) FROM visits GROUP BY smoker\n",
        ),
    ]
    write_json(folder / "commands.json", told)


def main(folder: Path) -> None:
    """All of it, anew."""
    assert tacit.__version__ == "0.1.0"
    for file in folder.iterdir():
        if file.suffix != ".toml":
            file.unlink()
    write_tables(folder)
    write_clinic(folder)
    write_research(folder)
    write_killed(folder)
    write_secrets(folder)
    write_keys(folder)
    write_digests(folder)
    write_commands(folder)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]).resolve())
    else:
        {"lose": lose, "live": live}[sys.argv[1]](*sys.argv[2:])
