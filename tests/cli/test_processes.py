"""``tacit ask`` as a process of its own: driven, killed, interrupted and resumed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import duckdb
import pytest
from tests.cli.running import ASK, CONVERSE, NEW, PATIENCE, POISON
from tests.signals import as_usual

from tacit.budget import Budget


def put(process, question, **more):
    """Ask one question and wait for its answer, as a program would."""
    process.stdin.write(json.dumps({"question": question, **more}) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def state(clinic):
    with Budget.open(clinic) as budget:
        return budget.stream("watch")


def test_a_program_can_drive_it_adaptively(start, clinic):
    process = start(*ASK, *CONVERSE, "--json")
    low, high, tops = 0, 128, 0  # 100 people have reached the age of 67: find it by halving
    while high - low > 1:
        middle = (low + high) // 2
        answer = put(process, "age >= :a", parameters={"a": middle})
        tops += answer["above"]
        low, high = (middle, high) if answer["above"] else (low, middle)
        if answer["halted"]:
            break
    out, _ = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode) == ("", 0)
    assert 65 <= low <= 68
    assert state(clinic).tops == tops


def test_a_kill_costs_the_reserved_top_and_nothing_is_paid_again(start, clinic):
    process = start(*ASK, *CONVERSE, "--json")
    first = put(process, "town = 'Bruges'")
    assert first["above"]
    with pytest.raises(subprocess.TimeoutExpired):  # it answers at once and waits for more
        process.wait(timeout=0.01)
    process.kill()
    process.wait()
    with Budget.open(clinic) as budget:
        spent = budget.spent
    again = start(*ASK, "--resume", "watch", "--json", "--one-by-one")
    shown = put(again, "town = 'Bruges'")
    assert (first["recorded"], shown["recorded"]["as_of"]) == (None, None)
    assert shown == {**first, "tops_left": 1, "recorded": shown["recorded"]}
    _, err = again.communicate(timeout=PATIENCE)
    assert "1 of 3 ⊤ left (1 lost to unclean ends)" in err
    assert f"before: ⊤, on record since {shown['recorded']['at'][:10]}  town = 'Bruges'" in err
    with Budget.open(clinic) as budget:
        assert budget.spent == spent
    assert (state(clinic).tops, state(clinic).lost, again.returncode) == (1, 1, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_suspends_it_and_loses_nothing(start, clinic, number):
    process = start(*ASK, *CONVERSE, "--json")
    assert put(process, "town = 'Bruges'")["above"]
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert "suspended, 2 of 3 ⊤ left" in err
    assert "Traceback" not in err
    assert (state(clinic).lost, state(clinic).status) == (0, "suspended")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_tests_that_send_signals_may_be_started_by_nohup(tmp_path, number):
    """Whatever was ignored where they were started, a process that they start hears it."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with as_usual():
            process = subprocess.Popen(
                [sys.executable, "-c", "print(); input()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=tmp_path,
            )
        assert signal.getsignal(number) is signal.SIG_IGN
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    finally:
        signal.signal(number, before)
    assert process.returncode in (-number, 128 + number)


def test_a_reader_that_goes_away_suspends_it(start, clinic):
    process = start(*ASK, *CONVERSE)
    process.stdin.write("age >= 0\n")
    process.stdin.flush()
    assert process.stdout.readline() == "⊤  age >= 0\n"
    process.stdout.close()
    process.stdin.write("town = 'Bruges'\nage < 0\n")
    process.stdin.close()
    err = process.stderr.read()
    assert process.wait(timeout=PATIENCE) == 128 + signal.SIGPIPE
    assert "Traceback" not in err
    assert "BrokenPipe" not in err
    assert (state(clinic).lost, state(clinic).status) == (0, "suspended")


def test_a_pipe_is_read_to_its_end_before_anything_is_paid(start, clinic):
    process = start(*ASK, *NEW, "--json")
    process.stdin.write("town = 'Bruges'\n")
    process.stdin.flush()
    assert "--one-by-one does not wait" in process.stderr.readline()
    with pytest.raises(subprocess.TimeoutExpired):  # however long: it waits for the rest
        process.wait(timeout=0.5)
    with Budget.open(clinic) as budget:
        assert budget.streams() == []
    out, _ = process.communicate("town = 'Ghent'\n", timeout=PATIENCE)
    assert [json.loads(line)["above"] for line in out.splitlines()] == [True, False]
    assert (state(clinic).tops, process.returncode) == (1, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_questions_are_read_costs_nothing(start, clinic, number):
    process = start(*ASK, *NEW, "--json")
    assert "--one-by-one does not wait" in process.stderr.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, "Traceback" in err) == (128 + number, False)
    with Budget.open(clinic) as budget:
        assert budget.streams() == []
        assert budget.spent.epsilon == 0


def test_questions_in_a_file_are_read_to_the_end_without_a_word(start, clinic, folder):
    (folder / "questions.txt").write_text("town = 'Bruges'\nage / 2 > 1\n")
    with open(folder / "questions.txt") as questions:
        out, err = start(*ASK, *NEW, stdin=questions).communicate(timeout=PATIENCE)
    assert "refused (line 2)" in err
    assert (out, "reading all" in err) == ("", False)


def test_lines_that_are_not_utf8_are_refused(start, clinic):
    process = start(*ASK, *CONVERSE, "--json", encoding=None)
    out, _ = process.communicate(b"town = '\xff'\r\nage >= 0\r\ntown = 'Ghent'", timeout=PATIENCE)
    told = [json.loads(line) for line in out.splitlines()]
    assert "UTF-8" in told[0]["refused"]
    assert [each["above"] for each in told[1:]] == [True, False]


def test_at_a_terminal_there_is_a_prompt(start, clinic):
    ours, its = pty.openpty()
    process = start(
        *(*ASK, *NEW),
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C reaches it
    )
    os.close(its)
    seen, told = b"", ""

    def until(text, again=None):
        """Read up to a text; what is to be typed ``again`` is, whenever nothing comes for long."""
        nonlocal seen, told
        end = time.monotonic() + PATIENCE
        while text.encode() not in seen:
            assert time.monotonic() < end, f"{text!r} never came after {seen!r}"
            if select.select([ours], [], [], 5)[0]:
                seen += os.read(ours, 4096)
            elif again is not None:
                os.write(ours, again)
        told += seen.partition(text.encode())[0].decode(errors="replace")
        seen = seen.partition(text.encode())[2]

    until("Ctrl-D leaves")
    until("3 ⊤ left> ")
    os.write(ours, b"town = 'Bruges'\n")
    until("⊤\r\n")
    until("2 ⊤ left> ")
    os.write(ours, b"age / 2 > 1\n")
    until("refused: division")
    until("2 ⊤ left> ")
    os.write(ours, b"town = '\xff'\n")
    until("refused: ")
    until("2 ⊤ left> ")
    os.write(ours, b"town = 'Gh\x03")  # Ctrl-C in the middle of a line
    # Python's input() misses one that comes between its prompt and its wait for a key, as a
    # program can but nobody's finger: press it again, as anyone would.
    until("suspended, 2 of 3 ⊤ left", again=b"\x03")
    assert "Ctrl-D leaves" not in told  # once will do
    assert process.wait(timeout=PATIENCE) == 130
    os.close(ours)


def test_output_that_fails_is_told_without_a_traceback(start, clinic):
    with open("/dev/full", "w") as full:
        process = start("budget", "history", clinic, stdout=full)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (4, "tacit: No space left on device\n")


def test_nothing_is_shown_of_a_table_that_breaks_under_it(start, clinic, folder):
    """A Parquet file is read column by column; here it is changed meanwhile."""
    file = folder / "visits.parquet"
    duckdb.execute(f"COPY (FROM '{folder / 'visits.csv'}') TO '{file}'")
    process = start("ask", file.name, *ASK[2:], *CONVERSE, "--json")
    assert put(process, "age >= 0")["above"]
    file.write_bytes(POISON.encode() * 9)
    out, err = process.communicate("town = \"Ghent\"\ntown = 'Ghent'\n", timeout=PATIENCE)
    assert process.returncode == 4
    assert POISON not in out + err
    assert "open it again" in err
    assert "the ⊤ that was reserved is lost" in err
    assert "stream 'watch' did not end cleanly" in err
    assert (state(clinic).status, state(clinic).reserved) == ("live", True)


@pytest.mark.parametrize(
    "words",
    [
        ("release", "--synthetic", "town,age", "--max-rows", "1", "--save", "paid.json"),
        (
            "query",
            "SELECT town, COUNT(*) FROM visits GROUP BY town",
            "--max-rows",
            "1",
            "--max-cells",
            "1",
            "--save",
            "paid.json",
        ),
        ("histogram", "town", "--max-rows", "1"),
    ],
)
def test_what_is_paid_is_kept_where_nobody_reads(start, clinic, folder, words):
    options = ("--person", "pid", "--epsilon", "1", "--budget", clinic)
    process = start(words[0], "visits.csv", *words[1:], *options)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=PATIENCE) == 128 + signal.SIGPIPE, err
    assert "Traceback" not in err
    assert "could not be written" not in err
    assert (folder / "paid.json").exists() == ("--save" in words)
