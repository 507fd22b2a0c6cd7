"""Least-squares gradients, and the part of a flux that they correct on non-orthogonal meshes, in any dimension.

The gradients solve the weighted system  Σ d dᵀ/δ² ∇T = Σ d (T_N − T_P)/δ², boundary faces included. The correction is
½ (∇T_P + ∇T_N)·(n − d/(d·n)): no rotation changes it, and it vanishes where d is along n.
"""

from functools import cache

import sympy as sp

from fluxforge.expression import COORDINATES, parse, symbol
from fluxforge.scheme._scheme import Message, Output, Stage
from fluxforge.scheme._symbols import Ghost, Hop, message_symbols, output_symbols

CORRECTION = "correction"
"""What networks call ½ (∇T_P + ∇T_N)·(n − d/(d·n)) among their invariants."""


def gradient_names(dimension: int) -> tuple[str, ...]:
    """`g_x`, `g_y` (and `g_z`): the outputs of `gradient_stage`."""
    return tuple(f"g_{axis}" for axis in COORDINATES[:dimension])


@cache
def gradient_stage(dimension: int) -> Stage:
    """The least-squares gradient of T in every cell; a ghost shows its owner's."""
    axes = COORDINATES[:dimension]
    pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i:]]
    products = {f"m_{a}{b}": f"d_{a}*d_{b}/delta**2" for a, b in pairs}
    rises = {f"r_{axis}": f"d_{axis}/delta**2*(T_N - T_P)" for axis in axes}
    known = message_symbols(Hop.EDGE, ())
    messages = {name: Message(parse(text, known)) for name, text in (products | rises).items()}
    M = sp.Matrix(dimension, dimension, lambda i, j: symbol(f"m_{''.join(sorted((axes[i], axes[j])))}"))
    solved = M.adjugate() * sp.Matrix([symbol(f"r_{axis}") for axis in axes])
    outputs = {
        name: Output(top / M.det(), Ghost.OWNER) for name, top in zip(gradient_names(dimension), solved, strict=True)
    }
    assert all(own.expression.free_symbols <= {*output_symbols(messages, ()).values()} for own in outputs.values())
    return Stage(messages, outputs)


def correction_text(dimension: int, normal: str = "d_n") -> str:
    """The correction as a formula of a message; `normal` is what d·n is called."""
    return " + ".join(f"(g_{axis}_P + g_{axis}_N)/2*(n_{axis} - d_{axis}/{normal})" for axis in COORDINATES[:dimension])
