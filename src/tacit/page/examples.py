"""Questions and queries that a table answers, to begin with: made from its schema alone."""

from __future__ import annotations

from tacit.tables.language.show import name as written
from tacit.tables.schema.codes import NUMBERS
from tacit.tables.schema.schema import Column, Schema


def _keyed(schema: Schema) -> Column | None:
    """The first column with declared keys."""
    return next((column for column in schema.columns if column.cells), None)


def question(schema: Schema) -> str:
    """A predicate; nothing if no column has keys or bounds."""
    if (column := _keyed(schema)) is not None:
        return f"{written(column.name)} = {column.literal((column.cells or ())[0])}"
    for column in schema.columns:
        if column.bounds is not None:
            return f"{written(column.name)} > {column.literal(column.bounds[0])}"
    return ""


def query(schema: Schema) -> str:
    """A SELECT of one count, by the first keys."""
    return f"SELECT {_counted(schema)} FROM {written(schema.name)}{_grouped(schema)}"


def queries(schema: Schema) -> list[tuple[str, str]]:
    """Other kinds of queries, by what they tell."""
    counted, table, grouped = _counted(schema), written(schema.name), _grouped(schema)
    found: list[tuple[str, str]] = []
    if (keyed := _keyed(schema)) is not None:
        inside = f"{counted} FILTER (WHERE {question(schema)})"
        found = [
            ("a percentage", f"100.0 * {inside} / {counted} AS percent FROM {table}"),
            ("the largest", f"{counted} AS many FROM {table}{grouped} ORDER BY many DESC LIMIT 1"),
            ("how many keys", f"COUNT(DISTINCT {written(keyed.name)}) FROM {table}"),
        ]
    for column in schema.columns:
        if column.bounds is not None and column.type in NUMBERS:
            name, rest = written(column.name), f" FROM {table}{grouped}"
            found.append(("mean and deviation", f"AVG({name}), STDDEV({name}){rest}"))
            found.append(("median and ends", f"MEDIAN({name}), MIN({name}), MAX({name}){rest}"))
            break
    return [(name, f"SELECT {text}") for name, text in found]


def _counted(schema: Schema) -> str:
    person = schema.person
    return f"COUNT(DISTINCT {written(person)})" if isinstance(person, str) else "COUNT(*)"


def _grouped(schema: Schema) -> str:
    keyed = _keyed(schema)
    return "" if keyed is None else f" GROUP BY {written(keyed.name)}"
