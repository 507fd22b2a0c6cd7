"""Balances of the cells for fluxes F = A [ψ (T_N − T_P)/δ + ḡ·n − ψ ḡ·d/δ], as sparse matrices for any ψ on the faces.

ḡ is the mean of the least-squares gradients of the two cells, and that of the owner at a wall with a value. The matrix
is linear in ψ, so that everything but ψ is computed once per mesh.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import splu

from fluxforge._types import FaceField
from fluxforge.mesh import DualGraph


def least_squares_gradients(graph: DualGraph) -> tuple[csr_array, csr_array]:
    """∂/∂x and ∂/∂y in the cells from values at the nodes, cells first: weights 1/δ², walls included."""
    owner, other, inner = graph.owner, graph.neighbour, graph.interior
    here = np.concatenate([owner, other[:inner]])
    there = np.concatenate([other, owner[:inner]])
    d = np.concatenate([graph.d, -graph.d[:inner]])
    weight = 1.0 / (d**2).sum(axis=1)
    M = np.zeros((graph.cells, 2, 2))
    np.add.at(M, here, weight[:, None, None] * d[:, :, None] * d[:, None, :])
    c = weight[:, None] * np.einsum("eab,eb->ea", np.linalg.inv(M)[here], d)
    rows, columns = np.concatenate([here, here]), np.concatenate([there, here])
    shape = (graph.cells, graph.cells + graph.ghosts)
    x, y = (csr_array((np.concatenate([c[:, k], -c[:, k]]), (rows, columns)), shape) for k in range(2))
    return x, y


@dataclass(frozen=True)
class Invariants:
    """What no rotation of a face changes: cos θ = d·n/δ, ν = 2 A d·n/(V_P + V_N), and |V_P − V_N|/(V_P + V_N).

    At a wall with a value V_N = ∞: ν = 0 and the contrast is 1.
    """

    cosine: FaceField
    nu: FaceField
    contrast: FaceField


def face_invariants(graph: DualGraph) -> Invariants:
    """The invariants of all faces."""
    normal = (graph.d * graph.n).sum(axis=1)
    ghosts = np.full(graph.ghosts, np.inf)
    V = np.concatenate([graph.V, ghosts])
    own, far = V[graph.owner], V[graph.neighbour]
    inside = np.isfinite(far)
    contrast = np.where(inside, np.abs(own - np.where(inside, far, 0.0)) / (own + np.where(inside, far, 1.0)), 1.0)
    return Invariants(normal / graph.delta, 2.0 * graph.A * normal / (own + far), contrast)


class FluxOperator:
    """The fluxes of one mesh whose walls have values; `matrix(psi)` has a row per cell and a column per node."""

    def __init__(self, graph: DualGraph) -> None:
        self.graph = graph
        self.invariants = face_invariants(graph)
        faces, inner = len(graph.A), graph.interior
        nodes, number = graph.cells + graph.ghosts, np.arange(len(graph.A))
        ends = np.concatenate([graph.neighbour, graph.owner])
        signs = np.repeat([1.0, -1.0], faces)
        self.rise = csr_array((signs, (np.tile(number, 2), ends)), (faces, nodes))
        own = np.where(number < inner, 0.5, 1.0)
        cells = np.concatenate([graph.owner, graph.neighbour[:inner]])
        weights = np.concatenate([own, np.full(inner, 0.5)])
        mean = csr_array((weights, (np.concatenate([number, number[:inner]]), cells)), (faces, graph.cells))
        self.gradient = tuple(mean @ each for each in least_squares_gradients(graph))
        self.divergence = csr_array(
            (np.concatenate([np.ones(faces), -np.ones(inner)]), (cells, np.concatenate([number, number[:inner]]))),
            (graph.cells, faces),
        )

    def along(self, vectors: np.ndarray) -> csr_array:
        """ḡ·v on the faces, v having a row per face."""
        x, y = (diags_array(vectors[:, k]) @ self.gradient[k] for k in range(2))
        return csr_array(x + y)

    @cached_property
    def _parts(self) -> tuple[csr_array, csr_array]:
        """The balances of A ḡ·n, and (T_N − T_P) − ḡ·d on the faces."""
        graph = self.graph
        normal = self.divergence @ (diags_array(graph.A) @ self.along(graph.n))
        return csr_array(normal), csr_array(self.rise - self.along(graph.d))

    def matrix(self, psi: FaceField) -> csr_array:
        """Σ F of the cells from the values at the nodes."""
        normal, rest = self._parts
        weight = self.graph.A * psi / self.graph.delta
        return csr_array(normal + self.divergence @ (diags_array(weight) @ rest))

    def plain_matrix(self) -> csr_array:
        """The same of the two-point flux A (T_N − T_P)/δ."""
        return csr_array(self.divergence @ (diags_array(self.graph.A / self.graph.delta) @ self.rise))


def solve_steady(matrix: csr_array, graph: DualGraph, source: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """T with Σ F + V S = 0 in every cell; T, sources and wall values have a column per problem."""
    system = splu(csr_array(-matrix[:, : graph.cells]).tocsc())
    return np.asarray(system.solve(graph.V[:, None] * source + matrix[:, graph.cells :] @ walls))


def largest_step(matrix: csr_array, graph: DualGraph) -> float:
    """The longest stable step of forward Euler: the least 2 Re μ/|μ|² over the eigenvalues μ of −Σ F/V.

    0 where an eigenvalue lies in the left half plane.
    """
    mu = np.linalg.eigvals(-matrix[:, : graph.cells].toarray() / graph.V[:, None])
    return max(0.0, float((2.0 * mu.real / np.abs(mu) ** 2).min()))


def coercivity(matrix: csr_array, graph: DualGraph, width: float) -> float:
    """The smallest eigenvalue of the symmetric part of −Σ F, for the mass V, over π²/w².

    π²/w² is the lowest eigenvalue of −Δ in a strip of width w. Above 0, the balances are coercive.
    """
    scale = 1.0 / np.sqrt(graph.V)
    W = -matrix[:, : graph.cells].toarray() * scale[:, None] * scale[None, :]
    return float(np.linalg.eigvalsh(0.5 * (W + W.T))[0]) * width**2 / np.pi**2
