"""What there may be only one of: whatever holds a secret, a lease, the data or a key stream."""

from __future__ import annotations

from typing import NoReturn

from tacit.errors import CannotCopy


class Uncopyable:
    """Can be neither copied nor pickled.

    A twin of a stream would overwrite newer state with older, one of coins would draw the same
    noise again, and a pickle would carry a secret out of the process.
    """

    __slots__ = ()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise CannotCopy(
            f"{type(self).__name__} cannot be copied or pickled, because the copy would repeat "
            "its draws, or hold its secret, its lease or its data a second time",
            advice="make or open a new one instead, in the process that needs it",
        )
