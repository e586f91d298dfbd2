"""Texts that differ only in their literals are parsed once.

A text is cut into its literals and the rest, its shape.  sqlglot's tree of a known shape is used
again, with the new literals in their places, and is read as any other tree.  So what comes out is
what parsing would have given: what a question means and whether it is allowed is decided in one
place.  Whatever is not as simple as that is parsed: texts with parameters, and those with a literal
that does not simply stand in a comparison (``left(town, 3)``).

Places in a tree are those of the text that was parsed.  They are needed to refuse a question, and
what would be refused is parsed for that.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from tacit.errors import TacitError
from tacit.tables.language.parsing import parsed, readable
from tacit.tables.language.sql import Parsed, TextReader, read_or_refused
from tacit.tables.schema.schema import Schema

_MOST_SHAPES = 128
_LONGEST_SHAPE = 1000  # whose tree takes some 100 KB

# Quoted names stay in the shape.  A number or text that touches anything but these signs stays
# there, too: it may be part of something else, such as 1e5, 0x1F or x'1F'.
_BEFORE, _AFTER = r"(?<![^ \t\r\n=<>(,*+-])", r"(?![^ \t\r\n=<>),*+-])"
_LITERAL = re.compile(
    rf""" "[^"]*" | {_BEFORE}(?: '(?:[^']|'')*' | [0-9]+(?:\.[0-9]+)? ){_AFTER} """, re.VERBOSE
)
_NUMBER, _TEXT = "\0n", "\0t"  # a text that is read has no NUL

# Other quotes, comments and templates, in which literals would be cut out at the wrong places;
# parameters; intervals, whose texts sqlglot takes apart.
_OTHERWISE = re.compile(r"['`\\${}#?:@]|--|/\*|\binterval\b", re.IGNORECASE)

# What sqlglot makes of these does not depend on the literals below them.
_OPERATORS = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.Between, exp.In, exp.Like, exp.ILike),
    *(exp.Neg, exp.Add, exp.Sub, exp.Mul),
)
_AROUND = {*_OPERATORS, exp.And, exp.Or, exp.Not, exp.Paren, exp.Where, exp.Select}

Value = TypeVar("Value")

Tree = tuple[exp.Expr, list[exp.Literal]]
"""What a text was parsed to, and its literals, in the order of the text."""


def cut_out_literals(text: str) -> tuple[str, list[str]] | None:
    r"""A text's shape and its literals, or None if that is not certain.

    >>> cut_out_literals("age >= 60 and town = 'Ghent'")
    ('age >= \x00n and town = \x00t', ['60', 'Ghent'])
    """
    literals: list[str] = []

    def taken(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == '"':
            return found
        if found[0] == "'":
            literals.append(found[1:-1].replace("''", "'"))
            return _TEXT
        literals.append(found)
        return _NUMBER

    shape = _LITERAL.sub(taken, text)
    if not literals or len(shape) > _LONGEST_SHAPE or _OTHERWISE.search(shape):
        return None
    return shape, literals


class Shapes:
    """Reads the texts of one table, and remembers the shapes that come more than once."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._trees: OrderedDict[str, Tree] = OrderedDict()

    def read(self, text: str) -> Parsed:
        """What `sql.read` reads, or refuses."""
        readable(text)
        found = cut_out_literals(text)
        if found is None:
            return self._parsed(text)
        shape, literals = found
        # Taken out while its literals are replaced: another thread meanwhile parses.
        tree = self._trees.pop(shape, None)
        if tree is None:
            return self._parsed(text, self._learn(shape, literals))
        root, places = tree
        for place, literal in zip(places, literals, strict=True):
            place.args["this"] = literal
        reader = TextReader(text, self._schema, None, None)
        try:
            return read_or_refused(text, lambda: reader.read_tree(root))
        except TacitError:
            pass  # parsed, so that the right place is shown
        finally:
            self._trees[shape] = tree
        return self._parsed(text)

    def _parsed(self, text: str, learn: Callable[[exp.Expr], None] | None = None) -> Parsed:
        reader = TextReader(text, self._schema, None, None)

        def reading() -> Parsed:
            root = parsed(text)
            found = reader.read_tree(root)
            if learn is not None:
                learn(root)
            return found

        return read_or_refused(text, reading)

    def _learn(self, shape: str, literals: list[str]) -> Callable[[exp.Expr], None] | None:
        """Keeps the tree of a shape that was seen before, if its literals stand in comparisons."""
        if shape not in self._seen:
            _keep(self._seen, shape, None)
            return None

        def learn(root: exp.Expr) -> None:
            places = _compared_literals(root)
            if places is not None and [place.this for place in places] == literals:
                _keep(self._trees, shape, (root, places))

        return learn


def _compared_literals(root: exp.Expr) -> list[exp.Literal] | None:
    """All literals of a tree in the order of the text, if each stands in a comparison."""
    found: list[tuple[int, exp.Literal]] = []
    for node in root.walk():
        if isinstance(node, exp.Literal):
            start = node.meta.get("start")
            if start is None or not _is_compared(node):
                return None
            found.append((start, node))
    return [node for _, node in sorted(found, key=lambda pair: pair[0])]


def _is_compared(literal: exp.Literal) -> bool:
    above = literal.parent
    if type(above) not in _OPERATORS:
        return False
    while above is not None:
        if type(above) not in _AROUND:
            return False
        above = above.parent
    return True


def _keep(kept: OrderedDict[str, Value], shape: str, value: Value) -> None:
    while len(kept) >= _MOST_SHAPES:
        kept.popitem(last=False)
    kept[shape] = value
