"""Creation of symbols, their names in messages, and traversal of expression trees without recursion."""

import difflib
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache
from typing import Literal

import sympy as sp

Kind = Literal["real", "positive", "complex"]

# The coordinates of a place, in order, and the time: the names formulas of fields may use.
COORDINATES = ("x", "y", "z")
TIME = "t"
# Names that a message lists at most.
_LISTED = 12


@cache
def symbol(name: str, kind: Kind = "real") -> sp.Symbol:
    """The symbol of that name: the same object every time. Symbols of formulas are real."""
    return sp.Symbol(name, **({} if kind == "complex" else {kind: True}))


def symbols_of(names: Iterable[str]) -> dict[str, sp.Symbol]:
    """Names and their real symbols, as the parser takes them."""
    return {name: symbol(name) for name in names}


def visible(text: str) -> str:
    r"""The text on one line: whatever does not print is escaped (`\n`, `\x00`, `\u202e`)."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def known_names(wanted: str, names: Iterable[str]) -> str:
    """`known: …`, the names closest to the wanted one first."""
    ordered = sorted(names)
    close = difflib.get_close_matches(wanted[:40], ordered, n=3)
    listed = [*close, *(name for name in ordered if name not in close)]
    return f"known: {', '.join(listed[:_LISTED]) or 'none'}" + (", …" if len(listed) > _LISTED else "")


def arguments(node: sp.Basic) -> Iterable[sp.Basic]:
    """The children of a node, as SymPy has them."""
    children: Iterable[sp.Basic] = node.args
    return children


def leaves_first(
    root: sp.Basic, done: Container[sp.Basic], needs: Callable[[sp.Basic], Iterable[sp.Basic]] = arguments
) -> Iterator[sp.Basic]:
    """Yield every node not in `done` after the nodes it needs; the caller adds each to `done` before the next."""
    stack = [root]
    while stack:
        node = stack[-1]
        waiting = [] if node in done else [child for child in needs(node) if child not in done]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if node not in done:
            yield node
