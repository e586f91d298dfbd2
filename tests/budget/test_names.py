"""Names look like what they are: no line breaks, no marks that turn the direction of writing."""

from __future__ import annotations

import pytest
from tests.budget.common import BINDING, open_stream

from tacit.budget import Budget, RetryKey
from tacit.errors import BadParameter
from tacit.privacy import Cost

ODD = ["flu\nforged", "flu\u202exob", "a\tb", "a\x1b[31mb", "a\u200bb", "a\u2028b", "a\u00a0b"]
FINE = ["flu", "grippe d’été", "インフルエンザ", "flu 2026 / Gent (2)", "💉"]


def charge(budget, **more):
    return budget.charge(Cost.pure("1/100"), what="a count", **{"table": "visits"} | more)


MAKES = {
    "stream": lambda budget, name: open_stream(budget, name),
    "share": lambda budget, name: budget.share(name, epsilon="1/10"),
    "request": lambda budget, name: budget.requests.ask(name, epsilon="1/10", reason="more"),
    "table": lambda budget, name: budget.cover(name),
    "retry key": lambda budget, name: charge(budget, retry=RetryKey(name, None, "count", 1)),
    "key of a stream": lambda budget, name: open_stream(
        budget, retry=RetryKey(name, None, "open", 1)
    ),
    "label": lambda budget, name: charge(budget, as_of=name),
    "covered": lambda _, name: Budget.in_memory(epsilon=1, covers=[name]),
}


@pytest.mark.parametrize("made", MAKES.values(), ids=MAKES)
def test_a_new_name_is_printable(budget, made):
    for name in ODD:
        before = budget.head
        with pytest.raises(BadParameter, match="printable") as refused:
            made(budget, name)
        assert str(refused.value).isprintable()
        assert budget.head == before
    for name in FINE[:1]:
        made(budget, name)


def test_names_of_every_script_are_fine(budget):
    for name in FINE:
        open_stream(budget, name, cost=Cost.pure("1/100")).suspend()
        budget.share(name, epsilon="1/100")
        budget.cover(name)
    budget.verify()


@pytest.mark.parametrize("odd", ODD[:2])
def test_names_that_are_on_record_go_on(budget, odd, monkeypatch):
    """Earlier versions took any text."""
    key = RetryKey(odd, None, "count", 1)
    with monkeypatch.context() as patched:
        for module in ("spending", "budget", "answers"):
            patched.setattr(f"tacit.budget.{module}.checked_name", lambda name, _: name)
        open_stream(budget, odd).suspend()
        budget.share(odd, epsilon="1/10")
        budget.cover(odd)
        paid = charge(budget, retry=key)
    budget.resume_stream(odd, binding=BINDING, after_loss=bytes).close()
    budget.share(odd, epsilon="1/5")
    budget.requests.ask(odd, epsilon="1/10", reason="more")
    charge(budget, analyst=odd, table=odd)
    assert charge(budget, retry=key).number == paid.number
    budget.verify()
