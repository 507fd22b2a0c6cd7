"""Pairs of triangles as meshes, to be compared with the arrays that stand for them."""

import numpy as np

from fluxforge.data import Problem
from fluxforge.mesh import Condition, Dirichlet, DualGraph, Mesh, Neumann, dual

# The outer faces of each cell, as `pair` orders them: the second cell's follow the first's.
FACES = ((1, 2), (2, 0), (0, 3), (3, 1))


def pair_mesh(corners: np.ndarray) -> Mesh:
    """The shared face from 0 to 1, the apex of the first cell 2, of the second 3; every outer face has a tag."""
    boundary = {f"face{k}": np.array([edge]) for k, edge in enumerate(FACES)}
    return Mesh(np.asarray(corners), np.array([[0, 1, 2], [1, 0, 3]]), boundary, origin="pair")


def pair_graph(corners: np.ndarray, present: np.ndarray, value: np.ndarray) -> DualGraph:
    """Faces that are present hold a value, the others are insulated."""
    given = zip(present.ravel(), value.ravel(), strict=True)
    held: list[Condition] = [Dirichlet(float(g)) if there else Neumann() for there, g in given]
    return dual(pair_mesh(corners), {f"face{k}": condition for k, condition in enumerate(held)})


def corners_of(problem: Problem) -> np.ndarray:
    """The corners of a pair up to a shift, from its lengths and normals: an edge is its normal turned back."""
    geometry = {name: np.asarray(value) for name, value in problem.graph.hops["edge"].geometry.items()}
    along = np.stack([-geometry["n_y"], geometry["n_x"]], axis=-1) * geometry["A"][..., None]
    first = np.zeros(2)
    second = first + along[0, 0]
    return np.stack([first, second, second + along[0, 1], first + along[1, 1]])


def values_of(problem: Problem) -> np.ndarray:
    """What the four ghosts show of a temperature."""
    return np.asarray(problem.graph.shown["dirichlet"].constant)[2:].reshape(2, 2)
