"""Areas, centroids and edges: pure functions of points and cells."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fluxforge._types import CellField, CellVectors, Corners, Points


def cell_areas(points: Points, cells: Corners) -> CellField:
    """V = ½ Σ (x_k y_{k+1} − x_{k+1} y_k), positive for counter-clockwise cells."""
    return 0.5 * _cross_terms(_around_first_corner(points, cells)).sum(axis=1)


def cell_centroids(points: Points, cells: Corners) -> CellVectors:
    """x̄ = 1/(6V) Σ (x_k + x_{k+1}) (x_k y_{k+1} − x_{k+1} y_k)."""
    r = _around_first_corner(points, cells)
    # The moment is of the third power of a length. A power of two takes it near 1 without rounding.
    unit = np.ldexp(1.0, np.frexp(np.abs(r).max(initial=0.0))[1])
    r = r / unit
    cross = _cross_terms(r)
    pairs = r + np.roll(r, -1, axis=1)
    moment = np.einsum("cke,ck->ce", pairs, cross)
    return points[cells[:, 0]] + unit * (moment / (3.0 * cross.sum(axis=1, keepdims=True)))


def _around_first_corner(points: Points, cells: Corners) -> Float[np.ndarray, "cells corners 2"]:
    """Corner positions relative to the first corner, so that distant meshes keep their digits.

    The missing fourth corner of a triangle becomes its first: an edge of length zero, which adds nothing to any sum.
    """
    closed = np.where(cells < 0, cells[:, :1], cells)
    corners = points[closed]
    return corners - corners[:, :1]


def _cross_terms(r: Float[np.ndarray, "cells corners 2"]) -> Float[np.ndarray, "cells corners"]:
    following = np.roll(r, -1, axis=1)
    return r[..., 0] * following[..., 1] - following[..., 0] * r[..., 1]


class HalfEdges(NamedTuple):
    """Each cell's edges, counter-clockwise; a triangle among quadrilaterals has start = end = −1 in its last slot."""

    start: Int[np.ndarray, "cells corners"]
    end: Int[np.ndarray, "cells corners"]


def half_edges(cells: Corners) -> HalfEdges:
    """The directed edges start → end of every cell."""
    end = np.roll(cells, -1, axis=1)
    present = cells >= 0
    end = np.where(end < 0, cells[:, :1], end)
    return HalfEdges(np.where(present, cells, -1), np.where(present, end, -1))
