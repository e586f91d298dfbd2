"""The rows of a query in chunks, as arrays that lie where DuckDB wrote them.

DuckDB gives a result as an Arrow stream while it is computed, so that neither it nor we ever hold
all rows but those that we keep; ``fetchnumpy`` holds them twice.  The stream is a C structure
(`the Arrow C stream interface <https://arrow.apache.org/docs/format/CStreamInterface.html>`_), and
needs no library to be read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

INLINE = 12
"""Bytes of a word that stand in its view."""

SETTINGS = "SET produce_arrow_string_view = true; SET arrow_output_version = '1.5'"
"""Texts as views: their length with their first bytes, or for short ones all of them."""

_KINDS: dict[bytes, np.dtype[Any]] = {
    b"C": np.dtype(np.uint8),
    b"S": np.dtype(np.uint16),
    b"I": np.dtype(np.uint32),
    b"L": np.dtype(np.uint64),
    b"l": np.dtype(np.int64),
    b"g": np.dtype(np.float64),
}
_VIEWS = b"vu"


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
# These types let other threads run meanwhile, which DuckDB may need.
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ("private_data", ctypes.c_void_p),
]

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True, slots=True)
class ChunkColumn:
    """Some rows of a column; its arrays are DuckDB's, and gone when the next chunk is asked for.

    Of a text column, ``values`` are views: two 64-bit numbers a row, of which the lower half of the
    first is the length in bytes, and its upper half the first four of them.  The second number has
    the others of at most 12, and else in its upper half where the word begins in ``texts``.
    Where there is NULL, a value means nothing.
    """

    values: NDArray[Any]
    nulls: NDArray[np.bool_] | None
    texts: NDArray[np.uint8]


def chunks(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[ChunkColumn, ...]]:
    """The rows of a query, in order; the connection can do nothing else in between."""
    capsule = connection.sql(query).__arrow_c_stream__()  # which ends the stream when it goes
    stream = _Stream.from_address(_pointer_of(capsule, b"arrow_array_stream"))
    kinds = _formats(stream)
    while True:
        array = _Array()
        _checked(stream, stream.get_next(ctypes.addressof(stream), ctypes.byref(array)))
        if not array.release:
            return
        try:
            yield tuple(
                _column(array, array.children[place].contents, kind)
                for place, kind in enumerate(kinds)
            )
        finally:
            array.release(ctypes.byref(array))


def _formats(stream: Any) -> list[bytes]:
    schema = _Schema()
    _checked(stream, stream.get_schema(ctypes.addressof(stream), ctypes.byref(schema)))
    try:
        return [schema.children[place].contents.format for place in range(schema.n_children)]
    finally:
        schema.release(ctypes.byref(schema))


def _checked(stream: Any, failed: int) -> None:
    """Fail as DuckDB does elsewhere; its messages are withheld by whoever reads a table."""
    if failed:
        told = stream.get_last_error(ctypes.addressof(stream)) or b""
        raise duckdb.Error(told.decode(errors="replace"))


def _column(array: Any, child: Any, kind: bytes) -> ChunkColumn:
    start, rows = array.offset + child.offset, array.length
    nulls = None
    if child.null_count and child.buffers[0]:
        octets = _buffer(child.buffers[0], -(-(start + rows) // 8))
        there = np.unpackbits(octets, bitorder="little")[start : start + rows]
        nulls = ~there.view(np.bool_)
    texts = np.zeros(0, np.uint8)
    if kind != _VIEWS:
        values = _buffer(child.buffers[1], (start + rows) * _KINDS[kind].itemsize)
        return ChunkColumn(values.view(_KINDS[kind])[start:], nulls, texts)
    views = _buffer(child.buffers[1], (start + rows) * 16).view(np.uint64).reshape(-1, 2)
    if child.n_buffers > 4:  # a view would have to say in which buffer its text is
        raise duckdb.Error("the texts of a chunk are in several buffers")
    if child.n_buffers > 3:  # the last buffer has the sizes of those with texts
        sizes = _buffer(child.buffers[child.n_buffers - 1], 8 * (child.n_buffers - 3))
        texts = _buffer(child.buffers[2], int(sizes.view(np.int64)[0]))
    return ChunkColumn(views[start:], nulls, texts)


def _buffer(address: int | None, size: int) -> NDArray[np.uint8]:
    if not size or not address:
        return np.zeros(0, np.uint8)
    there: Any = (ctypes.c_uint8 * size).from_address(address)
    octets: NDArray[np.uint8] = np.frombuffer(there, np.uint8)
    return octets
