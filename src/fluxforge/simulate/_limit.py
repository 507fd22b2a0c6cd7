"""The largest stable time step of a scheme on a graph."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import sympy as sp
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, eigs

from fluxforge.mesh import DualGraph
from fluxforge.scheme import Scheme, amplification, linear_stages
from fluxforge.simulate._assemble import generator

_DENSE = 300


@dataclass(frozen=True)
class StepLimit:
    """`dt`: the largest stable step (infinite if unlimited, 0 if none); `interval`: [−interval, 0] is where |R| ≤ 1."""

    dt: float
    interval: float
    rate: float


def step_limit(scheme: Scheme, graph: DualGraph, *, diffusivity: float = 1.0) -> StepLimit | None:
    """|R(Δt λ)| ≤ 1 for the fastest eigenvalues λ of the scheme's generator; None where the scheme has no R."""
    factor = amplification(scheme) if linear_stages(scheme) is not None else None
    if factor is None:
        return None
    interval = real_interval(factor)
    G = generator(scheme, graph, diffusivity=diffusivity).M
    fastest = fastest_eigenvalues(G)
    rate = float(np.abs(fastest).max(initial=0.0))
    if interval in (0.0, math.inf) or rate == 0:
        # A wrong-signed generator turns the interval around: growth where R promises decay.
        grows = rate > 0 and fastest[np.argmax(np.abs(fastest))].real > 0
        return StepLimit(0.0 if interval == 0 or grows else math.inf, interval, rate)
    return StepLimit(_shrunk(factor, fastest, interval / rate), interval, rate)


def _shrunk(factor: sp.Expr, eigenvalues: np.ndarray, dt: float) -> float:
    """Bisect below dt for eigenvalues off the real axis, whose R leaves the unit disk earlier."""
    z = next(iter(factor.free_symbols))
    numerator, denominator = (
        np.array([float(c) for c in sp.Poly(part, z).all_coeffs()]) for part in sp.fraction(sp.together(factor))
    )

    def stable(step: float) -> bool:
        at = step * eigenvalues
        return bool((np.abs(np.polyval(numerator, at) / np.polyval(denominator, at)) <= 1 + 1e-9).all())

    if stable(dt):
        return dt
    low, high = 0.0, dt
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def real_interval(factor: sp.Expr) -> float:
    """The largest β with |R(−x)| ≤ 1 on all of [0, β]: between the real roots of R = ±1, |R| − 1 keeps its sign."""
    symbols = factor.free_symbols
    if not symbols:
        return math.inf if abs(factor) <= 1 else 0.0
    z = next(iter(symbols))
    x = sp.Symbol("x", positive=True)
    along = sp.cancel(factor.subs(z, -x))
    numerator, denominator = sp.fraction(along)
    roots: set[float] = set()
    for level in (1, -1):
        polynomial = sp.Poly(sp.expand(numerator - level * denominator), x)
        if not polynomial.is_zero:
            roots |= {float(root) for root in polynomial.real_roots() if root > 0}
    edges = [0.0, *sorted(roots)]
    middles = [0.5 * (a + b) for a, b in pairwise(edges)] + [2 * edges[-1] + 1.0]
    for start, middle in zip(edges, middles, strict=True):
        if abs(along.subs(x, sp.Float(middle, 30))) > 1:
            return start
    return math.inf


def fastest_eigenvalues(G: csr_array, count: int = 6) -> np.ndarray:
    """The eigenvalues of largest modulus."""
    n = G.shape[0]
    if n <= _DENSE:
        found = np.linalg.eigvals(G.toarray())
        return found[np.argsort(-np.abs(found))][:count]
    try:
        return np.asarray(eigs(G, k=count, which="LM", return_eigenvectors=False, v0=_rough(n), tol=1e-8))
    except ArpackNoConvergence as error:
        # The largest row sum bounds every eigenvalue: a step it allows is stable, if smaller than need be.
        bound = abs(G).sum(axis=1).max()
        return np.asarray(error.eigenvalues) if len(error.eigenvalues) else np.array([-bound])


def _rough(n: int) -> np.ndarray:
    """A start rich in the roughest modes, the same every time."""
    return np.random.default_rng(0).standard_normal(n)
