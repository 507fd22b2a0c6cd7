"""Fluxes for skewed meshes that were discovered: the corrected flux with another weight of the difference of the cells.

Every consistent flux of the difference and the mean gradient ḡ of two cells is

    F = −A λ [ ψ (u_N − u_P)/δ + ḡ·n − ψ ḡ·d/δ ]  =  corrected flux − A λ κ r/(d·n),   κ = ψ cos θ − 1,

with cos θ = d·n/δ and r = (u_N − u_P) − ḡ·d, which vanishes for linear fields: ψ is free. The corrected flux has
ψ = 1/cos θ, the over-relaxed correction. `fluxforge discover skew` chooses

    ψ = (c₀ + c₁ ν + c₂ ν²) (σ/cos θ + (1 − σ) cos θ),   ν = 2 A (d·n)/(V_P + V_N),

ν being 1 between rectangles, 4/3 between triangles of any shape, and 0 at a wall with a value, behind which V_N = ∞.
At walls with a flux, χ = 0 and F is what is prescribed. Where K jumps, r has for d the vectors e of either cell, with
which ∇u·e = u_N − u_P for fields that are linear on either side.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

import sympy as sp

from fluxforge.expression import COORDINATES, symbol
from fluxforge.pde import Equation
from fluxforge.scheme._diffusion import (
    Vector,
    corrected_flux,
    harmonic,
    reach,
    refuse_without_diffusion,
    sides_of,
    vectors,
)
from fluxforge.scheme._integrate import Prepared, Space, State
from fluxforge.scheme._scheme import FAMILIES, Message


@dataclass(frozen=True)
class Damping:
    """The constants of ψ: c₀ + c₁ ν + c₂ ν² at ν = 0, 1 and 4/3 (walls, rectangles, triangles), and σ.

    (1, 1, 1, 1) is the corrected flux.
    """

    wall: Fraction
    square: Fraction
    triangle: Fraction
    mix: Fraction

    @property
    def constants(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The four constants in their order."""
        return self.wall, self.square, self.triangle, self.mix

    @property
    def polynomial(self) -> tuple[Fraction, Fraction, Fraction]:
        """c₀, c₁, c₂."""
        rise, on = self.square - self.wall, self.triangle - self.wall
        # c₁ + c₂ = rise and 4/3 c₁ + 16/9 c₂ = on.
        c2 = Fraction(9, 4) * on - 3 * rise
        return self.wall, rise - c2, c2

    def excess(self, nu: sp.Expr, cosine: sp.Expr) -> sp.Expr:
        """κ = ψ cos θ − 1."""
        c0, c1, c2, mix = (sp.Rational(c.numerator, c.denominator) for c in (*self.polynomial, self.mix))
        return (c0 + c1 * nu + c2 * nu**2) * (mix + (1 - mix) * cosine**2) - 1


def _reach_of_neighbour(equation: Equation, dimension: int) -> Vector:
    """The vector with  ∇u_N · e = u_N − u_P: `reach` with the cells exchanged, turned round."""
    axes = COORDINATES[:dimension]
    d, n = vectors("d", axes), vectors("n", axes)
    if equation.diffusion_tensor is not None:
        return d
    k, _ = sp.factor_terms(equation.diffusion).as_independent(equation.u, as_Add=False)
    P, N = (equation.at_cell(k, equation.u, end) for end in "PN")
    if P == N:
        return d
    before = (N / P - 1) * symbol("d_n") / (1 + symbol("V_N") / symbol("V_P"))
    return tuple(a + before * b for a, b in zip(d, n, strict=True))


def _damped(damping: Damping, dimension: int, equation: Equation, state: State, tag: str) -> Prepared:
    axes = COORDINATES[:dimension]
    plain = corrected_flux(dimension, equation, state, tag)
    tensor, normal = equation.diffusion_tensor, symbol("d_n")
    near = vectors("d", axes) if tensor is not None else reach(equation, dimension)
    far = _reach_of_neighbour(equation, dimension)
    rise = sp.Add(
        *(
            symbol(f"g_{axis}{tag}_P") * a + symbol(f"g_{axis}{tag}_N") * b
            for axis, a, b in zip(axes, near, far, strict=True)
        )
    )
    along = symbol(tensor.normal_name) if tensor is not None else harmonic(*sides_of(equation, state))
    nu = 2 * symbol("A") * normal / (symbol("V_P") + symbol("V_N"))
    excess = symbol("chi") * damping.excess(nu, normal / symbol("delta"))
    more = symbol("A") * along * excess * (state.jump - rise / 2) / normal
    return Prepared(plain.rounds, Message(plain.message.expression + more))


def damped_space(name: str, summary: str, damping: Damping) -> Callable[[int], Space]:
    """The space with these constants, by the number of dimensions; orders are claimed for families in the plane."""

    @cache
    def in_dimension(dimension: int) -> Space:
        return Space(
            name,
            summary,
            partial(_damped, damping, dimension),
            orders=dict.fromkeys(FAMILIES, 2.0) if dimension == 2 else {},
            linear_exact=True,
            refuse=refuse_without_diffusion,
            in_dimension=in_dimension,
        )

    return in_dimension


def _law(wall: str, square: str, triangle: str, mix: str) -> Damping:
    return Damping(*(Fraction(value) for value in (wall, square, triangle, mix)))


# Chosen by `fluxforge discover skew`, recipe `skew`, seed 0; its document is results/skew.json.
SKEWED: Mapping[str, Damping] = {
    "skew-error": _law("1.57", "1.06", "0.8", "0.81"),
}
"""The discovered fluxes by name, each with its constants."""

_SUMMARIES = {
    "skew-error": "discovered flux for skewed meshes, chosen for the least steady error",
}

DAMPED: tuple[Space, ...] = tuple(damped_space(name, _SUMMARIES[name], SKEWED[name])(2) for name in SKEWED)
"""The discovered fluxes as discretisations in space, for the plane."""
