"""Connections: those on which nobody has shown a good token get a small share, and a short life.

Anybody can connect, so whoever does must not be able to keep others out.  A connection that comes
when the share is used up has a moment to show a token, not none: else those who wait inside would
keep everybody else outside.  And when there are too many in all, the oldest without a token makes
room, of the address that has most of them: so whoever connects without a pause is in nobody's way
but their own.  If there is none, the one that has been idle for longest does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

from tacit.server.log import DroppedLine

_TELL_SECONDS = 2  # until the log says how many were dropped since


class Connection(Protocol):
    """One connection."""

    address: str

    @property
    def idle(self) -> bool:
        """Whether nothing is being answered on it."""

    def drop(self) -> None:
        """End it at once."""


class Connections:
    """All that are open."""

    def __init__(self, most: int, *, by_address: bool, log: Callable[[DroppedLine], None]) -> None:
        """``by_address`` unless all come from a proxy."""
        self._most = most
        self._share = max(1, most // 10)
        self._of_an_address = max(1, most // 50) if by_address else most
        self._log = log
        self._strangers: dict[Connection, None] = {}  # in order of arrival
        self._known: dict[Connection, None] = {}  # in the order of when they were last used
        self._dropped: Counter[str] = Counter()  # by address, since the log was told

    def arrived(self, connection: Connection) -> bool:
        """Count a new one; whether the share has room for it."""
        if len(self._strangers) + len(self._known) >= self._most:
            self._make_room()
        near = sum(each.address == connection.address for each in self._strangers)
        room = len(self._strangers) < self._share and near < self._of_an_address
        self._strangers[connection] = None
        return room

    def used(self, connection: Connection) -> None:
        """Somebody has shown a good token on it."""
        self.gone(connection)
        self._known[connection] = None

    def gone(self, connection: Connection) -> None:
        """It has ended."""
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    def _make_room(self) -> None:
        idle = (each for each in self._known if each.idle)
        near = Counter(each.address for each in self._strangers)
        crowd = max(near, key=near.__getitem__, default=None)
        crowded = (each for each in self._strangers if each.address == crowd)
        found = next(crowded, None) or next(idle, None)
        if found is not None:  # else all have a token and are being answered, within its limits
            self.gone(found)
            self.dropping(found)
            found.drop()

    def dropping(self, connection: Connection) -> None:
        """Note that one is dropped because there are too many."""
        if not self._dropped:
            asyncio.get_running_loop().call_later(_TELL_SECONDS, self._tell)
        self._dropped[connection.address] += 1

    def _tell(self) -> None:
        ((address, count),) = self._dropped.most_common(1)
        self._log(DroppedLine(dropped=self._dropped.total(), most_from=address, of_them=count))
        self._dropped.clear()


def address_of(peer: object) -> str:
    """What counts as one address: in IPv6, all that one subscriber to a network gets.

    >>> address_of(("192.0.2.1", 5)), address_of(("::ffff:192.0.2.1", 5, 0, 0))
    ('192.0.2.1', '192.0.2.1')
    >>> address_of(("2001:db8:0:1:2::3%eth0", 5, 0, 0)), address_of(None)
    ('2001:db8:0:1::/64', '?')
    """
    if not isinstance(peer, tuple):  # it has gone already
        return "?"
    address = ip_address(peer[0].partition("%")[0])
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))
