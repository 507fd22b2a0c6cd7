"""The problem of `fluxforge bench time`, heat with T = 0 at the walls: exact solutions, and fitted polynomials."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import eigsh

from fluxforge._types import CellField
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._generate import graded
from fluxforge.mesh._parameters import fourier_step
from fluxforge.pde._equation import HEAT
from fluxforge.pipeline._carry import initial_field, unseen_mesh
from fluxforge.scheme._document import find
from fluxforge.stepping._assemble import operator
from fluxforge.stepping._exponential import Polynomial, chebyshev_exponential, corrected_euler

MESHES = ("irregular", "graded")
FIELDS = ("smooth", "noise")
# Ratio by which edges grow over the distance 1; √V then has a range of about 1:100 on the unit square.
_GRADING = 150.0
# Safety factor of the largest eigenvalue, which Lanczos' method approaches from below.
_MARGIN = 1.01
_ROUND_OFF = 1e-15
# Size and seed of the mesh on which constants are fitted: the size is that of the mesh on which formulas of networks
# are chosen, the seed another one than that of the table.
_CELLS, _SEED = 400, 7
_ROUNDS = 60

Step = Callable[[CellField], CellField]


@dataclass(frozen=True)
class TimeCase:
    """A mesh, and A = Δt L of the two-point flux for Δt of one Fourier step."""

    name: str
    graph: DualGraph
    A: csr_array

    @property
    def fourier_step(self) -> float:
        """The Fourier step of the mesh."""
        return fourier_step(self.graph)

    @property
    def size_ratio(self) -> float:
        """The largest √V over the least."""
        return float(np.sqrt(self.graph.V.max() / self.graph.V.min()))

    @cached_property
    def symmetric(self) -> csr_array:
        """V^½ A V^−½, which has the eigenvalues of A."""
        root = np.sqrt(self.graph.V)
        scaled = diags_array(root) @ self.A @ diags_array(1.0 / root)
        return csr_array(0.5 * (scaled + scaled.T))

    @cached_property
    def reach(self) -> float:
        """A bound of the spectrum: all eigenvalues of A are in [−reach, 0], and reach ≤ 2 by Gershgorin."""
        start = np.ones(self.graph.cells)
        start[::2] = -1.0
        least = eigsh(self.symmetric, 1, which="SA", tol=1e-3, v0=start, return_eigenvectors=False)
        return float(min(2.0, -_MARGIN * least[0]))

    def field(self, kind: str) -> CellField:
        """The initial field of a kind in FIELDS."""
        return initial_field(self.graph, kind, 0)

    def resolve(self, T: CellField, fourier: float) -> CellField:
        """exp(Δt L)T to round-off for Δt of `fourier` Fourier steps, by Chebyshev series of e^z on substeps."""
        pieces = max(1, int(np.ceil(self.reach * fourier / 50.0)))
        series = full_series(self.reach * fourier / pieces)
        scaled = (fourier / pieces) * self.A
        for _ in range(pieces):
            T = series.apply(scaled, T)
        return T


def full_series(reach: float) -> Polynomial:
    """The Chebyshev series of e^z on [−reach, 0], truncated where its terms are below round-off."""
    whole = chebyshev_exponential(int(40 + 2 * reach), reach).coefficients
    used = max(k for k, each in enumerate(whole) if abs(each) > _ROUND_OFF)
    return Polynomial(whole[: used + 1], reach)


def make_case(name: str, cells: int, seed: int = 0) -> TimeCase:
    """The case of a mesh of MESHES with about `cells` cells."""
    mesh = graded(cells=cells, ratio=_GRADING, seed=seed) if name == "graded" else unseen_mesh(cells, seed)
    graph = dual(mesh)
    euler = operator(find("euler", HEAT), graph, dt=fourier_step(graph))
    return TimeCase(name, graph, csr_array(euler.M - eye_array(graph.cells, format="csr")))


def change_error(after: CellField, exact: CellField, T: CellField, weight: CellField | None = None) -> float:
    """Mean |after − exact| over mean |exact − T|; means over cells, or weighted with `weight`, such as volumes."""
    w = np.ones_like(T) if weight is None else weight
    return float((w @ np.abs(after - exact)) / (w @ np.abs(exact - T)))


@cache
def fitted_polynomial(degree: int, fourier: float, reach: float) -> Polynomial:
    """The polynomial 1 + z + … of least error for a smooth and a noisy field on an irregular mesh of 400 cells.

    It is fitted for this Δt to data like those of networks, and given in Chebyshev polynomials on [−reach, 0].
    """
    case = _fitting_case()
    fields = [case.field(kind) for kind in FIELDS]
    parts = [(_basis(case, T, fourier, degree, reach), case.resolve(T, fourier), T) for T in fields]
    return corrected_euler(_least_sum(case, parts, fourier), reach)


@cache
def _fitting_case() -> TimeCase:
    return make_case("irregular", _CELLS, _SEED)


def best_polynomial(case: TimeCase, T: CellField, exact: CellField, *, fourier: float, degree: int) -> Polynomial:
    """The polynomial 1 + z + … of least error for this field, fitted to the exact solution itself."""
    reach = case.reach * fourier
    basis = _basis(case, T, fourier, degree, reach)
    return corrected_euler(_least_sum(case, [(basis, exact, T)], fourier), reach)


def _basis(case: TimeCase, T: CellField, fourier: float, degree: int, reach: float) -> np.ndarray:
    """The columns A² T_k(1 + 2A/reach) T, k = 0, …, degree − 2, with Chebyshev polynomials T_k."""
    A = fourier * case.A
    columns = [A @ (A @ T)]
    if degree > 2:
        columns.append(columns[0] + 2.0 / reach * (A @ columns[0]))
    for _ in range(4, degree + 1):
        columns.append(2.0 * (columns[-1] + 2.0 / reach * (A @ columns[-1])) - columns[-2])
    return np.stack(columns, axis=1)


def _least_sum(case: TimeCase, parts: Sequence[tuple[np.ndarray, CellField, CellField]], fourier: float) -> np.ndarray:
    """The weights of the columns that minimise Σ |difference|, each part divided by its Σ |change|.

    By iteratively reweighted least squares, in which a row has the weight 1/|residual|.
    """
    rows, wanted = [], []
    for basis, exact, T in parts:
        size = np.abs(exact - T).sum()
        rows.append(basis / size)
        wanted.append((exact - T - fourier * (case.A @ T)) / size)
    B, y = np.concatenate(rows), np.concatenate(wanted)
    weights = np.linalg.lstsq(B, y, rcond=None)[0]
    for _ in range(_ROUNDS):
        left = np.abs(y - B @ weights)
        w = 1.0 / np.sqrt(np.maximum(left, 1e-6 * left.max() + 1e-300))
        weights = np.linalg.lstsq(B * w[:, None], y * w, rcond=None)[0]
    return weights
