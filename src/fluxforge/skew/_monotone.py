"""A steady field that stays in the range of its walls: the two-point flux, corrected as far as that allows.

    F = F₂ + α (F_ψ − F₂),   0 ≤ α ≤ 1 on every face,

F₂ being the two-point flux and F_ψ a consistent one. α is the limiter of flux correction (Zalesak, J. Comput. Phys. 31,
1979): the corrections that raise a cell add up to at most q (max T − T_P), those that lower it to at most
q (T_P − min T), with the largest and smallest value of the neighbours and q = Σ A/δ. So they are c₊ (max T − T_P) and
c₋ (min T − T_P) with c ≥ 0, and every iteration solves a system whose matrix is an M-matrix: without a source no
iterate leaves the range of the walls. Away from extrema α = 1 and F = F_ψ. What is added to one cell is taken from its
neighbour once the iteration has ended, and not before.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

from fluxforge._types import CellField, FaceField
from fluxforge.mesh._dual import DualGraph
from fluxforge.skew._flux import FluxOperator

# The part of the step to the next solution that is taken, for this many iterations: shorter steps end cycles.
_SHARES = ((0.5, 150), (0.25, 150), (0.1, 300))
TOLERANCE = 1e-7
"""The change of the last iteration, over the range of the field, up to which a field counts as converged."""


@dataclass(frozen=True)
class MonotoneSolution:
    """T in the cells, the number of iterations, and the change of the last one over the range of T and its walls."""

    cells: CellField
    iterations: int
    change: float

    @property
    def converged(self) -> bool:
        """Whether the balances hold; the field stays in the range of its walls in any case."""
        return self.change <= TOLERANCE


def solve_monotone(operator: FluxOperator, psi: FaceField, source: CellField, walls: np.ndarray) -> MonotoneSolution:
    """T with Σ F + V S = 0 in every cell, for one source and one set of values at the walls; k = 1."""
    graph = operator.graph
    two_point = operator.plain_matrix()
    correction = csr_array(operator.face_fluxes(psi) - operator.plain_fluxes())
    T, change, number = _solve(two_point, graph, source, walls), np.inf, 0
    for share, most in _SHARES:
        for _ in range(most):
            nodes = np.concatenate([T, walls])
            new = _solve(two_point + limit_corrections(graph, correction @ nodes, nodes), graph, source, walls)
            change = float(np.abs(new - T).max() / np.ptp(np.concatenate([nodes, new])))
            T, number = T + share * (new - T), number + 1
            if change <= TOLERANCE:
                return MonotoneSolution(T, number, change)
    return MonotoneSolution(T, number, change)


def _solve(matrix: csr_array, graph: DualGraph, source: CellField, walls: np.ndarray) -> CellField:
    right = graph.V * source + matrix[:, graph.cells :] @ walls
    return np.asarray(splu(csr_array(-matrix[:, : graph.cells]).tocsc()).solve(right))


def limit_corrections(graph: DualGraph, flux: FaceField, T: np.ndarray) -> csr_array:
    """The limited corrections as c₊ (max T − T_P) + c₋ (min T − T_P): a row per cell, a column per node."""
    owner, other, inner, cells = graph.owner, graph.neighbour, graph.interior, graph.cells
    here, there = np.concatenate([owner, other[:inner]]), np.concatenate([other, owner[:inner]])
    into = np.concatenate([flux, -flux[:inner]])
    order = np.lexsort((T[there], here))
    ends = np.flatnonzero(np.diff(here[order], append=cells))
    highest, lowest = there[order][ends], there[order][np.concatenate([[0], ends[:-1] + 1])]
    conductance = graph.A / graph.delta
    q = np.bincount(here, np.concatenate([conductance, conductance[:inner]]), cells)
    rows, columns, values = [], [], []
    room = [np.maximum(sign * (T[node] - T[:cells]), 0.0) for sign, node in ((1.0, highest), (-1.0, lowest))]
    alpha = _shares(graph, here, into, q, room)
    for sign, node, gap in zip((1.0, -1.0), (highest, lowest), room, strict=True):
        total = np.bincount(here, np.maximum(sign * alpha * into, 0.0), cells)
        # Without room α is 0 and so is the total.
        c = np.where(gap > 0.0, total / np.where(gap > 0.0, gap, 1.0), 0.0)
        rows += [np.arange(cells)] * 2
        columns += [node, np.arange(cells)]
        values += [c, -c]
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return csr_array(entries, (cells, len(T)))


def _shares(graph: DualGraph, here: np.ndarray, into: np.ndarray, q: CellField, room: list[CellField]) -> np.ndarray:
    """α of all sides of faces: the least of what the two cells of a face allow; a wall does not limit it."""
    allowed = []
    for sign, gap in zip((1.0, -1.0), room, strict=True):
        total = np.bincount(here, np.maximum(sign * into, 0.0), graph.cells)
        allowed.append(np.minimum(1.0, q * gap / np.where(total > 0.0, total, 1.0)))
        allowed[-1][total == 0.0] = 1.0
    shares = np.where(into > 0.0, allowed[0][here], allowed[1][here])
    faces, inner = len(graph.A), graph.interior
    alpha = shares[:faces].copy()
    alpha[:inner] = np.minimum(alpha[:inner], shares[faces:])
    return np.concatenate([alpha, alpha[:inner]])
