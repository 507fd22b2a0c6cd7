"""Division of every triangle into four, and the coarse boundary face of every fine one."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from fluxforge.errors import InputError
from fluxforge.mesh._build import dual
from fluxforge.mesh._dual import DualGraph
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import unit_volume


def divide_cells(mesh: Mesh) -> Mesh:
    """Each triangle divided into four of its shape by the middles of its edges; those of cell k are 4k to 4k + 3.

    Raises InputError for cells that are not triangles.
    """
    cells = mesh.cells
    if cells.shape[1] != 3 and (cells[:, 3:] >= 0).any():
        raise InputError("data.target: only meshes of triangles are refined")
    corners = cells[:, :3]
    sides = np.stack([corners, np.roll(corners, -1, axis=1)], axis=-1)
    pairs, number = np.unique(np.sort(sides.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    middle = len(mesh.points) + number.reshape(corners.shape)
    a, b, c = corners.T
    ab, bc, ca = middle.T
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    divided = np.stack([np.stack(part, axis=1) for part in parts], axis=1).reshape(-1, 3)
    known = {tuple(pair): len(mesh.points) + k for k, pair in enumerate(pairs.tolist())}
    boundary = {tag: _halve(np.asarray(edges), known) for tag, edges in mesh.boundary.items()}
    points = np.concatenate([mesh.points, mesh.points[pairs].mean(axis=1)])
    return replace(mesh, points=points, cells=divided, boundary=boundary, regions={})


def _halve(edges: np.ndarray, middle: dict[tuple[int, ...], int]) -> np.ndarray:
    centre = np.array([middle[tuple(sorted(edge))] for edge in edges.tolist()], edges.dtype)
    return np.concatenate([np.stack([edges[:, 0], centre], axis=1), np.stack([centre, edges[:, 1]], axis=1)])


@dataclass(frozen=True)
class Divided:
    """A mesh divided several times, in units of the mean cell of the mesh it came from.

    `x` are the centroids in the unit square of the coarse mesh, `wall` the boundary face of the coarse mesh that each
    of its own lies on.
    """

    graph: DualGraph
    x: Float[np.ndarray, "cells 2"]
    wall: Int[np.ndarray, " boundary"]


def divide(mesh: Mesh, levels: int) -> Divided:
    """The mesh divided `levels` times."""
    coarse = dual(mesh)
    length = unit_volume(coarse)[1]
    fine = mesh
    for _ in range(levels):
        fine = divide_cells(fine)
    graph = dual(replace(fine, points=fine.points / length))
    low, high = coarse.centre.min(axis=0), coarse.centre.max(axis=0)
    x = (graph.x * length - low) / (high - low).max()
    return Divided(graph, x, _walls(coarse, graph, length, 4**levels))


def _walls(coarse: DualGraph, fine: DualGraph, length: float, parts: int) -> np.ndarray:
    """Of the coarse boundary faces of the cell it came from, the one whose line a fine face lies on."""
    parent = fine.owner[fine.interior :] // parts
    centre = fine.centre[fine.interior :] * length
    owner, n, c = (part[coarse.interior :] for part in (coarse.owner, coarse.n, coarse.centre))
    # Distances to the lines of all coarse boundary faces, infinite for those of other cells.
    away = np.abs(np.einsum("fwi,wi->fw", centre[:, None] - c[None], n))
    found: np.ndarray = np.where(parent[:, None] == owner[None], away, np.inf).argmin(axis=1)
    return found
