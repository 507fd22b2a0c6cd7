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

from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import Equation
from fluxforge.scheme._integrate import PLANE, Axes, Prepared, Space, State
from fluxforge.scheme._scheme import FAMILIES, Ghost, Message, Output, Stage


def refuse_without_diffusion(equation: Equation) -> str | None:
    """Why the equation has no diffusion that a space could discretise; None if it has."""
    if equation.diffusion == 0:
        return "it has no diffusion"
    return "it has a two-point flux of its own" if equation.two_point is not None else None


def _refuse_tensor(equation: Equation) -> str | None:
    tensor = equation.diffusion_tensor
    if tensor is not None:
        return f"its mean is defined for scalars only, and {tensor.name} is a tensor"
    return refuse_without_diffusion(equation)


@cache
def _without_diffusion(equation: Equation) -> Equation:
    return replace(equation, diffusion=sp.S.Zero)


def _transport_flux(equation: Equation, state: State) -> sp.Expr:
    """The two-point flux of transport; 0 without transport."""
    if equation.velocity is None:
        return sp.S.Zero
    return _without_diffusion(equation).flux(state.at("_P"), state.at("_N"), state.jump)


def cell_diffusivities(equation: Equation, state: State) -> tuple[sp.Expr, sp.Expr]:
    """K in the two cells: its factor that does not depend on the unknown, times the mean of the factor that does."""
    g = sp.factor_terms(equation.diffusion).as_independent(equation.u, as_Add=False)[1]
    mean = sp.Add(*(equation.at_cell(g, state.at(f"_{end}"), end) for end in "PN")) / 2 if g != 1 else sp.S.One
    P, N = cell_conductivities(equation)
    return P * mean, N * mean


def cell_conductivities(equation: Equation) -> tuple[sp.Expr, sp.Expr]:
    """The factor of K that does not depend on the unknown, in the two cells."""
    k = sp.factor_terms(equation.diffusion).as_independent(equation.u, as_Add=False)[0]
    P, N = (equation.at_cell(k, equation.u, end) for end in "PN")
    return P, N


def harmonic_mean(P: sp.Expr, N: sp.Expr) -> sp.Expr:
    """The harmonic mean with the distances from the face; K itself where it is the same on both sides."""
    if P == N:
        return P
    near, far = 1 / symbol("V_P"), 1 / symbol("V_N")
    # 1/V is 0 at the ghost of a Dirichlet face.
    return (near + far) / (far / P + near / N)


def arithmetic_mean(P: sp.Expr, N: sp.Expr) -> sp.Expr:
    """The arithmetic mean."""
    return (P + N) / 2


def _two_point(
    mean: Callable[[sp.Expr, sp.Expr], sp.Expr], equation: Equation, state: State, tag: str, axes: Axes
) -> Prepared:
    flux = _transport_flux(equation, state) - mean(*cell_diffusivities(equation, state)) * state.jump / symbol("delta")
    return Prepared((), Message(-symbol("A") * flux))


HARMONIC = Space(
    "harmonic",
    "two-point flux with the harmonic mean of the conductivities, weighted by the distances from the face",
    partial(_two_point, harmonic_mean),
    refuse=_refuse_tensor,
)
"""The resistances s/K of the two half cells in series: exact across a jump of K where cells differ in size."""

ARITHMETIC = Space(
    "arithmetic",
    "two-point flux with the arithmetic mean of the conductivities",
    partial(_two_point, arithmetic_mean),
    refuse=_refuse_tensor,
)
"""A mean that is wrong where K jumps, by a known factor: the resistance δ/K of the face is too small."""


Vector = tuple[sp.Expr, ...]


def vector_symbols(name: str, axes: Axes) -> Vector:
    """The symbols of a vector's components."""
    return tuple(symbol(f"{name}_{axis}") for axis in axes)


def gradient_symbols(end: str, axes: Axes, tag: str) -> Vector:
    """The gradient at one end of an edge: the outputs of `least_squares_gradient`."""
    return tuple(symbol(f"g_{axis}{tag}_{end}") for axis in axes)


def dot(a: Vector, b: Vector) -> sp.Expr:
    """The scalar product a · b."""
    return sp.Add(*(left * right for left, right in zip(a, b, strict=True)))


def _conormal(equation: Equation, axes: Axes) -> Vector:
    """c/λ: K n relative to its part along n."""
    tensor = equation.diffusion_tensor
    if tensor is None:
        return vector_symbols("n", axes)
    return tuple(symbol(name) / symbol(tensor.normal_name) for name in tensor.conormal_names[: len(axes)])


def connection_vector(equation: Equation, axes: Axes) -> Vector:
    """e: the vector with  ∇u_P · e = u_N − u_P  where u and the flux are continuous."""
    d, n = vector_symbols("d", axes), vector_symbols("n", axes)
    if equation.diffusion_tensor is not None:
        walls = (1 - symbol("chi")) * symbol("delta")
        return tuple(a + walls * (c - b) for a, b, c in zip(d, n, _conormal(equation, axes), strict=True))
    P, N = cell_conductivities(equation)
    if P == N:
        return d
    # (K_P/K_N − 1) s_N, written so that it stays finite at a ghost of infinite volume.
    beyond = (P / N - 1) * symbol("d_n") / (1 + symbol("V_P") / symbol("V_N"))
    return tuple(a + beyond * b for a, b in zip(d, n, strict=True))


def least_squares_gradient(e: Vector, state: State, tag: str, axes: Axes) -> Stage:
    """The stage that solves  Σ e eᵀ/|e|² ∇u = Σ e (u_N − u_P)/|e|²  for the outputs g_x, …

    A ghost has its owner's gradient.
    """
    square = symbol("delta") ** 2 if e == vector_symbols("d", axes) else dot(e, e)
    parts = dict(zip(axes, e, strict=True))
    pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i:]]
    messages = {f"m_{a}{b}": Message(parts[a] * parts[b] / square) for a, b in pairs}
    messages |= {f"r_{axis}": Message(parts[axis] / square * state.jump) for axis in axes}
    M = sp.Matrix(len(e), len(e), lambda i, j: symbol(f"m_{''.join(sorted((axes[i], axes[j])))}"))
    solved = M.adjugate() * sp.Matrix([symbol(f"r_{axis}") for axis in axes])
    outputs = {f"g_{axis}{tag}": Output(top / M.det(), Ghost.OWNER) for axis, top in zip(axes, solved, strict=True)}
    return Stage(messages, outputs)


def normal_conductivity(equation: Equation, state: State) -> sp.Expr:
    """λ: n·K n for a tensor, the harmonic mean for a scalar."""
    tensor = equation.diffusion_tensor
    return symbol(tensor.normal_name) if tensor is not None else harmonic_mean(*cell_diffusivities(equation, state))


def corrected_flux(equation: Equation, state: State, tag: str, axes: Axes) -> Prepared:
    """The stage of the gradients and the message −A F of the corrected flux."""
    normal = symbol("d_n")
    aside = tuple(c - d / normal for c, d in zip(_conormal(equation, axes), vector_symbols("d", axes), strict=True))
    ends = zip(gradient_symbols("P", axes, tag), gradient_symbols("N", axes, tag), strict=True)
    correction = dot(tuple((near + far) / 2 for near, far in ends), aside)
    if equation.diffusion_tensor is not None:
        correction *= symbol("chi")
    flux = _transport_flux(equation, state) - normal_conductivity(equation, state) * (state.jump / normal + correction)
    gradient = least_squares_gradient(connection_vector(equation, axes), state, tag, axes)
    return Prepared((gradient,), Message(-symbol("A") * flux))


CORRECTED = Space(
    "corrected",
    "over-relaxed non-orthogonal correction with least-squares gradients",
    corrected_flux,
    axes=PLANE,
    orders=dict.fromkeys(FAMILIES, 2.0),
    linear_exact=True,
    refuse=refuse_without_diffusion,
)
"""The corrected flux, exact for linear fields."""

DIFFUSION: tuple[Space, ...] = (HARMONIC, ARITHMETIC, CORRECTED)
"""The discretisations of diffusion other than the two-point flux."""
