"""Common parts of the problems of `fluxforge bench equations`: sizes, results, meshes, norms, and FiPy if installed."""

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
    """Numbers of cells along a side: a sequence for refinement studies, one number for single runs."""

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
    """The result of a scheme for a problem on a mesh; fields that do not apply are None.

    - `error` is the error in the norm `norm`; `error_max` is the largest error; `order` is that of `error` relative to
      the next coarser mesh of the study.
    - `measured` and `exact` are values of the quantity named in `quantity`; `predicted` is the theoretical value of the
      measurement if it differs from the exact one.
    - `below` and `above` are by how much the field leaves the range of its data; `variation` is Σ A |u_N − u_P| over
      that of the initial field.
    - `fipy_error`, `fipy_difference` (the largest difference from ours) and `fipy_seconds_per_step` are FiPy's.
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
    """The row of a run: its scheme, cells, steps and seconds per step, and the further fields `more`."""
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
    """The rows of a refinement study, from coarse to fine, with the orders between successive ones added.

    The mesh size is taken as cells^(−1/dimension); the dimension is 1 for a row of cells.
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
    """The mean of a function over each cell, a triangle or parallelogram, by quadrature.

    Every triangle, or half a parallelogram, is divided into SAMPLES² equal triangles, and the function is evaluated at
    their centroids.
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


def total_variation(graph: DualGraph, u: CellField) -> float:
    """Σ A |u_N − u_P| over the faces between two cells."""
    inside = slice(0, graph.interior)
    return float(graph.A[inside] @ np.abs(u[graph.neighbour[inside]] - u[graph.owner[inside]]))


def front_position(u: CellField, level: float) -> float:
    """The first x at which u falls below a level, by linear interpolation between centres of a row of cells on [0, 1].

    Raises NumericalError if there is none.
    """
    k = int(np.argmax(u < level))
    if k == 0:
        raise NumericalError(f"the field does not fall through {level} within the row")
    return float(k - 0.5 + (u[k - 1] - level) / (u[k - 1] - u[k])) / len(u)


def load_fipy() -> Any | None:
    """The module fipy, or None if it is not installed."""
    try:
        # On import, FiPy chooses a solver from the command line's arguments, and issues warnings about its own code.
        with patch.object(sys, "argv", sys.argv[:1]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import fipy
    except ImportError:
        return None
    return fipy
