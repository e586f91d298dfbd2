"""Arrow data, made ready for DuckDB: the one place where any Arrow table or stream is read.

What a column becomes depends on its type, which is public.  In every column only what DuckDB reads
without fail is left: instants become the whole numbers they are stored as, texts that are not
Unicode become NULL, and what cannot be declared stays away.

A table is in memory and looked through first, so that a column without such values is read as it
is.  A stream comes batch by batch, once; there the type alone decides what a column becomes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tacit.arguments import kind_of
from tacit.errors import BadParameter
from tacit.tables.codes import DAY_INSTANTS, INSTANTS, TEXT_BYTES, UNREADABLE
from tacit.tables.declared import refuse_twins

_MOST_DIGITS = 38


@dataclass(slots=True)
class Ready:
    """Rows that DuckDB can read whatever is in them, and what it does not know about them."""

    frame: Any
    names: list[str]
    types: dict[str, str]  # of our own; the others are DuckDB's
    untyped: frozenset[str] = frozenset()  # any Python value may have stood there
    once: bool = False  # a stream: whoever reads it keeps what it needs

    @property
    def is_empty(self) -> bool:
        """Whether no column is left that DuckDB could read."""
        return len(self.types) == len(self.names) and set(self.types.values()) == {UNREADABLE}


# Tables


def ready_table(table: Any) -> Ready:
    """An Arrow table, column by column, without a copy where none is needed."""
    import pyarrow

    refuse_twins(table.column_names)
    columns, types = {}, {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name], kind = ready_column(column)
        if kind is not None:
            types[name] = kind
    kept = {name: column for name, column in columns.items() if column is not None}
    return Ready(pyarrow.table(kept), table.column_names, types)


def ready_column(column: Any) -> tuple[Any, str | None]:
    """A column that DuckDB reads without fail, and what it holds if DuckDB cannot know."""
    from pyarrow import types

    kind = column.type
    coded = types.is_dictionary(kind)
    if _is_text(kind.value_type if coded else kind):
        return ready_text(column)
    if coded:
        return ready_column(column.cast(kind.value_type))
    if _is_decimal(kind):
        return _narrow_decimal(column), None
    target, own = ready_type(kind)
    if target is None:
        return None, own
    return (column if target == kind else column.cast(target)), own


def ready_text(column: Any) -> tuple[Any, str | None]:
    """Text as it is if all of it is Unicode: nobody else looks.  Else its bytes."""
    import pyarrow

    if _is_unicode(column):
        return column, None
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    bare = [chunk.cast(pyarrow.large_binary()) for chunk in column.chunks]
    return pyarrow.chunked_array(bare, pyarrow.large_binary()), TEXT_BYTES


def _narrow_decimal(column: Any) -> Any:
    """A decimal as it is if no value has more digits than the type; else with room for them.

    DuckDB would take what happens to stand in its memory for such a value.
    """
    import pyarrow
    from pyarrow import compute

    kind = column.type
    ends = compute.min_max(column).values()
    known = [end.as_py() for end in ends if end.is_valid]
    if any(abs(end.scaleb(kind.scale)) >= 10**kind.precision for end in known):
        return column.cast(pyarrow.decimal128(_MOST_DIGITS, kind.scale), safe=False)
    return column


# Streams


def is_stream(source: object) -> bool:
    """Whether this gives its rows as an Arrow stream, by Arrow's PyCapsule interface."""
    return hasattr(source, "__arrow_c_stream__")


def ready_stream(source: object) -> Ready:
    """The batches of a stream, each made ready when its turn comes."""
    reader = _opened(source)
    refuse_twins(reader.schema.names)
    import pyarrow

    targets, types = {}, {}
    for field in reader.schema:
        targets[field.name], own = ready_type(field.type)
        if own is not None:
            types[field.name] = own
    kept = {name: target for name, target in targets.items() if target is not None}
    schema = pyarrow.schema(list(kept.items()))

    def batches() -> Iterator[Any]:
        for batch in reader:
            columns = [_as(batch.column(name), target) for name, target in kept.items()]
            yield pyarrow.record_batch(columns, schema=schema)

    frame = pyarrow.RecordBatchReader.from_batches(schema, batches())
    return Ready(frame, reader.schema.names, types, once=True)


def _opened(source: object) -> Any:
    problem = "reading an Arrow stream needs pyarrow: pip install 'tacit[frames]'"
    try:
        import pyarrow

        problem = "its Arrow stream is not one of rows that have columns"
        return pyarrow.RecordBatchReader.from_stream(source)
    except Exception:  # whatever the source says may quote its data
        pass
    raise BadParameter("source", kind_of(source), problem)


def ready_type(kind: Any) -> tuple[Any, str | None]:
    """What a column of this type is cast to, and what it holds if DuckDB cannot know.

    None if it cannot be read at all.
    """
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(kind):
        return ready_type(kind.value_type)
    if types.is_float16(kind):
        return pyarrow.float32(), None
    if types.is_timestamp(kind):
        return pyarrow.int64(), f"{INSTANTS}({kind.unit})"
    if types.is_date64(kind):
        return pyarrow.int64(), f"{DAY_INSTANTS}(ms)"
    if _is_decimal(kind):  # with room for values that have more digits than the type
        return pyarrow.decimal128(_MOST_DIGITS, kind.scale), None
    number = types.is_integer(kind) or types.is_floating(kind)
    uuid = str(kind) in ("uuid", "extension<arrow.uuid>")
    if number or uuid or _is_text(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return kind, None
    return (kind, None) if types.is_null(kind) else (None, UNREADABLE)


def _as(column: Any, target: Any) -> Any:
    """A column of a batch as the type that `ready_type` says."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type != target:
        column = column.cast(target, safe=not _is_decimal(target))
    return _without_bad_text(column) if _is_text(target) and not _is_unicode(column) else column


def _without_bad_text(column: Any) -> Any:
    """Texts that are not Unicode become NULL."""
    import pyarrow

    return pyarrow.array(map(_decoded, column.cast(pyarrow.large_binary())), column.type)


def _decoded(value: Any) -> str | None:
    try:
        return None if not value.is_valid else value.as_py().decode()
    except UnicodeDecodeError:
        return None


def _is_unicode(column: Any) -> bool:
    """Whether all texts of a column are: Arrow itself does not look when it reads them."""
    import pyarrow

    try:
        column.validate(full=True)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_decimal(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_decimal(kind) and kind.bit_width <= 128)
