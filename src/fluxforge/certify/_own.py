"""A linear equation with constant parameters, as the coefficients of T_t = rate T + drift·∇T + ∇·K∇T."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from fluxforge.errors import NumericalError
from fluxforge.expression import COORDINATES, symbol
from fluxforge.pde import Equation, Rank

Derivatives = Mapping[tuple[int, ...], sp.Expr]
"""Coefficients by the orders of the derivatives: {(2, 0): c} is c T_xx."""


def wave_symbols(dimension: int) -> tuple[sp.Symbol, ...]:
    """A wave number per coordinate."""
    return tuple(symbol(f"k_{axis}") for axis in COORDINATES[:dimension])


def own_derivatives(
    equation: Equation, dimension: int, values: Mapping[sp.Symbol, sp.Expr] | None = None
) -> Derivatives:
    """The coefficients of a linear equation, its parameters constant: symbols, or their `values`.

    From its strong form of u = e^{q·x}: the source of it over u, less that of 0.
    """
    if not equation.linear:
        raise NumericalError(f"equation {equation.name!r} is not linear, and has no coefficients to compare with")
    axes = [symbol(axis) for axis in COORDINATES[:dimension]]
    slopes = wave_symbols(dimension)
    u = sp.exp(sp.Add(*(q * x for q, x in zip(slopes, axes, strict=True))))
    source = equation.strong(u, dimension) - equation.strong(sp.S.Zero, dimension)
    rate = sp.expand(sp.simplify(-source / (u * equation.capacity)).xreplace(dict(values or {})))
    return {powers: c for powers, c in sp.Poly(rate, *slopes).terms() if c != 0}


@dataclass(frozen=True)
class SmoothEquation:
    """T_t = rate T + drift·∇T + ∇·K∇T, as numbers."""

    rate: float
    drift: np.ndarray
    K: np.ndarray

    def __str__(self) -> str:
        parts = [f"{_text(self.rate)} T"] if self.rate else []
        parts += [f"{_text(v)} T_{axis}" for v, axis in zip(self.drift, COORDINATES, strict=False) if v]
        size = len(self.drift)
        for e in range(size):
            for f in range(e, size):
                value = self.K[e, f] * (1 if e == f else 2)
                parts += [f"{_text(value)} T_{COORDINATES[e]}{COORDINATES[f]}"] if _text(value) != "0" else []
        return "T_t = " + (" + ".join(parts) or "0").replace("+ -", "- ")

    def apart(self, other: "SmoothEquation") -> float:
        """The largest difference, each relative to the largest entry of the other one's rate, drift or K.

        Where the other has none of a kind, relative to the largest of all its kinds.
        """
        mine, theirs = ((np.atleast_1d(e.rate), e.drift, e.K) for e in (self, other))
        sizes = [float(np.abs(part).max(initial=0.0)) for part in theirs]
        off = [
            float(np.abs(one - wanted).max()) / (size or max(*sizes, 1e-300))
            for one, wanted, size in zip(mine, theirs, sizes, strict=True)
        ]
        return max(value if np.isfinite(value) else float("inf") for value in off)


def _text(value: float) -> str:
    """Four digits; what is round-off beside them is 0."""
    return f"{round(float(value), 10) + 0.0:.4g}"


def own_equation(equation: Equation, dimension: int, parameters: Mapping[str, Any] | None = None) -> SmoothEquation:
    """The numbers of a linear equation with constant parameters; those left out are its example values."""
    given = {**equation.example(dimension), **(parameters or {})}
    values: dict[sp.Symbol, sp.Expr] = {}
    for p in equation.parameters:
        names = (p.name,) if p.rank is Rank.SCALAR else p.component_names(dimension)
        values |= {symbol(name): sp.Float(float(v)) for name, v in zip(names, np.ravel(given[p.name]), strict=True)}
    found = {powers: float(c) for powers, c in own_derivatives(equation, dimension, values).items()}
    unit = np.eye(dimension, dtype=int)
    K = np.empty((dimension, dimension))
    for e in range(dimension):
        for f in range(dimension):
            share = 1.0 if e == f else 0.5
            K[e, f] = share * found.get(tuple((unit[e] + unit[f]).tolist()), 0.0)
    drift = np.array([found.get(tuple(unit[e].tolist()), 0.0) for e in range(dimension)])
    return SmoothEquation(found.get((0,) * dimension, 0.0), drift, K)
