"""Several tables of the same people, opened together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from inspect import signature
from typing import Any

from tacit.analyst.table import Table, open_table
from tacit.analyst.versions import SeenVersions, put_beside
from tacit.arguments import instance, kind_of
from tacit.errors import BadParameter
from tacit.numbers import as_given
from tacit.support import Closing
from tacit.tables.engine.engine import refuse_unable
from tacit.tables.engine.related import refuse_other_people

_HELP = (
    "give each table by its name, with what tacit.open takes: "
    "{'visits': {'source': 'visits.parquet', 'person': 'pid'}, 'labs': {...}}"
)


class OpenTables(Closing, Mapping[str, Table]):
    """Tables by their names, closed together.  ``tacit.open_all`` makes them."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<tables {', '.join(self._tables)}, open together>"

    def close(self) -> None:
        """Close them all."""
        for table in self._tables.values():
            table.close()


def open_all(tables: Mapping[str, Mapping[str, Any]]) -> OpenTables:
    """Open several tables of the same people, so that a question about one may name the others.

    ``tables`` has what `tacit.open` takes for each of them, by its name.  Their person columns must
    be of one type, and a budget that is charged for one of them must cover them all:

        tables = tacit.open_all({
            "visits": {"source": "visits.parquet", "person": "pid"},
            "labs": {"source": "labs.csv", "person": "patient"},
        })
        tables["visits"].count("smoker and pid in (select patient from labs where hba1c > 7)", ...)

    Privacy: neighbours differ in one person's rows in all these tables together.
    """
    given = instance(tables, "tables", Mapping, _HELP)
    if len(given) < 2:
        few = "name at least two: tacit.open opens a single one"
        raise BadParameter("tables", f"a list of {len(given)}", few)
    known = set(signature(open_table).parameters) - {"name"}
    with ExitStack() as opened:
        found = {}
        for name, how in given.items():
            if not isinstance(how, Mapping) or "source" not in how:
                raise BadParameter(f"tables.{name}", kind_of(how), _HELP)
            if unknown := [word for word in how if word not in known]:
                words = ", ".join(sorted(known))
                raise BadParameter(
                    f"tables.{name}",
                    as_given(unknown[0]),
                    f"there is no such option; known are {words}",
                )
            found[name] = opened.enter_context(open_table(name=name, **how))
        put_together(found)
        opened.pop_all()
    return OpenTables(found)


def same_people(
    tables: Mapping[str, Table], people: Mapping[str, str | None]
) -> list[dict[str, Table]]:
    """Those of some open tables that can be put together: their people are the same.

    A budget says so (``budget.people``), and they must be read as one type.
    """
    groups: dict[tuple[str | None, str], dict[str, Table]] = {}
    for name, table in tables.items():
        person = table.schema.person
        if isinstance(person, str) and "people" not in table.engine.cannot:
            read_as = table.schema.column(person).type
            groups.setdefault((people[name], read_as), {})[name] = table
    return [group for group in groups.values() if len(group) > 1]


def seen_with(table: Table, others: Collection[Table]) -> Table:
    """The same table, for somebody who may name only these of the tables beside it."""
    view = Table(table.engine, people=table.people, as_of=table.as_of, coins=table.coins)
    view._versions = SeenVersions(table._versions, [other._versions for other in others])
    return view


def follow(view: Table) -> Table:
    """What `seen_with` made, with the label that its table has now."""
    if isinstance(view._versions, SeenVersions):
        view._versions.follow()
    return view


def put_together(tables: Mapping[str, Table]) -> None:
    """Let questions about each of these open tables name the others, or refuse."""
    refuse_other_people([table.schema for table in tables.values()])
    for table in tables.values():
        refuse_unable(table.engine, "people")
    put_beside([table._versions for table in tables.values()])
