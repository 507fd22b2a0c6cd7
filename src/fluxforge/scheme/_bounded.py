"""Limiters φ(r, c) at the faces of cells of any shape, with values that stay between those of the neighbours.

Across a face with flow from P to N, d the way between the centroids and g_P the least-squares gradient,
r = 2 g_P·d/(u_N − u_P) − 1 (Darwish & Moukalled, Int. J. Heat Mass Transfer 46, 2003): the value behind P is
u_N − 2 g_P·d. On lattices of squares that is the value of the cell behind P, and the flux that of `limiters`. On
triangles no cell lies there, and 0 ≤ φ ≤ min(2r/c, 2/(1 − c)) bounds nothing.

What does: with forward Euler, a velocity without divergence and the Courant number c_P = Δt Σ max(s, 0) A/(C V) of all
that leaves P, the new value is

    u_P − Σ_out c_f e_f − Σ_in c_f (u_P − u_f),   Σ_out c_f = Σ_in c_f = c_P,   e_f = u_f − u_P,

and values u_f that enter lie between u_P and the neighbour's, since ½(1 − c) φ ≤ 1. If every e_f lies between
κ (u_P − u_max) and κ (u_P − u_min), κ = (1 − c_P)/c_P, with the extremes over P and its neighbours, the new value is a
mean of such values with weights that are not negative: (1 − c_P) times one between u_min and u_max, plus Σ_in c_f u_f.
So e_f = ½(1 − c) φ(r, c)(u_N − u_P), without 1 − c in methods of several stages, is cut to that interval, which
contains 0. `ssp2` and `ssp3` are means of such steps of Δt and keep the same bounds.
"""

from collections.abc import Callable
from functools import cache, partial

import sympy as sp

from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import BUILT_IN, Equation
from fluxforge.scheme._integrate import Prepared, Space, State
from fluxforge.scheme._scheme import Message, Output, Stage
from fluxforge.scheme._slopes import rises
from fluxforge.scheme._symbols import STEP, Ghost
from fluxforge.scheme.fluxes import larger, refuse_still, smaller
from fluxforge.scheme.limiters import APART, Keep, LimitedFace, Limiter, check_stages

BOUNDED = "bounded-"
"""What the names of these spaces begin with."""


def bounded(limiter: Limiter) -> Callable[[int], Space]:
    """Transport with this limiter in cells of any shape, kept between the neighbours' values; by dimension."""
    return _space(limiter, f"{BOUNDED}{limiter.name}", "kept between the values of the neighbours", cut=True)


def unbounded(limiter: Limiter) -> Callable[[int], Space]:
    """The same without the cut: what limiters of lines do on triangles by themselves."""
    return _space(limiter, f"unbounded-{limiter.name}", "not kept between the values of the neighbours", cut=False)


def _space(limiter: Limiter, name: str, words: str, *, cut: bool) -> Callable[[int], Space]:
    @cache
    def in_dimension(dimension: int) -> Space:
        return Space(
            name,
            f"{limiter.summary} at the faces of cells of any shape, {words}",
            partial(_prepare, limiter, dimension, cut),
            refuse=refuse_still,
            default=BUILT_IN["advection"],
            linear=False,
            centred=True,
            in_dimension=in_dimension,
        )

    return in_dimension


def _prepare(limiter: Limiter, dimension: int, cut: bool, equation: Equation, state: State, tag: str) -> Prepared:
    check_stages(limiter, tag)
    rear, front = (_extrapolated(state, dimension, f"{tag}_{end}") for end in "PN")
    keep = {"keep": _cut(tag)} if cut else {}
    face = LimitedFace(equation, state, limiter, rear, front, **keep)
    # A ghost shows no room for steps: what enters through a wall is the wall's own value.
    around = rises(state, dimension, tag, Ghost.ZERO)
    if cut:
        around = _with_outflow(around, face.speed(), equation, state, tag)
    flux = face.reconstructed() if tag else face.corrected()
    return Prepared((around,), Message(-symbol("A") * (flux + face.diffusion())))


def _extrapolated(state: State, dimension: int, end: str) -> sp.Expr:
    """The difference of u over d behind P, or ahead of N, from the gradient there: 2 g·d − (u_N − u_P)."""
    steps = (symbol(f"g_{axis}{end}") * symbol(f"d_{axis}") for axis in COORDINATES[:dimension])
    return 2 * sp.Add(*steps) - state.jump


def _with_outflow(around: Stage, speed: sp.Expr, equation: Equation, state: State, tag: str) -> Stage:
    """The stage with c_P, the Courant number of all that leaves a cell in one step."""
    leaving = Message(symbol("A") * larger(speed, sp.S.Zero))
    content = equation.at_cell(equation.capacity, state.at()) * symbol("V")
    total = Output(symbol(STEP) * symbol("leaving") / content, Ghost.ZERO)
    return Stage({**around.messages, "leaving": leaving}, {**around.outputs, f"outflow{tag}": total})


def _cut(tag: str) -> Keep:
    """Cut e to what the upwind cell allows, seen from P: what N allows has the other sign there."""

    def room(name: str, end: str) -> sp.Expr:
        c = symbol(f"outflow{tag}_{end}")
        return symbol(f"{name}{tag}_{end}") * larger((1 - c) / larger(c, APART), sp.S.Zero)

    def keep(step: sp.Expr, from_P: sp.Expr, from_N: sp.Expr) -> sp.Expr:
        least = from_N * room("fall", "N") - from_P * room("rise", "P")
        most = from_N * room("rise", "N") - from_P * room("fall", "P")
        return larger(smaller(step, most), least)

    return keep
