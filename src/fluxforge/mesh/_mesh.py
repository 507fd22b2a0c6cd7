"""Meshes: points, cells and tagged boundary edges; cell areas and centroids; the faces between cells."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fluxforge._arguments import check_kind
from fluxforge._types import CellField, CellVectors, Corners, FaceField, FaceIndex, FaceVectors, Points
from fluxforge.errors import MeshError

# Limits of what a notebook shows of a mesh.
MOST_CELLS_DRAWN, _MOST_TAGS = 3_000, 8


@dataclass(frozen=True)
class Mesh:
    """Points and cells of a planar mesh of triangles and quadrilaterals.

    `cells` lists each cell's corners counter-clockwise; among quadrilaterals a triangle's fourth corner is −1.
    `boundary` maps a tag to the boundary edges that carry it, as pairs of points; boundary edges without a tag
    belong to the tag "boundary". `notes` lists repairs and remarks (reoriented cells, unused points, …).
    `origin` is the name of the mesh in error messages: a path, or the call that generated it.
    `regions` maps a name to the cells that carry it, by number: the physical surfaces of a gmsh file.
    """

    points: Points
    cells: Corners
    boundary: Mapping[str, Int[np.ndarray, "edges 2"]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    origin: str = "mesh"
    regions: Mapping[str, Int[np.ndarray, " n"]] = field(default_factory=dict)

    def __repr__(self) -> str:
        triangles = len(self.cells) if self.cells.shape[1] == 3 else int((self.cells[:, -1] < 0).sum())
        counts = {"triangles": triangles, "quadrilaterals": len(self.cells) - triangles}
        shapes = ", ".join(f"{count:,} {shape}" for shape, count in counts.items() if count)
        tags = ", ".join([*list(self.boundary)[:_MOST_TAGS], *(["…"] if len(self.boundary) > _MOST_TAGS else [])])
        counted = f"{shapes or 'no cells'}, {len(self.points):,} points; boundary: {tags:.200}"
        return " ".join(f"Mesh({self.origin:.80}: {counted})".split())

    def _repr_html_(self) -> str:
        """The counts and, of at most 3,000 cells, a drawing of the edges."""
        return f"<p>{html.escape(repr(self))}</p>{_svg(self) if len(self.cells) <= MOST_CELLS_DRAWN else ''}"


def _svg(mesh: Mesh) -> str:
    """The outlines of all cells as one SVG path, 300 pixels along the longer side; nothing for a mesh without area."""
    span = np.ptp(mesh.points, axis=0) if len(mesh.cells) else np.zeros(2)
    if not (np.isfinite(span).all() and span.max() > 0):
        return ""
    scale = 300.0 / span.max()
    # SVG's y axis points down.
    x, y = (mesh.points - mesh.points.min(axis=0)).T * scale
    y = scale * span[1] - y
    outlines = (
        "M" + "L".join(f"{x[corner]:.1f} {y[corner]:.1f}" for corner in cell if corner >= 0) + "Z"
        for cell in mesh.cells.tolist()
    )
    box = f"-2 -2 {scale * span[0] + 4:.0f} {scale * span[1] + 4:.0f}"
    style = 'fill="none" stroke="currentColor" stroke-width="0.6"'
    size = 'width="{}" height="{}"'.format(*box.split()[2:])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size}><path {style} d="{"".join(outlines)}"/></svg>'
    )


def check_mesh(mesh: Any, name: str = "mesh") -> Mesh:
    """Return the mesh; raise InputError, naming the argument, if it is not one."""
    return check_kind(mesh, name, Mesh, "a mesh (such as fluxforge.mesh.square(), or fluxforge.mesh.read(path))")


def cell_areas(points: Points, cells: Corners) -> CellField:
    """V = ½ Σ (x_k y_{k+1} − x_{k+1} y_k), positive for counter-clockwise cells."""
    return 0.5 * _cross_terms(_around_first_corner(points, cells)).sum(axis=1)


def cell_centroids(points: Points, cells: Corners) -> CellVectors:
    """x̄ = 1/(6V) Σ (x_k + x_{k+1}) (x_k y_{k+1} − x_{k+1} y_k)."""
    r = _around_first_corner(points, cells)
    # The moment is a length cubed, which may overflow. Scaling by a power of two is exact.
    unit = np.ldexp(1.0, np.frexp(np.abs(r).max(initial=0.0))[1])
    r = r / unit
    cross = _cross_terms(r)
    pairs = r + np.roll(r, -1, axis=1)
    moment = np.einsum("cke,ck->ce", pairs, cross)
    return points[cells[:, 0]] + unit * (moment / (3.0 * cross.sum(axis=1, keepdims=True)))


def _around_first_corner(points: Points, cells: Corners) -> Float[np.ndarray, "cells corners 2"]:
    """Corner positions relative to the first corner, which avoids cancellation far from the origin."""
    corners = corner_positions(points, cells)
    return corners - corners[:, :1]


def corner_positions(points: Points, cells: Corners) -> Float[np.ndarray, "cells corners 2"]:
    """The corners of every cell.

    The missing fourth corner of a triangle becomes its first: an edge of length zero, which adds nothing to any sum.
    """
    return points[np.where(cells < 0, cells[:, :1], cells)]


def _cross_terms(r: Float[np.ndarray, "cells corners 2"]) -> Float[np.ndarray, "cells corners"]:
    following = np.roll(r, -1, axis=1)
    return r[..., 0] * following[..., 1] - following[..., 0] * r[..., 1]


def normal_part(vectors: FaceVectors, n: FaceVectors) -> FaceField:
    """v·n of one vector per face."""
    along: FaceField = np.einsum("fi,fi->f", vectors, n)
    return along


def tangential_length(vectors: FaceVectors, n: FaceVectors) -> FaceField:
    """|v − (v·n) n| of one vector per face: not √(v² − (v·n)²), which loses half the digits where v is along n."""
    across: FaceField = np.linalg.norm(vectors - normal_part(vectors, n)[:, None] * n, axis=1)
    return across


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


class Faces(NamedTuple):
    """The faces of a mesh, those between two cells first, then the boundary.

    `start` → `end` follows the owner counter-clockwise, so the owner lies on the left.
    `neighbour` is −1 on the boundary. `of_cell` lists each cell's faces in corner order, −1 where a triangle has none.
    """

    start: FaceIndex
    end: FaceIndex
    owner: FaceIndex
    neighbour: FaceIndex
    of_cell: Int[np.ndarray, "cells slots"]
    interior: int


def pair_faces(mesh: Mesh) -> Faces:
    """The faces of a mesh, by one sort of the half-edges of all cells; MeshError if three cells share an edge."""
    start, end = half_edges(mesh.cells)
    present = np.flatnonzero(start.ravel() >= 0)
    key = edge_keys(start.ravel()[present], end.ravel()[present], len(mesh.points))
    order = np.argsort(key, kind="stable")
    sorted_key, half = key[order], present[order]
    first = np.ones(len(half), bool)
    first[1:] = sorted_key[1:] != sorted_key[:-1]
    face_of_half = np.cumsum(first) - 1
    count = np.bincount(face_of_half)
    _check_shared_by_two(mesh, count, start.ravel()[half[first]], end.ravel()[half[first]])
    rank = _interior_first(count)
    slots = mesh.cells.shape[1]
    lead = np.empty(len(count), np.int64)
    lead[rank] = half[first]
    follow = np.full(len(count), -1, np.int64)
    follow[rank[face_of_half[~first]]] = half[~first]
    of_cell = np.full(start.size, -1, np.int32)
    of_cell[half] = rank[face_of_half]
    return Faces(
        start=start.ravel()[lead].astype(np.int32),
        end=end.ravel()[lead].astype(np.int32),
        owner=(lead // slots).astype(np.int32),
        neighbour=np.where(follow < 0, -1, follow // slots).astype(np.int32),
        of_cell=of_cell.reshape(start.shape),
        interior=int((count == 2).sum()),
    )


def edge_keys(a: Int[np.ndarray, " edges"], b: Int[np.ndarray, " edges"], points: int) -> Int[np.ndarray, " edges"]:
    """One whole number per undirected edge."""
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    return low * points + high


def _interior_first(count: Int[np.ndarray, " faces"]) -> Int[np.ndarray, " faces"]:
    """The new position of each face when those between two cells come first, in unchanged order otherwise."""
    two = count == 2
    return np.where(two, np.cumsum(two) - 1, two.sum() + np.cumsum(~two) - 1)


def _check_shared_by_two(
    mesh: Mesh,
    count: Int[np.ndarray, " faces"],
    start: Int[np.ndarray, " faces"],
    end: Int[np.ndarray, " faces"],
) -> None:
    if (crowded := np.flatnonzero(count > 2)).size:
        k = crowded[0]
        raise MeshError(f"{mesh.origin}: the edge between points {start[k]} and {end[k]} is shared by {count[k]} cells")


def boundary_tags(mesh: Mesh, faces: Faces) -> tuple[tuple[str, ...], Int[np.ndarray, " boundary"]]:
    """The names of the boundary pieces, and for each boundary face the number of its name.

    An edge named by two tags keeps the first; one named by none belongs to "boundary".
    """
    keys = edge_keys(faces.start[faces.interior :], faces.end[faces.interior :], len(mesh.points))
    names, place = list(mesh.boundary), np.full(len(keys), -1)
    if names:
        edges = [np.reshape(mesh.boundary[name], (-1, 2)) for name in names]
        owner = np.repeat(np.arange(len(names)), [len(each) for each in edges])
        # One sort, whatever the number of tags; `first` is the first occurrence of an edge, whose tag is used.
        joined = np.concatenate(edges)
        named, first = np.unique(edge_keys(joined[:, 0], joined[:, 1], len(mesh.points)), return_index=True)
        if len(named):
            nearest = np.searchsorted(named, keys).clip(max=len(named) - 1)
            place = np.where(named[nearest] == keys, owner[first[nearest]], -1)
    tags = [names[k] for k in np.unique(place[place >= 0]).tolist()]
    number = np.searchsorted(np.unique(place[place >= 0]), place).astype(np.int32)
    if (place < 0).any():
        if "boundary" not in tags:
            tags.append("boundary")
        number[place < 0] = tags.index("boundary")
    return tuple(tags), number


def number_regions(mesh: Mesh) -> Int[np.ndarray, " cells"]:
    """The number of each cell's region in the order of `mesh.regions`; −1 for a cell in none.

    Raises MeshError for a cell that the mesh does not have and for one in two regions.
    """
    number = np.full(len(mesh.cells), -1, np.int32)
    for k, (name, listed) in enumerate(mesh.regions.items()):
        cells = np.asarray(listed)
        if cells.size and (cells.min() < 0 or cells.max() >= len(number)):
            raise MeshError(f"{mesh.origin}: region {name!r} lists a cell that the mesh does not have")
        if (twice := np.flatnonzero(number[cells] >= 0)).size:
            other = list(mesh.regions)[number[cells[twice[0]]]]
            raise MeshError(f"{mesh.origin}: cell {cells[twice[0]]} is in two regions, {other!r} and {name!r}")
        number[cells] = k
    return number
