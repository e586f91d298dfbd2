"""The frame: what is imported, how errors become exit codes, and help that helps."""

from __future__ import annotations

import pickle
import re
import shlex
import subprocess
import sys
from importlib import import_module
from inspect import cleandoc, signature
from pathlib import Path

import duckdb
import pytest
from tests.cli.running import ASK, ENVIRONMENT, NEW, POISON

import tacit.cli
from tacit import errors
from tacit.audit import table as table_of_audits
from tacit.budget import Budget
from tacit.cli import COMMANDS, ENDS, GROUPS, application, audit, exits, plan, release
from tacit.cli import budget as commands_of_a_budget
from tacit.numbers import exact

SINGLE = [(name,) for name in COMMANDS if name not in GROUPS]
GROUPED = [(group, name) for group, names in GROUPS.items() for name in names]
HEAVY = {"numpy", "duckdb", "sqlglot", "cryptography", "sqlite3", "matplotlib", "pandas", "pyarrow"}
OURS = {"tacit.book", "tacit.budget", "tacit.tables", "tacit.analyst", "tacit.audit"}


def function_of(*words):
    return getattr(import_module(f"tacit.cli.{words[0]}"), words[-1])


def summary_of(*words):
    return COMMANDS[words[0]] if len(words) == 1 else GROUPS[words[0]][words[1]]


@pytest.mark.parametrize("words", [*SINGLE, *GROUPED], ids=" ".join)
def test_help_has_examples_and_says_what_every_option_does(tacit, words):
    written = cleandoc(function_of(*words).__doc__)
    assert written.splitlines()[0] == summary_of(*words)
    ended = tacit(*words, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert summary_of(*words) in " ".join(ended.out.split())
    assert f"    tacit {' '.join(words)}" in ended.out
    assert all(len(line) <= 80 for line in ended.out.splitlines())
    assert all(line in ended.out for line in written.split("\n\nParameters\n")[0].splitlines())
    app = application(words)
    for word in words:
        app = app[word]
    for argument in app.assemble_argument_collection(parse_docstring=True):
        assert argument.parameter.help or argument.name == "*", f"{argument.name} is not explained"


def test_options_do_not_break_where_docstrings_do(tacit):
    assert "│ Without one, a server is asked about the table" in re.sub(
        " +", " ", tacit("release", "--help").out
    )


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (plan.PlanOptions, tacit.plan.sparse),
        (plan.sparse, tacit.plan.sparse),
        (plan.numeric, tacit.plan.numeric_sparse),
        (release.ReleaseOptions, tacit.Table.small_db),
        (commands_of_a_budget.create, Budget.create),
        (audit.audit, table_of_audits.rows),
        (audit.audit, tacit.audit.gallery),
    ],
)
def test_a_default_is_that_of_the_call_behind_it(command, call):
    behind = signature(call).parameters
    shown = [one for one in signature(command).parameters.values() if one.default is not None]
    shared = [one for one in shown if one.name in behind]
    assert shared
    for one in shared:
        assert as_read(one.default) == as_read(behind[one.name].default), one.name


def as_read(default):
    """A default as the library reads it: 1/20 and 0.05 are one number."""
    try:
        return exact(default, "default")
    except errors.BadParameter:
        return default


@pytest.mark.parametrize("words", [(), *((group,) for group in GROUPS)], ids=" ".join)
def test_lists_name_every_command_and_end_with_examples(tacit, words):
    ended = tacit(*words, "--help")
    names = GROUPS[words[0]] if words else COMMANDS
    assert (ended.code, ended.err) == (0, "")
    for name, summary in names.items():
        assert name in ended.out
        assert summary.split()[0] in ended.out
    assert f"    tacit {' '.join(words)}" in ended.out
    assert ENDS[words[0] if words else "tacit"] in ended.out  # no line of which was broken


def test_without_a_command_there_is_help(tacit):
    assert "First steps" in tacit().out
    assert tacit("--version").out.strip() == "0.2.0"


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["budget", "frobnicate"],
        ["--frobnicate"],
        ["ask"],
        ["ask", "visits.csv", "--frobnicate"],
        ["plan", "sparse", "--questions"],
        ["plan", "sparse", "--questions", "many", "--at-most", "1"],
        ["plan", "sparse", "--questions", "5", "--at-most", "1"],
        ["schema", "visits.csv", "extra"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_understood_is_told_on_standard_error(tacit, words):
    ended = tacit(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("tacit: ")


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "sparse", "--epsilon", "1", "--questions", "10", "--at-most"],
        ["budget", "history", "clinic.budget", "--last"],
        ["audit", "SVT4", "--exact-only", "--questions"],
        ["audit", "SVT4", "--questions", "3", "--workers", "1", "--runs"],
        [*ASK, "--threshold", "100", "--epsilon", "1", "--at-most"],
        ["release", "visits.csv", "--epsilon", "1", "--rows"],
    ],
    ids=" ".join,
)
def test_a_whole_number_is_read_exactly(tacit, clinic, words):
    for text in ("1.5", "1e-1", "ten", "", "inf"):
        ended = tacit(*words, text)
        assert (ended.code, ended.out) == (2, "")
        assert "is not a whole number" in ended.err
    if words[0] != "release":
        ended = tacit(*words, "1e3" if "--runs" in words else "2e0")
        assert "whole number" not in ended.err
        assert ended.code in (0, 1), ended.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("budget history clinic.budget --stream no", "--stream 'no' is not allowed: no stream has"),
        ("ask visits.csv --person pid --budget clinic.budget --resume no", "--resume 'no' is not"),
        (
            "budget create --epsilon 1 --covers a",
            "FILE is missing.  See: tacit budget create --help",
        ),
        ("budget create b --epsilom 1 --covers a", "missing. Did you mean --epsilon instead of"),
        ("budget create b --covers a --epsilon", "--epsilon needs a value."),
        ("budget show", "give the FILE where the budget lies; or, for a server, --url"),
        ("request list", "give --budget FILE where the budget lies; or, for a server, --url"),
        ("stop", "give --config FILE on the server's machine; or, for a server, --url"),
        ("budget show no.budget", "no.budget: there is no such file\n  tacit budget create makes"),
        ("budget create clinic.budget --epsilon 1 --covers a", "never overwritten\n  tacit budget"),
        ("budget share clinic.budget ana --rho 1", "--rho 1 is not allowed: this budget adds up"),
        ("budget share clinic.budget ana", "--epsilon is missing: say how much"),
        ("budget share clinic.budget '' --epsilon 1", "ANALYST '' is not allowed"),
        ("budget cover clinic.budget visits", "TABLE 'visits' is not allowed: the budget covers"),
        (
            "plan sparse --questions 9 --at-most 1",
            "--epsilon is missing: give either epsilon or alpha",
        ),
        ("schema no.csv", "FILE no.csv is not allowed: there is no such file"),
        ("schema two.duckdb", "--table is missing: name one of its tables: a, b"),
        (
            "release visits.csv --person pid --prefixes age --max-rows 1 --epsilon 1 --plan",
            "--alpha is missing",
        ),
        ("NEW --epsilon 1 --analyst eve", "'eve' has no share of"),
        ("NEW --epsilon 1 --called labs", "covers visits, not 'labs'\n  tacit budget share sets"),
        ("NEW --epsilon 1 --memory lots", "--memory lots is not allowed: give a number of bytes"),
        ("NEW --epsilon 40 --delta 1e-6 --recipe book", "\n  --recipe best has no such limit"),
    ],
)
def test_it_speaks_of_what_was_typed_and_not_of_python(tacit, clinic, folder, line, said):
    with duckdb.connect(folder / "two.duckdb") as connection:
        connection.execute("CREATE TABLE a (i INT); CREATE TABLE b (i INT)")
    new = " ".join((*ASK, "--threshold", "100", "--at-most", "3"))
    ended = tacit(*shlex.split(line.replace("NEW", new)))
    assert ended.code in (2, 3)
    assert said in ended.err
    for python in ("Budget.", "budget.s", "budget.c", "=)", "= and", "None", "_each", "str is"):
        assert python not in ended.err


def test_python_still_hears_what_to_do_in_python(folder, clinic):
    with Budget.open(clinic) as budget:
        for call, said in (
            (lambda: budget.stream("no"), r"no stream has this name; budget.streams\(\) lists"),
            (lambda: budget.share("ana"), r"epsilon is missing: say how much; as in budget.share"),
            (lambda: Budget.open("no.budget"), r"no such file; Budget.create makes one"),
        ):
            with pytest.raises(errors.TacitError, match=said) as caught:
                call()
            again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
            assert (str(again), again.fact) == (str(caught.value), caught.value.fact)


def modules_after(*words, folder):
    """What a command has imported when it is done."""
    code = (
        "import sys; from tacit.cli.exits import run; "
        f"code = run({list(words)!r}); "
        "print(code, *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    code, *modules = done.stderr.splitlines()[-1].split()
    assert code == "0"
    return set(modules)


PLAN = ["plan", "above", "--questions", "10", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (["--help"], set()),
        (["ask", "--help"], set()),
        (["plan", "sparse", "--help"], set()),
        (PLAN, {"numpy", "tacit.book", "tacit.analyst"}),
        (["budget", "show", "clinic.budget"], {"sqlite3", "tacit.book", "tacit.budget"}),
        (["schema", "visits.csv"], {"numpy", "duckdb", "tacit.tables"}),
        (
            [*ASK, *NEW],
            {"numpy", "duckdb", "sqlglot", "sqlite3", "cryptography"} | (OURS - {"tacit.audit"}),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_command_imports_what_it_does_not_use(clinic, folder, words, used):
    assert (modules_after(*words, folder=folder) & (HEAVY | OURS)) - used == set()


def every_error(root=errors.TacitError):
    return [root, *(each for kind in root.__subclasses__() for each in every_error(kind))]


KNOWN = {
    "TacitError": 2,
    "BadParameter": 2,
    "ConditionNotMet": 2,
    "Halted": 3,
    "InsecureCoins": 2,
    "QuestionRefused": 2,
    "SchemaMismatch": 2,
    "EngineFailed": 4,
    "Infeasible": 2,
    "NotWritten": 4,
    "CannotCopy": 2,
    "InternalError": 70,
    "BadConfiguration": 2,
    "NotAuthorised": 3,
    "RequestRefused": 2,
    "ServerUnavailable": 4,
    "BudgetError": 3,
    "BudgetExhausted": 3,
    "NotCovered": 3,
    "KeyReused": 3,
    "LedgerExists": 2,
    "LedgerMissing": 2,
    "LedgerBusy": 4,
    "LedgerUnwritable": 4,
    "LedgerDamaged": 1,
    "TableMismatch": 3,
    "StreamHeld": 3,
    "StreamEnded": 3,
    "StreamMismatch": 3,
    "Misuse": 2,
}


def test_every_error_has_its_exit_code(capsys):
    found = {}
    for kind in every_error():
        if kind.__module__.startswith("tacit."):
            arguments = ("epsilon", 0, "more") if kind is errors.BadParameter else ("what it says",)
            found[kind.__name__] = exits.ended_by(kind(*arguments))
            assert capsys.readouterr().err.startswith("tacit: ")
    assert found == KNOWN


def left_by_rich():
    """What rich makes of a pipe that nobody reads."""
    try:
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            sys.exit(1)
    except SystemExit as error:
        return error


def left_by_a_class():
    """What Python makes of Ctrl-C while it makes a class, as many imports do; 3.11 wraps it."""

    class Field:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt

    try:
        type("Made", (), {"field": Field()})
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RuntimeError(POISON), 70, "tacit: an error inside Tacit: RuntimeError."),
        (OSError(POISON), 70, "OSError"),
        (FileNotFoundError(2, "No such file", "a.png"), 4, "tacit: a.png: No such file"),
        (OSError(28, "No space left"), 4, "tacit: No space left"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (exits.Signalled(15), 143, ""),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (MemoryError(), 70, "MemoryError"),
        (SystemExit(1), 1, ""),
        (SystemExit(), 0, ""),
        (SystemExit(POISON), 1, ""),
        (left_by_rich(), 141, ""),
        (left_by_a_class(), 130, "interrupted"),
    ],
)
def test_whatever_a_command_raises_ends_in_a_code_and_quotes_nothing(
    tacit, monkeypatch, error, code, said
):
    def fail(file, /):
        raise error

    monkeypatch.setattr(import_module("tacit.cli.schema"), "schema", fail)
    ended = tacit("schema", "visits.csv")
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert POISON not in ended.err


def test_the_entry_point_exits_with_the_code(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tacit", "frobnicate"])
    with pytest.raises(SystemExit) as left:
        tacit.cli.main()
    assert left.value.code == 2


def test_the_root_of_the_errors_is_never_raised_itself():
    """As the page of errors says: whoever catches one kind must not miss another."""
    sources = Path(errors.__file__).parent.rglob("*.py")
    raised = re.compile(r"raise (errors\.)?TacitError\b")
    assert [file.name for file in sources if raised.search(file.read_text())] == []
