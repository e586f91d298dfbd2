"""What is closed when its ``with`` block ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Has a ``close``, and is closed at the end of ``with``, however that ends."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held; once more does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
