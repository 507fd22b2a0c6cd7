"""The faces of a mesh and their tags; periodic walls, whose faces are matched by a translation and joined."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from fluxforge._types import FaceField, FaceIndex, FaceVectors
from fluxforge.errors import InputError, MeshError
from fluxforge.mesh._boundary import Condition, Periodic, faces_of_tags
from fluxforge.mesh._cells import edge_keys, group_half_edges
from fluxforge.mesh._mesh import Mesh


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
    """The faces of a mesh, sorted by their corners within each group; MeshError if three cells share an edge."""
    start, end, cell, slot, order, first, size = group_half_edges(mesh.cells, len(mesh.points))
    if (crowded := np.flatnonzero(size > 2)).size:
        a, b = start[order[first[crowded[0]]]], end[order[first[crowded[0]]]]
        raise MeshError(f"{mesh.origin}: the edge between points {a} and {b} is shared by {size[crowded[0]]} cells")
    between = size == 2
    lead, follow = order[np.concatenate([first[between], first[~between]])], order[first[between] + 1]
    interior = len(follow)
    neighbour = np.full(len(lead), -1, np.int32)
    neighbour[:interior] = cell[follow]
    of_cell = np.full(mesh.cells.shape, -1, np.int32)
    of_cell.flat[slot[lead]] = np.arange(len(lead))
    of_cell.flat[slot[follow]] = np.arange(interior)
    return Faces(
        start=start[lead].astype(np.int32),
        end=end[lead].astype(np.int32),
        owner=cell[lead].astype(np.int32),
        neighbour=neighbour,
        of_cell=of_cell,
        interior=interior,
    )


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


# Relative to the length of a face: the largest distance between two matched faces, and difference of their lengths.
# Mesh files have at least six digits.
TOLERANCE = 1e-4


class Joints(NamedTuple):
    """Periodic faces joined in pairs: face `first[k]` remains, and leads from its owner to the owner of `second[k]`."""

    first: FaceIndex
    second: FaceIndex


def match_faces(
    walls: Mapping[str, Condition],
    *,
    tags: tuple[str, ...],
    tag: Int[np.ndarray, " boundary"],
    interior: int,
    centre: FaceVectors,
    n: FaceVectors,
    A: FaceField,
) -> Joints:
    """The faces of every pair of periodic tags, each with its translated image.

    Raises InputError, naming the tags and the face that fits worst, where the faces of a pair do not match.
    """
    of_tag = dict(zip(tags, faces_of_tags(tags, tag), strict=True))
    first, second = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for name, condition in walls.items():
        # Both tags of a pair name the other; it is matched once.
        if not isinstance(condition, Periodic) or tags.index(name) > tags.index(condition.partner):
            continue
        # Imported here: few meshes have periodic walls, and `mesh info` need not wait for it.
        from scipy.spatial import cKDTree

        one, other = interior + of_tag[name], interior + of_tag[condition.partner]
        what = f"the periodic tags {name!r} and {condition.partner!r} do not match"
        if len(one) != len(other):
            raise InputError(f"{what}: they have {len(one)} and {len(other)} faces")
        shift = centre[other].mean(axis=0) - centre[one].mean(axis=0)
        gap, place = cKDTree(centre[other]).query(centre[one] + shift)
        image = other[place]
        # A face and its image have equal lengths and opposite normals.
        misfit = gap + np.abs(A[one] - A[image]) + A[one] * np.abs(n[one] + n[image]).max(axis=1)
        worst = int(np.argmax(misfit / A[one]))
        if misfit[worst] > TOLERANCE * A[one][worst] or len(np.unique(place)) != len(place):
            at = ", ".join(f"{value:g}" for value in centre[one][worst])
            raise InputError(
                f"{what}: the face at ({at}) differs from its image by {misfit[worst]:.3g}, and its length is "
                f"{A[one][worst]:.3g}"
            )
        first.append(one)
        second.append(image)
    return Joints(np.concatenate(first), np.concatenate(second))


class Layout(NamedTuple):
    """The numbering of faces after periodic ones are joined, faces between two cells (`interior` of them) first.

    `kept` holds the old numbers of the faces that remain. For each old face, `node` is the node that its owner sees
    across it, and `turned` marks the second face of a joined pair, whose owner is now the neighbour. `of_cell` holds
    the new numbers of each cell's faces, −1 where a triangle has none.
    """

    kept: FaceIndex
    interior: int
    node: FaceIndex
    turned: FaceIndex
    of_cell: Int[np.ndarray, "cells slots"]


def join_faces(faces: Faces, joints: Joints) -> Layout:
    """Number the faces so that each pair of joined boundary faces becomes one face between two cells."""
    count, cells = len(faces.owner), len(faces.of_cell)
    joined = np.zeros(count, bool)
    joined[joints.first] = joined[joints.second] = True
    walls = faces.interior + np.flatnonzero(~joined[faces.interior :])
    kept = np.concatenate([np.arange(faces.interior), joints.first, walls]).astype(np.int64)
    number = np.empty(count, np.int32)
    number[kept] = np.arange(len(kept))
    number[joints.second] = number[joints.first]
    node = faces.neighbour.astype(np.int32)
    node[walls] = cells + np.arange(len(walls), dtype=np.int32)
    node[joints.first], node[joints.second] = faces.owner[joints.second], faces.owner[joints.first]
    turned = np.zeros(count, bool)
    turned[joints.second] = True
    of_cell = np.where(faces.of_cell < 0, -1, number[np.maximum(faces.of_cell, 0)]).astype(np.int32)
    return Layout(kept, faces.interior + len(joints.first), node, turned, of_cell)
