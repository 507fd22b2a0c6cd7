"""The only place where a symbol is created."""

from collections.abc import Iterable
from functools import cache
from typing import Literal

import sympy as sp

Kind = Literal["real", "positive", "complex"]

# The coordinates of a place, in order, and the time: the names formulas of fields may use.
COORDINATES = ("x", "y", "z")
TIME = "t"


@cache
def symbol(name: str, kind: Kind = "real") -> sp.Symbol:
    """The symbol of that name: the same object every time. Symbols of formulas are real."""
    return sp.Symbol(name, **({} if kind == "complex" else {kind: True}))


def symbols_of(names: Iterable[str]) -> dict[str, sp.Symbol]:
    """Names and their real symbols, as the parser takes them."""
    return {name: symbol(name) for name in names}
