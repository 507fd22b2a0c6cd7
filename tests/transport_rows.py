"""Rows of squares, profiles on them, and steps of any scheme of transport."""

import numpy as np

from fluxforge.mesh import Dirichlet, DualGraph, Mesh, Neumann, dual
from fluxforge.scheme import find
from fluxforge.stepping import general_stepper

ALONG = {"velocity": (1.0, 0.0)}
# A step depends on the Courant number alone, so that a profile over the first n cells of this row has the errors that
# it has on a row of n: one compilation per scheme serves four refinements.
CELLS = 320


def row(n: int) -> Mesh:
    """A row of n squares of side 1/n, from x = 0 to 1; its sides are left, right, and the two others."""
    x = np.arange(n + 1) / n
    points = np.concatenate([np.stack([x, 0 * x], axis=1), np.stack([x, 0 * x + 1 / n], axis=1)])
    k = np.arange(n)
    cells = np.stack([k, k + 1, k + n + 2, k + n + 1], axis=1)
    sides = {"left": [[0, n + 1]], "right": [[n, 2 * n + 1]]}
    return Mesh(points, cells, {name: np.array(edges) for name, edges in sides.items()}, origin=f"row({n})")


def on_row(n: int, left: float = 0.0) -> DualGraph:
    return dual(row(n), {"left": Dirichlet(left), "right": Neumann(), "boundary": Neumann()})


def advance(name: str, graph: DualGraph, u: np.ndarray, dt: float, steps: int, **values: object) -> np.ndarray:
    """Steps of the general stepper, the one that takes any scheme."""
    equation = str(values.pop("equation", "advection"))
    scheme = find(name, equation, dimension=graph.dimension)
    step = general_stepper(
        scheme, graph, dt=dt, parameters=values.pop("parameters", ALONG), source=np.zeros(len(u)), dtype="float64"
    )
    return np.asarray(step.rollout(u, steps))


def bump(x: np.ndarray) -> np.ndarray:
    """cos⁶ between 0.1 and 0.5: five continuous derivatives, far from the walls until t = 0.4."""
    at = np.clip((x - 0.3) / 0.2, -1, 1)
    return np.cos(np.pi / 2 * at) ** 6


def averages(profile: object, n: int, shift: float = 0.0, cells: int | None = None) -> np.ndarray:
    """Averages over cells of width 1/n, n of them from x = 0 on or more, by Gauss's rule of four points (order 8)."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    centre = (np.arange(cells or n) + 0.5) / n
    return profile(centre[:, None] + nodes / (2 * n) - shift) @ weights / 2  # type: ignore[operator]


def total_variation(u: np.ndarray) -> float:
    return float(np.abs(np.diff(np.concatenate([[0.0], u]))).sum())
