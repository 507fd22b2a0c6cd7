"""An Operon tree → SymPy, node by node. No text in between."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy as sp

OPERATIONS: Mapping[str, Callable[..., sp.Expr]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Square": lambda a: a**2,
    "Sqrt": sp.sqrt,
    "Exp": sp.exp,
    "Log": sp.log,
    "Sin": sp.sin,
    "Cos": sp.cos,
    "Abs": sp.Abs,
}


def to_sympy(nodes: Sequence[Any], variables: Mapping[int, sp.Expr]) -> sp.Expr:
    """The expression of a tree in postfix order, `variables` being what stands for each variable's hash.

    A variable carries its coefficient. Of two operands the one written last is the first: b a − is a − b.
    """
    stack: list[sp.Expr] = []
    for node in nodes:
        if node.IsVariable:
            stack.append(sp.Float(float(node.Value)) * variables[node.HashValue])
        elif node.IsConstant:
            stack.append(sp.Float(float(node.Value)))
        else:
            operands = [stack.pop() for _ in range(node.Arity)]
            stack.append(OPERATIONS[node.Type.name](*operands))
    return stack.pop()
