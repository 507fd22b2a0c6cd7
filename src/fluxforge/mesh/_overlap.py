"""Check that cells do not overlap.

Four conditions together exclude overlap. Around each point the cells' sectors do not overlap; no two boundary edges
cross; no boundary point lies inside a boundary edge; and one place inside each connected part is covered once.

Proof. By the first three, each part is an immersed surface whose boundary is a set of simple closed curves. These turn
#counter-clockwise − #clockwise = 2 − 2·genus − #curves times in all, so exactly one is counter-clockwise: the part
covers once what lies inside that curve and outside the others. Then only whole parts can lie on top of each other,
which the fourth condition excludes.

Points at the same place count as one here, so that a slit of duplicated points is not a boundary.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge._types import CellVectors, Corners, Points
from fluxforge.mesh._cells import Pairing, cell_areas, cell_centroids, cross, join_parts, name_corners, refuse
from fluxforge.mesh._segments import Clash, Segments, find_clash

# Points closer than this, relative to the extent of the mesh, count as one.
PLACE = 1e-12
# Tolerance for the overlap of two sectors, in radians.
ANGLE = 1e-8
# Beyond this many point-in-boundary tests, a note says that they were skipped.
MOST_TESTS = 200_000_000


class Slit(NamedTuple):
    """Boundary half-edges that coincide from both sides: left[k] with right[k]."""

    left: Int[np.ndarray, " pairs"]
    right: Int[np.ndarray, " pairs"]


def check_centroids(points: Points, cells: Corners, origin: str) -> None:
    """Raise MeshError if two cells have the same centroid: no flux can be computed between them."""
    centroid = cell_centroids(points, cells)
    place = _number_places((centroid - points.min(axis=0)) / np.ptp(points, axis=0).max())
    order = np.argsort(place, kind="stable")
    if (same := np.flatnonzero(np.diff(place[order]) == 0)).size:
        i, j = sorted(order[same[0] : same[0] + 2])
        x, y = centroid[i]
        refuse(origin, f"cells {i} and {j} have the same centroid ({x:g}, {y:g})")


def check_overlap(
    points: Points, cells: Corners, *, pairing: Pairing, part: Int[np.ndarray, " cells"], origin: str
) -> tuple[str, ...]:
    """Raise MeshError if cells overlap or do not conform; return notes on slits and on tests left out as too many."""
    x = (points - points.min(axis=0)) / np.ptp(points, axis=0).max()
    place = _number_places(x)
    if (bad := np.flatnonzero(place[pairing.start] == place[pairing.end])).size:
        cell, a, b = pairing.cell[bad[0]], pairing.start[bad[0]], pairing.end[bad[0]]
        refuse(origin, f"cell {cell} has two corners at one place (points {a} and {b})")
    rim, slit = _find_rim(pairing, place, origin)
    _check_sectors(x, pairing, place=place, rim=rim, origin=origin)
    segments = Segments(x[pairing.start[rim]], x[pairing.end[rim]])
    clash, complete = find_clash(segments)
    if clash is not None:
        _refuse_clash(clash, pairing, rim=rim, origin=origin)
    notes = []
    if len(slit.left):
        pairs = (
            f"{len(slit.left)} pairs of boundary edges coincide"
            if len(slit.left) > 1
            else "1 pair of boundary edges coincides"
        )
        notes.append(f"{pairs} with duplicated points: there is no exchange across them")
        part = join_parts(part, pairing.cell[slit.left], pairing.cell[slit.right])
    if not (complete and _check_parts(x, cells, part=part, rim=segments, origin=origin)):
        notes.append("the boundary was not checked completely for overlap: it has too many edges or separate parts")
    return tuple(notes)


def _number_places(x: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
    """Number the places of points in the unit square: points that agree to PLACE share a number."""
    snapped = np.round(x / PLACE)
    return np.unique(snapped[:, 0] + 1j * snapped[:, 1], return_inverse=True)[1]


def _find_rim(pairing: Pairing, place: Int[np.ndarray, " points"], origin: str) -> tuple[Int[np.ndarray, " rim"], Slit]:
    """The boundary half-edges that nothing covers from the other side, and the pairs that cover each other (slits).

    Raises MeshError for two half-edges at the same place in the same direction.
    """
    start, end = place[pairing.start[pairing.alone]], place[pairing.end[pairing.alone]]
    forth, back = start * len(place) + end, end * len(place) + start
    order = np.argsort(forth, kind="stable")
    if (same := np.flatnonzero(np.diff(forth[order]) == 0)).size:
        i, j = pairing.alone[order[same[0] : same[0] + 2]]
        edge = "the edge between points {} and {}".format(*sorted((pairing.start[i], pairing.end[i])))
        refuse(origin, f"cells {pairing.cell[i]} and {pairing.cell[j]} overlap: both lie on the same side of {edge}")
    other = order[np.searchsorted(forth[order], back).clip(max=len(order) - 1)]
    closed = forth[other] == back
    once = np.flatnonzero(closed & (start < end))
    return pairing.alone[~closed], Slit(pairing.alone[once], pairing.alone[other[once]])


def _check_sectors(
    x: Points, pairing: Pairing, *, place: Int[np.ndarray, " points"], rim: Int[np.ndarray, " rim"], origin: str
) -> None:
    """Raise MeshError unless angles around inner points add up to 2π and sectors at boundary points are disjoint."""
    here = x[pairing.start]
    leaving, arriving = x[pairing.end] - here, x[pairing.before] - here
    angle = np.arctan2(cross(leaving, arriving), np.einsum("he,he->h", leaving, arriving))
    angle[angle < 0] += 2.0 * np.pi
    vertex = place[pairing.start]
    on_rim = np.zeros(len(place), bool)
    on_rim[place[pairing.start[rim]]] = on_rim[place[pairing.end[rim]]] = True
    total = np.bincount(vertex, weights=angle, minlength=len(place))
    # The sum is a multiple of 2π, so a coarse tolerance is enough.
    if (bad := np.flatnonzero(~on_rim[vertex] & (np.abs(total[vertex] - 2.0 * np.pi) > 0.1))).size:
        point, turns = pairing.start[bad[0]], np.degrees(total[vertex[bad[0]]])
        refuse(origin, f"the cells around point {point} overlap: their angles add up to {turns:.0f} degrees")
    _check_rim_sectors(pairing, leaving, angle=angle, among=on_rim[vertex], vertex=vertex, origin=origin)


def _check_rim_sectors(
    pairing: Pairing,
    leaving: Float[np.ndarray, "halves 2"],
    *,
    angle: Float[np.ndarray, " halves"],
    among: Bool[np.ndarray, " halves"],
    vertex: Int[np.ndarray, " halves"],
    origin: str,
) -> None:
    """Raise MeshError unless each sector around a boundary point ends before the next one (by angle) begins."""
    half = np.flatnonzero(among)
    if not half.size:
        return
    begin = np.arctan2(leaving[half, 1], leaving[half, 0])
    order = np.lexsort((begin, vertex[half]))
    half, begin = half[order], begin[order]
    first = np.flatnonzero(np.diff(vertex[half], prepend=-1))
    following = np.arange(1, len(half) + 1)
    following[np.append(first[1:], len(half)) - 1] = first
    room = begin[following] - begin
    room[following <= np.arange(len(half))] += 2.0 * np.pi
    if (bad := np.flatnonzero(angle[half] > room + ANGLE)).size:
        i, j = half[bad[0]], half[following[bad[0]]]
        cells = sorted((pairing.cell[i], pairing.cell[j]))
        refuse(origin, f"cells {cells[0]} and {cells[1]} overlap around point {pairing.start[i]}")


def _refuse_clash(clash: Clash, pairing: Pairing, *, rim: Int[np.ndarray, " rim"], origin: str) -> None:
    i, j = rim[clash.first], rim[clash.second]
    edge = f"between points {pairing.start[i]} and {pairing.end[i]}"
    if clash.crossing:
        other = f"between points {pairing.start[j]} and {pairing.end[j]}"
        cells = f"cells {pairing.cell[i]} and {pairing.cell[j]} overlap"
        refuse(origin, f"{cells}: the edges {edge} and {other} cross")
    refuse(
        origin,
        f"point {pairing.start[j]} lies inside the edge {edge} of cell {pairing.cell[i]}: "
        "cells should meet at whole edges, so split the cell there",
    )


def _check_parts(x: Points, cells: Corners, *, part: Int[np.ndarray, " cells"], rim: Segments, origin: str) -> bool:
    """Raise MeshError unless one place in each part is covered once; False if there are too many parts to test."""
    count = int(part.max()) + 1
    if count == 1:
        return True
    if count * len(rim.a) > MOST_TESTS:
        return False
    sample = np.full(count, -1)
    sample[part[::-1]] = np.arange(len(cells))[::-1]
    inside = _pick_inner_points(x, cells[sample])
    # The tables of points × edges have at most about this many entries, which bounds the memory.
    step = max(1, 4_000_000 // max(len(rim.a), 1))
    for begin in range(0, count, step):
        covered = _count_windings(inside[begin : begin + step], rim)
        if (bad := np.flatnonzero(covered != 1)).size:
            cell = sample[begin + bad[0]]
            refuse(origin, f"cell {cell} overlaps other cells ({name_corners(cells, cell)})")
    return True


def _pick_inner_points(x: Points, cells: Corners) -> CellVectors:
    """A place strictly inside each cell: the centroid of a triangle that an inner diagonal cuts off."""
    triangle = cells[:, :3]
    if cells.shape[1] == 4:
        # A diagonal lies inside when the triangles on both its sides are counter-clockwise.
        rest = np.where(cells[:, 3:] < 0, cells[:, :3], cells[:, [0, 2, 3]])
        inner = (cell_areas(x, triangle) > 0) & (cell_areas(x, rest) > 0)
        triangle = np.where(inner[:, None], triangle, cells[:, [1, 2, 3]])
    return np.asarray(x[triangle].mean(axis=1))


def _count_windings(q: Float[np.ndarray, "n 2"], rim: Segments) -> Int[np.ndarray, " n"]:
    """The winding number of the boundary around each place: signed crossings of the ray to the right."""
    a, b = rim.a[None], rim.b[None]
    x, y = q[:, 0, None], q[:, 1, None]
    side = (b[..., 0] - a[..., 0]) * (y - a[..., 1]) - (b[..., 1] - a[..., 1]) * (x - a[..., 0])
    up = (a[..., 1] <= y) & (b[..., 1] > y) & (side > 0)
    down = (a[..., 1] > y) & (b[..., 1] <= y) & (side < 0)
    return np.asarray(up.sum(axis=1) - down.sum(axis=1))
