"""Stability over the complex plane: eigenvalues of the semi-discrete operator against the region |R(z)| ≤ 1.

On an infinite lattice the eigenvalues are those of its symbol, Σ G e^{ik·d}, at every wave number k. On a finite mesh
with inflow, walls or a triangular matrix may hide that a wave grows; here they cannot.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import sympy as sp

from fluxforge.certify._families import lattice_graph
from fluxforge.certify._properties import WaveLimit
from fluxforge.certify._systems import period_rows
from fluxforge.errors import NumericalError
from fluxforge.expression._symbols import symbol
from fluxforge.mesh._parameters import Settings, exchange_weights
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._field import linear_reaction

# Wave numbers along each axis in [−π, π]/h: even steps, and for long waves, whose growth limits the step of central
# fluxes with little diffusion, steps that shrink to this share of π.
EVEN, LONG, SHORTEST = {2: 33, 3: 13}, {2: 8, 3: 5}, 1e-4
# Eigenvalues this near to the imaginary axis, relative to the largest, are on it: sums of a few dozen entries of G.
ON_AXIS = 1e-12
# |R|² − 1 is computed without cancellation to about this times |z|².
ROUNDED = 1e-13
# The first step that is tried is this over the largest eigenvalue, and there is no limit if none is found up to 1e5.
FIRST, LAST = 1e-6, 1e5


def wave_limit(scheme: Scheme, factor: sp.Expr, family: str, *, parameters: Settings) -> WaveLimit | None:
    """The limit on a lattice of one cell a period, for constant parameters; None where waves grow by the equation."""
    values = wave_spectrum(scheme, family, parameters=parameters)
    largest = float(np.abs(values).max(initial=0.0))
    if values.real.max(initial=0.0) > ON_AXIS * largest:
        return None
    on_axis = bool(np.abs(values.real).max(initial=0.0) <= ON_AXIS * largest) and largest > 0
    imaginary = imaginary_interval(factor)
    dt = imaginary / largest if on_axis else spectral_limit(factor, values)
    return WaveLimit(family, dt, dt / reference_of_lattice(scheme, family, parameters=parameters), on_axis, imaginary)


def wave_spectrum(scheme: Scheme, family: str, *, parameters: Settings) -> np.ndarray:
    """The eigenvalues of the generator's symbol at wave numbers of the first Brillouin zone; one cell a period."""
    period = period_rows(scheme, *lattice_graph(family), parameters=parameters)
    if period.cells != 1:
        raise NumericalError(f"waves on {family} have no single eigenvalue a wave number")
    dimension = period.dimension
    share = np.concatenate([np.linspace(0.0, 1.0, EVEN[dimension]), np.geomspace(SHORTEST, 0.1, LONG[dimension])])
    # A wave and its negative are conjugate: half of the first axis is enough.
    both = np.unique(np.concatenate([-share, share]))
    axes = [np.unique(share), *([both] * (dimension - 1))]
    k = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1) * math.pi / period.size
    # e^{ik·d} − 1 = −2 sin²(k·d/2) + i sin(k·d): the real part of long waves is not lost in a difference.
    phase = k @ period.d.T
    waves = -2.0 * np.sin(phase / 2) ** 2 + 1j * np.sin(phase)
    total = math.fsum(period.value)
    rate = total if abs(total) > ON_AXIS * float(np.abs(period.value).max(initial=0.0)) else 0.0
    return np.asarray(waves @ period.value + rate)


def reference_of_lattice(scheme: Scheme, family: str, *, parameters: Settings) -> float:
    """The reference step of a cell inside the lattice, where no wall is nearer than a neighbour."""
    graph, (cell,) = lattice_graph(family)
    exchange = float(exchange_weights(scheme.equation, graph, parameters)[cell].sum())
    reaction = linear_reaction(scheme.equation, graph, parameters)
    assert reaction is not None
    rate = exchange / (reaction.capacity[cell] * graph.V[cell]) + max(0.0, -reaction.slope[cell])
    return math.inf if rate == 0 else float(1.0 / rate)


def imaginary_interval(factor: sp.Expr) -> float:
    """The largest β with |R(iy)| ≤ 1 on all of [0, β]: 0 for Euler's method, 2√2 for the classical one."""
    if not factor.free_symbols:
        return math.inf if abs(factor) <= 1 else 0.0
    (z,) = factor.free_symbols
    y = symbol("y")
    numerator, denominator = (
        sp.expand(part.subs(z, sp.I * y) * part.subs(z, -sp.I * y)) for part in sp.fraction(sp.together(factor))
    )
    excess = sp.Poly(sp.expand(numerator - denominator), y)
    if excess.is_zero:
        return math.inf
    # Even in y, a polynomial of w = y² with a root at 0, which is divided out: its sign there is that of the rest.
    lowest = excess.terms()[-1][0][0]
    rest = np.array([float(excess.coeff_monomial(y**k)) for k in range(excess.degree(), lowest - 1, -2)])
    if rest[-1] > 0:
        return 0.0
    roots = np.roots(rest)
    real = np.sort(roots.real[(np.abs(roots.imag) <= 1e-9 * np.abs(roots)) & (roots.real > 0)])
    at = [0.0, *real.tolist()]
    middles = [0.5 * (a + b) for a, b in pairwise(at)] + [2 * at[-1] + 1.0]
    for start, middle in zip(at, middles, strict=True):
        if np.polyval(rest, middle) > 0:
            return math.sqrt(start)
    return math.inf


def spectral_limit(factor: sp.Expr, eigenvalues: np.ndarray) -> float:
    """The largest Δt up to which |R(Δt λ)| ≤ 1 for every eigenvalue; 0 where none is found, infinite without limit.

    Steps are tried upwards, ten to a decade, and the first that fails is bisected.
    """
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    if largest == 0:
        return math.inf
    excess = _excess(factor)

    def stable(dt: float) -> bool:
        z = dt * eigenvalues
        return bool((excess(z) <= ROUNDED * np.minimum(np.abs(z) ** 2, 1.0) + 1e-300).all())

    last = 0.0
    for dt in np.geomspace(FIRST, LAST, 111) / largest:
        if not stable(float(dt)):
            break
        last = float(dt)
    else:
        return math.inf
    if last == 0.0:
        return 0.0
    low, high = last, last * 10**0.1
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def _excess(factor: sp.Expr) -> Callable[[np.ndarray], np.ndarray]:
    """The map z ↦ (|N|² − |D|²)/|D|² of R = N/D, N − 1 and D − 1 kept apart so that nothing cancels at small z."""
    symbols = factor.free_symbols
    z = next(iter(symbols)) if symbols else symbol("z", "complex")
    parts = [sp.Poly(part, z) for part in sp.fraction(sp.together(factor))]
    scale = parts[1].eval(0)
    numerator, denominator = (
        np.array([float(c) for c in sp.Poly(part.as_expr() / scale - 1, z).all_coeffs()]) for part in parts
    )

    def excess(z: np.ndarray) -> np.ndarray:
        n, d = (np.polyval(part, z) for part in (numerator, denominator))
        difference = 2.0 * (n - d).real + (np.abs(n) ** 2 - np.abs(d) ** 2)
        return np.asarray(difference / np.abs(1.0 + d) ** 2)

    return excess
