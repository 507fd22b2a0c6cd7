"""Solvers in NumPy: nonlinear least squares by Gauss–Newton, and least absolute values by a linear programme.

The minimum over d of Σᵢ |rᵢ + Jᵢ d| lies at a vertex, where as many rows vanish as there are unknowns. HiGHS finds the
vertex up to its own tolerance of 1e-7; which rows vanish there is a discrete answer, so solving those rows directly
gives digits that depend on the conditioning of a small matrix only, not on a solver's stopping rule or on a processor's
order of summation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int
from scipy.optimize import linprog

# Subgradients of vanishing rows lie in [−1, 1]: sums over thousands of rows leave them uncertain by about this.
SUBGRADIENT_TOLERANCE = 1e-9
MOST_PIVOTS = 200
# Largest condition number of the rows that vanish together; beyond it other rows with small residuals are taken.
MOST_CONDITION = 1e8


Vector: TypeAlias = Float[np.ndarray, " unknowns"]
Linearise: TypeAlias = Callable[[Vector], tuple[Float[np.ndarray, " rows"], Float[np.ndarray, "rows unknowns"]]]


def gauss_newton(
    linearise: Linearise,
    start: Vector,
    *,
    rounds: int,
    gain: float,
    rank: float,
    halvings: int = 4,
    largest_residual: float = np.inf,
) -> tuple[Vector, Float[np.ndarray, " rows"]] | None:
    """Minimise ‖r(c)‖ from `start`; `linearise(c)` gives r and its Jacobian. Returns c and r(c).

    A move is halved until it lowers ‖r‖; up to `halvings` lengths are tried. Iteration ends after `rounds` rounds, if
    one lowers ‖r‖ by less than its fraction `gain`, or if r or J is not finite. Singular values below `rank` times the
    largest are taken as zero, so that redundant unknowns share the move. Returns None if the first linear model
    predicts a residual beyond `largest_residual`.
    """
    c = start
    r, J = linearise(c)
    for number in range(rounds if len(start) else 0):
        if not (np.isfinite(r).all() and np.isfinite(J).all()):
            break
        move = np.linalg.lstsq(J, -r, rcond=rank)[0]
        if number == 0 and np.linalg.norm(r + J @ move) > largest_residual:
            return None
        before = np.linalg.norm(r)
        for halving in range(halvings):
            there = c + move / 2**halving
            r_there, J_there = linearise(there)
            if np.linalg.norm(r_there) < before:
                c, r, J = there, r_there, J_there
                break
        if np.linalg.norm(r) >= (1 - gain) * before:
            break
    return c, r


@dataclass(frozen=True)
class Vertex:
    """The minimiser, the rows that vanish there, and Σ |r + J d|.

    `slack` is 1 − max |subgradient| over those rows: the minimum is unique if it is positive, and the next vertex is
    nearly as good if it is small.
    """

    move: Float[np.ndarray, " unknowns"]
    rows: Int[np.ndarray, " vanishing"]
    value: float
    slack: float


def least_absolute(
    r: Float[np.ndarray, " rows"],
    J: Float[np.ndarray, "rows unknowns"],
    *,
    near: Int[np.ndarray, " unknowns"] | None = None,
) -> Vertex:
    """The vertex d of least Σ |r + J d|. J needs more rows than columns.

    Columns that depend on others do not change the minimum: their unknowns are 0, and fewer rows vanish.
    `near`: indices of the rows that vanish at the minimum of a similar problem, at which the search begins.
    HiGHS' tolerance is absolute, so the columns are made orthonormal (powers of one operator are nearly collinear), and
    r is replaced by its residual after least squares (which may be a millionth of r), scaled to one.
    """
    independent = _find_independent(J)
    if not independent.all():
        reduced = (
            least_absolute(r, J[:, independent])
            if independent.any()
            else Vertex(np.zeros(0), np.arange(0), float(np.abs(r).sum()), 1.0)
        )
        move = np.zeros(J.shape[1])
        move[independent] = reduced.move
        return Vertex(move, reduced.rows, reduced.value, reduced.slack)
    Q = np.sqrt(len(r)) * np.linalg.qr(J)[0]
    left = r - Q @ (Q.T @ r) / len(r)
    size = np.abs(left).mean()
    if size == 0.0:
        return Vertex(np.linalg.lstsq(J, -r, rcond=None)[0], np.arange(J.shape[1]), 0.0, 1.0)
    rows, slack = improve_vertex(left / size, Q, near) if near is not None else (near, -np.inf)
    if rows is None or slack < -SUBGRADIENT_TOLERANCE:
        rows, slack = improve_vertex(left / size, Q, _vanishing_rows(left / size, Q))
    move = np.linalg.solve(J[rows], -r[rows])
    # One round of refinement: the right-hand side may be much smaller than J's entries.
    move = move - np.linalg.solve(J[rows], r[rows] + J[rows] @ move)
    return Vertex(move, rows, float(np.abs(r + J @ move).sum()), slack)


def _find_independent(J: np.ndarray) -> np.ndarray:
    """A mask of linearly independent columns, up to rounding; of dependent ones the first by pivoting."""
    size = np.linalg.norm(J, axis=0)
    R, order = scipy.linalg.qr(J / np.where(size > 0.0, size, 1.0), mode="r", pivoting=True)
    height = np.abs(np.diag(R))
    independent = np.zeros(J.shape[1], bool)
    independent[order[: len(height)][height > len(J) * np.finfo(float).eps]] = True
    return independent


def _vanishing_rows(r: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Rows that vanish at the minimum or nearly so, by the dual programme: max rᵀy over |y| ≤ 1 with Qᵀy = 0."""
    dual = linprog(-r, A_eq=Q.T, b_eq=np.zeros(Q.shape[1]), bounds=(-1.0, 1.0), method="highs-ds")
    # r is the residual of least squares: if HiGHS fails, 0, the solution of least squares, is the start.
    x = dual.eqlin.marginals if dual.status == 0 else np.zeros(Q.shape[1])
    near = np.argsort(np.abs(r + Q @ x), kind="stable")[: 4 * Q.shape[1]]
    first = near[: Q.shape[1]]
    if np.linalg.cond(Q[first]) < MOST_CONDITION:
        return first
    _, _, order = scipy.linalg.qr(Q[near].T, pivoting=True)
    return near[order[: Q.shape[1]]]


def improve_vertex(r: np.ndarray, Q: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, float]:
    """Go from vertex to neighbouring vertex while that lowers Σ |r + Q d|.

    Returns the rows that vanish at the last vertex, and 1 − max |subgradient| there, which is not negative at the
    minimum; −∞ if `rows` are ill-conditioned.
    """
    rows = rows.copy()
    if np.linalg.cond(Q[rows]) > MOST_CONDITION:
        return rows, -np.inf
    for _ in range(MOST_PIVOTS):
        inverse = np.linalg.inv(Q[rows])
        off = r + Q @ (inverse @ -r[rows])
        off[rows] = 0.0
        subgradient = -(Q.T @ np.sign(off)) @ inverse
        leaving = int(np.argmax(np.abs(subgradient)))
        slack = 1.0 - abs(subgradient[leaving])
        if slack >= -SUBGRADIENT_TOLERANCE:
            return rows, float(slack)
        slopes = Q @ (np.sign(subgradient[leaving]) * inverse[:, leaving])
        entering = _entering_row(off, slopes, slack)
        if entering is None:
            return rows, float(slack)
        rows[leaving] = entering
    return rows, float(slack)


def _entering_row(off: np.ndarray, slopes: np.ndarray, slope: float) -> int | None:
    """The row at whose zero the sum stops falling along an edge that begins with `slope` < 0; None if it never does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -off / slopes
    ahead = np.flatnonzero(np.isfinite(reach) & (reach > 0.0))
    ahead = ahead[np.argsort(reach[ahead], kind="stable")]
    passed = slope + 2.0 * np.cumsum(np.abs(slopes[ahead]))
    stop = np.flatnonzero(passed >= 0.0)
    return int(ahead[stop[0]]) if len(stop) else None
