"""The problems of `fluxforge bench time`: heat with T = 0 at the walls, on two kinds of mesh, and exact answers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import eigsh

from fluxforge._types import CellField
from fluxforge.mesh._dual import DualGraph, dual
from fluxforge.mesh._generate import graded
from fluxforge.mesh._parameters import fourier_step
from fluxforge.pde._catalogue import HEAT
from fluxforge.pipeline._carry import initial_field, unseen_mesh
from fluxforge.scheme._document import find
from fluxforge.stepping._assemble import operator
from fluxforge.stepping._exponential import Polynomial, chebyshev_exponential

MESHES = ("irregular", "graded")
FIELDS = ("smooth", "noise")
# Edges grow so many times over the distance 1; on the unit square √V then spans about 1:100.
_GRADING = 150.0
# Of the estimate of the largest eigenvalue, which Lanczos' method approaches from below.
_MARGIN = 1.01
_ROUND_OFF = 1e-15

Step = Callable[[CellField], CellField]


@dataclass(frozen=True)
class TimeCase:
    """A mesh, and Δt L of the two-point flux at Δt = 1 Fourier step."""

    name: str
    graph: DualGraph
    A: csr_array

    @property
    def fourier_step(self) -> float:
        """Δt of one Fourier step."""
        return fourier_step(self.graph)

    @property
    def size_ratio(self) -> float:
        """The largest √V over the least."""
        return float(np.sqrt(self.graph.V.max() / self.graph.V.min()))

    @cached_property
    def symmetric(self) -> csr_array:
        """V^½ A V^−½, which has the eigenvalues of A."""
        root = np.sqrt(self.graph.V)
        found = diags_array(root) @ self.A @ diags_array(1.0 / root)
        return csr_array(0.5 * (found + found.T))

    @cached_property
    def reach(self) -> float:
        """All eigenvalues of A lie in [−reach, 0]; Gershgorin's bound is 2."""
        start = np.ones(self.graph.cells)
        start[::2] = -1.0
        found = eigsh(self.symmetric, 1, which="SA", tol=1e-3, v0=start, return_eigenvectors=False)
        return float(min(2.0, -_MARGIN * found[0]))

    def field(self, kind: str) -> CellField:
        """Initial values of one of FIELDS."""
        return initial_field(self.graph, kind, 0)

    def resolve(self, T: CellField, fourier: float) -> CellField:
        """exp(Δt L)T to round-off, by Chebyshev series of e^z on pieces of the step."""
        pieces = max(1, int(np.ceil(self.reach * fourier / 50.0)))
        series = full_series(self.reach * fourier / pieces)
        scaled = (fourier / pieces) * self.A
        for _ in range(pieces):
            T = series.apply(scaled, T)
        return T


def full_series(reach: float) -> Polynomial:
    """The Chebyshev series of e^z on [−reach, 0] up to the terms that are below round-off."""
    whole = chebyshev_exponential(int(40 + 2 * reach), reach).coefficients
    used = max(k for k, each in enumerate(whole) if abs(each) > _ROUND_OFF)
    return Polynomial(whole[: used + 1], reach)


def make_case(name: str, cells: int, seed: int = 0) -> TimeCase:
    """A mesh of one of MESHES with about that many cells."""
    mesh = graded(cells=cells, ratio=_GRADING, seed=seed) if name == "graded" else unseen_mesh(cells, seed)
    graph = dual(mesh)
    euler = operator(find("euler", HEAT), graph, dt=fourier_step(graph))
    return TimeCase(name, graph, csr_array(euler.M - eye_array(graph.cells, format="csr")))


def change_error(found: CellField, exact: CellField, T: CellField, weight: CellField | None = None) -> float:
    """Mean |difference| over mean |change|, with `weight` over volumes instead of cells."""
    w = np.ones_like(T) if weight is None else weight
    return float((w @ np.abs(found - exact)) / (w @ np.abs(exact - T)))
