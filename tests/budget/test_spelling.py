"""Most charges are spelt by hand; whoever checks a hash must find what JSON itself would say."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.budget.accountants import ACCOUNTANTS
from tacit.budget.chain import canonical, cost_as_json, digest, link
from tacit.privacy import Cost, Privacy

PREVIOUS = "e6" * 32
SIMPLE: dict[str, Any] = {
    "table": "visits",
    "analyst": None,
    "what": "count of smokers",
    "cost": {"epsilon": "1/10", "delta": "0", "parts": [[1, "1/10"]]},
    "charged": {"epsilon": "1/10", "delta": "0"},
}


def spelt_by_json(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


def check(fields, kind="charge") -> None:
    entry = link(41, PREVIOUS, kind, fields)
    body = entry.body
    assert entry.text == spelt_by_json(entry.text) == canonical(body)
    assert entry.hash == digest(entry.text)
    assert body == {**fields, "kind": kind, "number": 42, "previous": PREVIOUS, "at": body["at"]}


_texts = st.text(st.characters(), min_size=1)  # lone surrogates and control characters as well
_amounts = st.fractions(min_value=Fraction(1, 10**40), max_value=10**6)
_deltas = st.fractions(min_value=0, max_value=Fraction(1, 2))
_pieces = st.lists(st.tuples(st.integers(1, 10**20), _amounts), max_size=3).map(tuple)
_costs = st.builds(Cost, st.builds(Privacy, _amounts, _deltas), _pieces, _pieces)
_labels = st.sampled_from([{}, {"as_of": "June"}, {"key": "ab" * 32, "request": "cd" * 32}])


@given(st.none() | _texts, _texts, _texts, _costs, st.sampled_from(["sum", "zcdp"]), _labels)
def test_every_charge_is_spelt_as_json_spells_it(analyst, table, what, cost, name, label):
    if name == "zcdp" and not cost.pieces:
        return
    charged = ACCOUNTANTS[name].charge(cost).as_json()
    paid = {"cost": cost_as_json(cost), "charged": charged}
    check({"table": table, "analyst": analyst, "what": what, **paid, **label})


_odd = st.none() | st.booleans() | st.integers() | _texts | st.lists(st.integers(), max_size=2)


@given(st.sampled_from(sorted(SIMPLE)), _odd | st.dictionaries(_texts, _odd))
def test_so_is_what_no_charge_says(field, value):
    check({**SIMPLE, field: value})


@pytest.mark.parametrize("parts", [[[True, "1/10"]], [[1, 2]], [[1]], [["1", "2"]], "ab", [], {}])
def test_so_are_parts_that_no_cost_has(parts):
    check({**SIMPLE, "cost": {**SIMPLE["cost"], "parts": parts}})


@pytest.mark.parametrize("field", sorted(SIMPLE))
def test_so_is_a_charge_that_lacks_something_or_says_more(field):
    fewer = {key: value for key, value in SIMPLE.items() if key != field}
    check(fewer)
    check({**SIMPLE, "more": field})


def test_so_is_an_entry_of_another_kind():
    check(SIMPLE, kind="open")
    check({"table": "visits"}, kind="cover")
