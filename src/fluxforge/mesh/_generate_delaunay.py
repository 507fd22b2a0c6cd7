"""Unstructured meshes without gmsh: graded Delaunay triangulations on SciPy.

Points are spread over the outline, a triangular lattice inside is refined where the wanted size is smaller, and a few
rounds of smoothing even the cells out. Boundary edges are Delaunay edges throughout: points inside stay out of the
circles that have a boundary edge as diameter, and where two pieces of outline come close their edges are halved.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import Delaunay, cKDTree

from fluxforge._types import CellField, CellVectors, Points
from fluxforge.errors import MeshError
from fluxforge.mesh._cells import cell_areas, cross, edge_keys
from fluxforge.mesh._domain import AbstractDomain, Sizing, sizing
from fluxforge.mesh._mesh import Mesh

_Triangles: TypeAlias = Int[np.ndarray, "cells 3"]
# Points of which some were added or dropped, so that a function that takes `Points` returns another number of them.
_Selected: TypeAlias = Float[np.ndarray, "selected 2"]

# A triangle whose circumradius exceeds LARGEST_RADIUS · h gets a new point; in a perfect lattice the radius is 0.577 h.
LARGEST_RADIUS = 0.76
# The least distance of a new point from those there are, and of lattice points from the outline, relative to h.
LEAST_DISTANCE = 0.6
# Rounds of smoothing; the most rounds of adding points, and of repairing the boundary.
SMOOTHING = 6
ROUNDS = 60
LEAST_RELATIVE_AREA = 1e-9
# Where (half the diagonal of the box)² is more than this times the domain's area, most of a lattice would lie outside.
LARGEST_BOX_RATIO = 20.0


@dataclass(frozen=True)
class _Outline:
    """Points on the outline, counter-clockwise; edge k starts at point k.

    `side` is the number of a point's side in the domain, `station` the fraction of the side's length before the point.
    """

    points: Points
    side: Int[np.ndarray, " points"]
    station: Float[np.ndarray, " points"]

    @property
    def edges(self) -> Int[np.ndarray, "points 2"]:
        k = np.arange(len(self.points))
        return np.stack([k, np.roll(k, -1)], axis=-1)

    @property
    def middle(self) -> Points:
        return np.asarray(self.points[self.edges].mean(axis=1))

    @property
    def radius(self) -> Float[np.ndarray, " points"]:
        a, b = self.points[self.edges.T]
        return np.asarray(0.5 * np.hypot(*(b - a).T))


def mesh_with_scipy(
    domain: AbstractDomain, *, size: float, attractors: Points, seed: int, near: float | None = None
) -> Mesh:
    """Triangles with the edge lengths of `sizing`; the seed rotates and shifts the initial lattice."""
    h = sizing(domain, size, attractors, near)
    outline = _outline(domain, h)
    inner = _lattice(domain, h, outline, np.random.default_rng(seed))
    inner = _add_points(domain, h, outline, inner)
    inner = _smooth_points(domain, h, outline, inner)
    outline, inner, cells = _make_conforming(domain, outline, inner)
    tags = np.array([tag for tag, _ in domain.sides])[outline.side]
    boundary = {tag: outline.edges[tags == tag] for tag, _ in domain.sides}
    return Mesh(np.concatenate([outline.points, inner]), cells, boundary)


def _outline(domain: AbstractDomain, h: Sizing) -> _Outline:
    """Points spaced by h along each side; where sides come close, edges are halved until they are Delaunay edges."""
    stations = [_space_points(domain, h, k) for k in range(len(domain.sides))]
    side = np.repeat(np.arange(len(stations)), [len(s) for s in stations])
    return _make_conforming(domain, _place_outline(domain, side, np.concatenate(stations)), np.zeros((0, 2)))[0]


def _place_outline(domain: AbstractDomain, side: Int[np.ndarray, " k"], station: Float[np.ndarray, " k"]) -> _Outline:
    points = np.concatenate([domain.along(k, station[side == k]) for k in range(len(domain.sides))])
    return _Outline(points, side, station)


def _space_points(domain: AbstractDomain, h: Sizing, side: int) -> Float[np.ndarray, " k"]:
    """Fractions s of a side's length at which ∫ ds/h takes equally spaced values, so that their spacing follows h."""
    length = domain.sides[side][1]
    samples = 16 + int(8.0 * length / (h.near * h.size))
    s = np.linspace(0.0, 1.0, samples + 1)
    density = length / h(domain.along(side, 0.5 * (s[1:] + s[:-1])))
    steps = np.concatenate([[0.0], np.cumsum(density) / samples])
    fewest = 6 if len(domain.sides) == 1 else 1
    count = max(fewest, round(steps[-1]))
    return np.asarray(np.interp(np.arange(count) * (steps[-1] / count), steps, s))


def _halve_edges(domain: AbstractDomain, outline: _Outline, where: Bool[np.ndarray, " k"]) -> _Outline:
    """The outline with a new point in the middle of each edge that `where` marks."""
    following = np.roll(outline.station, -1)
    middle = 0.5 * (outline.station + np.where(following > outline.station, following, 1.0))[where]
    station, side = np.concatenate([outline.station, middle]), np.concatenate([outline.side, outline.side[where]])
    order = np.lexsort((station, side))
    return _place_outline(domain, side[order], station[order])


def _has_edges(cells: _Triangles, edges: Int[np.ndarray, "edges 2"], points: int) -> Bool[np.ndarray, " edges"]:
    present = edge_keys(cells.ravel(), np.roll(cells, -1, axis=1).ravel(), points)
    return np.isin(edge_keys(edges[:, 0], edges[:, 1], points), present)


def _lattice(domain: AbstractDomain, h: Sizing, outline: _Outline, rng: np.random.Generator) -> Points:
    """Points inside the domain, clear of the outline, of a triangular lattice that is rotated and shifted at random."""
    (x0, y0), (x1, y1) = domain.box
    reach = 0.5 * np.hypot(x1 - x0, y1 - y0)
    if reach**2 > LARGEST_BOX_RATIO * domain.area:
        return np.zeros((0, 2))
    n = int(reach / (0.5 * np.sqrt(3.0) * h.size)) + 2
    i, j = (a.ravel() for a in np.meshgrid(np.arange(-n, n + 1), np.arange(-n, n + 1)))
    turn, right, up = rng.random(3)
    x, y = (i + 0.5 * (j % 2) + right) * h.size, (j + up) * (0.5 * np.sqrt(3.0) * h.size)
    c, s = np.cos(2.0 * np.pi * turn), np.sin(2.0 * np.pi * turn)
    points = np.stack([c * x - s * y, s * x + c * y], axis=-1) + 0.5 * np.array([x0 + x1, y0 + y1])
    points = points[domain.contains(points)]
    gap, _ = cKDTree(outline.points).query(points)
    return np.asarray(points[_lie_outside_edge_circles(points, outline) & (gap > LEAST_DISTANCE * h.size)])


def _lie_outside_edge_circles(points: Points, outline: _Outline) -> Bool[np.ndarray, " points"]:
    """Mark the points that lie outside the six nearest circles that have a boundary edge as diameter."""
    distance, nearest = cKDTree(outline.middle).query(points, k=[1, 2, 3, 4, 5, 6])
    # With fewer than six edges, the tree fills up with infinite distances and the index after the last.
    radius = np.append(outline.radius, 0.0)[nearest]
    return np.asarray((distance > 1.001 * radius).all(axis=1))


def triangulate(domain: AbstractDomain, points: Points) -> _Triangles:
    """Delaunay triangles inside the domain, counter-clockwise."""
    # Qhull squares coordinates, which costs digits far from the origin.
    cells = Delaunay(points - points.mean(axis=0)).simplices.astype(np.int64)
    corners = points[cells]
    longest = ((corners - np.roll(corners, 1, axis=1)) ** 2).sum(axis=2).max(axis=1)
    # Points on a straight side are collinear only up to round-off: Qhull may join them by flat triangles.
    kept = (cell_areas(points, cells) > LEAST_RELATIVE_AREA * longest) & domain.contains(corners.mean(axis=1))
    return np.asarray(cells[kept])


def _add_points(domain: AbstractDomain, h: Sizing, outline: _Outline, inner: Points) -> _Selected:
    """Add circumcentres of triangles that are too large for h, as many at once as do not come near each other."""
    for _ in range(ROUNDS):
        points = np.concatenate([outline.points, inner])
        centres, radii = _circumcircles(points[triangulate(domain, points)])
        excess = radii / h(centres)
        wanted = (excess > LARGEST_RADIUS) & domain.contains(centres) & _lie_outside_edge_circles(centres, outline)
        order = np.flatnonzero(wanted)[np.argsort(-excess[wanted], kind="stable")]
        fresh = _thin_out(centres[order], LARGEST_RADIUS * h(centres[order]))
        # In exact arithmetic no point lies within the circumradius: this only makes sure that the rounds end.
        fresh = fresh[cKDTree(points).query(fresh)[0] > LEAST_DISTANCE * h(fresh)]
        if not len(fresh):
            break
        inner = np.concatenate([inner, fresh])
    return inner


def _circumcircles(corners: Float[np.ndarray, "cells 3 2"]) -> tuple[CellVectors, CellField]:
    u, v = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    uu, vv = (u**2).sum(axis=1), (v**2).sum(axis=1)
    across = np.stack([v[:, 1] * uu - u[:, 1] * vv, u[:, 0] * vv - v[:, 0] * uu], axis=-1)
    offset = across / (2.0 * cross(u, v)[:, None])
    return corners[:, 0] + offset, np.asarray(np.hypot(*offset.T))


def _thin_out(points: Points, gap: Float[np.ndarray, " points"]) -> _Selected:
    """The points without an earlier one at a distance below their `gap`; only the 12 nearest are compared."""
    distance, neighbour = cKDTree(points).query(points, k=range(1, 13))
    earlier = neighbour < np.arange(len(points))[:, None]
    return np.asarray(points[~(earlier & (distance < gap[:, None])).any(axis=1)])


def _smooth_points(domain: AbstractDomain, h: Sizing, outline: _Outline, inner: Points) -> Points:
    """Move the inner points: two moves per triangulation, which is the expensive part."""
    for _ in range(SMOOTHING):
        cells = triangulate(domain, np.concatenate([outline.points, inner]))
        for _ in range(2):
            moved = _balance_points(h, outline, inner, cells)
            fits = domain.contains(moved) & _lie_outside_edge_circles(moved, outline)
            inner = np.where(fits[:, None], moved, inner)
    return inner


def _balance_points(h: Sizing, outline: _Outline, inner: Points, cells: _Triangles) -> Points:
    """Move each inner point to Σ w x̄ / Σ w over the triangles around it, w = V/h²: too large ones attract it."""
    points = np.concatenate([outline.points, inner])
    centroids = points[cells].mean(axis=1)
    weight = np.abs(cell_areas(points, cells)) / h(centroids) ** 2
    total, x, y = (
        _sum_around_points(points, cells, w)[len(outline.points) :] for w in (weight, *(weight * centroids.T))
    )
    moved = inner.copy()
    np.divide(np.stack([x, y], axis=-1), total[:, None], where=total[:, None] > 0, out=moved)
    return moved


def _sum_around_points(points: Points, cells: _Triangles, value: CellField) -> Float[np.ndarray, " points"]:
    """For each point, the sum of a cell value over the cells around it."""
    return np.asarray(np.bincount(cells.ravel(), np.repeat(value, 3), len(points)))


def _make_conforming(
    domain: AbstractDomain, outline: _Outline, inner: Points
) -> tuple[_Outline, _Selected, _Triangles]:
    """Make every boundary edge a Delaunay edge: drop the inner points in its circle or, without such points, halve it.

    Returns the outline, the inner points and the triangles; raises MeshError if some edges are still missing at the
    end.
    """
    for _ in range(ROUNDS):
        points = np.concatenate([outline.points, inner])
        cells = triangulate(domain, points)
        missing = ~_has_edges(cells, outline.edges, len(points))
        if not missing.any():
            return outline, inner, cells
        tree = cKDTree(inner)
        inside = tree.query_ball_point(outline.middle[missing], 1.001 * outline.radius[missing])
        in_the_way = np.unique(np.concatenate(inside).astype(np.int64))
        inner = np.delete(inner, in_the_way, axis=0)
        if not in_the_way.size:
            outline = _halve_edges(domain, outline, missing)
    raise MeshError("the built-in mesh engine cannot follow this outline; try a smaller size, or engine 'gmsh'")
