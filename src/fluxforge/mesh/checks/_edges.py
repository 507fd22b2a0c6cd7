"""Which cells meet at each edge, which edges are the boundary, and which of those carry a tag."""

from collections.abc import Mapping
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np
from jaxtyping import Int, Shaped
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fluxforge._types import Corners
from fluxforge.mesh._faces import edge_keys
from fluxforge.mesh._geometry import half_edges
from fluxforge.mesh.checks._cells import name_corners, refuse

MOST_NAMED = 8
Tags: TypeAlias = dict[str, Int[np.ndarray, "edges 2"]]


class Pairing(NamedTuple):
    """The half-edges of counter-clockwise cells: each lies in one cell, and lies alone on the boundary.

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
    """Match half-edges by one sort; three cells at an edge, or two on the same side of it, are refused."""
    start, end = half_edges(cells)
    present = start.ravel() >= 0
    before = np.roll(cells, 1, axis=1)
    if cells.shape[1] == 4:
        before[:, 0] = np.where(cells[:, 3] < 0, cells[:, 2], cells[:, 3])
    a, b = start.ravel()[present], end.ravel()[present]
    cell = np.repeat(np.arange(len(cells)), cells.shape[1])[present]
    key = edge_keys(a, b, points)
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.diff(first, append=len(order))
    if (crowded := np.flatnonzero(count > 2)).size:
        k = first[crowded[0]]
        _refuse_together(cells, cell[order[k : k + count[crowded[0]]]], edge=(a[order[k]], b[order[k]]), origin=origin)
    left, right = order[first[count == 2]], order[first[count == 2] + 1]
    if (bad := np.flatnonzero(a[left] == a[right])).size:
        k = bad[0]
        _refuse_together(cells, cell[[left[k], right[k]]], edge=(a[left[k]], b[left[k]]), origin=origin)
    return Pairing(a, b, before.ravel()[present], cell, alone=order[first[count == 1]], left=left, right=right)


def _refuse_together(
    cells: Corners, found: Int[np.ndarray, " together"], *, edge: tuple[np.integer, np.integer], origin: str
) -> NoReturn:
    """Say what is wrong with cells that should not meet at one edge: some are the same cell, or they overlap."""
    corners = [tuple(sorted(cells[k])) for k in found[:MOST_NAMED]]
    for j, mine in enumerate(corners):
        if (i := corners.index(mine)) < j:
            refuse(origin, f"cells {found[i]} and {found[j]} are the same cell ({name_corners(cells, found[i])})")
    between = f"the edge between points {min(edge)} and {max(edge)}"
    if len(found) > 2:
        named = ", ".join(str(k) for k in found[:MOST_NAMED]) + ", …" * (len(found) > MOST_NAMED)
        refuse(origin, f"{between} is shared by {len(found)} cells ({named}); at most two can meet there")
    refuse(origin, f"cells {found[0]} and {found[1]} overlap: both lie on the same side of {between}")


def part_of_cell(pairing: Pairing, cells: int) -> Int[np.ndarray, " cells"]:
    """Number the connected parts of the mesh, where cells are connected by a common edge."""
    return joined_parts(np.arange(cells), pairing.cell[pairing.left], pairing.cell[pairing.right])


def joined_parts(
    part: Int[np.ndarray, " cells"], left: Int[np.ndarray, " pairs"], right: Int[np.ndarray, " pairs"]
) -> Int[np.ndarray, " cells"]:
    """Number the parts anew, once the cells left[k] and right[k] belong together."""
    count = int(part.max()) + 1
    links = coo_array((np.ones(len(left)), (part[left], part[right])), shape=(count, count))
    _, joined = connected_components(links, directed=False)
    return np.asarray(joined[part])


def boundary_edges(
    boundary: Mapping[str, Shaped[np.ndarray, "..."]], pairing: Pairing, *, points: int, origin: str
) -> tuple[Tags, tuple[str, ...]]:
    """The tagged boundary edges, each with its cell on the left, and notes on tagged edges that are none.

    An edge named by two tags keeps the first.
    """
    start, end = pairing.start[pairing.alone], pairing.end[pairing.alone]
    keys = edge_keys(start, end, points)
    taken = np.zeros(len(keys), bool)
    tags: Tags = {}
    notes: list[str] = []
    for name, given in boundary.items():
        edges = _as_edges(given, name, points=points, origin=origin)
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


def _as_edges(given: Shaped[np.ndarray, "..."], name: str, *, points: int, origin: str) -> Int[np.ndarray, "edges 2"]:
    edges = np.asarray(given)
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
            f"{again} edge{'s' * (again > 1)} of tag {name!r} {_are(again)} in an earlier tag, which keeps them"
        )
    return notes


def _are(count: int) -> str:
    return "are" if count > 1 else "is"
