"""Public names that are loaded on first use, so that importing a package is quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    A name's home is the module that has it, ``module:attribute`` if it is called otherwise there,
    or, for a module, that module itself.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = homes[name].partition(":")
        value: Any = import_module(module)
        if attribute or module.rpartition(".")[2] != name:
            value = getattr(value, attribute or name)
        setattr(sys.modules[package], name, value)
        return value

    return load
