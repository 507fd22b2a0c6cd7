"""Cells as arrays: areas, centroids and edges; checks of corners, area, orientation, and of the edges cells share."""

from collections.abc import Mapping
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fluxforge._types import CellField, CellVectors, Corners, Points
from fluxforge.errors import MeshError


def cell_areas(points: Points, cells: Corners) -> CellField:
    """V = ½ Σ (x_k y_{k+1} − x_{k+1} y_k), positive for counter-clockwise cells."""
    r = _around_first_corner(points, cells)
    return 0.5 * cross(r, np.roll(r, -1, axis=1)).sum(axis=1)


def cell_centroids(points: Points, cells: Corners) -> CellVectors:
    """x̄ = 1/(6V) Σ (x_k + x_{k+1}) (x_k y_{k+1} − x_{k+1} y_k)."""
    r = _around_first_corner(points, cells)
    # The moment is a length cubed, which may overflow. Scaling by a power of two is exact.
    unit = np.ldexp(1.0, np.frexp(np.abs(r).max(initial=0.0))[1])
    r = r / unit
    following = np.roll(r, -1, axis=1)
    twice_area = cross(r, following)
    moment = np.einsum("cke,ck->ce", r + following, twice_area)
    return points[cells[:, 0]] + unit * (moment / (3.0 * twice_area.sum(axis=1, keepdims=True)))


def _around_first_corner(points: Points, cells: Corners) -> Float[np.ndarray, "cells corners 2"]:
    """Corner positions relative to the first corner, which avoids cancellation far from the origin."""
    corners = corner_positions(points, cells)
    return corners - corners[:, :1]


def corner_positions(points: Points, cells: Corners) -> Float[np.ndarray, "cells corners 2"]:
    """The corners of every cell.

    The missing fourth corner of a triangle becomes its first: an edge of length zero, which adds nothing to any sum.
    """
    return points[np.where(cells < 0, cells[:, :1], cells)]


def cross(a: Float[np.ndarray, "*n 2"], b: Float[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
    """The cross product a_x b_y − a_y b_x: twice the signed area of the triangle that the two vectors span."""
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def mark_triangles(cells: Corners) -> Bool[np.ndarray, " cells"]:
    """Which cells are triangles; the others are quadrilaterals."""
    return np.full(len(cells), True) if cells.shape[1] == 3 else cells[:, -1] < 0


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


def edge_keys(a: Int[np.ndarray, " edges"], b: Int[np.ndarray, " edges"], points: int) -> Int[np.ndarray, " edges"]:
    """One whole number per undirected edge."""
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    return low * points + high


# A cell is flat if its area over the square of its longest edge is no larger than this: far below cells of boundary
# layers, far above round-off.
LEAST_RELATIVE_AREA = 1e-12
# Lengths within these have areas, and products of areas with cells a thousandth as long, in the range of doubles.
LARGEST, SMALLEST = 1e100, 1e-100
RESCALE = (
    f"lengths should lie between {SMALLEST:g} and {LARGEST:g}, since areas overflow or underflow otherwise: rescale "
    "the mesh"
)


def refuse(origin: str, reason: str) -> NoReturn:
    """Raise a MeshError that begins with the origin of the mesh."""
    raise MeshError(f"{origin}: {reason}")


def as_arrays(
    points: Shaped[np.ndarray, "..."], cells: Shaped[np.ndarray, "..."], origin: str
) -> tuple[Points, Corners]:
    """Points as floats in two columns and cells as whole numbers in three, or four if there is a quadrilateral."""
    points, cells = np.asarray(points), np.asarray(cells)
    if points.ndim != 2 or points.shape[1] != 2 or points.dtype.kind not in "fiu":
        refuse(origin, f"the points should be numbers in two columns, got {points.dtype} of shape {points.shape}")
    if cells.size == 0:
        refuse(origin, "has no cells")
    if cells.ndim != 2 or cells.shape[1] not in (3, 4) or cells.dtype.kind not in "iu":
        refuse(origin, f"the cells should be integers in 3 or 4 columns, got {cells.dtype} of shape {cells.shape}")
    if cells.shape[1] == 4 and (cells[:, 3] == -1).all():
        cells = cells[:, :3]
    return points.astype(np.float64), cells.astype(np.int64)


def check_coordinates(points: Float[np.ndarray, "points axes"], origin: str) -> None:
    """Raise MeshError for coordinates that are not finite, or so large that areas overflow."""
    if (bad := np.flatnonzero(~np.isfinite(points).all(axis=1))).size:
        where = ", ".join(f"{x:g}" for x in points[bad[0]])
        refuse(origin, f"point {bad[0]} is at ({where}): every coordinate should be a finite number")
    if points.size and np.abs(points).max() > LARGEST:
        point, axis = np.unravel_index(np.abs(points).argmax(), points.shape)
        refuse(
            origin,
            f"point {point} has the coordinate {points[point, axis]:g}, and {RESCALE}, for example to an extent of 1",
        )


def check_extent(points: Points, cells: Corners, origin: str) -> None:
    """Raise MeshError for a mesh that is so small that areas underflow."""
    extent = np.ptp(points[cells[cells >= 0]], axis=0).max()
    if extent < SMALLEST:
        refuse(origin, f"has an extent of {extent:g}, and {RESCALE}, for example to an extent of 1")


def check_corners(points: Points, cells: Corners, origin: str) -> None:
    """Raise MeshError for corners that are not points of the mesh, and cells that use a point twice."""
    valid = (cells >= 0) & (cells < len(points))
    valid[:, 3:] |= cells[:, 3:] == -1
    if (bad := np.flatnonzero(~valid.all(axis=1))).size:
        index = cells[bad[0]][~valid[bad[0]]][0]
        refuse(origin, f"cell {bad[0]} refers to point {index}, and the points are 0 to {len(points) - 1}")
    for i in range(1, cells.shape[1]):
        for j in range(i):
            if (bad := np.flatnonzero((cells[:, i] == cells[:, j]) & (cells[:, i] >= 0))).size:
                refuse(origin, f"cell {bad[0]} uses point {cells[bad[0], i]} twice ({name_corners(cells, bad[0])})")


def name_corners(cells: Corners, cell: int | np.integer) -> str:
    """The corners of a cell, as messages list them."""
    return "points " + ", ".join(str(k) for k in cells[cell] if k >= 0)


def orient_cells(points: Points, cells: Corners, origin: str) -> tuple[Corners, tuple[str, ...]]:
    """Return the cells, all counter-clockwise, and notes; raise MeshError for flat and for self-intersecting cells."""
    check_extent(points, cells, origin)
    notes = _check_quadrilaterals(points, cells, origin)
    area = cell_areas(points, cells)
    if (flat := np.flatnonzero(np.abs(area) <= _negligible_area(points, cells))).size:
        refuse(origin, f"cell {flat[0]} has zero area ({name_corners(cells, flat[0])})")
    clockwise = area < 0
    if not clockwise.any():
        return cells, notes
    count = int(clockwise.sum())
    return _reverse_cells(cells, clockwise), (f"reoriented {count} clockwise cell{'s' * (count > 1)}", *notes)


def _negligible_area(points: Points, cells: Corners) -> CellField:
    """L max(LEAST_RELATIVE_AREA L, 4 ε max|x|), L the longest edge: cells of less area are flat.

    The second term is the rounding error of the area.
    """
    start, end = half_edges(cells)
    side = points[end] - points[start]
    longest = np.sqrt(np.einsum("cke,cke->ck", side, side)).max(axis=1)
    rounding = 4.0 * np.finfo(float).eps * np.abs(points).max()
    return np.asarray(longest * np.maximum(LEAST_RELATIVE_AREA * longest, rounding))


def _reverse_cells(cells: Corners, clockwise: Bool[np.ndarray, " cells"]) -> Corners:
    """Reverse the marked cells, keeping the first corner first and a triangle's −1 last."""
    cells = cells.copy()
    triangle = mark_triangles(cells)
    turned, turned_quadrilateral = clockwise & triangle, clockwise & ~triangle
    cells[turned, 1:3] = cells[turned, 2:0:-1]
    cells[turned_quadrilateral, 1:] = cells[turned_quadrilateral, :0:-1]
    return cells


def _check_quadrilaterals(points: Points, cells: Corners, origin: str) -> tuple[str, ...]:
    """Raise MeshError for quadrilaterals that cross or fold onto themselves; note those that are not convex."""
    index = np.flatnonzero(~mark_triangles(cells))
    corner = points[cells[index]]
    leaving = np.roll(corner, -1, axis=1) - corner
    arriving = np.roll(leaving, 1, axis=1)
    turn = cross(arriving, leaving)
    size = LEAST_RELATIVE_AREA * np.einsum("cke,cke->c", leaving, leaving)[:, None]
    left, right = (turn > size).sum(axis=1), (turn < -size).sum(axis=1)
    if (bad := np.flatnonzero((left > 1) & (right > 1))).size:
        refuse(
            origin, f"cell {index[bad[0]]} crosses itself ({name_corners(cells, index[bad[0]])}): reorder its corners"
        )
    back = (np.abs(turn) <= size) & (np.einsum("cke,cke->ck", arriving, leaving) < 0)
    if (bad := np.flatnonzero(back.any(axis=1) & (left + right > 0))).size:
        refuse(origin, f"cell {index[bad[0]]} folds back onto itself ({name_corners(cells, index[bad[0]])})")
    bent = int(((left > 0) & (right > 0)).sum())
    return (f"{bent} quadrilateral{'s are' if bent > 1 else ' is'} not convex",) if bent else ()


# The most cells that a message lists.
MOST_NAMED = 8
Tags: TypeAlias = dict[str, Int[np.ndarray, "edges 2"]]


class GroupedEdges(NamedTuple):
    """The half-edges of all cells in one row, sorted into groups of those that join the same two points.

    `start` → `end` is an edge of `cell`, in the given `slot` of the table of all cells. Group k is
    `order[first[k] : first[k] + size[k]]`: one half-edge on the boundary, two between cells.
    """

    start: Int[np.ndarray, " halves"]
    end: Int[np.ndarray, " halves"]
    cell: Int[np.ndarray, " halves"]
    slot: Int[np.ndarray, " halves"]
    order: Int[np.ndarray, " halves"]
    first: Int[np.ndarray, " groups"]
    size: Int[np.ndarray, " groups"]


def group_half_edges(cells: Corners, points: int) -> GroupedEdges:
    """Match the half-edges of all cells by one sort; within a group they stay in the order of the cells."""
    start, end = (each.ravel() for each in half_edges(cells))
    slot = np.flatnonzero(start >= 0)
    start, end = start[slot], end[slot]
    key = edge_keys(start, end, points)
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    return GroupedEdges(start, end, slot // cells.shape[1], slot, order, first, np.diff(first, append=len(order)))


class Pairing(NamedTuple):
    """The half-edges of counter-clockwise cells, paired inside the mesh; a half-edge is an edge of one cell.

    `start` → `end` has its cell on the left; `before` is the corner that precedes `start` in that cell.
    `alone` lists the half-edges on the boundary; `left` and `right` list those that share an edge.
    """

    start: Int[np.ndarray, " halves"]
    end: Int[np.ndarray, " halves"]
    before: Int[np.ndarray, " halves"]
    cell: Int[np.ndarray, " halves"]
    alone: Int[np.ndarray, " boundary"]
    left: Int[np.ndarray, " interior"]
    right: Int[np.ndarray, " interior"]


def pair_edges(cells: Corners, points: int, origin: str) -> Pairing:
    """Match half-edges by one sort; raise MeshError for three cells at an edge, or two on the same side of it."""
    a, b, cell, slot, order, first, count = group_half_edges(cells, points)
    before = np.roll(cells, 1, axis=1)
    before[:, 0] = np.where(mark_triangles(cells), cells[:, 2], cells[:, -1])
    if (crowded := np.flatnonzero(count > 2)).size:
        k = first[crowded[0]]
        _refuse_together(cells, cell[order[k : k + count[crowded[0]]]], edge=(a[order[k]], b[order[k]]), origin=origin)
    left, right = order[first[count == 2]], order[first[count == 2] + 1]
    if (bad := np.flatnonzero(a[left] == a[right])).size:
        k = bad[0]
        _refuse_together(cells, cell[[left[k], right[k]]], edge=(a[left[k]], b[left[k]]), origin=origin)
    return Pairing(a, b, before.ravel()[slot], cell, alone=order[first[count == 1]], left=left, right=right)


def _refuse_together(
    cells: Corners, together: Int[np.ndarray, " together"], *, edge: tuple[np.integer, np.integer], origin: str
) -> NoReturn:
    """Raise MeshError for cells that cannot meet at one edge: two are the same, there are three, or they overlap."""
    corners = [tuple(sorted(cells[k])) for k in together[:MOST_NAMED]]
    for j, mine in enumerate(corners):
        if (i := corners.index(mine)) < j:
            refuse(
                origin, f"cells {together[i]} and {together[j]} are the same cell ({name_corners(cells, together[i])})"
            )
    between = f"the edge between points {min(edge)} and {max(edge)}"
    if len(together) > 2:
        named = ", ".join(str(k) for k in together[:MOST_NAMED]) + ", …" * (len(together) > MOST_NAMED)
        refuse(origin, f"{between} is shared by {len(together)} cells ({named}); at most two can meet there")
    refuse(origin, f"cells {together[0]} and {together[1]} overlap: both lie on the same side of {between}")


def number_parts(pairing: Pairing, cells: int) -> Int[np.ndarray, " cells"]:
    """Number the connected parts of the mesh, where cells are connected by a common edge."""
    return join_parts(np.arange(cells), pairing.cell[pairing.left], pairing.cell[pairing.right])


def join_parts(
    part: Int[np.ndarray, " cells"], left: Int[np.ndarray, " pairs"], right: Int[np.ndarray, " pairs"]
) -> Int[np.ndarray, " cells"]:
    """Renumber the parts after joining those of the cells left[k] and right[k]."""
    count = int(part.max()) + 1
    links = coo_array((np.ones(len(left)), (part[left], part[right])), shape=(count, count))
    _, joined = connected_components(links, directed=False)
    return np.asarray(joined[part])


def boundary_edges(
    boundary: Mapping[str, Shaped[np.ndarray, "..."]], pairing: Pairing, *, points: int, origin: str
) -> tuple[Tags, tuple[str, ...]]:
    """The tagged boundary edges, each with its cell on the left, and notes on tagged edges inside the mesh.

    An edge named by two tags keeps the first.
    """
    start, end = pairing.start[pairing.alone], pairing.end[pairing.alone]
    keys = edge_keys(start, end, points)
    taken = np.zeros(len(keys), bool)
    tags: Tags = {}
    notes: list[str] = []
    for name, pairs in boundary.items():
        edges = _as_edges(pairs, name, points=points, origin=origin)
        wanted, first = np.unique(edge_keys(edges[:, 0], edges[:, 1], points), return_index=True)
        wanted = wanted[np.argsort(first)]
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        on_boundary = keys[place] == wanted if len(keys) else np.zeros(len(wanted), bool)
        place = place[on_boundary]
        notes += _tag_notes(name, stray=int((~on_boundary).sum()), again=int(taken[place].sum()))
        place = place[~taken[place]]
        taken[place] = True
        if len(place):
            tags[name] = np.column_stack([start[place], end[place]])
    return tags, tuple(notes)


def _as_edges(pairs: Shaped[np.ndarray, "..."], name: str, *, points: int, origin: str) -> Int[np.ndarray, "edges 2"]:
    edges = np.asarray(pairs)
    if edges.size == 0:
        return np.empty((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        refuse(origin, f"the edges of tag {name!r} should be integers in two columns, got shape {edges.shape}")
    if (bad := np.flatnonzero(((edges < 0) | (edges >= points)).any(axis=1))).size:
        a, b = edges[bad[0]]
        refuse(origin, f"edge {bad[0]} of tag {name!r} joins points {a} and {b}, and the points are 0 to {points - 1}")
    return edges.astype(np.int64)


def _tag_notes(name: str, *, stray: int, again: int) -> list[str]:
    notes = []
    if stray:
        notes.append(f"ignored {stray} edge{'s' * (stray > 1)} of tag {name!r} that {_are(stray)} not on the boundary")
    if again:
        notes.append(
            f"{again} edge{'s' * (again > 1)} of tag {name!r} {_are(again)} also in an earlier tag, and only "
            "that tag is used"
        )
    return notes


def _are(count: int) -> str:
    return "are" if count > 1 else "is"
