"""Shared by the problems of `fluxforge bench equations`: sizes, results, meshes, norms, and FiPy where installed."""

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np

from fluxforge._types import CellField
from fluxforge.errors import NumericalError
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.stepping._simulation import Simulation

SAMPLES = 8
HOW_TO_INSTALL = "not installed: pip install 'fluxforge[bench]'"


@dataclass(frozen=True)
class Sizes:
    """Cells along a side: of refinement studies a sequence, of single runs one number."""

    heat_kernel: tuple[int, ...]
    layers: int
    fisher: tuple[int, ...]
    rotation: int
    deformation: int
    burgers: tuple[int, ...]
    anisotropic: tuple[int, ...]
    fipy: tuple[int, ...]


SIZES = {
    "quick": Sizes((8, 16, 32, 64), 8, (200,), 24, 16, (50, 100), (8, 16), (4, 8)),
    "default": Sizes((16, 32, 64, 128), 16, (200, 400), 100, 64, (100, 200, 400), (16, 32), (8, 16, 32)),
    "full": Sizes((16, 32, 64, 128), 64, (200, 400, 800), 128, 64, (100, 200, 400, 800), (16, 32, 64), (16, 32, 64)),
}


@dataclass(frozen=True)
class Row:
    """A scheme's result on a problem and a mesh; None where a field does not apply.

    - `error` is in the norm that `norm` names; `error_max` is the largest one; `order` is that of `error` since the
      next coarser mesh of the same study.
    - `measured` and `exact` are the quantity that `quantity` names; `predicted` is what theory says of the measurement
      where that is not the exact value yet.
    - `below` and `above` are how far the field leaves the range of its data; `variation` is Σ A |u_N − u_P| over that
      of the initial field.
    - `fipy_error`, `fipy_difference` (the largest, from ours) and `fipy_seconds_per_step` are FiPy's.
    """

    problem: str
    scheme: str
    mesh: str
    cells: int
    error: float | None = None
    norm: str | None = None
    error_max: float | None = None
    order: float | None = None
    quantity: str | None = None
    measured: float | None = None
    exact: float | None = None
    predicted: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    below: float | None = None
    above: float | None = None
    variation: float | None = None
    steps: int | None = None
    seconds_per_step: float | None = None
    fipy_error: float | None = None
    fipy_difference: float | None = None
    fipy_seconds_per_step: float | None = None


def run_row(run: Simulation, problem: str, mesh: str, **more: Any) -> Row:
    """The row of a run: its scheme, cells, steps and seconds per step, and further fields."""
    return Row(
        problem=problem,
        scheme=run.scheme,
        mesh=mesh,
        cells=run.graph.cells,
        steps=run.steps,
        seconds_per_step=run.seconds_per_step,
        **more,
    )


def add_orders(rows: Sequence[Row], dimension: int = 2) -> list[Row]:
    """The rows of one refinement study, coarse to fine, with the orders between neighbours.

    The width of the cells is taken as cells^(−1/dimension); a row of cells has dimension 1.
    """
    finished = list(rows[:1])
    for coarse, fine in pairwise(rows):
        finer = math.log(fine.cells / coarse.cells) / dimension
        rate = math.log(coarse.error / fine.error) / finer if coarse.error and fine.error else None
        finished.append(replace(fine, order=rate))
    return finished


def row_of_squares(n: int) -> Mesh:
    """A row of n squares of side 1/n from x = 0 to 1; the tags of its long sides are `boundary`."""
    x = np.arange(n + 1) / n
    points = np.concatenate([np.stack([x, 0 * x], axis=1), np.stack([x, 0 * x + 1 / n], axis=1)])
    k = np.arange(n)
    cells = np.stack([k, k + 1, k + n + 2, k + n + 1], axis=1)
    sides = {"left": np.array([[0, n + 1]]), "right": np.array([[n, 2 * n + 1]])}
    return Mesh(points, cells, sides, origin=f"row_of_squares({n})")


def cell_means(mesh: Mesh, profile: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> CellField:
    """The mean of a function over triangles or parallelograms, from SAMPLES² points of each triangle of a cell.

    A triangle is cut into SAMPLES² equal ones, and the function is taken at their centroids.
    """
    corners = mesh.points[mesh.cells]
    halves = [corners] if corners.shape[1] == 3 else [corners[:, :3], corners[:, [0, 2, 3]]]
    k = np.arange(SAMPLES)
    i, j = (grid.ravel() for grid in np.meshgrid(k, k, indexing="ij"))
    upward, downward = i + j < SAMPLES, i + j < SAMPLES - 1
    first = np.concatenate([i[upward] + 1 / 3, i[downward] + 2 / 3]) / SAMPLES
    second = np.concatenate([j[upward] + 1 / 3, j[downward] + 2 / 3]) / SAMPLES
    weights = np.stack([1 - first - second, first, second])
    means = [profile(*np.einsum("cpd,ps->dcs", half, weights)).mean(axis=1) for half in halves]
    return np.asarray(np.mean(means, axis=0))


def relative_l1(graph: DualGraph, u: CellField, exact: CellField) -> float:
    """Σ V |u − u_exact| / Σ V |u_exact|."""
    return float(graph.V @ np.abs(u - exact) / (graph.V @ np.abs(exact)))


def relative_l2(graph: DualGraph, u: CellField, exact: CellField) -> float:
    """(Σ V (u − u_exact)² / Σ V u_exact²)^½."""
    return float(np.sqrt(graph.V @ (u - exact) ** 2 / (graph.V @ exact**2)))


def relative_max(u: CellField, exact: CellField) -> float:
    """Largest |u − u_exact| over the largest |u_exact|."""
    return float(np.abs(u - exact).max() / np.abs(exact).max())


def total_variation(graph: DualGraph, u: CellField) -> float:
    """Σ A |u_N − u_P| over the faces between two cells."""
    inside = slice(0, graph.interior)
    return float(graph.A[inside] @ np.abs(u[graph.neighbour[inside]] - u[graph.owner[inside]]))


def front_position(u: CellField, level: float) -> float:
    """Where u of a row of equal cells from 0 to 1 falls through a level for the first time, between two centres."""
    k = int(np.argmax(u < level))
    if k == 0:
        raise NumericalError(f"the field does not fall through {level} within the row")
    return float(k - 0.5 + (u[k - 1] - level) / (u[k - 1] - u[k])) / len(u)


def load_fipy() -> Any | None:
    """The package, or None where it is not installed."""
    try:
        # FiPy chooses a solver suite from the command line's words when it is imported, and warns of its own code.
        with patch.object(sys, "argv", sys.argv[:1]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import fipy
    except ImportError:
        return None
    return fipy
