"""The steady flux between two fixed values, by linear elements on a grid that is refined, and extrapolation.

(a f(u) − K u′)′ = 0 between the two centres, where K jumps at the face. f and K are taken at the midpoints of elements,
so that the flux on a grid of m elements a side differs from the true one by c₂ m⁻² + c₄ m⁻⁴ + …
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import sympy as sp

from fluxforge.errors import NumericalError
from fluxforge.experiment._setup import Experiment, Measured, Samples
from fluxforge.expression._evaluate import evaluate
from fluxforge.expression._symbols import symbol
from fluxforge.pde._equation import differentiate
from fluxforge.pde._parameter import Rank, Where

# Elements a side of the grids, and the largest number of steps of Newton's method.
COARSEST, FINEST = 16, 1024
_NEWTON = 40
# A step of Newton's method below this fraction of the states is round-off of the linear solve.
_NEWTON_TOLERANCE = 1e-13

Function = Callable[[np.ndarray], np.ndarray]


class _Medium(NamedTuple):
    """f, f′, K and K′ as functions of the unknown per element, arrays of samples by elements."""

    f: Function
    slope: Function
    K: Function
    bend: Function


def steady_flux(experiment: Experiment, samples: Samples, tolerance: float) -> Measured:
    """The flux of every experiment; grids are refined until its error is below `tolerance` times rms(flux).

    The error is the difference of the last two extrapolations; on the finest grid a larger one is accepted, and
    returned as it is. Raises NumericalError if Newton's method does not converge.
    """
    m, rows = COARSEST, [_solve(experiment, samples, COARSEST)]
    table = [rows]
    while True:
        m *= 2
        table.append(_extrapolate(table[-1], _solve(experiment, samples, m)))
        best, before = table[-1][-1], table[-2][-1]
        error = np.abs(best - before) + 1e-14 * np.abs(best)
        size = float(np.sqrt(np.mean(best**2)))
        if (len(table) > 2 and np.all(error <= tolerance * size)) or m >= FINEST:
            return Measured(best, error)


def _extrapolate(before: list[np.ndarray], now: np.ndarray) -> list[np.ndarray]:
    """A row of Romberg's table, from the row before it, which belongs to half as many elements."""
    row = [now]
    for k, coarse in enumerate(before[:3], start=1):
        row.append(row[-1] + (row[-1] - coarse) / (4.0**k - 1.0))
    return row


def _solve(experiment: Experiment, samples: Samples, m: int) -> np.ndarray:
    """The flux through the face on m elements a side, by Newton's method from the straight line."""
    P, N = (samples[each.name] for each in experiment.states)
    width, medium = _geometry(experiment, samples, m), _medium(experiment, samples, m)
    velocity = experiment.velocity
    a = np.zeros_like(P) if velocity is None else samples[velocity.name]
    u = P[:, None] + (N - P)[:, None] * np.linspace(0.0, 1.0, 2 * m + 1)
    size = np.maximum(np.abs(P), np.abs(N)).max()
    for _ in range(_NEWTON):
        flux, left, right = _fluxes(u, width, a[:, None], medium)
        # Row i: F of the element after node i minus F of the element before it.
        move = _tridiagonal(-left[:, :-1], left[:, 1:] - right[:, :-1], right[:, 1:], flux[:, :-1] - flux[:, 1:])
        u[:, 1:-1] += move
        # For a linear equation one step is exact.
        if np.abs(move).max() <= _NEWTON_TOLERANCE * size or experiment.equation.linear:
            flux, *_ = _fluxes(u, width, a[:, None], medium)
            return 0.5 * (flux[:, m - 1] + flux[:, m])
    raise NumericalError(f"equation {experiment.equation.name!r}: the steady state of an experiment was not found")


def _fluxes(
    u: np.ndarray, width: np.ndarray, a: np.ndarray, medium: _Medium
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """F of every element, and its derivatives with respect to the values at its left and its right end."""
    mean, gradient = 0.5 * (u[:, 1:] + u[:, :-1]), np.diff(u, axis=1) / width
    K, both = medium.K(mean), 0.5 * (a * medium.slope(mean) - medium.bend(mean) * gradient)
    return a * medium.f(mean) - K * gradient, both + K / width, both - K / width


def _geometry(experiment: Experiment, samples: Samples, m: int) -> np.ndarray:
    """Widths of the elements; if only the distance δ of the centres is given, the face lies midway between them."""
    names = experiment.names
    sides = [samples[f"d_{end}"] if "d_P" in names else samples["delta"] / 2 for end in "PN"]
    return np.repeat(np.stack(sides, axis=1) / m, m, axis=1)


def _medium(experiment: Experiment, samples: Samples, m: int) -> _Medium:
    equation = experiment.equation
    side: dict[sp.Symbol, np.ndarray] = {}
    for p in equation.parameters:
        name = p.normal_name if p.rank is Rank.TENSOR else p.name
        ends = [samples[f"{p.name}_{end}"] for end in "PN"] if f"{p.name}_P" in samples else None
        if p.where is Where.CELL and ends is not None:
            side[symbol(p.name)] = np.repeat(np.stack(ends, axis=1), m, axis=1)
        elif name in samples:
            side[symbol(p.name)] = samples[name][:, None]

    def function(formula: sp.Expr) -> Function:
        return lambda u: np.broadcast_to(np.asarray(evaluate(formula, {**side, equation.u: u}, np), float), u.shape)

    f, K = equation.transported, equation.diffusion
    return _Medium(*(function(each) for each in (f, differentiate(f, equation.u), K, differentiate(K, equation.u))))


def _tridiagonal(below: np.ndarray, middle: np.ndarray, above: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of tridiagonal systems, one per row of samples, by elimination without pivoting.

    Grids are fine enough for the matrices to be diagonally dominant: |a| h < 2 K.
    """
    c, d = np.empty_like(middle), np.empty_like(middle)
    c[:, 0], d[:, 0] = above[:, 0] / middle[:, 0], right[:, 0] / middle[:, 0]
    for k in range(1, middle.shape[1]):
        pivot = middle[:, k] - below[:, k] * c[:, k - 1]
        c[:, k], d[:, k] = above[:, k] / pivot, (right[:, k] - below[:, k] * d[:, k - 1]) / pivot
    for k in range(middle.shape[1] - 2, -1, -1):
        d[:, k] -= c[:, k] * d[:, k + 1]
    return d
