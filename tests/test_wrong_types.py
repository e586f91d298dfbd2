"""Whatever is put in for any public parameter: it works, or an error of ours names it."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from tests.public_calls import FOR_MECHANISMS, MADE_BY_US, Call, calls, parameters_of, public

import tacit
from tacit.errors import TacitError

WRONG = {
    "None": None,
    "an object": object(),
    "text": "x",
    "no text": "",
    "a surrogate": "\ud800",
    "NUL": "a\0b",
    "long text": "x" * 20_000,
    "-1": -1,
    "0": 0,
    "1.5": 1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "a complex number": 1j,
    "a Decimal": Decimal("sNaN"),
    "an empty list": [],
    "a list": [object()],
    "a deep list": [[["x"]]],
    "a tuple": (1, 2, 3),
    "a dict": {},
    "a dict of objects": {object(): object()},
    "a set": {"x"},
    "bytes": b"x",
    "True": True,
    "a function": lambda: None,
    "a class": int,
    "an array": np.array([1.5, 2.5]),
    "numpy's nan": np.float64("nan"),
    "a huge number": 10**30,
    "thousands of digits": 10**5000,
    "a tiny number": "1e-3999",
}
SIZES = ("a huge number", "thousands of digits", "a tiny number")
"""Numbers, and so of the right kind: another parameter may be named that no longer fits."""

TEXTS = {"question", "questions", "sql", "text", "where", "analyst", "name", "path", "source"}
TEXTS |= {"retry_key"}
"""Parameters for which a text, or a set of them, is of the right kind."""

RIGHT_KINDS = {
    ("binding", "a dict"),  # and so another stream's
    ("below", "True"),  # which a stream for counts refuses
    *(("parts", kind) for kind in ("a tuple", "bytes", "an array")),  # of numbers
}

EXEMPT = {
    # What a caller's own function does is the caller's own.
    *(
        (f"tacit.audit.{name}", "mechanism", kind)
        for name in ("sample", "support_test", "precision_test")
        for kind in ("a function", "a class")
    ),
    *((f"{kind}.ask_blocks", "keys", "a function") for kind in ("Stream", "WatchedModel")),
    *((f"tacit.audit.{name}", "pair", "None") for name in ("sample", "precision_test")),
    # So many steps are right, and never end.
    ("tacit.book.experiment.Experiment.run", "steps", "a huge number"),
    ("tacit.audit.composed", "steps", "a huge number"),
    # A mapping, but another one than the stream was opened with; and a number that does not fit.
    ("tacit.Budget.resume_stream", "binding", "a dict"),
    ("tacit.Budget.share", "delta", "1.5"),
    *(
        ("tacit.book.recipes.Recipe", f"{part}_epsilon", "1.5")
        for part in ("threshold", "question", "value")
    ),
}


@pytest.fixture(scope="module")
def every(tmp_path_factory) -> dict[str, Call]:
    return calls(tmp_path_factory.mktemp("public"))


@lru_cache
def walked() -> dict[str, list[str]]:
    """Every public callable that is walked, and its parameters."""
    found = {}
    for name, call in public():
        inside = any(name == path or name.startswith(f"{path}.") for path in FOR_MECHANISMS)
        if name not in MADE_BY_US and not inside:
            found[name] = parameters_of(call, method_of=object if "." in name else None)
    return found


def test_no_public_parameter_is_forgotten(every):
    assert set(every) == set(walked())
    for name, parameters in walked().items():
        missing = set(parameters) - set(every[name].arguments) - {"reading"}
        assert not missing, f"{name}: {missing}"


@pytest.mark.parametrize("name", walked())
def test_right_arguments_work(name, every, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    every[name]()


@pytest.mark.filterwarnings("ignore")  # a wrong array may warn before it is refused
@pytest.mark.parametrize("name", walked())
def test_wrong_ones_work_or_are_named(name, every, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, wrong = every[name], []
    for parameter in call.arguments:
        for kind, value in WRONG.items():
            if (name, parameter, kind) in EXEMPT:
                continue
            try:
                call(**{parameter: value})
            except TacitError as error:
                right_kind = kind in SIZES or (parameter, kind) in RIGHT_KINDS
                right_kind |= isinstance(value, str | set) and parameter in TEXTS
                if not right_kind and not _names(parameter, str(error)):
                    wrong.append(f"{parameter} = {kind}: not named: {error}")
            except Exception as error:
                wrong.append(f"{parameter} = {kind}: {type(error).__name__}: {error!s:.100}")
    assert not wrong, "\n".join(wrong)


def _names(parameter: str, message: str) -> bool:
    """Of several things, such as columns, one may be named; ε and δ may go by their signs."""
    sign = {"epsilon": "ε =", "delta": "δ ="}.get(parameter)
    if sign is not None and sign in message:
        return True
    return parameter.removesuffix("s").lower() in message.lower()


# What was reported -----------------------------------------------------------------------------


def test_a_number_in_quotes_is_the_number(every):
    opened = every["Table.sparse"](
        at_most="3", recipe=tacit.plan.sparse(questions=10, at_most=3, epsilon=1).best
    )
    assert opened.tops_left == 3
    with pytest.raises(tacit.errors.BadParameter, match="at_most = 'three'"):
        every["Table.sparse"](at_most="three")


@pytest.mark.parametrize("budget", ["x.budget", Path("x.budget"), None, 10])
def test_a_budget_is_no_path(every, budget):
    for name in ("count", "sum", "histogram", "sparse", "resume", "small_db", "above_threshold"):
        with pytest.raises(tacit.errors.BadParameter, match=r"budget .*tacit.Budget.open"):
            every[f"Table.{name}"](budget=budget)


@pytest.mark.parametrize("given", ["False", 0, 1, None, "no"])
def test_what_only_counts_as_true_is_no_flag(every, given):
    """`monotone="False"` would halve the noise."""
    for name, flag in (
        ("tacit.book.one_sided.sparse", "monotone"),
        ("tacit.book.one_sided.above_threshold", "monotone"),
        ("Table.sparse", "numeric"),
        ("tacit.audit.Law", "monotone"),
    ):
        with pytest.raises(tacit.errors.BadParameter, match=f"{flag} .*True or False"):
            every[name](**{flag: given})
