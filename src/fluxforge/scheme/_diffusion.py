"""Discretisations of diffusion in space: the two-point flux with other means of K, and the corrected flux.

The corrected flux is  F = −A λ [ (u_N − u_P)/(d·n) + ½ (∇u_P + ∇u_N)·(c/λ − d/(d·n)) ],  c = K n and λ = n·K n: for a
scalar K, c/λ = n, the over-relaxed correction. c/λ − d/(d·n) is perpendicular to n, so that only the derivative along
the face is interpolated, which is continuous where K jumps. F is exact for linear fields with a constant K on every
mesh.

A scalar K of each cell enters as the harmonic mean with the distances s of the two centres from the face,
λ = (d·n)/(s_P/K_P + s_N/K_N). The gradients solve  Σ e eᵀ/|e|² ∇u = Σ e (u_N − u_P)/|e|²  with
e = d + (K_P/K_N − 1) s_N n, which follows from continuity of u and of the flux: with K constant on either side of a
straight line of faces, fields that are linear on either side are reproduced. The ratio s_P : s_N is taken as V_P : V_N,
which is exact between two triangles, two tetrahedra or two rectangles.

At a Neumann face the ghost prescribes the flux λ q, and e = δ c/λ: a wall with q = 0 is insulated whatever K is.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import sympy as sp

from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.pde._equation import Equation
from fluxforge.scheme._integrate import Prepared, Space, State
from fluxforge.scheme._scheme import FAMILIES, Ghost, Message, Output, Stage


def refuse_without_diffusion(equation: Equation) -> str | None:
    """The reason where there is no diffusion to discretise."""
    if equation.diffusion == 0:
        return "it has no diffusion"
    return "it has a two-point flux of its own" if equation.two_point is not None else None


def _refuse_tensor(equation: Equation) -> str | None:
    tensor = equation.diffusion_tensor
    if tensor is not None:
        return f"the mean is one of scalars, and {tensor.name} is a tensor"
    return refuse_without_diffusion(equation)


@cache
def _without_diffusion(equation: Equation) -> Equation:
    return replace(equation, diffusion=sp.S.Zero)


def _transport_flux(equation: Equation, state: State) -> sp.Expr:
    """The two-point flux of transport."""
    if equation.velocity is None:
        return sp.S.Zero
    return _without_diffusion(equation).flux(state.at("_P"), state.at("_N"), state.jump)


def sides_of(equation: Equation, state: State) -> tuple[sp.Expr, sp.Expr]:
    """K in the two cells, as far as it does not depend on the unknown, times the mean of what does."""
    k, g = sp.factor_terms(equation.diffusion).as_independent(equation.u, as_Add=False)
    mean = sp.Add(*(equation.at_cell(g, state.at(f"_{end}"), end) for end in "PN")) / 2 if g != 1 else sp.S.One
    P, N = (equation.at_cell(k, equation.u, end) * mean for end in "PN")
    return P, N


def cell_conductivities(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    """The factor of K that does not depend on the unknown, in the two cells."""
    k, _ = sp.factor_terms(equation.diffusion).as_independent(equation.u, as_Add=False)
    P, N = (equation.at_cell(k, equation.u, end) for end in "PN")
    return P, N


def harmonic(P: sp.Expr, N: sp.Expr) -> sp.Expr:
    """The harmonic mean with the distances from the face; K itself where it is the same on both sides."""
    if P == N:
        return P
    near, far = 1 / symbol("V_P"), 1 / symbol("V_N")
    # 1/V is 0 at the ghost of a Dirichlet face.
    return (near + far) / (far / P + near / N)


def arithmetic(P: sp.Expr, N: sp.Expr) -> sp.Expr:
    """The arithmetic mean."""
    return (P + N) / 2


def _two_point(mean: Callable[[sp.Expr, sp.Expr], sp.Expr], equation: Equation, state: State, tag: str) -> Prepared:
    flux = _transport_flux(equation, state) - mean(*sides_of(equation, state)) * state.jump / symbol("delta")
    return Prepared((), Message(-symbol("A") * flux))


HARMONIC = Space(
    "harmonic",
    "two-point flux with the harmonic mean of the conductivities, weighted by the distances from the face",
    partial(_two_point, harmonic),
    refuse=_refuse_tensor,
)
"""The resistances s/K of the two half cells in series: exact across a jump of K where cells differ in size."""

ARITHMETIC = Space(
    "arithmetic",
    "two-point flux with the arithmetic mean of the conductivities",
    partial(_two_point, arithmetic),
    refuse=_refuse_tensor,
)
"""A mean that is wrong where K jumps, by a known factor: the resistance δ/K of the face is too small."""


Vector = tuple[sp.Expr, ...]


def vectors(name: str, axes: str | tuple[str, ...]) -> Vector:
    """The symbols of a vector's components."""
    return tuple(symbol(f"{name}_{axis}") for axis in axes)


def _conormal(equation: Equation, dimension: int) -> Vector:
    """c/λ: K n relative to its part along n."""
    axes = COORDINATES[:dimension]
    tensor = equation.diffusion_tensor
    if tensor is None:
        return vectors("n", axes)
    return tuple(symbol(name) / symbol(tensor.normal_name) for name in tensor.conormal_names[:dimension])


def reach(equation: Equation, dimension: int) -> Vector:
    """e: the vector with  ∇u_P · e = u_N − u_P  where u and the flux are continuous."""
    axes = COORDINATES[:dimension]
    d, n = vectors("d", axes), vectors("n", axes)
    if equation.diffusion_tensor is not None:
        walls = (1 - symbol("chi")) * symbol("delta")
        return tuple(a + walls * (c - b) for a, b, c in zip(d, n, _conormal(equation, dimension), strict=True))
    P, N = cell_conductivities(equation)
    if P == N:
        return d
    # s_N, finite at a ghost of infinite volume.
    beyond = (P / N - 1) * symbol("d_n") / (1 + symbol("V_P") / symbol("V_N"))
    return tuple(a + beyond * b for a, b in zip(d, n, strict=True))


def gradients(equation: Equation, state: State, dimension: int, tag: str) -> Stage:
    """The least-squares gradient of a state in every cell, with outputs g_x, …; a ghost shows its owner's."""
    axes = COORDINATES[:dimension]
    e = dict(zip(axes, reach(equation, dimension), strict=True))
    square = symbol("delta") ** 2 if e == dict(zip(axes, vectors("d", axes), strict=True)) else None
    square = square or sp.Add(*(part**2 for part in e.values()))
    pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i:]]
    messages = {f"m_{a}{b}": Message(e[a] * e[b] / square) for a, b in pairs}
    messages |= {f"r_{axis}": Message(e[axis] / square * state.jump) for axis in axes}
    M = sp.Matrix(dimension, dimension, lambda i, j: symbol(f"m_{''.join(sorted((axes[i], axes[j])))}"))
    solved = M.adjugate() * sp.Matrix([symbol(f"r_{axis}") for axis in axes])
    outputs = {f"g_{axis}{tag}": Output(top / M.det(), Ghost.OWNER) for axis, top in zip(axes, solved, strict=True)}
    return Stage(messages, outputs)


def corrected_flux(dimension: int, equation: Equation, state: State, tag: str) -> Prepared:
    """The stage of the gradients and the message −A F of the corrected flux."""
    axes = COORDINATES[:dimension]
    tensor = equation.diffusion_tensor
    normal = symbol("d_n")
    along = symbol(tensor.normal_name) if tensor is not None else harmonic(*sides_of(equation, state))
    aside = [c - d / normal for c, d in zip(_conormal(equation, dimension), vectors("d", axes), strict=True)]
    slopes = [(symbol(f"g_{axis}{tag}_P") + symbol(f"g_{axis}{tag}_N")) / 2 for axis in axes]
    correction = sp.Add(*(slope * part for slope, part in zip(slopes, aside, strict=True)))
    if tensor is not None:
        correction *= symbol("chi")
    flux = _transport_flux(equation, state) - along * (state.jump / normal + correction)
    return Prepared((gradients(equation, state, dimension, tag),), Message(-symbol("A") * flux))


@cache
def corrected_space(dimension: int) -> Space:
    """The corrected flux for meshes of so many dimensions; orders in space are claimed for families in the plane."""
    return Space(
        "corrected",
        "over-relaxed non-orthogonal correction with least-squares gradients",
        partial(corrected_flux, dimension),
        orders=dict.fromkeys(FAMILIES, 2.0) if dimension == 2 else {},
        linear_exact=True,
        refuse=refuse_without_diffusion,
        in_dimension=corrected_space,
    )


DIFFUSION: tuple[Space, ...] = (HARMONIC, ARITHMETIC, corrected_space(2))
"""The discretisations of diffusion beside the two-point flux."""
