"""The region of |R| ≤ 1 of an amplification factor R(z): its interval on the negative axis, its largest disc there."""

import math
from itertools import pairwise

import numpy as np
import sympy as sp

from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol

# Of a modulus of 1.
_ROUNDED = 1e-12


def disc_radius(factor: sp.Expr) -> float:
    """The largest r with |R| ≤ 1 on the disc |z + r| ≤ r, by bisection: such discs are nested; infinite beyond 1e4.

    R has no pole there, so that its largest modulus is on the circle.
    """
    z = next(iter(factor.free_symbols), None)
    if z is None:
        return math.inf if abs(factor) <= 1 else 0.0
    circle = np.exp(1j * np.linspace(0.0, np.pi, 721)) - 1

    def inside(r: float) -> bool:
        return bool((np.abs(evaluate(factor, {z: r * circle}, np)) <= 1 + _ROUNDED).all())

    low, high = 0.0, 1e4
    if inside(high):
        return math.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if inside(middle) else (low, middle)
    return low


def real_interval(factor: sp.Expr) -> float:
    """The largest β with |R(−x)| ≤ 1 on all of [0, β]: between the real roots of R = ±1, |R| − 1 keeps its sign."""
    symbols = factor.free_symbols
    if not symbols:
        return math.inf if abs(factor) <= 1 else 0.0
    z = next(iter(symbols))
    x = symbol("x", "positive")
    along = sp.cancel(factor.subs(z, -x))
    numerator, denominator = sp.fraction(along)
    roots: set[float] = set()
    for level in (1, -1):
        polynomial = sp.Poly(sp.expand(numerator - level * denominator), x)
        if not polynomial.is_zero:
            roots |= {float(root) for root in _real_roots(polynomial) if root > 0}
    edges = [0.0, *sorted(roots)]
    middles = [0.5 * (a + b) for a, b in pairwise(edges)] + [2 * edges[-1] + 1.0]
    for start, middle in zip(edges, middles, strict=True):
        if abs(along.subs(x, sp.Float(middle, 30))) > 1:
            return start
    return math.inf


def _real_roots(polynomial: sp.Poly) -> list[sp.Expr]:
    try:
        return list(polynomial.real_roots())
    except NotImplementedError as error:
        raise NumericalError(f"the real roots of {polynomial.as_expr()} are not found ({error})") from error


def limit_kind(limit: float | None) -> str:
    """`unknown` for None, `unlimited` for infinity, otherwise `finite`."""
    if limit is None:
        return "unknown"
    return "unlimited" if math.isinf(limit) else "finite"
