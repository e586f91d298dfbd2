"""The key under which a recorded answer is found again: a stored form, which never changes.

A key is a hash of the question, its own threshold and the table's label.  What is hashed is written
out here with tags of its own, and no name of a class or field in this package is part of it:
renaming one must not make a stream draw an answer again that is already on record.

There are two forms.  Answers are recorded under the newer one, which begins with `KEY_MARK`;
answers that version 0.1 recorded are still found under the older one.  Neither may change: a third
form would get its own mark, and both of these would still be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import islice, product
from json.encoder import encode_basestring_ascii

from tacit.tables.language.keys import Batch
from tacit.tables.language.tree import (
    TRUE,
    Among,
    And,
    Computed,
    Constant,
    Having,
    IsNull,
    IsTrue,
    Like,
    Members,
    Not,
    Or,
    People,
    PersonIn,
    Predicate,
    Question,
    Range,
    Rows,
    SameOrder,
    Tally,
    Term,
    conjuncts,
)
from tacit.tables.schema.codes import Code

KEY_MARK = "2:"
"""The keys of the second form begin with this; those of the first are only a hash."""


KeyForm = Callable[[Question, Fraction | None, str | None], str]
"""Makes a key from a question, its own threshold and the table's label."""

_quoted = encode_basestring_ascii
"""Text as JSON in ASCII, which does not depend on Python's tables of Unicode, as ``repr`` in the
first form did: they grow with each version of Python."""


def question_key(question: Question, threshold: Fraction | None, as_of: str | None) -> str:
    """The key, which is equal for equal questions with the same threshold and label, for ever."""
    return _hashed(canonical(question), _ending(threshold, as_of))


def keys_of_cells(
    form: KeyForm,
    batch: Batch,
    places: range,
    threshold: Fraction | None,
    as_of: str | None,
) -> Iterator[str]:
    """The keys of the questions at some places in a row of a GROUP BY, in this form.

    There may be a million, so what they share is written only once.
    """
    if form is not question_key:
        return (form(batch[place], threshold, as_of) for place in places)
    terms, ending = batch.like.terms, _ending(threshold, as_of)
    shared = [[_predicate(part) for part in conjuncts(term.where)] for term in terms]
    keys = [[_predicate(key.holds(code)) for code in key.values] for key in batch.keys]
    # No JSON has the character that stands here for what differs.
    first, *others = _canonical(batch.like, ["\0"] * len(terms)).split("\0")
    rest = list(zip(shared, others, strict=True))
    chosen = islice(product(*keys), places.start, places.stop)
    return (
        _hashed(first + "".join([_all_hold([*own, *cell]) + after for own, after in rest]), ending)
        for cell in chosen
    )


def _ending(threshold: Fraction | None, as_of: str | None) -> str:
    own = "null" if threshold is None else _quoted(str(threshold))
    label = "null" if as_of is None else _quoted(as_of)
    return f",{own},{label}]"


def _hashed(question: str, ending: str) -> str:
    return KEY_MARK + sha256(f"[{question}{ending}".encode()).hexdigest()


def forms_of(keys: Iterable[str]) -> tuple[KeyForm, ...]:
    """The newer form, and the older one if some of these keys have it: the forms to look up in."""
    older = not all(key.startswith(KEY_MARK) for key in keys)
    return (question_key, question_key_0_1) if older else (question_key,)


def canonical(question: Question) -> str:
    """A question as JSON, the same for equal questions.

    It has the grid, then each term with its weight in steps of that grid.  What is promised
    follows from these, and is left out.

    >>> from tacit.tables.language.tree import Range, weighted
    >>> one = Fraction(1)
    >>> print(canonical(weighted([(one, People(Range("age", 60, None)), one)])))
    ["1",[1,["people",["range","age",60,null]]]]
    """
    return _canonical(question, [_predicate(term.where) for term in question.terms])


def _canonical(question: Question, wheres: Sequence[str]) -> str:
    """The same with these in the place of its terms' predicates."""
    weighted = zip(question.promise.steps, question.terms, wheres, strict=True)
    terms = ",".join([f"[{step},{_term(term, where)}]" for step, term, where in weighted])
    return f'["{question.promise.grid!s}",{terms}]'


def _term(term: Term, where: str) -> str:
    if isinstance(term, People):
        return f'["people",{where}]'
    if isinstance(term, Rows):
        return f'["rows",{where},{term.most}]'
    if isinstance(term, Having):
        tallies = ",".join(_tally(name, tally) for name, tally in term.tallies)
        return f'["having",{where},[{tallies}],{_predicate(term.condition)}]'
    return f'["total",{_quoted(term.column)},{where},{term.low},{term.high}]'


def _tally(name: str, tally: Tally) -> str:
    column = "null" if tally.column is None else _quoted(tally.column)
    return f"[{_quoted(name)},{_quoted(tally.function)},{column},{_predicate(tally.where)}]"


def _predicate(tree: Predicate) -> str:
    match tree:
        case Range(column, low, high):
            return f'["range",{_quoted(column)},{_code(low)},{_code(high)}]'
        case And(parts):
            return _joined("and", map(_predicate, parts))
        case Or(parts):
            return _joined("or", map(_predicate, parts))
        case Not(part):
            return f'["not",{_predicate(part)}]'
        case Among(column, values):
            return f'["among",{_quoted(column)},[{",".join(map(_code, values))}]]'
        case Like(column, pattern):
            return f'["like",{_quoted(column)},{_quoted(pattern)}]'
        case Computed(function, atom):
            return f'["of",{_quoted(function)},{_predicate(atom)}]'
        case IsNull(column):
            return f'["is null",{_quoted(column)}]'
        case IsTrue(part):
            return f'["is true",{_predicate(part)}]'
        case SameOrder(left, right, equal):
            tag = "equal" if equal else "at most"
            return f'["{tag}",{_quoted(left)},{_quoted(right)}]'
        case Constant(value):
            return f'["constant",{json.dumps(value)}]'
        case PersonIn(_, table, term, as_of):  # the person column follows from the table
            label = "null" if as_of is None else _quoted(as_of)
            of_them = _term(term, _predicate(term.where))
            return f'["person in",{_quoted(table)},{label},{of_them}]'
        case Members():
            raise AssertionError("who they are is seen by engines only")


def _joined(tag: str, parts: Iterable[str]) -> str:
    """Parts whose order and repetition do not matter."""
    return f'["{tag}",{",".join(sorted(set(parts)))}]'


def _all_hold(parts: Sequence[str]) -> str:
    """As ``question.all_hold`` joins the parts themselves."""
    if len(parts) > 1:
        return _joined("and", parts)
    return parts[0] if parts else _predicate(TRUE)


def _code(code: Code | None) -> str:
    if code is None:
        return "null"
    return _quoted(code) if isinstance(code, str) else str(code)


# The first form, of version 0.1.  Its words were once the names of classes, and must stay as they
# were.


def question_key_0_1(question: Question, threshold: Fraction | None, as_of: str | None) -> str:
    """The key under which version 0.1 recorded an answer.

    A label is written as JSON after a second space, so that the three parts stay separate.  Without
    a label the key is what it was before there were labels.
    """
    label = "" if as_of is None else f" {json.dumps(as_of)}"
    text = f"{fingerprint_0_1(question)} {threshold}{label}"
    return sha256(text.encode()).hexdigest()


def fingerprint_0_1(question: Question) -> str:
    """A hash of the question by itself, as version 0.1 made it."""
    terms, promise = tuple(map(_term_0_1, question.terms)), question.promise
    written = (
        _tuple_0_1(tuple(map(str, promise.steps))),
        _fraction_0_1(promise.grid),
        _fraction_0_1(promise.sensitivity),
        str(promise.direction),
    )
    text = f"Question({_tuple_0_1(terms)}, Promise{_tuple_0_1(written)})"
    return sha256(text.encode()).hexdigest()


def _term_0_1(term: Term) -> str:
    where = _predicate_0_1(term.where)
    if isinstance(term, People):
        return f"People({where})"
    if isinstance(term, Rows):
        return f"Rows({where}, {term.most})"
    if isinstance(term, Having):  # 0.1 had none, so nothing is found under this
        return f"Having{_term(term, _predicate(term.where))}"
    return f"Total({term.column!r}, {where}, {term.low}, {term.high})"


def _predicate_0_1(tree: Predicate) -> str:
    match tree:
        case Range(column, low, high):
            return f"Range({column!r}, {low!r}, {high!r})"
        case And(parts):
            return f"And{_tuple_0_1(sorted(set(map(_predicate_0_1, parts))))}"
        case Or(parts):
            return f"Or{_tuple_0_1(sorted(set(map(_predicate_0_1, parts))))}"
        case Not(part):
            return f"Not({_predicate_0_1(part)})"
        case Among(column, values):
            return f"Among({column!r}, {_tuple_0_1(list(map(repr, values)))})"
        case Like(column, pattern):
            return f"Like({column!r}, {pattern!r})"
        case Computed(function, atom):  # 0.1 had none, so nothing is found under this
            return f"Computed({function!r}, {_predicate_0_1(atom)})"
        case IsNull(column):
            return f"IsNull({column!r})"
        case IsTrue(part):
            return f"IsTrue({_predicate_0_1(part)})"
        case SameOrder(left, right, equal):
            return f"SameOrder({left!r}, {right!r}, {equal})"
        case Constant(value):
            return f"Constant({value})"
        case PersonIn() | Members():  # 0.1 had none, so nothing is found under this
            return f"PersonIn({_predicate(tree)})"


def _tuple_0_1(parts: list[str] | tuple[str, ...]) -> str:
    return f"({', '.join(parts)})"


def _fraction_0_1(number: Fraction) -> str:
    return f"Fraction({number.numerator}, {number.denominator})"
