"""A hybrid finite-volume scheme with unknowns in cells and on faces (SUSHI), for comparison.

Eymard, Gallouët & Herbin, IMA J. Numer. Anal. 30 (2010) 1009–1043: with u_K in the cells and u_σ on the faces,

    ∇_K u = 1/|K| Σ |σ| (u_σ − u_K) n,    R_σ u = √2/d_σ (u_σ − u_K − ∇_K u·(x_σ − x_K)),

the form ∫ K∇u·∇v is computed with the gradient ∇_K u + R_σ u n in the cone of each face, of volume |σ| d_σ/2. Faces at
walls have the values of the walls.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

from fluxforge._types import CellField
from fluxforge.mesh._dual import DualGraph


@dataclass(frozen=True)
class HybridSolution:
    """u in the cells, and the number of unknowns, which is that of cells and of faces between two cells."""

    cells: CellField
    unknowns: int


def _local_forms(graph: DualGraph, K: np.ndarray) -> np.ndarray:
    """∫ K∇u·∇v over every cell as a matrix for the differences u_σ − u_K: an array of shape (cells, slots, slots)."""
    face = graph.slot_face
    assert graph.slot_mask.all(), "meshes of one kind of cell"
    A = graph.A[face]
    n = graph.slot_sign[..., None] * graph.n[face]
    way = graph.centre[face] - graph.x[:, None, :]
    height = (way * n).sum(axis=2)
    G = (A[..., None] * n / graph.V[:, None, None]).transpose(0, 2, 1)
    slots = np.eye(face.shape[1])
    R = np.sqrt(2.0) / height[..., None] * (slots - np.einsum("csk,ckt->cst", way, G))
    gradients = G[:, None] + n[..., None] * R[:, :, None, :]
    volumes = 0.5 * A * height
    return np.asarray(np.einsum("cs,cskt,kl,cslu->ctu", volumes, gradients, K, gradients))


def solve_hybrid(
    graph: DualGraph, source: np.ndarray, walls: np.ndarray, K: np.ndarray | None = None
) -> HybridSolution:
    """The solution of −∇·K∇u = source with the values `walls` at all walls; K is a constant matrix, by default 1."""
    local = _local_forms(graph, np.eye(2) if K is None else K)
    cells, faces, slots = graph.cells, len(graph.A), graph.slot_face.shape[1]
    # The differences u_σ − u_K from the unknowns of the faces and the cell.
    E = np.concatenate([np.eye(slots), -np.ones((slots, 1))], axis=1)
    whole = np.einsum("ta,ctu,ub->cab", E, local, E)
    place = np.concatenate([cells + graph.slot_face, np.arange(cells)[:, None]], axis=1)
    rows = np.repeat(place, slots + 1, axis=1).ravel()
    columns = np.tile(place, (1, slots + 1)).ravel()
    form = csr_array((whole.ravel(), (rows, columns)), (cells + faces, cells + faces))
    free = cells + graph.interior
    right = np.concatenate([graph.V * source, np.zeros(graph.interior)]) - form[:free, free:] @ walls
    u = splu(csr_array(form[:free, :free]).tocsc()).solve(right)
    return HybridSolution(np.asarray(u[:cells]), free)
