"""How much memory a table may take."""

from __future__ import annotations

import os
import re

from tacit.errors import BadParameter
from tacit.privacy import as_given, exact

LIMIT_HELP = "give bytes, or a text such as '512MB' or '2GB'"

_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def byte_limit(limit: int | str | None) -> int:
    """A memory limit in bytes."""
    if limit is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if isinstance(limit, int) and limit > 2**60:
        raise BadParameter("memory_limit", as_given(limit), LIMIT_HELP)
    match = re.fullmatch(r"([0-9.]+) *([KMGT]?B?)", str(limit).strip().upper())
    unit = match and _UNITS.get(
        match[2] if match[2].endswith("B") or not match[2] else match[2] + "B"
    )
    if not match or not unit:
        raise BadParameter("memory_limit", limit, LIMIT_HELP)
    return int(exact(match[1], "memory_limit") * unit)
