"""Discovered fluxes for skewed meshes: the corrected flux with another weight of the difference of the cells.

Every consistent flux of the difference and the mean gradient ḡ of two cells is

    F = −A λ [ ψ (u_N − u_P)/δ + ḡ·n − ψ ḡ·d/δ ]  =  corrected flux − A λ κ r/(d·n),   κ = ψ cos θ − 1,

with cos θ = d·n/δ and r = (u_N − u_P) − ḡ·d, which vanishes for linear fields: ψ is free. The corrected flux has
ψ = 1/cos θ, the over-relaxed correction. `fluxforge discover skew` chooses

    ψ = (c₀ + c₁ ν + c₂ ν²) (σ/cos θ + (1 − σ) cos θ),   ν = 2 A (d·n)/(V_P + V_N),

ν being 1 between rectangles, 4/3 between triangles of any shape, and 0 at a wall with a value, behind which V_N = ∞.
At walls with a prescribed flux χ = 0, and F is that flux. Where K jumps, the d of r is replaced by the vectors e of the
two cells, for which ∇u·e = u_N − u_P if u is linear on either side; the gradients are weighted by the other cell's K,
and κ has the factor 4 K_P K_N/(K_P + K_N)²: across a large jump F is nearly the corrected flux.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import sympy as sp

from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.scheme._diffusion import (
    cell_conductivities,
    connection_vector,
    corrected_flux,
    dot,
    gradient_symbols,
    normal_conductivity,
    refuse_without_diffusion,
    vector_symbols,
)
from fluxforge.scheme._integrate import PLANE, Axes, Prepared, Space, State
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


def _rise_by_gradients(equation: Equation, tag: str, axes: Axes) -> sp.Expr:
    """The difference u_N − u_P that the gradients predict: their mean along d; where K jumps, weighted by the other K.

    The vectors e grow with the ratio of the conductivities on the side of the larger one, and with them the effect of
    errors of the gradient on that side, which therefore has the smaller weight.
    """
    d, n = vector_symbols("d", axes), vector_symbols("n", axes)
    gradient_P, gradient_N = (gradient_symbols(end, axes, tag) for end in "PN")
    near, far = dot(gradient_P, d), dot(gradient_N, d)
    if equation.diffusion_tensor is not None:
        return (near + far) / 2
    P, N = cell_conductivities(equation)
    if P == N:
        return (near + far) / 2
    near = dot(gradient_P, connection_vector(equation, axes))
    normal_slope = dot(gradient_N, n)
    # The connection vector with the cells exchanged, reversed.
    far += (N / P - 1) * symbol("d_n") / (1 + symbol("V_N") / symbol("V_P")) * normal_slope
    return (N * near + P * far) / (P + N)


def _contrast(equation: Equation) -> sp.Expr:
    """4 K_P K_N/(K_P + K_N)²: 1 where both cells have one K, near 0 across a large jump, where ψ was not chosen."""
    if equation.diffusion_tensor is not None:
        return sp.S.One
    P, N = cell_conductivities(equation)
    return sp.S.One if P == N else 4 * P * N / (P + N) ** 2


def _prepare_damped(damping: Damping, equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
    plain = corrected_flux(equation, state, tag, axes)
    normal = symbol("d_n")
    nu = 2 * symbol("A") * normal / (symbol("V_P") + symbol("V_N"))
    excess = symbol("chi") * _contrast(equation) * damping.excess(nu, normal / symbol("delta"))
    rest = state.jump - _rise_by_gradients(equation, tag, axes)
    change = symbol("A") * normal_conductivity(equation, state) * excess * rest / normal
    return Prepared(plain.rounds, Message(plain.message.expression + change))


def damped_space(name: str, summary: str, damping: Damping) -> Space:
    """The discretisation in space with these constants, for the plane."""
    return Space(
        name,
        summary,
        partial(_prepare_damped, damping),
        axes=PLANE,
        orders=dict.fromkeys(FAMILIES, 2.0),
        linear_exact=True,
        refuse=refuse_without_diffusion,
    )


# Chosen by `fluxforge discover skew`, recipe `skew` with more data and candidates, seed 0: results/skew-paper.json has
# the command, its document and the certificate.
SKEWED: Mapping[str, Damping] = {
    "skew-error": Damping(*map(Fraction, ("1.08", "1.07", "0.98", "0.67"))),
    "skew-step": Damping(*map(Fraction, ("1.03", "1.01", "0.98", "0.67"))),
    # Between triangles it is the corrected flux: more coercivity there costs error.
    "skew-coercivity": Damping(*map(Fraction, ("1", "1.07", "1", "1"))),
}
"""The discovered fluxes by name, each with its constants."""

_SUMMARIES = {
    "skew-error": "discovered flux for skewed meshes, chosen for the least steady error",
    "skew-step": "discovered flux for skewed meshes, chosen for the longest stable step",
    "skew-coercivity": "discovered flux for skewed meshes, chosen for the largest coercivity",
}

DAMPED_SPACES: tuple[Space, ...] = tuple(damped_space(name, _SUMMARIES[name], SKEWED[name]) for name in SKEWED)
"""The discovered fluxes as discretisations in space, for the plane."""
