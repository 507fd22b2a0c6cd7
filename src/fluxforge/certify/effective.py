"""The effective equation: the one that smooth fields of a scheme obey on a family of meshes.

On a lattice, exactly, from the cell problem: with rows G_{ij} of one period, d_ij = x_j − x_i and ℓ the left null
vector,  G₀χ_e = −G₁ᵉ1,  K_ef = ℓ(½G₂ᵉᶠ1 + sym G₁ᵉχ_f),  where G₀ = ΣG, G₁ᵉ = ΣG dᵉ, G₂ᵉᶠ = ΣG dᵉdᶠ over all periods.
It is the low-frequency limit of the Bloch spectrum, λ(k) → −k·Kk. With a first-order drift v_e = ℓG₁ᵉ1 ≠ 0 the
spectrum is λ(k) → ik·v − k·Kk: then G₀χ_e = −(G₁ᵉ − v_e)1, and K_ef loses v_e ℓχ_f, which is 0 for ℓχ = 0.

On other meshes, from steady states: if −∇·K∇T = S with T = 0 on the boundary, then for every smooth φ that vanishes
there  Σ K_ef ∫T ∂_e∂_f φ = −∫S φ: three unknowns, fitted over several S and φ.

A reaction shifts the spectrum by its rate. With transport K contains numerical diffusion, which is proportional to h:
two sizes of lattice separate it from the equation's own.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fluxforge.certify._equations import SAME_SYSTEM, Derivatives, EffectiveEquation, SmoothEquation
from fluxforge.certify._families import LATTICES, Levels, lattice_graph, lattice_size
from fluxforge.certify._problems import diffusion_rate, diffusion_strength
from fluxforge.certify._systems import Period, period_rows, source_error, steady_solver
from fluxforge.errors import NumericalError
from fluxforge.expression._parse import field, parse
from fluxforge.expression._print import to_text
from fluxforge.expression._symbols import COORDINATES, symbol
from fluxforge.mesh._build import dual
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.pde._equation import HEAT, Equation
from fluxforge.pde._parameter import Rank
from fluxforge.scheme._scheme import Scheme


def wave_symbols(dimension: int) -> tuple[sp.Symbol, ...]:
    """The symbols k_x, k_y, … of the wave numbers, one per coordinate."""
    return tuple(symbol(f"k_{axis}") for axis in COORDINATES[:dimension])


def own_derivatives(
    equation: Equation, dimension: int, values: Mapping[sp.Symbol, sp.Expr] | None = None
) -> Derivatives:
    """The coefficients of a linear equation with constant parameters, which are symbols or have the given `values`.

    They are those of q in u_t/u for u = e^{q·x}, from the strong form. Raises NumericalError for an equation that is
    not linear.
    """
    if not equation.linear:
        raise NumericalError(f"equation {equation.name!r} is not linear, and has no coefficients to compare with")
    rate = sp.expand(_rate_of_waves(equation, dimension).xreplace(dict(values or {})))
    return {powers: c for powers, c in sp.Poly(rate, *wave_symbols(dimension)).terms() if c != 0}


@lru_cache(maxsize=64)  # simplifying takes longer than all else, and is the same for every scheme of an equation
def _rate_of_waves(equation: Equation, dimension: int) -> sp.Expr:
    """u_t/u of u = e^{q·x}, the wave symbols for q."""
    axes = [symbol(axis) for axis in COORDINATES[:dimension]]
    u = sp.exp(sp.Add(*(q * x for q, x in zip(wave_symbols(dimension), axes, strict=True))))
    source = equation.strong(u, dimension) - equation.strong(sp.S.Zero, dimension)
    return sp.simplify(-source / (u * equation.capacity))


def own_equation(equation: Equation, dimension: int, parameters: Settings | None = None) -> SmoothEquation:
    """Rate, drift and K of a linear equation with constant parameters; those left out have their example values."""
    settings: Any = {**equation.example(dimension), **(parameters or {})}
    values: dict[sp.Symbol, sp.Expr] = {}
    for p in equation.parameters:
        names = (p.name,) if p.rank is Rank.SCALAR else p.component_names(dimension)
        values |= {symbol(name): sp.Float(float(v)) for name, v in zip(names, np.ravel(settings[p.name]), strict=True)}
    coefficients = {powers: float(c) for powers, c in own_derivatives(equation, dimension, values).items()}
    unit = np.eye(dimension, dtype=int)
    K = np.empty((dimension, dimension))
    for e in range(dimension):
        for f in range(dimension):
            share = 1.0 if e == f else 0.5
            K[e, f] = share * coefficients.get(tuple((unit[e] + unit[f]).tolist()), 0.0)
    drift = np.array([coefficients.get(tuple(unit[e].tolist()), 0.0) for e in range(dimension)])
    return SmoothEquation(coefficients.get((0,) * dimension, 0.0), drift, K)


# Singular values of G₀ and drifts below this share of the entries of G are round-off: sums of a few dozen entries.
ROUND_OFF = 1e-11


def effective_diffusion(scheme: Scheme, levels: Levels, *, parameters: Settings | None = None) -> np.ndarray:
    """The ratio of K to the equation's own on a family: exact on lattices, fitted on the finest level elsewhere.

    Raises NumericalError if the scheme has a first-order drift on a lattice: then no diffusivity describes it.
    """
    if levels.family not in LATTICES:
        fitted = fitted_diffusion(scheme, levels.mesh(levels.sizes[-1]), parameters=parameters)
        return relative_to_own(fitted, scheme.equation, parameters)
    smooth = lattice_equation(scheme, levels.family, parameters=parameters)
    if smooth.drift.any():
        letter = scheme.equation.words.diffusion
        drift = " + ".join(f"{v:.3g} {letter} T_{axis}" for v, axis in zip(smooth.drift, COORDINATES, strict=False))
        kind = "a heat" if scheme.equation == HEAT else "that"
        raise NumericalError(f"smooth fields drift, T_t = {drift} + …: the equation is not {kind} equation")
    return relative_to_own(smooth.K, scheme.equation, parameters)


# Wave numbers of the sources; the three unknown entries of K need different directions.
MODES = ((1, 1), (1, 2), (2, 1))


def fitted_diffusion(scheme: Scheme, mesh: Mesh, *, parameters: Settings | None = None) -> np.ndarray:
    """K by a least-squares fit of the weak form, on meshes of the unit square.

    The φ vanish with their first derivatives on the boundary, so that boundary errors of a scheme do not enter. Raises
    NumericalError if the scheme changes the source, whose error the fit would take for one of K.
    """
    if source_error(scheme, {**scheme.equation.example(2), **(parameters or {})}) > SAME_SYSTEM:
        raise NumericalError("not measured: the source enters with a wrong coefficient, and K is fitted to its effects")
    graph = dual(mesh)
    x, y = graph.x.T
    V = graph.V
    tests = [tuple(function(x, y) for function in functions) for functions in _test_functions()]
    rows, right = [], []
    solve = steady_solver(scheme, graph, parameters=parameters)
    size = diffusion_strength(scheme.equation, parameters)
    for m, n in MODES:
        S = size * 2 * np.pi**2 * np.sin(m * np.pi * x) * np.sin(n * np.pi * y)
        T = solve(S)
        for phi, xx, xy, yy in tests:
            rows.append([V @ (xx * T), 2 * V @ (xy * T), V @ (yy * T)])
            right.append(-V @ (S * phi) / size)
    kxx, kxy, kyy = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0]
    return np.array([[kxx, kxy], [kxy, kyy]])


@cache
def _test_functions() -> tuple[tuple[Callable[..., np.ndarray], ...], ...]:
    """Several φ, each with its second derivatives φ_xx, φ_xy and φ_yy, as functions of x and y."""
    x, y = symbol("x"), symbol("y")
    functions = []
    for wave in ("1", "cos(pi*x)", "cos(pi*y)", "cos(pi*x)*cos(pi*y)"):
        phi = parse(f"(sin(pi*x)*sin(pi*y))**3*{wave}", ("x", "y"))
        xx, xy, yy = (to_text(sp.diff(phi, a, b)) for a, b in ((x, x), (x, y), (y, y)))
        functions.append(tuple(field(text) for text in (to_text(phi), xx, xy, yy)))
    return tuple(functions)


def relative_to_own(K: np.ndarray, equation: Equation, parameters: Settings | None) -> np.ndarray:
    """W K W with W² the inverse of the equation's own tensor over its size, the unit matrix if both are equal.

    K itself if the equation's own diffusion is not a tensor.
    """
    tensor = equation.diffusion_tensor
    if tensor is None:
        return K
    own = np.asarray((parameters or equation.example(len(K)))[tensor.name], float)
    values, vectors = np.linalg.eigh(own)
    W = vectors @ np.diag(np.sqrt(diffusion_strength(equation, parameters, len(K)) / values)) @ vectors.T
    return np.asarray(W @ K @ W)


def lattice_diffusion(scheme: Scheme, family: str, *, parameters: Settings | None = None) -> np.ndarray:
    """The ratio of K to the size of the own K/c on one period in the middle of the lattice; a drift is ignored."""
    return lattice_equation(scheme, family, parameters=parameters).K


def lattice_equation(scheme: Scheme, family: str, *, parameters: Settings | None = None) -> SmoothEquation:
    """The equation of smooth fields on one period in the middle of the lattice, divided by the size of the own K/c.

    A drift that is round-off is returned as exactly 0.

    Raises NumericalError if constants change.
    """
    dimension = Levels(family, ()).dimension
    size = diffusion_rate(scheme.equation, parameters, dimension)
    return _cell_problem(period_rows(scheme, *lattice_graph(family), parameters=parameters, size=size), reacts=False)


def smooth_equation(scheme: Scheme, family: str, *, parameters: Settings | None = None) -> SmoothEquation:
    """The equation of smooth fields on a lattice as h → 0, for any linear equation with constant parameters.

    Raises NumericalError if constants change although the equation has no reaction, or change at different rates.
    """
    equation = scheme.equation
    reacts = equation.reaction != 0
    coarse = _cell_problem(period_rows(scheme, *lattice_graph(family), parameters=parameters), reacts=reacts)
    if equation.velocity is None:
        return coarse
    # K(h) = K + h K', exactly for fluxes that are homogeneous in the geometry.
    n = lattice_size(family)
    finer = _cell_problem(period_rows(scheme, *lattice_graph(family, 2 * n - 1), parameters=parameters), reacts=reacts)
    h, half = 1.0 / n, 1.0 / (2 * n - 1)
    return SmoothEquation(finer.rate, finer.drift, (h * finer.K - half * coarse.K) / (h - half))


def effective_equation(scheme: Scheme, family: str, *, parameters: Settings) -> EffectiveEquation:
    """The equation of smooth fields on a lattice, and the scheme's own equation, with constant parameters."""
    dimension = Levels(family, ()).dimension
    smooth = smooth_equation(scheme, family, parameters=parameters)
    return EffectiveEquation(smooth, own_equation(scheme.equation, dimension, parameters))


def _cell_problem(period: Period, *, reacts: bool) -> SmoothEquation:
    """Rate, drift and K from the rows of one period; without `reacts` the rate is 0. See the top of this file."""
    count, axes = period.cells, range(period.dimension)
    G0, G1, G2 = _moments(period)
    largest = float(np.abs(period.value).max(initial=0.0))
    ones = np.ones(count)
    rate = float((G0 @ ones).mean()) if reacts else 0.0
    G0 = G0 - rate * np.eye(count)
    keeps = np.abs(G0 @ ones).max() <= ROUND_OFF * largest
    left = _left_null_vector(G0, G1, ROUND_OFF * largest, period.size) if keeps else np.zeros(count)
    if abs(left @ ones) < 1e-12:
        raise NumericalError("the scheme does not keep constants, so it has no diffusivity")
    left = left / (left @ ones)
    drift = np.array([left @ G1[e] @ ones for e in axes])
    # A drift that is round-off is set to 0.
    drift = np.where(np.abs(drift) > ROUND_OFF * largest * period.size, drift, 0.0)
    inverse = _inverse(G0, ROUND_OFF * largest)
    chi = [-inverse @ (G1[e] @ ones - drift[e] * ones) for e in axes]
    chi = [one - (left @ one) * ones for one in chi]
    K = np.empty((period.dimension, period.dimension))
    for e in axes:
        for f in axes:
            K[e, f] = left @ (0.5 * G2[e, f] @ ones + 0.5 * (G1[e] @ chi[f] + G1[f] @ chi[e]))
    return SmoothEquation(rate, drift, K)


def _left_null_vector(G0: np.ndarray, G1: np.ndarray, smallest: float, size: float) -> np.ndarray:
    """The ℓ with ℓG₀ = 0; if there are several, the one with ℓ(G₁ᵉ − v_e)R = 0 for all right null vectors R and all e.

    Central fluxes on triangles have several: a cell's own weight is 0, and a field that changes its sign from one type
    of cells to the other drifts, with another velocity, instead of decaying. `smallest` is the size of round-off of G₀,
    `size` that of cells. Raises NumericalError if no ℓ, or more than one, separates smooth fields from such fields.
    """
    U, values, W = np.linalg.svd(G0)
    null = values <= smallest
    if np.count_nonzero(null) <= 1 or not G1.any():  # Without first moments cells do not exchange anything.
        return np.asarray(U[:, -1])
    left, right = U[:, null], W[null].T
    constant = left.sum(axis=0)
    drifts = [left.T @ G1[e].sum(axis=1) @ constant / max(constant @ constant, 1e-300) for e in range(len(G1))]
    excess = [left.T @ (G1[e] - drift * np.eye(len(G0))) @ right for e, drift in enumerate(drifts)]
    combinations, rest, _ = np.linalg.svd(np.hstack(excess))
    alone = rest > smallest * size
    if np.count_nonzero(~alone) != 1:
        raise NumericalError("smooth fields are not the only ones that last on this lattice, so they obey no equation")
    return np.asarray(left @ combinations[:, -1])


def _inverse(matrix: np.ndarray, smallest: float) -> np.ndarray:
    """The pseudo-inverse without singular values up to `smallest`: with one cell a period all of G₀ is round-off."""
    U, values, W = np.linalg.svd(matrix)
    kept = values > smallest
    return np.asarray((W[kept].T / values[kept]) @ U[:, kept].T)


def _moments(period: Period) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ΣG, ΣG d and ΣG d d over all periods, between the cells of one."""
    count, size, d = period.cells, period.dimension, period.d
    at = (period.row, period.kind)
    G0 = np.zeros((count, count))
    G1 = np.zeros((size, count, count))
    G2 = np.zeros((size, size, count, count))
    np.add.at(G0, at, period.value)
    for e in range(size):
        np.add.at(G1[e], at, period.value * d[:, e])
        for f in range(size):
            np.add.at(G2[e, f], at, period.value * d[:, e] * d[:, f])
    return G0, G1, G2
