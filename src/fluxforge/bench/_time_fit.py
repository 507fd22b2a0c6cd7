"""Constants in place of a network: one coefficient a stage for all faces, that is, one polynomial 1 + z + … for all."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from fluxforge._types import CellField
from fluxforge.bench._time_case import FIELDS, TimeCase, make_case
from fluxforge.stepping._exponential import Polynomial, corrected_euler

# The mesh that constants are fitted on: as many cells as networks are chosen on, another seed than the table's.
_CELLS, _SEED = 400, 7
_ROUNDS = 60


@cache
def fitted_polynomial(degree: int, fourier: float, reach: float) -> Polynomial:
    """The polynomial 1 + z + … of least error on a smooth and a noisy field of an irregular mesh of 400 cells.

    So it knows what a network is trained on, at this very step; on [−reach, 0] it is written in Chebyshev polynomials.
    """
    case = _fitting_case()
    parts = []
    for kind in FIELDS:
        T = case.field(kind)
        exact = case.resolve(T, fourier)
        parts.append((_basis(case, T, fourier, degree, reach), exact, T))
    return corrected_euler(_least_sum(case, parts, fourier), reach)


@cache
def _fitting_case() -> TimeCase:
    return make_case("irregular", _CELLS, _SEED)


def best_polynomial(case: TimeCase, T: CellField, exact: CellField, *, fourier: float, degree: int) -> Polynomial:
    """The polynomial 1 + z + … of least error for this very field, chosen with knowledge of the answer."""
    reach = case.reach * fourier
    basis = _basis(case, T, fourier, degree, reach)
    return corrected_euler(_least_sum(case, [(basis, exact, T)], fourier), reach)


def _basis(case: TimeCase, T: CellField, fourier: float, degree: int, reach: float) -> np.ndarray:
    """Columns A² T_k(1 + 2A/reach) T."""
    A = fourier * case.A
    columns = [A @ (A @ T)]
    if degree > 2:
        columns.append(columns[0] + 2.0 / reach * (A @ columns[0]))
    for _ in range(4, degree + 1):
        columns.append(2.0 * (columns[-1] + 2.0 / reach * (A @ columns[-1])) - columns[-2])
    return np.stack(columns, axis=1)


def _least_sum(case: TimeCase, parts: Sequence[tuple[np.ndarray, CellField, CellField]], fourier: float) -> np.ndarray:
    """Weights of the columns with the least Σ |difference|, each part relative to its change.

    By least squares in which rows are weighted by 1/|residual|, again and again.
    """
    rows, wanted = [], []
    for basis, exact, T in parts:
        size = np.abs(exact - T).sum()
        rows.append(basis / size)
        wanted.append((exact - T - fourier * (case.A @ T)) / size)
    B, y = np.concatenate(rows), np.concatenate(wanted)
    found = np.linalg.lstsq(B, y, rcond=None)[0]
    for _ in range(_ROUNDS):
        left = np.abs(y - B @ found)
        w = 1.0 / np.sqrt(np.maximum(left, 1e-6 * left.max() + 1e-300))
        found = np.linalg.lstsq(B * w[:, None], y * w, rcond=None)[0]
    return found
