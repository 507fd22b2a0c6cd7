"""Transport with linear reconstruction in cells of any shape: least-squares gradients, limited cell by cell.

u_P + ψ_P g_P·p on one side of a face and u_N + ψ_N g_N·(p − d) on the other, p being the way from the centroid of P to
the centre of the face, d the way from P to N. With Δ = g·p, and u⁺ ≥ 0 ≥ u⁻ the largest and least of u_N − u_P over the
neighbours, ψ is the least over the faces of the cell of

- Barth & Jespersen (AIAA 89-0366): min(1, u⁺/Δ) for Δ > 0, min(1, u⁻/Δ) for Δ < 0, 1 for Δ = 0;
- Venkatakrishnan (J. Comput. Phys. 118, 1995): (D² + ε² + 2 Δ D)/(D² + 2 Δ² + Δ D + ε²), at most 1, with D = u⁺ or u⁻
  as above and ε² = (K h)³, h³ = V in space and V^(3/2) in the plane, which lets small extrema pass.
"""

from collections.abc import Callable
from functools import cache, partial

import sympy as sp

from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import BUILT_IN, Equation
from fluxforge.scheme._integrate import Prepared, Space, State
from fluxforge.scheme._scheme import Message, Output, Stage
from fluxforge.scheme._symbols import Ghost, Hop, Reduction
from fluxforge.scheme.fluxes import TINY, diffusive_flux, exact_flux, larger, refuse_still, smaller

# K³ of Venkatakrishnan's limiter, K = 1/2, as a decimal: it has whatever unit ε² needs.
_K_CUBED = sp.Float(0.125)

FaceLimit = Callable[[sp.Expr, sp.Expr, sp.Expr, int], sp.Expr]
"""What one face allows of the slope of P, from Δ, u⁺, u⁻ and the dimension."""


def _barth_jespersen(delta: sp.Expr, most: sp.Expr, least: sp.Expr, dimension: int) -> sp.Expr:
    up, down = larger(delta, sp.S.Zero), smaller(delta, sp.S.Zero)
    return smaller(sp.S.One, (most + TINY) / (up + TINY), (least - TINY) / (down - TINY))


def _venkatakrishnan(delta: sp.Expr, most: sp.Expr, least: sp.Expr, dimension: int) -> sp.Expr:
    epsilon = _K_CUBED * symbol("V_P") ** sp.Rational(3, dimension) + TINY

    def part(slope: sp.Expr, bound: sp.Expr) -> sp.Expr:
        return (bound**2 + epsilon + 2 * slope * bound) / (bound**2 + 2 * slope**2 + slope * bound + epsilon)

    up, down = larger(delta, sp.S.Zero), smaller(delta, sp.S.Zero)
    return smaller(sp.S.One, part(up, most), part(down, least))


def rises(state: State, dimension: int, tag: str, ghost: Ghost = Ghost.OWNER) -> Stage:
    """The least-squares gradient of a state, and the largest and least difference to a neighbour, with 0.

    `ghost` is what a ghost shows of these two differences.
    """
    axes = COORDINATES[:dimension]
    d = {axis: symbol(f"d_{axis}") / symbol("delta") for axis in axes}
    pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i:]]
    messages = {f"m_{a}{b}": Message(d[a] * d[b]) for a, b in pairs}
    messages |= {f"r_{axis}": Message(d[axis] / symbol("delta") * state.jump) for axis in axes}
    messages |= {
        "most": Message(state.jump, Hop.EDGE, Reduction.MAX),
        "least": Message(state.jump, Hop.EDGE, Reduction.MIN),
    }
    M = sp.Matrix(dimension, dimension, lambda i, j: symbol(f"m_{''.join(sorted((axes[i], axes[j])))}"))
    solved = M.adjugate() * sp.Matrix([symbol(f"r_{axis}") for axis in axes])
    outputs = {f"g_{axis}{tag}": Output(top / M.det(), Ghost.OWNER) for axis, top in zip(axes, solved, strict=True)}
    outputs[f"rise{tag}"] = Output(larger(symbol("most"), sp.S.Zero), ghost)
    outputs[f"fall{tag}"] = Output(smaller(symbol("least"), sp.S.Zero), ghost)
    return Stage(messages, outputs)


def _prepare(limit: FaceLimit, dimension: int, equation: Equation, state: State, tag: str) -> Prepared:
    axes = COORDINATES[:dimension]
    p = {axis: symbol(f"p_{axis}") for axis in axes}
    ahead = sp.Add(*(symbol(f"g_{axis}{tag}_P") * p[axis] for axis in axes))
    back = sp.Add(*(symbol(f"g_{axis}{tag}_N") * (p[axis] - symbol(f"d_{axis}")) for axis in axes))
    allowed = limit(ahead, symbol(f"rise{tag}_P"), symbol(f"fall{tag}_P"), dimension)
    limits = Stage(
        {"limit": Message(allowed, Hop.EDGE, Reduction.MIN)}, {f"psi{tag}": Output(symbol("limit"), Ghost.OWNER)}
    )
    P, N = state.at("_P"), state.at("_N")
    left = P + symbol(f"psi{tag}_P") * ahead
    # χ = 0 behind a Neumann wall, where the gradient of the mirror image is not known; at a Dirichlet wall p = d.
    right = N + symbol("chi") * symbol(f"psi{tag}_N") * back
    flux = exact_flux(equation).formula(equation, left, right, right - left)
    flux += diffusive_flux(equation, P, N, state.jump)
    return Prepared((rises(state, dimension, tag), limits), Message(-symbol("A") * flux))


def _space(name: str, summary: str, limit: FaceLimit) -> Callable[[int], Space]:
    @cache
    def in_dimension(dimension: int) -> Space:
        return Space(
            name,
            summary,
            partial(_prepare, limit, dimension),
            refuse=refuse_still,
            default=BUILT_IN["advection"],
            linear=False,
            in_dimension=in_dimension,
        )

    return in_dimension


barth_jespersen = _space(
    "barth-jespersen",
    "least-squares slopes in cells of any shape with Barth's and Jespersen's limiter",
    _barth_jespersen,
)
venkatakrishnan = _space(
    "venkatakrishnan", "least-squares slopes in cells of any shape with Venkatakrishnan's limiter", _venkatakrishnan
)
