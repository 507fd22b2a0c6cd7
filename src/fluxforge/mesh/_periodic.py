"""Periodic walls: the faces of two tags matched by a translation, and joined to faces between two cells."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from fluxforge._types import FaceField, FaceIndex, FaceVectors
from fluxforge.errors import InputError
from fluxforge.mesh._boundary import Condition, Periodic, faces_of_tags
from fluxforge.mesh._mesh import Faces

# Relative to the length of a face: the largest distance between two matched faces, and difference of their lengths.
# Mesh files have at least six digits.
TOLERANCE = 1e-4


class Joints(NamedTuple):
    """Boundary faces that are one face: `first` is kept and leads from its owner to the owner of `second`."""

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
                f"{what}: the face at ({at}) is off by {misfit[worst]:.3g}, its length is {A[one][worst]:.3g}"
            )
        first.append(one)
        second.append(image)
    return Joints(np.concatenate(first), np.concatenate(second))


class Layout(NamedTuple):
    """Faces after joining, those between two cells first.

    `kept` are their numbers before; `node` is, for each face before, the node that its owner sees across it, and
    `turned` says that its owner is the far end of the face it was joined to; `of_cell` are the faces of each cell.
    """

    kept: FaceIndex
    interior: int
    node: FaceIndex
    turned: FaceIndex
    of_cell: Int[np.ndarray, "cells slots"]


def join_faces(faces: Faces, joints: Joints) -> Layout:
    """Number the faces with each pair of joined ones as a single face between two cells."""
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
