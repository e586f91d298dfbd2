"""What is closed when its ``with`` block ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from tacit.uncopyable import Uncopyable


class Closing(Uncopyable, ABC):
    """Has a ``close``, and is closed at the end of ``with``, however that ends.

    What must be let go of is held once, so it cannot be copied.
    """

    @abstractmethod
    def close(self) -> None:
        """Let go of what is held; once more does no harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()
