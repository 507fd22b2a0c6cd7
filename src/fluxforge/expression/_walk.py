"""Trees without recursion: a formula may be deep, Python's stack is not ours to fill."""

from collections.abc import Callable, Container, Iterable, Iterator

import sympy as sp


def arguments(node: sp.Basic) -> Iterable[sp.Basic]:
    """The children of a node, as SymPy has them."""
    children: Iterable[sp.Basic] = node.args
    return children


def leaves_first(
    root: sp.Basic, done: Container[sp.Basic], needs: Callable[[sp.Basic], Iterable[sp.Basic]] = arguments
) -> Iterator[sp.Basic]:
    """Every node not `done`, after the nodes it needs; the caller adds each to `done` before asking for the next."""
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
