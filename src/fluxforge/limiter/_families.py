"""Closed forms of few constants that a trained φ is compared with.

All of them lie between 0 and the upper bound min(2r/c, 2/(1 − c)) by their outermost minimum and maximum, are equal to
the bound outside an interval r₀ < r < r₁, and have φ = 1 where r and q are 1. The families differ in the ends of the
interval, in φ inside it, and in how φ changes to the bound; their constants are fitted.
"""

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
import sympy as sp
from jax import Array

from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import Below, Select, symbol
from fluxforge.limiter._rows import Phi
from fluxforge.scheme.fluxes import maximum, minimum, substitute
from fluxforge.scheme.limiters import C, Q, R

# Constants are penalised if a quantity that has to be positive is below this margin at one of these Courant numbers.
_MARGIN = 0.02
_COURANT = np.linspace(0.0, 1.0, 5)
# The steepest ramp.
_LARGEST_SLOPE = 60
# More digits after the point than any constant has.
_DIGITS = 9


@dataclass(frozen=True)
class Family:
    """φ as a formula of r, q, c and constants k0, k1, …

    k0 to k7 are r₀, r₁ and the slope of φ in r at 1, as polynomials of c; with `downwind`, k8 and k9 are its slope in
    q at 1. These are read from a network; `first` are the initial values of the others in a search. `scales`: the size
    of each constant. `positive`: formulas of c that have to be positive, such as r₁ − 1. `continuous`: φ is a
    Lipschitz-continuous function of r and q.
    """

    name: str
    summary: str
    phi: sp.Expr
    positive: tuple[sp.Expr, ...]
    scales: tuple[float, ...]
    continuous: bool
    first: tuple[float, ...] = ()
    downwind: bool = False

    @cached_property
    def constants(self) -> tuple[sp.Symbol, ...]:
        """The symbols of the constants."""
        return _constants(len(self.scales))

    def of(self, constants: Array) -> Phi:
        """φ with these constants, for JAX."""
        values = {name: constants[k] for k, name in enumerate(self.constants)}
        return lambda r, q, c: evaluate(self.phi, {**values, R: r, Q: q, C: c}, jnp)

    def penalty(self, constants: Array) -> Array:
        """0 if every formula of `positive` exceeds the margin; otherwise it grows with the amounts that are missing."""
        values = {name: constants[k] for k, name in enumerate(self.constants)}
        gaps = [evaluate(each, {**values, C: _COURANT}, jnp) + 0 * _COURANT for each in self.positive]
        return 10 * jnp.maximum(0.0, _MARGIN - jnp.stack(gaps)).sum()

    def formula(self, constants: tuple[float, ...]) -> sp.Expr:
        """φ as a formula of r, q and c."""
        values = {name: sp.Float(value) for name, value in zip(self.constants, constants, strict=True)}
        phi = substitute(self.phi, values)
        # Sums of constants, such as 1 − 1.215, are rounded as the constants are: −0.215, not −0.21500000000000008.
        return phi.xreplace({each: sp.Float(round(float(each), _DIGITS)) for each in phi.atoms(sp.Float)})


def _constants(count: int) -> tuple[sp.Symbol, ...]:
    return tuple(symbol(f"k{k}") for k in range(count))


_K = _constants(15)
_LOW = _K[0] + _K[1] * C + _K[2] * C**2
_HIGH = _K[3] + _K[4] * C + _K[5] * C**2
_LINE = 1 + (_K[6] + _K[7] * C) * (R - 1)
_CAP = 2 / (1 - C)
# The line with q clipped to [1 − k10, 1 + k10]: far from 1 the downwind difference says nothing about a smooth u.
_PLANE = _LINE + (_K[8] + _K[9] * C) * (minimum(maximum(Q, 1 - _K[10]), 1 + _K[10]) - 1)
# It lies between −3/2 and 1/2, and is 0 at q = 1.
_BESIDE = Q / (1 + sp.Abs(Q)) - sp.Rational(1, 2)


def _limit(inner: sp.Expr) -> sp.Expr:
    """A formula between 0 and the upper bound."""
    return maximum(sp.S.Zero, minimum(2 * R / C, _CAP, inner))


def _jump(inside: sp.Expr, low: sp.Expr = _LOW, high: sp.Expr = _HIGH) -> sp.Expr:
    return _limit(Select(Below(low, R) * Below(R, high), inside, _CAP))


def _ramps(inside: sp.Expr, low: sp.Expr, high: sp.Expr, steep: tuple[sp.Expr, sp.Expr]) -> sp.Expr:
    """A formula with straight ramps, of slopes `steep`, below `low` and above `high`."""
    return _limit(inside + maximum(sp.S.Zero, steep[0] * (low - R), steep[1] * (R - high)))


def _limit_slopes(*slopes: sp.Symbol) -> tuple[sp.Expr, ...]:
    return (*slopes, *(_LARGEST_SLOPE - each for each in slopes))


_INEQUALITIES = (_LOW, 1 - _LOW, _HIGH - 1)
# r₀, r₁ and the slope, as polynomials of c.
_SCALES = (0.5, 0.5, 0.5, 2.0, 1.0, 1.0, 0.5, 0.5)
_RAMPS = (20.0, 20.0)
# The slope in q, the range of q, and how r₀ and r₁ depend on q.
_DOWNWIND = (0.2, 0.2, 1.0, 0.3, 0.6)
_LOW_BESIDE, _HIGH_BESIDE = _LOW + _K[11] * _BESIDE, _HIGH + _K[12] * _BESIDE

FAMILIES: tuple[Family, ...] = (
    Family("jump", "a straight line that jumps to the bound", _jump(_LINE), _INEQUALITIES, _SCALES, continuous=False),
    Family(
        "bend",
        "a parabola that jumps to the bound",
        _jump(_LINE + (_K[8] + _K[9] * C) * (R - 1) ** 2),
        _INEQUALITIES,
        (*_SCALES, 0.2, 0.2),
        continuous=False,
        first=(0.0, 0.0),
    ),
    Family(
        "ramp",
        "a straight line with steep ramps up to the bound",
        _ramps(_LINE, _LOW, _HIGH, (_K[8] / C, _K[9] / (1 - C))),
        (*_INEQUALITIES, *_limit_slopes(_K[8], _K[9])),
        (*_SCALES, *_RAMPS),
        continuous=True,
        first=_RAMPS,
    ),
    Family(
        "slope",
        "a straight line with ramps of one slope for all c",
        _ramps(_LINE, _LOW, _HIGH, (_K[8], _K[9])),
        (*_INEQUALITIES, *_limit_slopes(_K[8], _K[9])),
        (*_SCALES, *_RAMPS),
        continuous=True,
        first=_RAMPS,
    ),
    Family(
        "downwind-jump",
        "a plane in r and q that jumps to the bound",
        _jump(_PLANE, _LOW_BESIDE, _HIGH_BESIDE),
        (*_INEQUALITIES, _K[10]),
        (*_SCALES, *_DOWNWIND),
        continuous=False,
        first=(1.0, 0.0, 0.0),
        downwind=True,
    ),
    Family(
        "downwind",
        "a plane in r and q with ramps up to the bound",
        _ramps(_PLANE, _LOW_BESIDE, _HIGH_BESIDE, (_K[13] / C, _K[14] / (1 - C))),
        (*_INEQUALITIES, _K[10], *_limit_slopes(_K[13], _K[14])),
        (*_SCALES, *_DOWNWIND, *_RAMPS),
        continuous=True,
        first=(1.0, 0.0, 0.0, *_RAMPS),
        downwind=True,
    ),
)
"""The families that are compared: those with `downwind` for φ of four cells, the others for φ of three."""
