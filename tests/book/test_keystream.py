"""The key stream: real AES-256-CTR, new keys in time, and no byte handed out twice."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from threading import Barrier, Thread

import numpy as np
import pytest

from tacit.draws import keystream
from tacit.draws.keystream import InsecureTestKeyStream, KeyStream


def test_it_is_aes_256_in_counter_mode():
    """NIST SP 800-38A, F.5.5: the first two output blocks of CTR-AES256."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    expected = "0bdf7df1591716335e9a8b15c860c5025a6e699d536119065433863c8f657b94"
    assert keystream._aes_ctr(key, counter).update(bytes(32)).hex() == expected


def test_bytes_bits_and_fill_share_one_stream_without_overlap():
    one, other = InsecureTestKeyStream(1), InsecureTestKeyStream(1)
    whole = one.bytes(4096 + 100)
    parts = b"".join(other.bytes(size) for size in (1, 7, 0, 4000, 88))
    assert parts == whole[: len(parts)]
    words = np.empty(1000, np.uint32)
    other.fill(words)
    assert words.tobytes() not in whole
    assert np.unique(words).size > 990


def test_bits_have_the_asked_width():
    stream = InsecureTestKeyStream(2)
    for count in (0, 1, 7, 8, 9, 64, 1000):
        draws = [stream.bits(count) for _ in range(200)]
        assert max(draws) < 1 << count
        assert max(draws) >= (1 << count) - (1 << count) // 8 - 1


def test_every_bit_is_fair():
    words = np.empty(1 << 16, np.uint64)
    KeyStream().fill(words)
    ones = [int((words >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64)]
    assert all(abs(count - (1 << 15)) < 6 * 128 for count in ones)  # six standard deviations


def test_a_key_is_replaced_before_it_is_used_too_much(monkeypatch):
    keys = []

    def urandom(count):
        keys.append(count)
        return os.urandom(count)

    monkeypatch.setattr(keystream, "os", type("os", (), {"urandom": staticmethod(urandom)}))
    stream = KeyStream()
    assert keys == []  # nothing is drawn before it is needed
    buffer = np.empty(1 << 20, np.uint8)
    for _ in range(33):
        stream.fill(buffer)
    assert keys.count(32) == 3  # 16 MiB each


def test_a_large_fill_is_spread_over_several_keys(monkeypatch):
    monkeypatch.setattr(keystream, "_BYTES_PER_KEY", 1 << 16)
    stream = InsecureTestKeyStream(3)
    buffer = np.empty(1 << 18, np.uint8)
    stream.fill(buffer)
    assert stream._keys_used == 4
    assert np.unique(buffer.view(np.uint64)).size == (1 << 15)


def test_a_short_write_of_the_cipher_is_noticed():
    class Lazy:
        def update_into(self, data, buffer):
            return len(data) - 1

    stream = InsecureTestKeyStream(4)
    stream._new_cipher = Lazy  # type: ignore[assignment, method-assign]
    with pytest.raises(RuntimeError, match="less key stream"):
        stream.fill(np.empty(16, np.uint8))


def test_two_streams_differ():
    assert KeyStream().bytes(32) != KeyStream().bytes(32)


def test_the_test_stream_is_reproducible():
    assert InsecureTestKeyStream(5).bytes(64) == InsecureTestKeyStream(5).bytes(64)
    assert InsecureTestKeyStream(5).bytes(64) != InsecureTestKeyStream(6).bytes(64)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match="repeat"):
        duplicate(KeyStream())


def test_threads_share_every_byte_and_take_none_twice():
    """Eight threads together get exactly the words that one would get alone."""
    stream, twin = InsecureTestKeyStream(7), InsecureTestKeyStream(7)
    count, threads = 4000, 8
    start, taken = Barrier(threads), []

    def take():
        start.wait()
        mine = [stream.bytes(8) for _ in range(count)]
        taken.extend(mine)

    workers = [Thread(target=take) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted(twin.bytes(8) for _ in range(count * threads))


def test_threads_that_fill_arrays_never_share_a_word():
    stream, arrays = KeyStream(), [np.empty(1 << 15, np.uint64) for _ in range(4)]
    workers = [Thread(target=stream.fill, args=(array,)) for array in arrays]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert np.unique(np.concatenate(arrays)).size == 4 << 15


# Forks are tested in a separate process: this one may have threads, of which newer Pythons warn.
_FORKS = """
import os, sys, threading
import numpy as np
from tacit.book.coins import Coins, InsecureTestCoins

coins = InsecureTestCoins(1) if sys.argv[1] == "insecure" else Coins()
sampler = coins.laplace_sampler(10**12)
kept = sampler.draw  # a bound method taken before the fork
sampler.draw(), coins.below(2**64), coins.laplaces(10**12, 5)
for _ in range(60):
    coins.laplace(10**12)  # now a sampler inside the coins has a pool as well

def some():
    singles = [coins.below(2**64), sampler.draw(), kept(), coins.laplace(10**12)]
    bulk = coins.laplaces(10**12, 3), sampler.draws(3), coins.geometrics(10**12, 3)
    return [str(number) for number in (*singles, *np.concatenate(bulk).tolist())]

if sys.argv[1] == "held lock":  # another thread holds the lock while we fork
    held, release = threading.Event(), threading.Event()
    lock = coins._stream._lock
    def hold():
        with lock:
            held.set()
            release.wait()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()

reading, writing = os.pipe()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        os.write(writing, (" ".join(some()) + "\\n").encode())
        os._exit(0)
    children.append(child)
for child in children:
    assert os.waitpid(child, 0)[1] == 0
if sys.argv[1] == "held lock":
    release.set()
    holder.join()
os.close(writing)
with os.fdopen(reading) as lines:
    print(lines.read(), end="")
print(" ".join(some()))
"""

_POOLS = """
import multiprocessing
from tacit.book.coins import Coins

coins = Coins()
sampler = coins.laplace_sampler(10**12)
sampler.draw()

def work(_):
    return [sampler.draw(), coins.below(2**64)]

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        for drawn in pool.map(work, range(30), chunksize=1):
            print(*drawn)
    print(*work(None))
"""


def _run(tmp_path, code, *arguments):
    path = tmp_path / "forks.py"
    path.write_text(code)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(path), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@forks
@pytest.mark.parametrize("how", ["secure", "held lock"])
def test_forked_children_repeat_nothing(tmp_path, how):
    lines = _run(tmp_path, _FORKS, how)
    drawn = [number for line in lines for number in line]
    assert len(lines) == 4
    assert len(set(drawn)) == len(drawn) == 4 * 13


@forks
def test_the_fork_test_can_fail(tmp_path):
    """The reproducible coins do repeat themselves after a fork, and the test above sees it."""
    lines = _run(tmp_path, _FORKS, "insecure")
    assert lines[0] == lines[1] == lines[2]


@forks
def test_multiprocessing_workers_repeat_nothing(tmp_path):
    drawn = [number for line in _run(tmp_path, _POOLS) for number in line]
    assert len(drawn) == len(set(drawn)) == 2 * 31
