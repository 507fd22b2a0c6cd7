"""Steady states: the field that a linear scheme leaves unchanged, by one linear system instead of time steps.

A linear scheme integrates dT/dt = G T + N S + b. Its steady state solves c V (G T + N S + b) = 0: these rows are the
balances of the cells. The steady state is unique if a wall or a reaction ties the field to a value.
"""

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from fluxforge._arguments import check_choice, check_path
from fluxforge._files import write_document
from fluxforge._types import CellField
from fluxforge.errors import InputError, NumericalError
from fluxforge.mesh._boundary import Value
from fluxforge.mesh._build import dual
from fluxforge.mesh._conditions import Conditions
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import Settings
from fluxforge.mesh._picture import save_figure
from fluxforge.mesh._read import as_mesh
from fluxforge.mesh._write import write
from fluxforge.pde._equation import Equation
from fluxforge.pde._words import Words
from fluxforge.scheme._document import find
from fluxforge.scheme._linear import linear_stages
from fluxforge.scheme._scheme import Scheme
from fluxforge.stepping._assemble import generator, is_symmetric
from fluxforge.stepping._build import DIRECT_MOST_CELLS, check_diffusivity
from fluxforge.stepping._field import cell_capacity, field_on_cells
from fluxforge.stepping._folder import replace_folder
from fluxforge.stepping._implicit import near_system
from fluxforge.stepping._picture import field_figure
from fluxforge.stepping._setup import check_robin_walls
from fluxforge.stepping._solvers import AbstractSolver, Krylov, Method, Multigrid, factorise, multigrid_or_ilu

SOLVERS_OF_STEADY_STATES = ("auto", "direct", "amg", "bicgstab", "gmres")
# The largest residual relative to the terms of the balances: a direct solve leaves a few roundings per entry.
TOLERANCE = 1e-12
MOST_REFINEMENTS = 3
# A row sum below this share of its entries is round-off: constants are in the kernel.
ROUND_OFF = 1e-12
SUMMARY_VERSION = 1
_LEAST_NORMAL = np.finfo(float).tiny


class Overshoot(NamedTuple):
    """How far a field lies `below` the least and `above` the largest of the wall values and initial values.

    Both are 0 for a scheme with a maximum principle, without sources and fluxes through walls.
    """

    below: float
    above: float


def overshoot(T: np.ndarray, graph: DualGraph, initial: np.ndarray | None = None) -> Overshoot:
    """How far T leaves the range of the values at walls (except Neumann walls) and of the initial field.

    Raises InputError if there are neither.
    """
    held = graph.value[~graph.neumann]
    data = held if initial is None else np.concatenate([held, initial])
    if not data.size:
        raise InputError(
            "overshoot is not defined: no wall has a given value, and no initial field is given to compare with"
        )
    return Overshoot(max(0.0, float(data.min() - T.min())), max(0.0, float(T.max() - data.max())))


@dataclass(frozen=True)
class SteadySummary:
    """The numbers of a steady state, in the order of `summary.json`."""

    scheme: str
    cells: int
    residual: float
    min: float
    max: float
    mean: float
    heat: float
    seconds: float


@dataclass(frozen=True, eq=False)
class SteadyState:
    """The steady field of a scheme on a mesh.

    `residual` is ‖c V dT/dt‖₂ over ‖c V (|G||T| + |N S + b|)‖₂: the residual of the cell balances relative to the size
    of their terms. `seconds` is the time taken to assemble and solve.
    """

    scheme: str
    mesh: Mesh
    graph: DualGraph
    field: CellField
    residual: float
    seconds: float
    capacity: CellField
    words: Words

    def __repr__(self) -> str:
        span = f"{self.words.unknown} from {self.field.min():.4g} to {self.field.max():.4g}"
        return f"SteadyState({self.scheme:.60} on {self.graph.cells:,} cells: {span}, residual {self.residual:.1e})"

    def overshoot(self) -> Overshoot:
        """How far the field leaves the range of the values at walls."""
        return overshoot(self.field, self.graph)

    def summary(self) -> SteadySummary:
        """The numbers of the steady state; `mean` and `heat`, the conserved total Σ c V T, are weighted by volume."""
        V, T = self.graph.V, self.field
        mean, heat = float((V * T).sum() / V.sum()), float((self.capacity * V * T).sum())
        return SteadySummary(
            self.scheme, self.graph.cells, self.residual, float(T.min()), float(T.max()), mean, heat, self.seconds
        )

    def plot(self) -> Figure:
        """A matplotlib figure of the field."""
        return field_figure(self.mesh, self.field, unknown=self.words.unknown, title=f"{self.scheme}, steady state")

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> list[Path]:
        """Write `T_0.vtu`, `final.png` and `summary.json`; return their paths.

        Raises InputError if the folder holds an earlier run, unless `overwrite`.
        """
        target = Path(check_path(folder, "folder", "the path of a folder"))
        with replace_folder(target, [self.scheme], overwrite=overwrite) as writing:
            write(self.mesh, writing / "T_0.vtu", cell_data={"T": self.field})
            save_figure(self.plot(), writing / "final.png")
            write_document(writing / "summary.json", "steady state", SUMMARY_VERSION, asdict(self.summary()))
        return [target / name for name in ("T_0.vtu", "final.png", "summary.json")]


@np.errstate(all="ignore")
def steady(
    scheme: str | os.PathLike[str] | Scheme,
    mesh: Mesh | str | os.PathLike[str],
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    parameters: Settings | None = None,
    diffusivity: float | None = None,
    source: Value | np.ndarray = 0.0,
    boundary: Conditions = None,
    solver: str = "auto",
) -> SteadyState:
    """Solve for the field that a linear scheme does not change; the arguments are those of `simulate`.

    Only the discretisation in space of a scheme matters: `corrected` and `corrected-rk4` have the same steady state.
    `solver` is by default sparse LU (`direct`) up to 10⁵ cells; beyond, conjugate gradients with multigrid (`amg`) if
    the system is symmetric, and otherwise `bicgstab` (or `gmres`) with multigrid for the equation's two-point flux.
    Raises InputError for a scheme that is not linear, and if nothing ties the field to a value (all walls insulated);
    NumericalError if the relative residual of the solved system exceeds 1e-12.
    """
    mesh = as_mesh(mesh)
    scheme = find(scheme, equation, dimension=mesh.points.shape[1])
    graph = dual(mesh, boundary, equation=scheme.equation)
    check_choice(solver, "solver", SOLVERS_OF_STEADY_STATES)
    check_robin_walls(scheme, graph)
    if linear_stages(scheme) is None:
        raise InputError(
            f"scheme {scheme.name!r} is not linear in {scheme.equation.unknown}: steady states are found for "
            "linear schemes only; step in time instead, until the field no longer changes (without --steady, or "
            "with simulate)"
        )
    S = field_on_cells(source, graph, "the source")
    parameters = scheme.equation.settings(parameters, diffusivity=check_diffusivity(diffusivity))
    start = time.perf_counter()
    system = generator(scheme, graph, parameters=parameters)
    capacity = np.array(cell_capacity(scheme.equation, graph, parameters))
    weight = graph.V * capacity
    A = csr_array(diags_array(-weight) @ system.M)
    _refuse_singular(A, graph)
    right = weight * (system.N @ S + system.b)
    T, residual = _solve(A, right, _make_solver(A, scheme, graph, parameters, solver), scheme.name)
    seconds = time.perf_counter() - start
    return SteadyState(scheme.name, mesh, graph, T, residual, seconds, capacity, scheme.equation.words)


def _refuse_singular(A: csr_array, graph: DualGraph) -> None:
    """Raise InputError if a connected part of the mesh has no wall or reaction that ties the field to a value."""
    total = np.abs(np.asarray(A.sum(axis=1)).ravel())
    tied = total > ROUND_OFF * np.asarray(abs(A).sum(axis=1)).ravel()
    count, part = connected_components(A, directed=False)
    if not np.bincount(part, tied, minlength=count).all():
        where = "no wall is" if count == 1 else f"in one of {count} separate parts of the mesh, no wall is"
        raise InputError(
            f"{where} held at a value, so that the steady state is determined only up to a constant: "
            "give one of the walls a value (--boundary left=0)"
        )


class DirectSolver:
    """The solver of a system by sparse LU."""

    def __init__(self, A: csr_array) -> None:
        self.A, self._factors = A, factorise(A)

    def solve(self, r: np.ndarray, *, within: float) -> np.ndarray:
        return np.asarray(self._factors.solve(r))


def _make_solver(A: csr_array, scheme: Scheme, graph: DualGraph, parameters: Settings, solver: str) -> AbstractSolver:
    """The solver with this name; for "auto", the fastest one for the size and the symmetry of the system."""
    symmetric = is_symmetric(A)
    if solver == "auto":
        solver = "direct" if graph.cells <= DIRECT_MOST_CELLS else "amg" if symmetric else "bicgstab"
    if solver == "direct":
        return DirectSolver(A)
    if solver == "amg":
        off = A - diags_array(A.diagonal())
        if not symmetric or off.data.max(initial=0.0) > 0:
            raise InputError(
                f"scheme {scheme.name!r} has no symmetric M-matrix on this mesh, which amg needs: use direct, "
                "bicgstab or gmres"
            )
        return Multigrid(A)
    method: Method = "gmres" if solver == "gmres" else "bicgstab"
    return Krylov(A, multigrid_or_ilu(A, near_system(scheme.equation, graph, parameters)), method)


def _solve(A: csr_array, right: np.ndarray, solver: AbstractSolver, name: str) -> tuple[CellField, float]:
    """T and its relative residual, by iterative refinement for as long as that halves the residual."""
    T, size = np.zeros_like(right), abs(A)
    left_over, residual = right, np.inf
    for _ in range(1 + MOST_REFINEMENTS):
        tried = T + solver.solve(left_over, within=0.1 * TOLERANCE * float(np.linalg.norm(right)))
        rest = right - A @ tried
        reached = float(np.linalg.norm(rest)) / max(
            float(np.linalg.norm(size @ np.abs(tried) + np.abs(right))), _LEAST_NORMAL
        )
        if not reached < 0.5 * residual:
            break
        T, left_over, residual = tried, rest, reached
    if not residual <= TOLERANCE:
        raise NumericalError(
            f"scheme {name!r}: the steady state was not found: the relative residual is {residual:.1e}; try "
            "another solver"
        )
    return T, residual
