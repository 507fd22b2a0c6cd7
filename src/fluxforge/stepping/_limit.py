"""The largest stable time step of a scheme on a graph."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import sympy as sp
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import ArpackError, eigs, eigsh

from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._boundary import Neumann
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph, check_graph
from fluxforge.mesh._generate import jittered, squares
from fluxforge.mesh._parameters import Settings, reference_step
from fluxforge.scheme._linear import Z, amplification, linear_stages
from fluxforge.scheme._scheme import Scheme, check_scheme
from fluxforge.stepping._assemble import generator, is_symmetric, step_matrix
from fluxforge.stepping._field import cell_capacity, linear_reaction

# For M(Δt) = R(Δt G), relative to the largest entry of M.
MATRIX_TOLERANCE = 1e-9


@cache
def is_one_operator(scheme: Scheme) -> bool:
    """Whether M(Δt) = R(Δt G) to round-off on three small meshes, with Dirichlet, insulated and both kinds of walls."""
    factor = amplification(scheme) if linear_stages(scheme) is not None else None
    if factor is None or scheme.dimension == 3:
        # Formulas of three coordinates cannot be evaluated on plane meshes.
        return False
    both: Mapping[str, Neumann | float] = {"left": 0.0, "right": Neumann(), "bottom": Neumann(), "top": 0.0}
    graphs = (dual(jittered(5, 0.2, 3)), dual(squares(3), Neumann()), dual(jittered(4, 0.2, 1), both))
    return all(_is_one_operator_on(graph, scheme, factor) for graph in graphs)


def _is_one_operator_on(graph: DualGraph, scheme: Scheme, factor: sp.Expr) -> bool:
    parameters = scheme.equation.example(graph.dimension)
    G = generator(scheme, graph, parameters=parameters).M.toarray()
    reference = reference_step(scheme.equation, graph, parameters)
    if not np.isfinite(reference):
        # Nothing is exchanged and nothing decays: the step is taken from the size of G's entries.
        reference = 1.0 / max(np.abs(G).max(initial=0.0), 1e-300)
    dt = 0.7 * reference
    A = dt * G
    M = step_matrix(scheme, graph, dt, parameters=parameters).toarray()
    numerator, denominator = _coefficients(factor)
    # R is written for a decaying mode, z = −Δt |λ|; for a generator whose mode grows it holds with −A.
    for turned in (A, -A):
        wanted = np.linalg.solve(_horner(denominator, turned), _horner(numerator, turned))
        if np.abs(M - wanted).max() <= MATRIX_TOLERANCE * np.abs(M).max():
            return True
    return False


def _coefficients(factor: sp.Expr) -> tuple[list[float], list[float]]:
    """The coefficients of numerator and denominator of R, highest power first."""
    z = next(iter(factor.free_symbols), Z)
    numerator, denominator = (
        [float(c) for c in sp.Poly(part, z).all_coeffs()] for part in sp.fraction(sp.together(factor))
    )
    return numerator, denominator


def _horner(coefficients: list[float], A: np.ndarray) -> np.ndarray:
    total = np.zeros_like(A)
    for c in coefficients:
        total = total @ A + c * np.eye(len(A))
    return total


_MOST_DENSE_CELLS = 300
_LARGEST_RADIUS = 1e4
_TOLERANCE = 1e-5
_ROUGH_TOLERANCE = 1e-4
# The tolerance for a modulus of 1, and for sums of a few entries of G.
_ROUND_OFF = 1e-12


@dataclass(frozen=True)
class StepLimit:
    """`dt`: the largest stable step (infinite if unlimited, 0 if none); `interval`: [−interval, 0] is where |R| ≤ 1.

    `rate` is the largest |eigenvalue| of the generator, without modes that the equation itself lets grow. If the rate
    is only enclosed, `dt` belongs to its lower bound and `certain`, at most `dt`, is a step that is stable in any case.
    """

    dt: float
    interval: float
    rate: float
    certain: float


def step_limit(
    scheme: Scheme, graph: DualGraph, *, parameters: Settings | None = None, precise: bool = True
) -> StepLimit | None:
    """The largest step with |R(Δt λ)| ≤ 1 for the fastest eigenvalues λ of the scheme's generator.

    None if the scheme is not a function R of one operator. Modes that grow no faster than the equation's reaction makes
    fields grow are left out: the exact solution grows too.

    On large meshes it takes long to find the eigenvalue to five digits. Unless `precise`, it is enclosed by a few dozen
    Lanczos steps if cV·G is symmetric; if it is not, and |R| ≤ 1 on the whole negative axis, `rate` is the largest row
    sum, an upper bound. Raises NumericalError if the eigenvalues are not found.
    """
    check_scheme(scheme), check_graph(graph)
    factor = amplification(scheme) if is_one_operator(scheme) else None
    if factor is None:
        return None
    interval = real_interval(factor)
    if scheme.equation.velocity is not None:
        return _limit_within_discs(factor, generator(scheme, graph, parameters=parameters).M, interval)
    G = generator(scheme, graph, parameters=parameters).M
    weight = graph.V * cell_capacity(scheme.equation, graph, parameters)
    if not precise and interval > 0 and G.nnz:
        symmetric = is_symmetric(csr_array(diags_array(weight) @ G))
        if interval < math.inf and symmetric:
            low, high = enclose_rate(G, weight)
            if low > 0:
                return StepLimit(interval / low, interval, low, interval / high)
        elif interval == math.inf and not symmetric and G.diagonal().max() <= 0:
            return StepLimit(math.inf, math.inf, float(abs(G).sum(axis=1).max()), math.inf)
    fastest = _limiting_eigenvalues(scheme, graph, G, weight, parameters)
    rate = float(np.abs(fastest).max(initial=0.0))
    if interval in (0.0, math.inf) or rate == 0:
        # With a generator of the wrong sign, modes grow where R(z) at z < 0 promises decay.
        grows = rate > 0 and fastest[np.argmax(np.abs(fastest))].real > 0
        limit = 0.0 if interval == 0 or grows else math.inf
    else:
        limit = _shrink_step(factor, fastest, interval / rate)
    return StepLimit(limit, interval, rate, limit)


def _limiting_eigenvalues(
    scheme: Scheme,
    graph: DualGraph,
    G: csr_array,
    weight: Float[np.ndarray, " cells"],
    parameters: Settings | None,
) -> np.ndarray:
    """The fastest eigenvalues without those in 0 < Re λ ≤ ρ, ρ the largest r′/c of the equation.

    The shift by ρ makes the fastest decay the largest modulus, also where the reaction is faster.
    """
    reaction = linear_reaction(scheme.equation, graph, parameters)
    growth = 0.0 if reaction is None else reaction.growth
    if growth == 0:
        return fastest_eigenvalues(G, weight)
    shifted = fastest_eigenvalues(csr_array(G - growth * eye_array(graph.cells)), weight)
    eigenvalues = shifted + growth
    # Rounding of G moves its eigenvalues by about ε times the largest; iterated ones are as good as their tolerance.
    off = (_ROUND_OFF if graph.cells <= _MOST_DENSE_CELLS else _ROUGH_TOLERANCE) * np.abs(shifted).max(initial=0.0)
    return eigenvalues[(eigenvalues.real <= 0) | (shifted.real > off)]


def _limit_within_discs(factor: sp.Expr, G: csr_array, interval: float) -> StepLimit | None:
    """The step at which Gershgorin's discs of G lie in the region |R| ≤ 1: eigenvalues of transport are not real.

    G is far from normal: its eigenvalues alone would allow steps at which errors grow. None where a disc reaches into
    the right half plane, as in a flow that converges.
    """
    diagonal = -G.diagonal()
    off = np.asarray(abs(G).sum(axis=1)).ravel() - np.abs(diagonal)
    if not (off <= diagonal * (1 + _ROUND_OFF) + _ROUND_OFF * diagonal.max(initial=0.0)).all():
        return None
    rate = float(diagonal.max(initial=0.0))
    limit = disc_radius(factor) / rate if rate else math.inf
    return StepLimit(limit, interval, rate, limit)


def enclose_rate(G: csr_array, V: Float[np.ndarray, " cells"], steps: int = 60) -> tuple[float, float]:
    """Bounds of the largest |eigenvalue| of G, V·G symmetric: the largest Ritz value, and that plus its residual.

    An eigenvalue lies within the residual of the Ritz value; after `steps` steps from a random start it is the largest
    one. The upper bound is at most the largest row sum, which bounds every eigenvalue.
    """
    largest_row = float(abs(G).sum(axis=1).max())
    root = np.sqrt(V)
    scaled = csr_array(diags_array(root) @ -G @ diags_array(1 / root))
    ritz, residual = _lanczos(scaled, min(steps, len(V)))
    return ritz, min(ritz + residual, largest_row)


def _lanczos(A: csr_array, steps: int) -> tuple[float, float]:
    """The largest Ritz value θ of a symmetric matrix and the norm of its residual: an eigenvalue lies within it of θ.

    The largest Ritz value never exceeds the largest eigenvalue.
    """
    q = np.random.default_rng(0).standard_normal(A.shape[0])
    q /= np.linalg.norm(q)
    before, beta = np.zeros_like(q), 0.0
    diagonal, aside = [], []
    for _ in range(steps):
        r = A @ q - beta * before
        diagonal.append(float(q @ r))
        r -= diagonal[-1] * q
        beta = float(np.linalg.norm(r))
        aside.append(beta)
        if beta <= 1e-12 * abs(diagonal[0]):
            break
        before, q = q, r / beta
    if not np.isfinite([*diagonal, *aside]).all():
        raise NumericalError("the scheme's generator is not finite, so that its largest eigenvalue is not defined")
    values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(aside[:-1]))
    return float(values[-1]), abs(aside[-1] * vectors[-1, -1])


def _shrink_step(factor: sp.Expr, eigenvalues: np.ndarray, dt: float) -> float:
    """The largest stable step up to dt, by bisection: off the real axis, R leaves the unit disk earlier."""
    numerator, denominator = _coefficients(factor)

    def stable(step: float) -> bool:
        at = step * eigenvalues
        return bool((np.abs(np.polyval(numerator, at) / np.polyval(denominator, at)) <= 1 + 1e-12).all())

    return dt if stable(dt) else _bisect(stable, dt)


def _bisect(holds: Callable[[float], bool], high: float) -> float:
    """The largest number, to round-off, up to which `holds` is true; it is true at 0 and false at `high`."""
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def fastest_eigenvalues(G: csr_array, V: Float[np.ndarray, " cells"] | None = None) -> np.ndarray:
    """The eigenvalues of largest modulus, to about five digits; NumericalError where the iteration does not converge.

    A conservative flux makes V·G symmetric: then Lanczos on V^½ G V^−½ finds its end of the spectrum in a few dozen
    products, where Arnoldi's method converges slowly because the eigenvalues of meshes cluster there.
    """
    n = G.shape[0]
    if not abs(G).max():
        # ARPACK cannot start on the zero matrix.
        return np.zeros(1)
    if n <= _MOST_DENSE_CELLS:
        eigenvalues = np.linalg.eigvals(G.toarray())
        return eigenvalues[np.argsort(-np.abs(eigenvalues))]
    start = np.random.default_rng(0).standard_normal(n)
    try:
        if V is not None and is_symmetric(csr_array(diags_array(V) @ G)):
            root = np.sqrt(V)
            scaled = csr_array(diags_array(root) @ G @ diags_array(1 / root))
            return eigsh(scaled, k=1, which="LM", return_eigenvectors=False, v0=start, tol=_TOLERANCE, ncv=60)
        # Off the real axis the largest modulus need not be the first to leave the stable region.
        ends = [
            eigs(G, k=4, which=end, return_eigenvectors=False, v0=start, tol=_ROUGH_TOLERANCE, ncv=60)
            for end in ("LM", "LI")
        ]
        return np.concatenate(ends)
    except ArpackError as error:
        # The eigenvalues that did converge need not be the largest, so none is returned.
        raise NumericalError(f"the largest eigenvalues of the scheme on {n} cells were not found ({error})") from error


def disc_radius(factor: sp.Expr) -> float:
    """The largest r with |R| ≤ 1 on the disc |z + r| ≤ r, by bisection: such discs are nested; infinite beyond 10⁴.

    R has no pole there, so that its largest modulus is on the circle.
    """
    z = next(iter(factor.free_symbols), None)
    if z is None:
        return math.inf if abs(factor) <= 1 else 0.0
    circle = np.exp(1j * np.linspace(0.0, np.pi, 721)) - 1

    def inside(r: float) -> bool:
        return bool((np.abs(evaluate(factor, {z: r * circle}, np)) <= 1 + _ROUND_OFF).all())

    return math.inf if inside(_LARGEST_RADIUS) else _bisect(inside, _LARGEST_RADIUS)


def real_interval(factor: sp.Expr) -> float:
    """The largest β with |R(−x)| ≤ 1 on all of [0, β]: between the real roots of R = ±1, |R| − 1 keeps its sign."""
    symbols = factor.free_symbols
    if not symbols:
        return math.inf if abs(factor) <= 1 else 0.0
    z = next(iter(symbols))
    x = symbol("x", "positive")
    along = sp.cancel(factor.subs(z, -x))
    numerator, denominator = sp.fraction(along)
    roots: set[float] = set()
    for level in (1, -1):
        polynomial = sp.Poly(sp.expand(numerator - level * denominator), x)
        if not polynomial.is_zero:
            roots |= {float(root) for root in _real_roots(polynomial) if root > 0}
    edges = [0.0, *sorted(roots)]
    middles = [0.5 * (a + b) for a, b in pairwise(edges)] + [2 * edges[-1] + 1.0]
    for start, middle in zip(edges, middles, strict=True):
        if abs(along.subs(x, sp.Float(middle, 30))) > 1:
            return start
    return math.inf


def _real_roots(polynomial: sp.Poly) -> list[sp.Expr]:
    try:
        return list(polynomial.real_roots())
    except NotImplementedError as error:
        raise NumericalError(f"the real roots of {polynomial.as_expr()} were not found ({error})") from error


def limit_kind(limit: float | None) -> str:
    """`unknown` for None, `unlimited` for infinity, otherwise `finite`."""
    if limit is None:
        return "unknown"
    return "unlimited" if math.isinf(limit) else "finite"
