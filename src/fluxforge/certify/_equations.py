"""The equation that a scheme solves: results for smooth fields on a lattice, for Δt → 0, and modified equations."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

import numpy as np
import sympy as sp

from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import HEAT

# Halving h halves the error of a first-order flux; on coarse meshes, where several terms count, a little less.
LEAST_DECREASE = 0.7


@dataclass(frozen=True)
class SmoothEquation:
    """T_t = rate T + drift·∇T + ∇·K∇T, as numbers."""

    rate: float
    drift: np.ndarray
    K: np.ndarray

    def __str__(self) -> str:
        parts = [f"{_four_digits(self.rate)} T"] if self.rate else []
        parts += [f"{_four_digits(v)} T_{axis}" for v, axis in zip(self.drift, COORDINATES, strict=False) if v]
        for e, f in combinations_with_replacement(range(len(self.drift)), 2):
            value = _four_digits(self.K[e, f] * (1 if e == f else 2))
            parts += [f"{value} T_{COORDINATES[e]}{COORDINATES[f]}"] if value != "0" else []
        return "T_t = " + (" + ".join(parts) or "0").replace("+ -", "- ")

    def distance_from(self, other: "SmoothEquation") -> float:
        """The largest difference of rate, drift and K, each relative to the largest entry of that of `other`.

        If the latter is zero, the difference is relative to the largest entry of rate, drift and K of `other`; infinite
        if a difference is not finite.
        """
        mine, theirs = ((np.atleast_1d(e.rate), e.drift, e.K) for e in (self, other))
        sizes = [float(np.abs(part).max(initial=0.0)) for part in theirs]
        off = [
            float(np.abs(one - wanted).max()) / (size or max(*sizes, 1e-300))
            for one, wanted, size in zip(mine, theirs, sizes, strict=True)
        ]
        return max(value if np.isfinite(value) else float("inf") for value in off)


def _four_digits(value: float) -> str:
    """Four significant digits of the value rounded to ten decimals, so that round-off is written 0."""
    return f"{round(float(value), 10) + 0.0:.4g}"


# K(h) of transport on cells of several types is linear in h but for terms of the square of the cells' Péclet number:
# two sizes leave some 1e-6 of K. A wrong coefficient is off by far more.
EXTRAPOLATION_TOLERANCE = 1e-4


@dataclass(frozen=True)
class EffectiveEquation:
    """The equation of smooth fields on a lattice as h → 0 (`found`), and the equation of the scheme (`own`)."""

    found: SmoothEquation
    own: SmoothEquation

    @property
    def holds(self) -> bool:
        """Whether both are equal within the accuracy of the extrapolation in h."""
        return self.found.distance_from(self.own) <= EXTRAPOLATION_TOLERANCE


# Relative differences of matrices and vectors below this are round-off.
SAME_SYSTEM = 1e-10
# Tolerance for the equation of smooth fields, which consists of moments, extrapolated in h, of entries of G that are
# some hundred times larger.
SMOOTH = 1e-8


@dataclass(frozen=True)
class SemiDiscrete:
    """Differences of a scheme's system dT/dt = G T + s S + r from that of the equation's two-point flux.

    Each number is the worst of three sizes of the parameters and of two kinds of wall.

    - `plain_flux`: max |G − L|/max|L|, L the operator of the equation's two-point flux.
    - `walls`: the same for r, with Dirichlet walls and with Neumann walls of q ≠ 0.
    - `source`: max |s − s_L|, s_L that of the two-point flux.
    - `proportional`: how far G and r are from scaling with all parameters; 0 where L itself does not scale, as with a
      capacity or a reaction's constant.
    - `diffusion`: the eigenvalue of K over the equation's own, on the `lattice`, that is farthest from 1; NaN for
      equations with more than diffusion.
    - `drift`: the first-order drift on the `lattice`; None, not measured, for equations with more than diffusion.
    - `linear_exact`: linear fields are exact.
    - `smooth`: for equations with more than diffusion, the distance of the equation that smooth fields obey on the
      `lattice` from the right one; otherwise None.
    - `varying`: where parameters may vary, whether the residual of a smooth field with its source falls with h.
    - `two_point`: the formula shows that the flux reads two cells and is one of the equation on every mesh on which
      the plain one is.

    The generator is right if G and r are those of L, or of another operator (a corrected flux) that is exact for linear
    fields, has the right diffusivity and no drift; if it scales with the parameters; and if the source is unchanged.
    """

    plain_flux: float
    walls: float
    source: float
    proportional: float
    linear_exact: bool
    varying: bool
    lattice: str
    diffusion: float = math.nan
    drift: float | None = None
    smooth: float | None = None
    two_point: bool = False

    @property
    def plain(self) -> bool:
        """Whether the system is that of the plain flux."""
        return self.plain_flux <= SAME_SYSTEM and self.walls <= SAME_SYSTEM

    @property
    def holds(self) -> bool:
        """Whether operator, boundary data and source are those of the equation."""
        # A two-point flux that its formula shows to be one of the equation need not be homogeneous in the geometry, as
        # that of Scharfetter and Gummel is not: K(h) is then not linear in h, and the extrapolation is not exact.
        most = EXTRAPOLATION_TOLERANCE if self.two_point else SMOOTH
        if self.smooth is not None:
            like = self.smooth <= most
        else:
            like = abs(self.diffusion - 1.0) <= SAME_SYSTEM and self.drift == 0
        right = (self.linear_exact or self.two_point) and like
        return (
            (self.plain or right) and self.proportional <= SAME_SYSTEM and self.source <= SAME_SYSTEM and self.varying
        )


# Rates from short steps are known to some 1e-10 of their size (`SHORT_STEP` in semidiscrete.py).
SAME_RATE = 1e-7
# On lattices of up to 32 cells a side, the discretisation error hides a coefficient that is wrong by one per cent.
# Other consistent fluxes, upwind or corrected ones, differ by more than this on an irregular mesh: a smaller difference
# means a wrong coefficient.
FLUX_TOLERANCE = 0.02


@dataclass(frozen=True)
class Rate:
    """Difference of ∂T'/∂Δt at Δt = 0 from the equation's own two-point flux and reaction, the worst of several states.

    `apart` is relative to the larger of the rate and the state over a reference step. For a flux that is not the
    two-point one, `left` is the residual ∂T'/∂Δt of a smooth T with the source that makes it steady, relative to that
    source, on finer and finer `lattice`s: it has to fall.
    """

    apart: float
    left: tuple[float, ...] = ()
    lattice: str = "squares"

    @property
    def plain(self) -> bool:
        """Whether the rate is that of the equation's own two-point flux, to the accuracy of short steps."""
        return self.apart <= SAME_RATE

    @property
    def falls(self) -> bool:
        """Whether the residual falls with the size of the cells."""
        return len(self.left) > 1 and all(after <= LEAST_DECREASE * before for before, after in pairwise(self.left))

    @property
    def holds(self) -> bool:
        """Whether the rate is the equation's, with its own flux or with another one that is consistent."""
        return self.plain or (self.falls and self.apart > FLUX_TOLERANCE)


Derivatives = Mapping[tuple[int, ...], sp.Expr]
"""Coefficients by the orders of the derivatives: {(2, 0): c} is c T_xx."""


@dataclass(frozen=True)
class ModifiedEquation:
    """The modified equation of a scheme on a lattice.

    `leading` and `error` are coefficients of derivatives: {(2, 0): c} is c T_xx, parameters included.

    `wanted` are the coefficients of the equation itself, and `dt_terms` says whether terms with Δt are reported.
    `without_dt` is the reason why they are not, for an equation with transport.
    """

    lattice: str
    leading: Derivatives
    error: Derivatives
    wanted: Derivatives
    dt_terms: bool = False
    without_dt: str = ""

    def __str__(self) -> str:
        terms = [_term(key, c) for part in (self.leading, self.error) for key, c in part.items()]
        return "T_t = " + (" + ".join(terms).replace("+ -", "- ") or "0")

    def diffusivity(self) -> sp.Matrix:
        """The exact ratio of K to the equation's own, for a scheme of heat in the plane."""
        a, b, c = (self.leading.get(key, sp.Integer(0)) / HEAT.diffusion for key in ((2, 0), (1, 1), (0, 2)))
        return sp.Matrix([[a, b / 2], [b / 2, c]]).applyfunc(sp.simplify)

    @property
    def consistent(self) -> bool:
        """Whether the limit h, Δt → 0 is the equation itself, for all values of its parameters."""
        return _have_same_limit({**self.error, **self.leading}, self.wanted)

    def has_limit_of(self, other: "ModifiedEquation") -> bool:
        """Whether both have the same limit as h and Δt go to 0."""
        return _have_same_limit({**self.error, **self.leading}, {**other.error, **other.leading})


def _have_same_limit(one: Derivatives, other: Derivatives) -> bool:
    return not any(_remains(one.get(key, sp.S.Zero) - other.get(key, sp.S.Zero)) for key in {*one, *other})


def _remains(coefficient: sp.Expr) -> bool:
    """Whether a coefficient is not 0 at h = Δt = 0, beyond the round-off of decimals."""
    left = sp.simplify(sp.expand(coefficient).subs({symbol("dt"): 0}).subs({symbol("h", "positive"): 0}))
    return bool(any(abs(number) > 1e-12 for number in sp.expand(left).as_coefficients_dict().values()))


def _term(key: tuple[int, ...], coefficient: sp.Expr) -> str:
    simple = sp.factor(sp.simplify(coefficient))
    text = to_text(simple)
    derivative = "".join(axis * power for axis, power in zip(COORDINATES, key, strict=False))
    factor = {"1": "", "-1": "-"}.get(text, f"({text})*" if simple.is_Add else f"{text}*")
    return f"{factor}T{f'_{derivative}' if derivative else ''}"
