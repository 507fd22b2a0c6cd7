"""Small meshes, boundary data and Hypothesis strategies that several test files share."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from fluxforge.mesh import (
    Conditions,
    Dirichlet,
    DualGraph,
    Mesh,
    Neumann,
    cross_triangles,
    equilateral,
    jittered,
    right_triangles,
    squares,
    two_cells,
)
from fluxforge.scheme import Scheme
from fluxforge.scheme.reference import BUILT_IN
from fluxforge.stepping import operator, sides

EXPLICIT: Mapping[str, Scheme] = MappingProxyType(
    {name: scheme for name, scheme in BUILT_IN.items() if not scheme.implicit}
)

seeds = st.integers(0, 2**32 - 1)
angles = st.floats(0.0, 2 * np.pi)
scales = st.floats(-3.0, 3.0).map(lambda exponent: 10.0**exponent)
shifts = st.tuples(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0))


def few(examples: int) -> settings:
    """The same modest number of examples every time, however slow the machine."""
    return settings(deadline=None, derandomize=True, max_examples=examples, database=None)


def warped_quads(n: int, jitter: float = 0.2, seed: int = 0) -> Mesh:
    """Quadrilaterals on the jittered lattice: none a parallelogram."""
    lattice = jittered(n, jitter, seed)
    return Mesh(lattice.points, squares(n).cells, lattice.boundary, origin=f"warped_quads({n})")


def mixed(n: int, jitter: float = 0.2, seed: int = 0) -> Mesh:
    """A chessboard of quadrilaterals and pairs of triangles on the jittered lattice."""
    quads = warped_quads(n, jitter, seed)
    rows: list[list[int]] = []
    for k, (a, b, c, d) in enumerate(quads.cells.tolist()):
        rows += [[a, b, c, d]] if (k // n + k) % 2 else [[a, b, c, -1], [a, c, d, -1]]
    return Mesh(quads.points, np.array(rows), quads.boundary, origin=f"mixed({n})")


def fan() -> Mesh:
    """Three triangles around a point: each is beside both others, so nothing lies at distance two."""
    angle = 2 * np.pi * np.arange(3) / 3
    points = np.concatenate([np.zeros((1, 2)), np.stack([np.cos(angle), np.sin(angle)], axis=-1)])
    return Mesh(points, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1]]), origin="fan()")


def arrow() -> Mesh:
    """An arrowhead and the triangle that fills its notch: two cells that share two faces."""
    points = np.array([[0.0, 2.0], [-2.0, -2.0], [0.0, 0.0], [2.0, -2.0]])
    return Mesh(points, np.array([[0, 1, 2, 3], [2, 1, 3, -1]]), origin="arrow()")


def islands() -> Mesh:
    """Two pairs of triangles that touch in a point only, and one triangle apart."""
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [2, 1], [2, 2], [1, 2], [5, 5], [6, 5], [5, 6]], float)
    cells = np.array([[0, 1, 2], [0, 2, 3], [2, 4, 5], [2, 5, 6], [7, 8, 9]])
    return Mesh(points, cells, origin="islands()")


MESHES: Mapping[str, Mesh] = MappingProxyType(
    {
        "squares": squares(3),
        "right": right_triangles(3),
        "cross": cross_triangles(2),
        "equilateral": equilateral(3),
        "jittered": jittered(4, 0.3, seed=1),
        "warped": warped_quads(4, 0.3, seed=2),
        "mixed": mixed(4, 0.3, seed=3),
        "two": two_cells(),
        "fan": fan(),
        "arrow": arrow(),
        "islands": islands(),
        "one": squares(1),
    }
)
"""Every shape of graph we know how to make small."""

SIDED: Mapping[str, Mesh] = MappingProxyType({name: MESHES[name] for name in ("jittered", "warped", "mixed")})
"""The irregular ones, triangles, quadrilaterals and both, with the four sides named."""

BOUNDARIES: Mapping[str, Conditions] = MappingProxyType(
    {
        "dirichlet": {"left": Dirichlet("1 + y"), "right": Dirichlet("sin(3*y)"), "top": Dirichlet(-0.5)},
        "neumann": {
            "left": Neumann(0.3),
            "right": Neumann("y - 2*x"),
            "bottom": Neumann(),
            "top": Neumann("cos(x)"),
        },
        "both": {"left": Dirichlet("y**2"), "right": Neumann("1 + y"), "bottom": Neumann(-0.7), "top": Dirichlet(2.0)},
    }
)
"""Data on the four sides, none of it symmetric."""


class Renumbered(NamedTuple):
    """A mesh drawn in another order: its cell k is cell `order[k]` of the first."""

    mesh: Mesh
    order: np.ndarray


def renumbered(mesh: Mesh, seed: int) -> Renumbered:
    """The same mesh with cells and points permuted and every cell's corners rotated."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(mesh.cells))
    place = rng.permutation(len(mesh.points))
    points = np.empty_like(mesh.points)
    points[place] = mesh.points
    cells = np.where(mesh.cells < 0, -1, place[mesh.cells])[order]
    corners = (cells >= 0).sum(axis=1)
    for k, turn in enumerate(rng.integers(0, 4, len(cells))):
        cells[k, : corners[k]] = np.roll(cells[k, : corners[k]], turn)
    boundary = {name: place[rng.permutation(edges)] for name, edges in mesh.boundary.items()}
    return Renumbered(Mesh(points, cells, boundary, origin=mesh.origin), order)


def moved(mesh: Mesh, *, scale: float = 1.0, angle: float = 0.0, shift: tuple[float, float] = (0.0, 0.0)) -> Mesh:
    """The mesh scaled, turned and shifted."""
    points = scale * mesh.points @ turn(angle).T + np.array(shift)
    return Mesh(points, mesh.cells, mesh.boundary, origin=mesh.origin)


def turn(angle: float) -> np.ndarray:
    """The rotation matrix."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


class Step(NamedTuple):
    """T' = M T + N S + b, dense, the system of an implicit scheme solved."""

    M: np.ndarray
    N: np.ndarray
    b: np.ndarray

    def __call__(self, T: np.ndarray, S: np.ndarray | float = 0.0) -> np.ndarray:
        return self.M @ T + self.N @ np.broadcast_to(S, T.shape) + self.b


def whole_step(scheme: Scheme, graph: DualGraph, dt: float, diffusivity: float = 1.0) -> Step:
    """One step of any linear scheme as dense matrices, by `operator`."""
    step = operator(scheme, graph, dt=dt, parameters={"alpha": diffusivity})
    if not scheme.implicit:
        return Step(step.M.toarray(), step.N.toarray(), step.b)
    left, right = (side.toarray() for side in sides(step))
    return Step(*(np.linalg.solve(left, side) for side in (right, step.N.toarray(), step.b)))


def noise(size: int, seed: int = 0) -> np.ndarray:
    """White noise."""
    return np.random.default_rng(seed).standard_normal(size)
