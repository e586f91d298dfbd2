"""A signal waits for the answer that is on its way, and a second one does not."""

from __future__ import annotations

import os
import signal
from threading import Timer

import duckdb
import pytest

from tacit.cli.exits import Signalled, Signals, ended_by
from tacit.failures import withheld

pytestmark = pytest.mark.usefixtures("usual_signals")


def send(number):
    os.kill(os.getpid(), number)


def test_a_signal_between_two_questions_ends_at_once():
    with Signals(), pytest.raises(Signalled) as caught:
        send(signal.SIGTERM)
    assert caught.value.number == signal.SIGTERM


def test_a_signal_within_a_question_waits_for_its_answer():
    done = []

    def ask_twice(signals):
        with signals.wait():
            send(signal.SIGINT)
            done.append("answered")
        done.append("went on")

    with Signals() as signals, pytest.raises(Signalled):
        ask_twice(signals)
    assert done == ["answered"]


def test_a_second_signal_does_not_wait():
    done = []

    def ask(signals):
        with signals.wait():
            send(signal.SIGINT)
            done.append("waited")
            send(signal.SIGINT)
            done.append("waited again")

    with Signals() as signals, pytest.raises(Signalled):
        ask(signals)
    assert done == ["waited"]


def test_nothing_interrupts_the_suspension():
    with Signals() as signals:
        signals.ignore()
        send(signal.SIGINT)
        send(signal.SIGTERM)


def test_handlers_are_as_before_afterwards_and_nohup_is_respected():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupt = signal.getsignal(signal.SIGINT)
    with Signals():
        assert signal.getsignal(signal.SIGINT) is not interrupt
        send(signal.SIGHUP)
    assert signal.getsignal(signal.SIGINT) is interrupt
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_whoever_must_wait_is_told_why(capfd):
    def draw(signals):
        with signals.wait("what is paid is written first"):
            send(signal.SIGTERM)
            assert "tacit: what is paid is written first" in capfd.readouterr().err

    with Signals() as signals, pytest.raises(Signalled):
        draw(signals)


def count_for_long():
    with duckdb.connect() as connection:
        connection.execute(
            "SELECT count(*) FROM range(400000000) a, range(100) b WHERE a.range % 7 = b.range"
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_duckdb_works_is_no_failure_of_the_engine(number):
    """DuckDB turns whatever a handler raises into an error of its own."""
    Timer(1, send, [number]).start()
    with pytest.raises(Signalled) as ended, Signals():
        withheld("answering")(count_for_long)()
    assert ended_by(ended.value) == 128 + number


def test_outside_the_engine_it_is_none_either():
    Timer(1, send, [signal.SIGINT]).start()
    with pytest.raises((RuntimeError, KeyboardInterrupt)) as ended:
        count_for_long()
    assert ended_by(ended.value) == 130
