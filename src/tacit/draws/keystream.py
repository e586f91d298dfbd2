"""Unpredictable bytes: the AES-256-CTR key stream, with a key from the operating system.

A key is replaced after 16 MiB.  A forked child gets a key of its own before any of its code runs,
so that it never repeats the parent's bytes.  Threads take turns, so that no byte is handed out
twice.
"""

from __future__ import annotations

import hashlib
import os
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from tacit.support import Uncopyable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext
    from numpy.typing import NDArray


_BYTES_PER_KEY = 1 << 24
_POOL_BYTES = 1 << 12
_ZEROS = memoryview(bytes(1 << 16))  # its encryption is the key stream


class DrawsAhead(Protocol):
    """Holds random bits for later use, which a forked child must not share with its parent."""

    def forget(self) -> None:
        """Drop every bit drawn in advance, and everything that could repeat one."""


_holders: WeakSet[Any] = WeakSet()


def forget_in_child(holder: DrawsAhead) -> None:
    """Ensure that ``holder.forget()`` runs in every forked child, before any other code."""
    _holders.add(holder)


def _after_fork() -> None:
    for holder in list(_holders):
        holder.forget()


if hasattr(os, "register_at_fork"):  # absent on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)


class KeyStream(Uncopyable):
    """AES-256-CTR with keys from os.urandom."""

    def __init__(self) -> None:
        self._reset()
        forget_in_child(self)

    def forget(self) -> None:
        """Discard the key and the pool; the next byte comes from a new key."""
        self._reset()

    def _reset(self) -> None:
        self._lock = Lock()  # a thread that exists only in the parent may hold the old one
        self._cipher: CipherContext | None = None
        self._bytes_left = 0
        self._pool = b""
        self._used = 0

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes; a few at a time come from a pool."""
        with self._lock:
            end = self._used + count
            if end > len(self._pool):
                fresh = max(count, _POOL_BYTES)
                self._pool = self._encryptor(fresh).update(bytes(fresh))
                end = count
            self._used = end
            return self._pool[end - count : end]

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        size = -(-count // 8)
        return int.from_bytes(self.bytes(size), "little") >> (8 * size - count)

    def fill(self, words: NDArray[Any]) -> None:
        """Overwrite a contiguous array with key stream, without copying."""
        view = words.data.cast("B")
        with self._lock:
            for start in range(0, len(view), len(_ZEROS)):
                part = view[start : start + len(_ZEROS)]
                written = self._encryptor(len(part)).update_into(_ZEROS[: len(part)], part)
                if written != len(part):  # the rest would be whatever was in memory before
                    raise RuntimeError("the cipher wrote less key stream than it was asked for")

    def _encryptor(self, count: int) -> CipherContext:
        """A cipher that may still produce `count` bytes under its key."""
        if self._cipher is None or count > self._bytes_left:
            self._cipher = self._new_cipher()
            self._bytes_left = _BYTES_PER_KEY
        self._bytes_left -= count
        return self._cipher

    def _new_cipher(self) -> CipherContext:
        return _aes_ctr(os.urandom(32), os.urandom(16))


class InsecureTestKeyStream(KeyStream):
    """The same bytes for the same seed: for tests only."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._keys_used = 0
        super().__init__()

    def forget(self) -> None:
        """A forked copy continues where it was, and so repeats the parent's bytes."""
        self._lock = Lock()

    def _new_cipher(self) -> CipherContext:
        text = f"tacit insecure test coins {self._seed} {self._keys_used}"
        self._keys_used += 1
        return _aes_ctr(hashlib.sha256(text.encode()).digest(), bytes(16))


def _aes_ctr(key: bytes, counter: bytes) -> CipherContext:
    # Imported here because it takes 50 ms, which `tacit --help` does not need.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()
