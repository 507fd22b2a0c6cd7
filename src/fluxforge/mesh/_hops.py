"""The cells beyond the neighbours: two-hop paths, rings of distance two, lines of cells through opposite faces."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from fluxforge._types import SlotIndex
from fluxforge.errors import MeshError
from fluxforge.mesh._dual import DualGraph, check_graph

# The normals of opposite faces are less than 37° from opposite: a square sheared or jittered as far as that still has
# lines of cells, a regular tetrahedron (109°) and a right triangle (135°) do not.
_LARGEST_COSINE = -0.8


class Paths(NamedTuple):
    """The directed paths P → N → Q of each cell P, N a cell, Q any node next to N: P itself and ghosts included.

    Path number k·slots + l leaves P by its slot k and N by its slot l. Where `mask` is false there is no such path
    (N is a ghost, or a slot is unused), and the indices point at P.
    """

    middle: Int[np.ndarray, "cells paths"]
    end: Int[np.ndarray, "cells paths"]
    first_slot: Int[np.ndarray, " paths"]
    second_slot: Int[np.ndarray, " paths"]
    mask: Bool[np.ndarray, "cells paths"]


def paths(graph: DualGraph) -> Paths:
    """All directed two-hop paths, in fixed slots."""
    slots = check_graph(graph).slot_node.shape[1]
    first, second = np.divmod(np.arange(slots * slots), slots)
    cell = np.arange(graph.cells, dtype=np.int32)[:, None]
    middle = graph.slot_node[:, first]
    real = graph.slot_mask[:, first] & (middle < graph.cells)
    middle = np.where(real, middle, cell)
    mask = real & graph.slot_mask[middle, second]
    end = np.where(mask, graph.slot_node[middle, second], cell)
    return Paths(middle, end, first, second, mask)


class Ring(NamedTuple):
    """The distinct cells Q at graph distance exactly two from each cell P.

    `node` holds them in fixed slots (P itself where `mask` is false); `slot_of_path` says which of them each path of
    `paths(graph)` leads to, −1 for paths that return, end beside P or end in a ghost: averaging a feature over the
    paths of a pair is a sum over equal slots divided by `multiplicity`.
    """

    node: Int[np.ndarray, "cells ring"]
    mask: Bool[np.ndarray, "cells ring"]
    slot_of_path: Int[np.ndarray, "cells paths"]
    multiplicity: Int[np.ndarray, "cells ring"]


def ring(graph: DualGraph, steps: Paths | None = None) -> Ring:
    """The cells at distance exactly two, found by sorting the path ends of each cell."""
    steps = paths(graph) if steps is None else steps
    cell = np.arange(graph.cells)[:, None]
    beside = (steps.end[:, :, None] == np.where(graph.slot_mask, graph.slot_node, -1)[:, None, :]).any(axis=2)
    far = steps.mask & (steps.end < graph.cells) & (steps.end != cell) & ~beside
    end = np.where(far, steps.end, np.iinfo(np.int32).max)
    order = np.argsort(end, axis=1, kind="stable")
    sorted_end = np.take_along_axis(end, order, axis=1)
    sorted_far = np.take_along_axis(far, order, axis=1)
    new = sorted_far.copy()
    new[:, 1:] &= sorted_end[:, 1:] != sorted_end[:, :-1]
    slot = np.where(sorted_far, np.cumsum(new, axis=1) - 1, -1)
    slot_of_path = np.empty_like(slot)
    np.put_along_axis(slot_of_path, order, slot, axis=1)
    width = max(int(slot.max(initial=-1)) + 1, 1)
    node = np.tile(cell.astype(np.int32), (1, width))
    place = (cell * width + slot_of_path)[far]
    node.ravel()[place] = steps.end[far]
    multiplicity = np.bincount(place, minlength=node.size).reshape(node.shape).astype(np.int32)
    return Ring(node, multiplicity > 0, slot_of_path.astype(np.int32), multiplicity)


class Lines(NamedTuple):
    """For each slot of a cell, along its line of cells: the nodes behind the cell and ahead of its neighbour."""

    behind: Int[np.ndarray, "cells slots"]
    ahead: Int[np.ndarray, "cells slots"]


def lines(graph: DualGraph) -> Lines:
    """The lines through every face of every cell; unused slots point at the cell itself.

    Ahead of a ghost is the ghost itself. Raises MeshError, naming the cell, where a cell has a face without an opposite
    one.
    """
    opposite, alone = _pair_slots(check_graph(graph))
    if alone.size:
        place = ", ".join(f"{coordinate:.4g}" for coordinate in graph.x[alone[0]])
        raise MeshError(
            f"{graph.origin}: cell {alone[0]} at ({place}) has a face without an opposite one, so that no line of "
            "cells goes through it: take bounded-van-leer, barth-jespersen or another scheme for cells of any shape, "
            "or a mesh of squares"
        )
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


def _pair_slots(graph: DualGraph) -> tuple[SlotIndex, Int[np.ndarray, " alone"]]:
    """For each slot the one whose normal is most nearly opposite; and the cells with a slot that has no opposite."""
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
    paired = (best <= _LARGEST_COSINE) & (back == np.arange(slots))
    return opposite, np.flatnonzero((graph.slot_mask & ~paired).any(axis=1))
