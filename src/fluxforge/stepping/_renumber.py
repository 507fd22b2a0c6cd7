"""An order of the cells in which neighbours lie close in memory."""

import numpy as np
from jaxtyping import Float, Int

from fluxforge.mesh import DualGraph

_BITS = 16


def local_order(graph: DualGraph) -> Int[np.ndarray, " cells"] | None:
    """Cells along Hilbert's curve (in space, Morton's) through the centroids; None where the mesh is in order."""
    if graph.cells < 4096:
        return None
    return None if _streams(graph) else (hilbert_order if graph.dimension == 2 else morton_order)(graph.x)


def _streams(graph: DualGraph) -> bool:
    """Whether the mesh's own order walks the mesh in bands: neighbours a bounded distance ahead or behind."""
    inside = slice(graph.interior)
    reach = np.abs(graph.owner[inside].astype(np.int64) - graph.neighbour[inside])
    return not reach.size or bool(np.quantile(reach, 0.99) <= 16 * graph.cells ** (1 - 1 / graph.dimension))


def hilbert_order(x: Float[np.ndarray, "cells 2"]) -> Int[np.ndarray, " cells"]:
    """The order in which a Hilbert curve of 2¹⁶ × 2¹⁶ boxes visits the points."""
    low, span = x.min(axis=0), np.ptp(x, axis=0).max()
    box = ((x - low) / (span or 1.0) * ((1 << _BITS) - 1)).astype(np.int64)
    u, v = box[:, 0].copy(), box[:, 1].copy()
    distance = np.zeros(len(x), np.int64)
    for bit in reversed(range(_BITS)):
        side = 1 << bit
        right, up = (u & side) > 0, (v & side) > 0
        distance += np.where(right, 3, 0) * side * side
        distance += np.where(up, np.where(right, -1, 1), 0) * side * side
        # Rotate the quadrant so that the curve enters and leaves it where its neighbours do.
        flip = ~up & right
        u, v = (
            np.where(flip, side - 1 - (u & (side - 1)), u & (side - 1)),
            np.where(flip, side - 1 - (v & (side - 1)), v & (side - 1)),
        )
        u, v = np.where(~up, v, u), np.where(~up, u, v)
    return np.argsort(distance, kind="stable")


def morton_order(x: Float[np.ndarray, "cells dimension"]) -> Int[np.ndarray, " cells"]:
    """The order of the points by their coordinates' bits, interleaved: the same in every dimension."""
    d = x.shape[1]
    low, span = x.min(axis=0), np.ptp(x, axis=0).max()
    box = ((x - low) / (span or 1.0) * ((1 << _BITS) - 1)).astype(np.int64)
    key = np.zeros(len(x), np.int64)
    for bit in range(_BITS):
        for axis in range(d):
            key |= ((box[:, axis] >> bit) & 1) << (d * bit + axis)
    return np.argsort(key, kind="stable")
