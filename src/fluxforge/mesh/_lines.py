"""Lines of cells B – P – N – F through faces: the opposite face of every face, found from the normals."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from fluxforge._types import SlotIndex
from fluxforge.errors import MeshError
from fluxforge.mesh._dual import DualGraph, check_graph

# The normals of opposite faces are less than 37° from opposite: a square sheared or jittered as far as that still has
# lines of cells, a regular tetrahedron (109°) and a right triangle (135°) do not.
_OPPOSITE = -0.8


class Lines(NamedTuple):
    """Per cell and slot, the node behind the cell and the node ahead of its neighbour, on the line through the face."""

    behind: Int[np.ndarray, "cells slots"]
    ahead: Int[np.ndarray, "cells slots"]


def lines(graph: DualGraph) -> Lines:
    """The lines through every face of every cell; unused slots point at the cell itself.

    Ahead of a ghost is the ghost itself. Raises MeshError, naming the cell, where a cell has a face without an opposite
    one.
    """
    opposite = _opposite_slots(check_graph(graph))
    behind = np.take_along_axis(graph.slot_node, opposite, axis=1)
    used, owned = graph.slot_mask, graph.slot_sign > 0
    behind_owner, behind_other = (np.zeros(len(graph.A), np.int32) for _ in range(2))
    behind_owner[graph.slot_face[used & owned]] = behind[used & owned]
    behind_other[graph.slot_face[used & ~owned]] = behind[used & ~owned]
    ahead = np.where(owned, behind_other[graph.slot_face], behind_owner[graph.slot_face])
    ahead = np.where(graph.slot_node < graph.cells, ahead, graph.slot_node)
    cell = np.arange(graph.cells, dtype=np.int32)[:, None]
    return Lines(np.where(used, behind, cell).astype(np.int32), np.where(used, ahead, cell).astype(np.int32))


def has_lines(graph: DualGraph) -> bool:
    """Whether every face of every cell has an opposite one, so that lines of cells go through all of them."""
    return not _pair_slots(graph)[1].size


def _opposite_slots(graph: DualGraph) -> SlotIndex:
    """Of each slot, the opposite one."""
    opposite, alone = _pair_slots(graph)
    if alone.size:
        cell = alone[0]
        place = ", ".join(f"{coordinate:.4g}" for coordinate in graph.x[cell])
        raise MeshError(
            f"{graph.origin}: cell {cell} at ({place}) has a face without an opposite one, so that no line of cells "
            "goes through it: take bounded-van-leer, barth-jespersen or another scheme for cells of any shape, or a "
            "mesh of squares"
        )
    return opposite


def _pair_slots(graph: DualGraph) -> tuple[SlotIndex, Int[np.ndarray, " alone"]]:
    """Of each slot, the slot whose normal is most nearly opposite; and the cells where that does not hold both ways."""
    slots = graph.slot_node.shape[1]
    n = graph.n[graph.slot_face] * graph.slot_sign[..., None]
    best = np.full(graph.slot_node.shape, np.inf)
    opposite = np.zeros(graph.slot_node.shape, np.int32)
    for k in range(slots):
        for other in range(slots):
            if other == k:
                continue
            cosine = np.where(graph.slot_mask[:, other], np.einsum("ci,ci->c", n[:, k], n[:, other]), np.inf)
            nearer = cosine < best[:, k]
            best[nearer, k], opposite[nearer, k] = cosine[nearer], other
    back = np.take_along_axis(opposite, opposite, axis=1)
    paired = (best <= _OPPOSITE) & (back == np.arange(slots))
    return opposite, np.flatnonzero((graph.slot_mask & ~paired).any(axis=1))
