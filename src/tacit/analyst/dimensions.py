"""The dimensions of the book, with a sign of life at a terminal: a search may take long."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tacit.analyst.waiting import waiting
from tacit.book import fat_shattering, shattering

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _alive(find: Callable[_P, _R]) -> Callable[_P, _R]:
    search: Callable[..., _R] = find

    @wraps(find)
    def finding(*given: Any, progress: Any = None, **options: Any) -> _R:
        with waiting("searching for a larger shattered set", progress) as tell:
            return search(*given, progress=tell, **options)

    return finding


vc_dimension = _alive(shattering.vc_dimension)
fat_shattering_dimension = _alive(fat_shattering.fat_shattering_dimension)
