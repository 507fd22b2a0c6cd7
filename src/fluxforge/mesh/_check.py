"""Check that cells do not overlap, and build a checked Mesh from arrays.

Four conditions together exclude overlap. Around each point the cells' sectors do not overlap; no two boundary edges
cross; no boundary point lies inside a boundary edge; and one place inside each connected part is covered once. For the
first three make each part an immersed surface whose boundary is a set of simple closed curves. Its curves turn
#counter-clockwise − #clockwise = 2 − 2·genus − #curves times in all, so exactly one is counter-clockwise: the part
covers what lies inside that one and outside the others once. Then only whole parts can lie upon each other.

Points at the same place count as one here, so that a slit of duplicated points is not a boundary.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from fluxforge._types import CellVectors, Corners, Points
from fluxforge.mesh._cells import (
    Pairing,
    as_arrays,
    boundary_edges,
    cell_areas,
    cell_centroids,
    check_coordinates,
    check_corners,
    join_parts,
    name_corners,
    number_parts,
    orient_cells,
    pair_edges,
    refuse,
)
from fluxforge.mesh._mesh import Mesh

# The most edges and candidate pairs examined, which bounds the time; the batch size bounds the memory.
MOST_EDGES = 1_000_000
MOST_PAIRS = 10_000_000
BATCH = 1_000_000
# A point is on a line when its distance is below this fraction of the edge.
ON_LINE = 1e-9


class Segments(NamedTuple):
    """Directed edges a → b in the unit square."""

    a: Float[np.ndarray, "n 2"]
    b: Float[np.ndarray, "n 2"]


class Clash(NamedTuple):
    """Two edges that cross, or a first edge that the start of the second lies inside of."""

    first: int
    second: int
    crossing: bool


def find_clash(edges: Segments) -> tuple[Clash | None, bool]:
    """A clash if there is one, and whether every candidate pair was examined."""
    if not 0 < len(edges.a) <= MOST_EDGES:
        return None, not len(edges.a)
    spent = 0
    for i, j in _candidates(edges):
        spent += len(i)
        if (clash := _clash_among(edges, i, j)) is not None:
            return clash, True
        if spent > MOST_PAIRS:
            return None, False
    return None, True


def _clash_among(edges: Segments, i: Int[np.ndarray, " pairs"], j: Int[np.ndarray, " pairs"]) -> Clash | None:
    d, e = edges.b[i] - edges.a[i], edges.b[j] - edges.a[j]
    gap = edges.a[j] - edges.a[i]
    squared_d, squared_e = np.einsum("ne,ne->n", d, d), np.einsum("ne,ne->n", e, e)
    # On which side of the first edge the ends of the second lie, and the other way round.
    a_of_j, b_of_j = _cross(d, gap), _cross(d, gap + e)
    a_of_i, b_of_i = _cross(e, -gap), _cross(e, d - gap)
    if (k := _first(_inside(a_of_j, np.einsum("ne,ne->n", d, gap), squared_d))) is not None:
        return Clash(int(i[k]), int(j[k]), crossing=False)
    if (k := _first(_inside(a_of_i, -np.einsum("ne,ne->n", e, gap), squared_e))) is not None:
        return Clash(int(j[k]), int(i[k]), crossing=False)
    if (k := _first(_apart(a_of_j, b_of_j, squared_d) & _apart(a_of_i, b_of_i, squared_e))) is not None:
        return Clash(int(i[k]), int(j[k]), crossing=True)
    return None


def _first(mask: Bool[np.ndarray, " n"]) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def _inside(
    side: Float[np.ndarray, " n"], along: Float[np.ndarray, " n"], squared: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Whether a point lies on an edge, clear of both its ends."""
    small = ON_LINE * squared
    return np.asarray((np.abs(side) <= small) & (along > small) & (along < squared - small))


def _apart(
    p: Float[np.ndarray, " n"], q: Float[np.ndarray, " n"], squared: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Whether two points lie on opposite sides of an edge, both clear of its line."""
    clear = ON_LINE * squared
    return ((p > clear) & (q < -clear)) | ((p < -clear) & (q > clear))


def _cross(a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
    return np.asarray(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])


def _candidates(edges: Segments) -> Iterator[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]]:
    """Pairs whose boxes share a square of a grid. Edges are sorted into grids by length, a factor of four each.

    An edge is stored in the grid of its own length, where it touches at most four squares, and looked up in that grid
    and in every coarser one, so that edges of very different lengths cost no more.
    """
    low, high = np.minimum(edges.a, edges.b), np.maximum(edges.a, edges.b)
    size = (high - low).max(axis=1)
    level = np.floor(np.log2(size / size.min()) / 2.0).astype(int)
    for this in np.unique(level):
        owners, visitors = np.flatnonzero(level == this), np.flatnonzero(level <= this)
        square = size[owners].max()
        key, owner = _entries(low[owners] / square, high[owners] / square, owners)
        order = np.argsort(key, kind="stable")
        key, owner = key[order], owner[order]
        wanted, visitor = _entries(low[visitors] / square, high[visitors] / square, visitors)
        begin, end = np.searchsorted(key, wanted, "left"), np.searchsorted(key, wanted, "right")
        for i, j in _join_entries(owner, visitor, begin=begin, end=end):
            # Edges of one length class visit each other: one of the two visits is enough.
            once = (level[j] < this) | (i < j)
            yield i[once], j[once]


def _entries(
    low: Float[np.ndarray, "n 2"], high: Float[np.ndarray, "n 2"], name: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " entries"], Int[np.ndarray, " entries"]]:
    """The squares of side 1 that each box touches, as hashed keys, with the name of the box."""
    corner, last = np.floor(low).astype(np.int64), np.floor(high).astype(np.int64)
    keys, names = [], []
    for step in ((0, 0), (0, 1), (1, 0), (1, 1)):
        square = corner + step
        touched = (square <= last).all(axis=1)
        # Products wrap round; two squares with one key only add candidates.
        keys.append((square[:, 0] * 73_856_093 ^ square[:, 1] * 19_349_663)[touched])
        names.append(name[touched])
    return np.concatenate(keys), np.concatenate(names)


def _join_entries(
    owner: Int[np.ndarray, " entries"],
    visitor: Int[np.ndarray, " visits"],
    *,
    begin: Int[np.ndarray, " visits"],
    end: Int[np.ndarray, " visits"],
) -> Iterator[tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]]:
    """Every visitor with the owners of its squares, in batches of bounded size."""
    total = np.concatenate([[0], np.cumsum(end - begin)])
    for start in range(0, int(total[-1]), BATCH):
        pair = np.arange(start, min(start + BATCH, int(total[-1])))
        visit = np.searchsorted(total, pair, "right") - 1
        yield owner[begin[visit] + pair - total[visit]], visitor[visit]


# Points closer than this, relative to the mesh, count as one.
PLACE = 1e-12
# Sectors may overlap by this many radians before cells do.
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
    place = _places((centroid - points.min(axis=0)) / np.ptp(points, axis=0).max())
    order = np.argsort(place, kind="stable")
    if (same := np.flatnonzero(np.diff(place[order]) == 0)).size:
        i, j = sorted(order[same[0] : same[0] + 2])
        x, y = centroid[i]
        refuse(origin, f"cells {i} and {j} have the same centroid ({x:g}, {y:g})")


def check_overlap(
    points: Points, cells: Corners, *, pairing: Pairing, part: Int[np.ndarray, " cells"], origin: str
) -> tuple[str, ...]:
    """Raise MeshError if cells overlap or do not conform; return notes on slits and on checks that were too large."""
    x = (points - points.min(axis=0)) / np.ptp(points, axis=0).max()
    place = _places(x)
    if (bad := np.flatnonzero(place[pairing.start] == place[pairing.end])).size:
        cell, a, b = pairing.cell[bad[0]], pairing.start[bad[0]], pairing.end[bad[0]]
        refuse(origin, f"cell {cell} has two corners at one place (points {a} and {b})")
    rim, slit = _rim(pairing, place, origin)
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
        notes.append(f"{pairs}: the points there are duplicated, and nothing passes")
        part = join_parts(part, pairing.cell[slit.left], pairing.cell[slit.right])
    if not (complete and _check_parts(x, cells, part=part, rim=segments, origin=origin)):
        notes.append("the boundary is too intricate to check every pair of its edges for overlap")
    return tuple(notes)


def _places(x: Float[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
    """Number the places of points in the unit square: points that agree to PLACE share a number."""
    snapped = np.round(x / PLACE)
    return np.unique(snapped[:, 0] + 1j * snapped[:, 1], return_inverse=True)[1]


def _rim(pairing: Pairing, place: Int[np.ndarray, " points"], origin: str) -> tuple[Int[np.ndarray, " rim"], Slit]:
    """The boundary half-edges that no other one covers from the other side, and the pairs that do so."""
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
    """Around an inner point the angles add up to 2π; around a boundary point the sectors follow one another."""
    here = x[pairing.start]
    leaving, arriving = x[pairing.end] - here, x[pairing.before] - here
    cross = leaving[:, 0] * arriving[:, 1] - leaving[:, 1] * arriving[:, 0]
    angle = np.arctan2(cross, np.einsum("he,he->h", leaving, arriving))
    angle[angle < 0] += 2.0 * np.pi
    vertex = place[pairing.start]
    on_rim = np.zeros(len(place), bool)
    on_rim[place[pairing.start[rim]]] = on_rim[place[pairing.end[rim]]] = True
    total = np.bincount(vertex, weights=angle, minlength=len(place))
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
    """Sort the sectors around each boundary point: each ends before the next begins, the last before the first."""
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
    """One place in each part is inside the boundary exactly once. False when there are too many parts to test."""
    count = int(part.max()) + 1
    if count == 1:
        return True
    if count * len(rim.a) > MOST_TESTS:
        return False
    sample = np.full(count, -1)
    sample[part[::-1]] = np.arange(len(cells))[::-1]
    inside = _inner_points(x, cells[sample])
    step = max(1, 4_000_000 // max(len(rim.a), 1))
    for begin in range(0, count, step):
        covered = _winding(inside[begin : begin + step], rim)
        if (bad := np.flatnonzero(covered != 1)).size:
            cell = sample[begin + bad[0]]
            refuse(origin, f"cell {cell} overlaps other cells ({name_corners(cells, cell)})")
    return True


def _inner_points(x: Points, cells: Corners) -> CellVectors:
    """A place strictly inside each cell: the centroid of a triangle cut off along an inner diagonal."""
    triangle = cells[:, :3]
    if cells.shape[1] == 4:
        # A diagonal lies inside when the triangles on both its sides are counter-clockwise.
        rest = np.where(cells[:, 3:] < 0, cells[:, :3], cells[:, [0, 2, 3]])
        inner = (cell_areas(x, triangle) > 0) & (cell_areas(x, rest) > 0)
        triangle = np.where(inner[:, None], triangle, cells[:, [1, 2, 3]])
    return np.asarray(x[triangle].mean(axis=1))


def _winding(q: Float[np.ndarray, "n 2"], rim: Segments) -> Int[np.ndarray, " n"]:
    """How many times the boundary goes round each place: signed crossings of the ray to the right."""
    a, b = rim.a[None], rim.b[None]
    x, y = q[:, 0, None], q[:, 1, None]
    side = (b[..., 0] - a[..., 0]) * (y - a[..., 1]) - (b[..., 1] - a[..., 1]) * (x - a[..., 0])
    up = (a[..., 1] <= y) & (b[..., 1] > y) & (side > 0)
    down = (a[..., 1] > y) & (b[..., 1] <= y) & (side < 0)
    return np.asarray(up.sum(axis=1) - down.sum(axis=1))


def build_mesh(
    points: Shaped[np.ndarray, "..."],
    cells: Shaped[np.ndarray, "..."],
    *,
    boundary: Mapping[str, Shaped[np.ndarray, "..."]] | None = None,
    origin: str,
) -> Mesh:
    """Check arrays and build a Mesh; raises MeshError, naming the point, cell or edge that is wrong.

    `cells` has three or four columns; −1 in the fourth marks a triangle. Clockwise cells are reversed, points that no
    cell uses are dropped, tagged edges inside the mesh are ignored: `notes` counts them. Disconnected parts and slits
    are noted too. Messages number points and cells from 0, in the order given here.
    """
    points, cells = as_arrays(points, cells, origin)
    check_coordinates(points, origin)
    check_corners(points, cells, origin)
    used = np.zeros(len(points), bool)
    used[cells[cells >= 0]] = True
    # Points that no cell uses may be far away, and tolerances are relative to the mesh.
    shown = np.where(used[:, None], points, points[cells[0, 0]])
    cells, notes = orient_cells(shown, cells, origin)
    pairing = pair_edges(cells, len(points), origin)
    check_centroids(shown, cells, origin)
    part = number_parts(pairing, len(cells))
    overlap_notes = check_overlap(shown, cells, pairing=pairing, part=part, origin=origin)
    if (parts := int(part.max()) + 1) > 1:
        notes += (f"the mesh has {parts} disconnected parts",)
    tags, tag_notes = boundary_edges(boundary or {}, pairing, points=len(points), origin=origin)
    return _drop_unused_points(Mesh(points, cells, tags, notes + overlap_notes + tag_notes, origin), used)


def _drop_unused_points(mesh: Mesh, used: Bool[np.ndarray, " points"]) -> Mesh:
    """Drop the points that no cell uses, and renumber the others in their order."""
    orphans = int((~used).sum())
    if not orphans:
        return mesh
    renumbered = np.cumsum(used) - 1
    cells = np.where(mesh.cells < 0, -1, renumbered[mesh.cells])
    boundary = {name: renumbered[edges] for name, edges in mesh.boundary.items()}
    note = f"dropped {orphans} point{'s' * (orphans > 1)} that no cell uses"
    return replace(mesh, points=mesh.points[used], cells=cells, boundary=boundary, notes=(*mesh.notes, note))
