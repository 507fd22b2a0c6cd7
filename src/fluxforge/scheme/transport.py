"""Discretisations of transport in space, by name: two-point fluxes, limited slopes on lines of cells and in any cells.

Diffusion, reaction and capacity are as in the equation's two-point flux. All of them are conservative.

Transport with linear reconstruction in cells of any shape: least-squares gradients, limited cell by cell.

u_P + ψ_P g_P·p on one side of a face and u_N + ψ_N g_N·(p − d) on the other, with the vectors p from the centroid of P
to the centre of the face and d from P to N. With Δ = g·p, and u⁺ ≥ 0 ≥ u⁻ the largest and least of u_N − u_P over the
neighbours, ψ is the least over the faces of the cell of

- Barth & Jespersen (AIAA 89-0366): min(1, u⁺/Δ) for Δ > 0, min(1, u⁻/Δ) for Δ < 0, 1 for Δ = 0;
- Venkatakrishnan (J. Comput. Phys. 118, 1995): (D² + ε² + 2 Δ D)/(D² + 2 Δ² + Δ D + ε²), at most 1, with D = u⁺ or u⁻
  as above and ε² = (K h)³, h³ = V in space and V^(3/2) in the plane, which lets small extrema pass.

Limiters φ(r, c) at the faces of cells of any shape, with values that stay between those of the neighbours.

Across a face with flow from P to N, d being the vector between the centroids and g_P the least-squares gradient,
r = 2 g_P·d/(u_N − u_P) − 1 (Darwish & Moukalled, Int. J. Heat Mass Transfer 46, 2003): the value behind P is
u_N − 2 g_P·d. On lattices of squares that is the value of the cell behind P, and the flux that of `limiters`. On
triangles no cell lies there, and 0 ≤ φ ≤ min(2r/c, 2/(1 − c)) implies no bound.

The values stay bounded if they are cut. With forward Euler, a velocity without divergence and the Courant number
c_P = Δt Σ max(s, 0) A/(C V) of the total outflow of P, the new value is

    u_P − Σ_out c_f e_f − Σ_in c_f (u_P − u_f),   Σ_out c_f = Σ_in c_f = c_P,   e_f = u_f − u_P,

and values u_f that enter lie between u_P and the neighbour's, since ½(1 − c) φ ≤ 1. If every e_f lies between
κ (u_P − u_max) and κ (u_P − u_min), κ = (1 − c_P)/c_P, with the extremes over P and its neighbours, the new value is a
mean of such values with weights that are not negative: (1 − c_P) times one between u_min and u_max, plus Σ_in c_f u_f.
So e_f = ½(1 − c) φ(r, c)(u_N − u_P), without 1 − c in methods of several stages, is cut to that interval, which
contains 0. `ssp2` and `ssp3` are means of such steps of Δt and keep the same bounds.
"""

from collections.abc import Callable
from functools import partial

import sympy as sp

from fluxforge.errors import SchemeError
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import BUILT_IN, Equation
from fluxforge.scheme._diffusion import dot, gradient_symbols, least_squares_gradient, vector_symbols
from fluxforge.scheme._integrate import PLANE, Axes, Prepared, Space, State
from fluxforge.scheme._scheme import STEP, Ghost, Hop, Message, Output, Reduction, Stage
from fluxforge.scheme.fluxes import (
    FLUXES,
    LEAST_DENOMINATOR,
    NumericalFlux,
    diffusive_flux,
    exact_flux,
    maximum,
    minimum,
    refuse_without_transport,
)
from fluxforge.scheme.limiters import (
    LEAST_COURANT,
    LIMITERS,
    Keep,
    LimitedFace,
    Limiter,
    check_stages,
    keep_all,
    limited_space,
)

# K³ of Venkatakrishnan's limiter, K = 1/2, as a decimal: it has whatever unit ε² needs.
_K_CUBED = sp.Float(0.125)

FaceLimit = Callable[[sp.Expr, sp.Expr, sp.Expr, int], sp.Expr]
"""The factor that one face allows for the slope of P, from Δ, u⁺, u⁻ and the dimension."""


def _barth_jespersen(delta: sp.Expr, most: sp.Expr, least: sp.Expr, dimension: int) -> sp.Expr:
    up, down = maximum(delta, sp.S.Zero), minimum(delta, sp.S.Zero)
    return minimum(
        sp.S.One,
        (most + LEAST_DENOMINATOR) / (up + LEAST_DENOMINATOR),
        (least - LEAST_DENOMINATOR) / (down - LEAST_DENOMINATOR),
    )


def _venkatakrishnan(delta: sp.Expr, most: sp.Expr, least: sp.Expr, dimension: int) -> sp.Expr:
    epsilon = _K_CUBED * symbol("V_P") ** sp.Rational(3, dimension) + LEAST_DENOMINATOR

    def part(slope: sp.Expr, bound: sp.Expr) -> sp.Expr:
        return (bound**2 + epsilon + 2 * slope * bound) / (bound**2 + 2 * slope**2 + slope * bound + epsilon)

    up, down = maximum(delta, sp.S.Zero), minimum(delta, sp.S.Zero)
    return minimum(sp.S.One, part(up, most), part(down, least))


def slope_round(state: State, tag: str, axes: Axes, ghost: Ghost = Ghost.OWNER) -> Stage:
    """The least-squares gradient of a state, and the largest and least difference to a neighbour, with 0.

    `ghost` is the rule that gives these two differences at ghosts.
    """
    gradient = least_squares_gradient(vector_symbols("d", axes), state, tag, axes)
    extremes = {
        "most": Message(state.jump, Hop.EDGE, Reduction.MAX),
        "least": Message(state.jump, Hop.EDGE, Reduction.MIN),
    }
    outputs = {
        f"rise{tag}": Output(maximum(symbol("most"), sp.S.Zero), ghost),
        f"fall{tag}": Output(minimum(symbol("least"), sp.S.Zero), ghost),
    }
    return Stage({**gradient.messages, **extremes}, {**gradient.outputs, **outputs})


def _prepare_slopes(limit: FaceLimit, equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
    p, d = vector_symbols("p", axes), vector_symbols("d", axes)
    ahead = dot(gradient_symbols("P", axes, tag), p)
    back = dot(gradient_symbols("N", axes, tag), tuple(a - b for a, b in zip(p, d, strict=True)))
    allowed = limit(ahead, symbol(f"rise{tag}_P"), symbol(f"fall{tag}_P"), len(axes))
    limits = Stage(
        {"limit": Message(allowed, Hop.EDGE, Reduction.MIN)}, {f"psi{tag}": Output(symbol("limit"), Ghost.OWNER)}
    )
    P, N = state.at("_P"), state.at("_N")
    left = P + symbol(f"psi{tag}_P") * ahead
    # χ = 0 behind a Neumann wall, where the gradient of the mirror image is not known; at a Dirichlet wall p = d.
    right = N + symbol("chi") * symbol(f"psi{tag}_N") * back
    flux = exact_flux(equation).formula(equation, left, right, right - left)
    flux += diffusive_flux(equation, P, N, state.jump)
    return Prepared((slope_round(state, tag, axes), limits), Message(-symbol("A") * flux))


def _slope_space(name: str, summary: str, limit: FaceLimit) -> Space:
    return Space(
        name,
        summary,
        partial(_prepare_slopes, limit),
        axes=PLANE,
        refuse=refuse_without_transport,
        default=BUILT_IN["advection"],
        linear=False,
    )


BOUNDED_PREFIX = "bounded-"
"""The prefix of the names of these spaces."""


def bounded_space(limiter: Limiter) -> Space:
    """Transport with this limiter in cells of any shape of the plane, kept between the neighbours' values."""
    return _limited_space(
        limiter, f"{BOUNDED_PREFIX}{limiter.name}", "kept between the values of the neighbours", cut=True
    )


def unbounded_space(limiter: Limiter) -> Space:
    """`bounded_space` without the cut to the neighbours' range, as the limiters of lines are on triangles."""
    return _limited_space(
        limiter, f"unbounded-{limiter.name}", "not kept between the values of the neighbours", cut=False
    )


def _limited_space(limiter: Limiter, name: str, words: str, *, cut: bool) -> Space:
    return Space(
        name,
        f"{limiter.summary} at the faces of cells of any shape, {words}",
        partial(_prepare_limited, limiter, cut),
        axes=PLANE,
        refuse=refuse_without_transport,
        default=BUILT_IN["advection"],
        linear=False,
        centred=True,
    )


def _prepare_limited(limiter: Limiter, cut: bool, equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
    check_stages(limiter, tag)
    rear, front = (extrapolate_difference(state, end, tag, axes) for end in "PN")
    face = LimitedFace(equation, state, limiter, rear, front, _cut_to_bounds(tag) if cut else keep_all)
    # A ghost allows no steps: the value that enters through a wall is the wall's own.
    around = slope_round(state, tag, axes, Ghost.ZERO)
    if cut:
        around = _add_outflow(around, face.speed(), equation, state, tag)
    flux = face.reconstructed_flux() if tag else face.corrected_flux()
    return Prepared((around,), Message(-symbol("A") * (flux + face.diffusion())))


def extrapolate_difference(state: State, end: str, tag: str, axes: Axes) -> sp.Expr:
    """The difference of u over d behind P, or ahead of N, from the gradient there: 2 g·d − (u_N − u_P)."""
    return 2 * dot(gradient_symbols(end, axes, tag), vector_symbols("d", axes)) - state.jump


def _add_outflow(around: Stage, speed: sp.Expr, equation: Equation, state: State, tag: str) -> Stage:
    """The stage with a further output c_P, the Courant number of the total outflow of a cell in one step."""
    leaving = Message(symbol("A") * maximum(speed, sp.S.Zero))
    content = equation.at_cell(equation.capacity, state.at()) * symbol("V")
    total = Output(symbol(STEP) * symbol("leaving") / content, Ghost.ZERO)
    return Stage({**around.messages, "leaving": leaving}, {**around.outputs, f"outflow{tag}": total})


def _cut_to_bounds(tag: str) -> Keep:
    """The bound that cuts e to the interval that the upwind cell allows; that of N changes its sign seen from P."""

    def room(name: str, end: str) -> sp.Expr:
        c = symbol(f"outflow{tag}_{end}")
        return symbol(f"{name}{tag}_{end}") * maximum((1 - c) / maximum(c, LEAST_COURANT), sp.S.Zero)

    def keep(step: sp.Expr, from_P: sp.Expr, from_N: sp.Expr) -> sp.Expr:
        least = from_N * room("fall", "N") - from_P * room("rise", "P")
        most = from_N * room("rise", "N") - from_P * room("fall", "P")
        return maximum(minimum(step, most), least)

    return keep


def _prepare_flux(flux: NumericalFlux, equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
    if tag and flux.one_step:
        raise SchemeError(f"flux {flux.name!r} contains the time step: use it with forward Euler")
    return Prepared((), Message(-symbol("A") * flux.of(equation, state.at("_P"), state.at("_N"), state.jump)))


def two_point_space(flux: NumericalFlux) -> Space:
    """The discretisation in space of a two-point flux."""
    default = BUILT_IN["advection-diffusion" if flux.diffuses else "advection"]
    return Space(flux.name, flux.summary, partial(_prepare_flux, flux), refuse=flux.refuse, default=default)


TRANSPORT: tuple[Space, ...] = (
    *map(two_point_space, FLUXES.values()),
    *map(limited_space, LIMITERS.values()),
    *map(bounded_space, LIMITERS.values()),
    _slope_space(
        "barth-jespersen",
        "least-squares slopes in cells of any shape with Barth's and Jespersen's limiter",
        _barth_jespersen,
    ),
    _slope_space(
        "venkatakrishnan", "least-squares slopes in cells of any shape with Venkatakrishnan's limiter", _venkatakrishnan
    ),
)
"""All discretisations of transport, those in cells of any shape for the plane (`Space.at` gives them in space)."""
