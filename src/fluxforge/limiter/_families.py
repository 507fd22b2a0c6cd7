"""Closed forms of few constants that a trained φ is compared with.

All of them lie between 0 and the upper bound min(2r/c, 2/(1 − c)) by their outermost minimum and maximum, follow the
bound outside an interval r₀(c) < r < r₁(c), and pass through (1, 1) inside. Where the interval ends, how φ runs inside
it and how it leaves it is open: the families differ in that, and the constants are fitted.
"""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax import Array

from fluxforge.expression import Below, Select, evaluate, symbol
from fluxforge.limiter._rows import Phi
from fluxforge.scheme.fluxes import larger, smaller, substitute
from fluxforge.scheme.limiters import C, R

# Constants are penalised where a quantity that has to be positive is below this, at these Courant numbers.
_MARGIN = 0.02
_COURANT = np.linspace(0.0, 1.0, 5)


@dataclass(frozen=True)
class Family:
    """φ as a formula of r, c and constants k0, k1, …

    `positive`: formulas of c that have to be positive, such as r₁ − 1. `scales`: the size of each constant, about which
    a search begins. `continuous`: φ is a Lipschitz-continuous function of r.
    """

    name: str
    summary: str
    phi: sp.Expr
    positive: tuple[sp.Expr, ...]
    scales: tuple[float, ...]
    continuous: bool

    @cached_property
    def constants(self) -> tuple[sp.Symbol, ...]:
        """The symbols of the constants."""
        return _constants(len(self.scales))

    def of(self, constants: Array) -> Phi:
        """φ with these constants, for JAX."""
        values = {name: constants[k] for k, name in enumerate(self.constants)}
        return lambda r, c: evaluate(self.phi, {**values, R: r, C: c}, jnp)

    def penalty(self, constants: Array) -> Array:
        """0 for constants that are allowed, and growing beyond."""
        values = {name: constants[k] for k, name in enumerate(self.constants)}
        gaps = [evaluate(each, {**values, C: _COURANT}, jnp) + 0 * _COURANT for each in self.positive]
        return 10 * jnp.maximum(0.0, _MARGIN - jnp.stack(gaps)).sum()

    def formula(self, constants: tuple[float, ...]) -> sp.Expr:
        """φ as a formula of r and c."""
        values = {name: sp.Float(value) for name, value in zip(self.constants, constants, strict=True)}
        return substitute(self.phi, values)


def _constants(count: int) -> tuple[sp.Symbol, ...]:
    return tuple(symbol(f"k{k}") for k in range(count))


_K = _constants(12)
_LOW = _K[0] + _K[1] * C + _K[2] * C**2
_HIGH = _K[3] + _K[4] * C + _K[5] * C**2
_LINE = 1 + (_K[6] + _K[7] * C) * (R - 1)
_CAP = 2 / (1 - C)


def _within(inner: sp.Expr) -> sp.Expr:
    """A formula between 0 and the upper bound."""
    return larger(sp.S.Zero, smaller(2 * R / C, _CAP, inner))


def _jump(inside: sp.Expr) -> sp.Expr:
    return _within(Select(Below(_LOW, R) * Below(R, _HIGH), inside, _CAP))


_ORDERED = (_LOW, 1 - _LOW, _HIGH - 1)
# r₀, r₁ and the slope, as polynomials of c.
_SCALES = (0.5, 0.5, 0.5, 2.0, 1.0, 1.0, 0.5, 0.5)

FAMILIES: tuple[Family, ...] = (
    Family("jump", "a straight line that jumps to the bound", _jump(_LINE), _ORDERED, _SCALES, continuous=False),
    Family(
        "bend",
        "a parabola that jumps to the bound",
        _jump(_LINE + (_K[8] + _K[9] * C) * (R - 1) ** 2),
        _ORDERED,
        (*_SCALES, 0.2, 0.2),
        continuous=False,
    ),
    Family(
        "ramp",
        "a straight line with steep ramps up to the bound",
        _within(_LINE + larger(sp.S.Zero, _K[8] / C * (_LOW - R), _K[9] / (1 - C) * (R - _HIGH))),
        (*_ORDERED, _K[8], _K[9], 60 - _K[8], 60 - _K[9]),
        (*_SCALES, 20.0, 20.0),
        continuous=True,
    ),
    Family(
        "slope",
        "a straight line with ramps of one slope for all c",
        _within(_LINE + larger(sp.S.Zero, _K[8] * (_LOW - R), _K[9] * (R - _HIGH))),
        (*_ORDERED, _K[8], _K[9], 60 - _K[8], 60 - _K[9]),
        (*_SCALES, 20.0, 20.0),
        continuous=True,
    ),
)
"""The families that are compared."""
