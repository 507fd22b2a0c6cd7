"""The effective diffusivity tensor K/α: which heat equation a scheme really solves on a family of meshes.

On a lattice, exactly, from the cell problem: with rows G_{ij} of one period, d_ij = x_j − x_i and ℓ the left null
vector,  G₀χ_e = −G₁ᵉ1,  K_ef = ℓ(½G₂ᵉᶠ1 + sym G₁ᵉχ_f),  where G₀ = ΣG, G₁ᵉ = ΣG dᵉ, G₂ᵉᶠ = ΣG dᵉdᶠ over all periods.
It is the low-frequency limit of the Bloch spectrum, λ(k) → −k·Kk. With a first-order drift v_e = ℓG₁ᵉ1 ≠ 0 the
spectrum is λ(k) → ik·v − k·Kk: then G₀χ_e = −(G₁ᵉ − v_e)1, and K_ef loses v_e ℓχ_f, which is 0 for ℓχ = 0.

On other meshes, from steady states: if −∇·K∇T = S with T = 0 on the boundary, then for every smooth φ that vanishes
there  Σ K_ef ∫T ∂_e∂_f φ = −∫S φ: three unknowns, fitted over several S and φ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import sympy as sp
from scipy.sparse import csr_array

from fluxforge.errors import NumericalError
from fluxforge.expression import field, parse, to_text
from fluxforge.mesh import DualGraph, Mesh, Settings, dual
from fluxforge.pde import Equation
from fluxforge.scheme import Scheme
from fluxforge.simulate import generator
from fluxforge.verify._families import LATTICES, Levels
from fluxforge.verify._problems import capacity, strength
from fluxforge.verify._steady import steady_solver

# Cells per period of each lattice, and a size whose middle period sees no boundary through any scheme of few hops.
PERIODS = {"squares": 1, "right": 2, "cross": 4, "equilateral": 2}
LATTICE_SIZE = 21
MODES = ((1, 1), (1, 2), (2, 1))
# Singular values of G₀ and drifts below this share of the entries of G are round-off: sums of a few dozen entries.
ROUND_OFF = 1e-11


@dataclass(frozen=True)
class LatticeEquation:
    """T_t = drift·∇T + ∇·K∇T for smooth T on a lattice, both over α/c; `drift` is exactly 0 where it is round-off."""

    K: np.ndarray
    drift: np.ndarray


def effective_diffusivity(scheme: Scheme, levels: Levels, *, parameters: Settings | None = None) -> np.ndarray:
    """K/α on a family: exact on lattices, fitted on the finest level elsewhere.

    Raises NumericalError where the scheme has a first-order drift on a lattice: then no diffusivity describes it.
    """
    if levels.family not in LATTICES:
        fitted = fitted_diffusivity(scheme, levels.mesh(levels.sizes[-1]), parameters=parameters)
        return _relative(fitted, scheme.equation, parameters)
    found = lattice_equation(scheme, levels.family, parameters=parameters)
    if found.drift.any():
        raise NumericalError(
            f"smooth fields drift, T_t = {found.drift[0]:.3g} α T_x + {found.drift[1]:.3g} α T_y + …: "
            f"the equation is not a heat equation"
        )
    return _relative(found.K, scheme.equation, parameters)


def _relative(K: np.ndarray, equation: Equation, parameters: Settings | None) -> np.ndarray:
    """W K W with W² the inverse of the equation's own tensor over its size: the unit matrix, if both are the same."""
    tensor = equation.diffusion_tensor
    if tensor is None:
        return K
    values, vectors = np.linalg.eigh(np.asarray((parameters or equation.example(2))[tensor.name], float))
    W = vectors @ np.diag(np.sqrt(strength(equation, parameters) / values)) @ vectors.T
    return np.asarray(W @ K @ W)


def lattice_diffusivity(scheme: Scheme, family: str, *, parameters: Settings | None = None) -> np.ndarray:
    """K/α on one period in the middle of the lattice; a drift, if there is one, is set apart."""
    return lattice_equation(scheme, family, parameters=parameters).K


def lattice_equation(scheme: Scheme, family: str, *, parameters: Settings | None = None) -> LatticeEquation:
    """The cell problem on one period in the middle of the lattice."""
    graph = dual(Levels(family, (LATTICE_SIZE,)).mesh(LATTICE_SIZE))
    # The generator of c T_t = ∇·K∇T is that of K/c.
    size = strength(scheme.equation, parameters) / capacity(scheme.equation, parameters)
    G = generator(scheme, graph, parameters=parameters).M / size
    count = PERIODS[family]
    n = LATTICE_SIZE
    first = ((n // 2) * n + n // 2) * count
    rows = np.arange(first, first + count)
    G0, G1, G2 = _moments(graph, G, rows, count)
    largest = float(abs(G[rows]).max())
    left = _null_vector(G0.T)
    ones = np.ones(count)
    if abs(left @ ones) < 1e-12 or np.abs(G0 @ ones).max() > ROUND_OFF * largest:
        raise NumericalError("the scheme does not keep constants, so it has no diffusivity")
    left = left / (left @ ones)
    drift = np.array([left @ G1[e] @ ones for e in range(2)])
    # Without a drift to speak of, the cell problem is solved as if there were none.
    drift = np.where(np.abs(drift) > ROUND_OFF * largest * np.sqrt(graph.V.mean()), drift, 0.0)
    inverse = _inverse(G0, ROUND_OFF * largest)
    chi = [-inverse @ (G1[e] @ ones - drift[e] * ones) for e in range(2)]
    chi = [one - (left @ one) * ones for one in chi]
    K = np.empty((2, 2))
    for e in range(2):
        for f in range(2):
            K[e, f] = left @ (0.5 * G2[e, f] @ ones + 0.5 * (G1[e] @ chi[f] + G1[f] @ chi[e]))
    return LatticeEquation(K, drift)


def _inverse(matrix: np.ndarray, smallest: float) -> np.ndarray:
    """The pseudo-inverse without singular values up to `smallest`: with one cell a period all of G₀ is round-off."""
    U, values, W = np.linalg.svd(matrix)
    kept = values > smallest
    return np.asarray((W[kept].T / values[kept]) @ U[:, kept].T)


def _moments(graph: DualGraph, G: csr_array, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ΣG, ΣG d and ΣG d d over all periods, between the cells of one."""
    G0 = np.zeros((count, count))
    G1 = np.zeros((2, count, count))
    G2 = np.zeros((2, 2, count, count))
    block = G[rows].tocoo()
    kind = block.col % count
    d = graph.x[block.col] - graph.x[rows[block.row]]
    np.add.at(G0, (block.row, kind), block.data)
    for e in range(2):
        np.add.at(G1[e], (block.row, kind), block.data * d[:, e])
        for f in range(2):
            np.add.at(G2[e, f], (block.row, kind), block.data * d[:, e] * d[:, f])
    return G0, G1, G2


def _null_vector(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.svd(matrix)[2][-1])


def fitted_diffusivity(scheme: Scheme, mesh: Mesh, *, parameters: Settings | None = None) -> np.ndarray:
    """The least-squares fit of the weak form; for meshes of the unit square.

    The φ vanish with their first derivatives on the boundary, so that what a scheme does there does not enter.
    """
    graph = dual(mesh)
    x, y = graph.x.T
    V = graph.V
    tests = [tuple(function(x, y) for function in functions) for functions in _test_functions()]
    rows, right = [], []
    solve = steady_solver(scheme, graph, parameters=parameters)
    size = strength(scheme.equation, parameters)
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
    """φ and its second derivatives, to be evaluated."""
    found = []
    for wave in ("1", "cos(pi*x)", "cos(pi*y)", "cos(pi*x)*cos(pi*y)"):
        phi = parse(f"(sin(pi*x)*sin(pi*y))**3*{wave}", ("x", "y"))
        x, y = (next(s for s in phi.free_symbols if s.name == name) for name in "xy")
        xx, xy, yy = (to_text(sp.diff(phi, a, b)) for a, b in ((x, x), (x, y), (y, y)))
        found.append(tuple(field(text) for text in (to_text(phi), xx, xy, yy)))
    return tuple(found)
