"""The shape of the code: short functions, few arguments in a row, one meaning a type name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import tacit

SOURCE = Path(tacit.__file__).parent
MOST_LINES = 60
MOST_IN_A_ROW = 6  # positional values of a call


class Reader(ast.NodeVisitor):
    """Every function and class of a module by its dotted name, and every call inside them."""

    def __init__(self, module: str) -> None:
        self.inside = [module]
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: list[str] = []
        self.calls: list[tuple[str, ast.Call]] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if len(self.inside) == 1:
            self.classes.append(node.name)
        self._enter(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions[".".join([*self.inside, node.name])] = node
        self._enter(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.calls.append((".".join(self.inside), node))
        self.generic_visit(node)

    def _enter(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self.inside.append(node.name)
        self.generic_visit(node)
        self.inside.pop()


def read(source: str, module: str) -> Reader:
    reader = Reader(module)
    reader.visit(ast.parse(source))
    return reader


@pytest.fixture(scope="module")
def package() -> dict[str, Reader]:
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        module = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[module] = read(file.read_text(encoding="utf-8"), module)
    return found


def length(name: str, node: ast.FunctionDef) -> int:
    """Lines of a function; a command's docstring is its help, and does not count."""
    lines = (node.end_lineno or 0) - node.lineno + 1
    if name.startswith("cli.") and ast.get_docstring(node):
        lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return lines


def too_long(reader: Reader) -> set[str]:
    return {name for name, node in reader.functions.items() if length(name, node) > MOST_LINES}


def untyped(reader: Reader) -> set[str]:
    """Public functions that hide what they take behind ``**options: Any``."""
    return {
        name
        for name, node in reader.functions.items()
        if not any(part.startswith("_") for part in name.split("."))
        and node.args.kwarg is not None
        and ast.unparse(node.args.kwarg.annotation or ast.Name("Any")) == "Any"
    }


def threaded(reader: Reader) -> set[str]:
    """Where a call has more positional values than anybody can follow.

    A ``*`` counts as one.  The contract suites list cases in a row, which is no threading.
    """
    return {
        where
        for where, call in reader.calls
        if len(call.args) > MOST_IN_A_ROW and not where.startswith("testing.")
    }


@pytest.mark.parametrize("rule", [too_long, untyped, threaded], ids=lambda rule: rule.__name__)
def test_every_function_keeps_the_rules(package, rule):
    assert set().union(*map(rule, package.values())) == set()


def test_one_type_name_has_one_meaning(package):
    homes = defaultdict(set)
    for module, reader in package.items():
        for name in reader.classes:
            homes[name].add(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_the_rules_notice_what_breaks_them():
    lines = "\n".join(["    x = 1"] * 60)
    reader = read(
        f"def long():\n{lines}\n"
        "def short(**options: Any):\n    f(1, 2, 3, 4, 5, 6, 7)\n"
        "class C:\n    def m(self, **options):\n        f(1, 2, 3, 4, 5, 6)\n"
        "    def n(self, **parameters: object): ...\n    def _p(self, **options: Any): ...\n",
        "m",
    )
    assert too_long(reader) == {"m.long"}
    assert untyped(reader) == {"m.short", "m.C.m"}
    assert threaded(reader) == {"m.short"}
    assert reader.classes == ["C"]
