"""Total variation and maximum principle of a two-point flux with Euler steps on a row of cells, by Harten's lemma.

u_i' = u_i + λ C_{i+½} (u_{i+1} − u_i) − λ D_{i−½} (u_i − u_{i−1}),  λ = Δt/h,
C = (a f(u_P) − F)/(u_N − u_P),  D = (a f(u_N) − F)/(u_N − u_P).
With C, D ≥ 0 the total variation does not grow where λ(C + D) ≤ 1 at every face, and no new extremum appears where
λ(C_{i+½} + D_{i−½}) ≤ 1 in every cell. C and D are difference quotients of F along u_N and u_P, so that a monotone flux
has them non-negative, and intervals bound them from above.
"""

import math
from collections.abc import Callable

import numpy as np
import sympy as sp

from fluxforge.certify import _intervals as iv
from fluxforge.certify._enclose import enclose, slope_or_zero
from fluxforge.certify._evidence import Line, verdict_of
from fluxforge.certify._intervals import Interval
from fluxforge.certify.flux import STEP, Flux, N, P, one_dimensional, range_words
from fluxforge.certify.transport import Range, StepBound
from fluxforge.errors import NumericalError
from fluxforge.expression._evaluate import evaluate

# Intervals per side into which the range of u is divided.
PARTS = 256
# Random rows of cells from which steps are made, and cells in each.
ROWS, CELLS = 4000, 12
# Growth beyond this, relative to the total variation, is not round-off.
GROWTH = 1e-10


def bound_step(flux: Flux, top: float, *, antisymmetric: bool) -> StepBound:
    """The bounds of a monotone, antisymmetric flux of transport alone; `top` is the largest |f′|.

    Raises NumericalError for a flux that depends on Δt, that diffuses or is not antisymmetric.
    """
    formula, ranges = one_dimensional(flux, 1.0)
    if flux.diffuses or STEP in ranges or not antisymmetric:
        raise NumericalError("asked of transport without diffusion, whose flux does not depend on Δt")
    edges = np.linspace(*flux.states, PARTS + 1)
    with np.errstate(all="ignore"):
        C, D = _coefficients(formula, flux, Interval(edges[:-1], edges[1:]))
    # C of the face ahead has the cell as its P, D of the face behind as its N.
    of_cell = C.max(axis=1) + D.max(axis=0)
    variation, extrema = top / (C + D).max(), top / of_cell.max()
    return StepBound(float(variation), float(extrema), *_measure_limits(formula, flux, top))


def _coefficients(formula: sp.Expr, flux: Flux, parts: Interval) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of C and D for u_P in part i and u_N in part j, as matrices."""
    p, n = (Interval(*(end.ravel() for end in side)) for side in _pairs(parts))
    between = iv.hull(p, n)
    shape = (len(parts.low), len(parts.low))
    along_n = enclose(formula, {P: p, N: between}, (N,)).slopes[0]
    along_p = enclose(formula, {P: between, N: n}, (P,)).slopes[0]
    C = iv.negate(slope_or_zero(along_n, p.low.shape))
    D = slope_or_zero(along_p, p.low.shape)
    F = enclose(formula, {P: p, N: n}).value
    jump = iv.subtract(n, p)
    quotients = [
        iv.divide(iv.subtract(enclose(flux.equation.transported, {flux.equation.u: end}).value, F), jump)
        for end in (p, n)
    ]
    return iv.intersect(C, quotients[0]).high.reshape(shape), iv.intersect(D, quotients[1]).high.reshape(shape)


def _pairs(parts: Interval) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    low_p, low_n = np.meshgrid(parts.low, parts.low, indexing="ij")
    high_p, high_n = np.meshgrid(parts.high, parts.high, indexing="ij")
    return (low_p, high_p), (low_n, high_n)


def _measure_limits(formula: sp.Expr, flux: Flux, top: float) -> tuple[float, float]:
    """The smallest Courant numbers at which a step from some row makes the variation, or an extremum, grow."""
    rng = np.random.default_rng(0)
    low, high = flux.states
    rows = rng.uniform(low, high, (ROWS, CELLS))
    # The ends and the middle of the range are frequent among them, since they make the worst rows.
    some = rng.choice([low, high, 0.5 * (low + high)], (ROWS, CELLS))
    rows = np.where(rng.random((ROWS, CELLS)) < rng.random((ROWS, 1)), rows, some)
    F = np.broadcast_to(evaluate(formula, {P: rows, N: np.roll(rows, -1, axis=1)}, np), rows.shape)
    change = -(F - np.roll(F, 1, axis=1))

    def grows(courant: float) -> tuple[bool, bool]:
        after = rows + courant / top * change
        before = _variation(rows)
        neighbours = np.stack([np.roll(rows, k, axis=1) for k in (-1, 0, 1)])
        beyond = np.maximum(after - neighbours.max(axis=0), neighbours.min(axis=0) - after).max()
        varied = bool((_variation(after) > before * (1 + GROWTH) + GROWTH).any())
        return varied, bool(beyond > GROWTH * (high - low))

    return _first(lambda c: grows(c)[0]), _first(lambda c: grows(c)[1])


def _variation(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(np.roll(rows, -1, axis=1) - rows).sum(axis=1))


def _first(fails: Callable[[float], bool]) -> float:
    """The smallest Courant number up to 4 at which it fails, by bisection; infinite where it never does."""
    low, high = 0.0, 4.0
    if not fails(high):
        return float("inf")
    for _ in range(24):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fails(middle) else (middle, high)
    return high


def bound_line(found: StepBound, states: Range) -> Line:
    """Up to which Courant number the total variation does not grow and no new extremum appears."""
    evidence = (
        f"on a row of cells with Euler steps, {range_words(states)}: total variation does not grow up to Courant "
        f"number {found.variation:.3g} (random rows: {_finite(found.measured_variation)}), no new extremum up to "
        f"{found.extrema:.3g} (random rows: {_finite(found.measured_extrema)})"
    )
    method = "Harten's coefficients by intervals; one step from 4,000 random rows"
    sound = found.measured_variation >= found.variation and found.measured_extrema >= found.extrema
    return Line("total variation and maximum principle", verdict_of(sound), evidence, method)


def _finite(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "no growth up to 4"
