"""What a ledger stores as rows: how values become rows, and rows become values again.

Everything that is read is checked, since what is stored can be damaged: a row that Tacit cannot
have written is ``LedgerDamaged``, whatever Python would have made of it.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tacit.budget.accountants import Amount
from tacit.budget.chain import Entry, insist, readable
from tacit.budget.ledger import (
    LARGEST,
    KeptAnswer,
    Share,
    StreamState,
    TableIdentity,
)


def checksum(stream: int, secret: bytes) -> bytes:
    """Of a secret and whose it is.  As secret as the secret: few guesses would find that."""
    return hashlib.sha256(b"secret of stream %d: %b" % (stream, secret)).digest()


# From rows: what Tacit did not write is refused ------------------------------------------------


def text_of(value: Any) -> str:
    """A text, and nothing that looks like one."""
    insist(isinstance(value, str))
    return str(value)


def whole_of(value: Any) -> int:
    """A number from 1 on."""
    insist(isinstance(value, int) and 1 <= value < LARGEST)
    return int(value)


def entry_of(number: Any, text: Any, digest: Any, stream: Any) -> Entry:
    """An entry of the history."""
    filed = None if stream is None else whole_of(stream)
    return Entry(whole_of(number), text_of(text), text_of(digest), filed)


def table_of(row: tuple[Any, ...]) -> tuple[str, str | None]:
    """A table that is covered, and its people."""
    with readable("a row of the table 'tables' cannot be read"):
        name, people = row
        return text_of(name), None if people is None else text_of(people)


def tie_of(row: tuple[Any, ...]) -> tuple[str, TableIdentity]:
    """A table, and whose rows it holds."""
    with readable("a row of the table 'ties' cannot be read"):
        name, *identity = row
        return text_of(name), TableIdentity(*identity)


def share_of(row: tuple[Any, ...]) -> Share:
    """A share; the unshared one has an empty name, which no analyst can have."""
    with readable("a row of the table 'pots' cannot be read"):
        if (written := _WRITTEN.get(row)) is not None:
            return written
        analyst, limit, spent = map(text_of, row)
        return Share(analyst or None, Amount.from_text(limit), Amount.from_text(spent))


def stream_of(row: tuple[Any, ...]) -> StreamState:
    """Where a stream stands."""
    with readable("a row of the table 'streams' cannot be read"):
        number, name, table, analyst, at_most, binding, tops, lost, reserved, *rest = row
        bound = json.loads(text_of(binding))
        insist(isinstance(bound, dict))
        # Else Python would say what cannot be a number, and what is stored may be a secret.
        insist(all(isinstance(part, int) for part in (tops, lost, reserved)))
        facts = (number, name, table, analyst, at_most, bound)
        return StreamState(*facts, tops, lost, reserved, *rest)


def answer_of(row: tuple[Any, ...]) -> KeptAnswer:
    """An answer that was kept."""
    with readable("a row of the table 'answers' cannot be read"):
        return KeptAnswer(*row)


# To rows: one spelling for one value, which ``verify`` relies on ------------------------------

_WRITTEN: dict[tuple[Any, ...], Share] = {}  # the last rows written: the next charge reads them
_MOST_WRITTEN = 256


def row_of_tie(table: str, identity: TableIdentity) -> tuple[Any, ...]:
    """The inverse of ``tie_of``."""
    return (table, identity.person, identity.type, identity.schema)


def row_of_share(share: Share) -> tuple[Any, ...]:
    """The inverse of ``share_of``."""
    row = (share.analyst or "", share.limit.as_text(), share.spent.as_text())
    if len(_WRITTEN) >= _MOST_WRITTEN:
        _WRITTEN.clear()
    _WRITTEN[row] = share
    return row


def row_of_stream(state: StreamState) -> tuple[Any, ...]:
    """The inverse of ``stream_of``."""
    return (
        *(state.id, state.name, state.table, state.analyst, state.at_most),
        json.dumps(dict(state.binding), sort_keys=True),
        *(state.tops, state.lost, int(state.reserved), state.status, state.generation),
    )
