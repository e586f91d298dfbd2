"""A key stream that plays back a chosen uniform number instead of a random one."""

from __future__ import annotations

from tacit.draws.keystream import KeyStream

DEPTH = 400


class ScriptedStream(KeyStream):
    """One uniform U = number/2^DEPTH, handed out in the pieces that the code asks for.

    ``widths`` says how many leading bits of each filled word are used; what lies below them in
    the word is set to ones, so that code that looked at more would go astray.
    """

    def __init__(self, number: int, widths: tuple[int, ...] = ()) -> None:
        super().__init__()
        self._number = number
        self._widths = list(widths)
        self.taken = 0

    def bits(self, count: int) -> int:
        self.taken += count
        below = DEPTH - self.taken  # after the last bit of the number come zeros
        shifted = self._number >> below if below >= 0 else self._number << -below
        return shifted & ((1 << count) - 1)

    def fill(self, words) -> None:
        assert words.size == 1
        unused = 8 * words.itemsize - self._widths[0]
        words[0] = self.bits(self._widths.pop(0)) << unused | (1 << unused) - 1
