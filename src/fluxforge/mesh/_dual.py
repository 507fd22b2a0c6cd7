"""The dual graph of a mesh, and its two-hop paths and rings.

The graph has a node per cell, an edge per face, and a ghost node per boundary face.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge._arguments import check_kind
from fluxforge._types import CellField, CellVectors, FaceField, FaceIndex, FaceVectors, SlotField, SlotIndex, SlotMask
from fluxforge.errors import MeshError
from fluxforge.expression import COORDINATES
from fluxforge.mesh._boundary import Conditions, FaceConditions, conditions_on_faces
from fluxforge.mesh._check_cells import check_coordinates, check_extent, name_corners
from fluxforge.mesh._mesh import (
    Faces,
    Mesh,
    boundary_tags,
    cell_areas,
    cell_centroids,
    normal_part,
    pair_faces,
    tangential_length,
)
from fluxforge.mesh._read import as_mesh

Key = TypeVar("Key")


class OnDemand(Mapping[Key, np.ndarray]):
    """Arrays by name, each made when it is first asked for, and kept."""

    def __init__(self, makers: Mapping[Key, Callable[[], np.ndarray]]) -> None:
        self._makers = makers
        self._made: dict[Key, np.ndarray] = {}

    def __getitem__(self, name: Key) -> np.ndarray:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True, eq=False)
class DualGraph:
    """Cells as nodes, faces as edges, boundary faces as edges to ghosts.

    Faces between two cells come first (`interior` of them), then the boundary faces; boundary face `interior + b` ends
    in ghost node `cells + b`. Along a face, `n` and `d` point from its owner to the other side, |d| = `delta`.

    - A Dirichlet ghost lies at the face centre and has the value g.
    - A Neumann ghost is the owner's mirror image along the face normal, d = δ n, and has the value T_P + q δ.

    Each cell refers to its faces through `slots`, a fixed number per mesh (3 for triangles, 4 with quadrilaterals):
    `slot_face`, `slot_node` and `slot_sign` (+1 where the cell owns the face); `slot_mask` is false in the unused
    fourth slot of a triangle, which points at the cell itself.

    `fluxforge.graph` registers it as a JAX pytree, so that this module does not import JAX.
    """

    V: CellField
    x: CellVectors
    owner: FaceIndex
    neighbour: FaceIndex
    A: FaceField
    n: FaceVectors
    d: FaceVectors
    delta: FaceField
    centre: FaceVectors
    slot_face: SlotIndex
    slot_node: SlotIndex
    slot_sign: SlotField
    slot_mask: SlotMask
    tag: Int[np.ndarray, " boundary"]
    neumann: Bool[np.ndarray, " boundary"]
    value: Float[np.ndarray, " boundary"]
    tags: tuple[str, ...]
    origin: str

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.x.shape[1]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.V)

    @property
    def ghosts(self) -> int:
        """Number of boundary faces, each with a ghost of its own."""
        return len(self.tag)

    @property
    def interior(self) -> int:
        """Number of faces between two cells."""
        return len(self.owner) - self.ghosts

    @property
    def moving(self) -> Bool[np.ndarray, " faces"]:
        """χ: false on Neumann faces, whose ghost follows its owner and does not count in Σw."""
        return np.concatenate([np.ones(self.interior, bool), ~self.neumann])

    def legs(self) -> Mapping[str, SlotField]:
        """The geometry of every slot's face as the receiving cell sees it: n and d point away from it.

        `d_n` = d·n and `d_t` = |d − (d·n) n| are the same from both sides, since n and d turn together. At a Neumann
        wall d = δ n, so that d_n = δ and d_t = 0; at a Dirichlet wall d leads to the centre of the face. p leads from
        the centroid of the receiving cell to the centre of the face, which for unused slots means nothing.
        """
        face, sign = self.slot_face, self.slot_sign

        def component(vectors: FaceVectors, i: int) -> Callable[[], SlotField]:
            return lambda: vectors[face, i] * sign

        def offset(i: int) -> Callable[[], SlotField]:
            return lambda: self.centre[face, i] - self.x[:, None, i]

        axes = COORDINATES[: self.dimension]
        vectors = {"n": self.n, "d": self.d}
        parts = {f"{name}_{axis}": component(v, i) for name, v in vectors.items() for i, axis in enumerate(axes)}
        return OnDemand(
            {
                "A": lambda: self.A[face],
                "delta": lambda: self.delta[face],
                **parts,
                "chi": lambda: self.moving[face].astype(float),
                "d_n": lambda: normal_part(self.d, self.n)[face],
                "d_t": lambda: tangential_length(self.d, self.n)[face],
                **{f"p_{axis}": offset(i) for i, axis in enumerate(axes)},
            }
        )


def check_graph(graph: Any, name: str = "graph") -> DualGraph:
    """Return the graph; raise InputError, naming the argument, if it is not one."""
    return check_kind(graph, name, DualGraph, "a dual graph (fluxforge.dual(mesh, boundary))")


def dual(mesh: Mesh | str | os.PathLike[str], boundary: Conditions = None) -> DualGraph:
    """Build the dual graph of a mesh, or of the mesh file at a path, with boundary conditions (T = 0 by default).

    `boundary` is one condition for all faces, or a mapping from tag to condition; a number is a Dirichlet value:
    `dual(mesh, {"left": Dirichlet("sin(pi*y)"), "right": Neumann(), "top": 3.0})`.
    Raises MeshError (MeshReadError for a file) for a mesh that cannot be used, InputError for a bad condition.
    """
    mesh = as_mesh(mesh)
    check_coordinates(mesh.points, mesh.origin)
    check_extent(mesh.points, mesh.cells, mesh.origin)
    faces = pair_faces(mesh)
    V = cell_areas(mesh.points, mesh.cells)
    _check_areas(mesh, V)
    x = cell_centroids(mesh.points, mesh.cells)
    p, q = mesh.points[faces.start], mesh.points[faces.end]
    along, centre = q - p, 0.5 * (p + q)
    A = np.hypot(along[:, 0], along[:, 1])
    n = np.stack([along[:, 1], -along[:, 0]], axis=1) / A[:, None]
    tags, tag = boundary_tags(mesh, faces)
    conditions = conditions_on_faces(boundary, tags=tags, tag=tag, centre=centre[faces.interior :])
    d = _centroid_vectors(faces, x=x, centre=centre, n=n, conditions=conditions)
    ghost = np.arange(len(tag), dtype=np.int32) + np.int32(len(x))
    neighbour = np.concatenate([faces.neighbour[: faces.interior], ghost])
    node, sign = _slots(faces, neighbour)
    return DualGraph(
        V=V,
        x=x,
        owner=faces.owner,
        neighbour=neighbour,
        A=A,
        n=n,
        d=d,
        delta=np.hypot(d[:, 0], d[:, 1]),
        centre=centre,
        slot_face=np.maximum(faces.of_cell, 0),
        slot_node=node,
        slot_sign=sign,
        slot_mask=faces.of_cell >= 0,
        tag=tag,
        neumann=conditions.neumann,
        value=conditions.value,
        tags=tags,
        origin=mesh.origin,
    )


def _check_areas(mesh: Mesh, V: CellField) -> None:
    """MeshError for a cell without area, or clockwise; meshes from `read` have none, meshes built by hand may."""
    if (bad := np.flatnonzero(~(V > 0))).size:
        cell = bad[0]
        raise MeshError(
            f"{mesh.origin}: cell {cell} has the area {V[cell]:g} ({name_corners(mesh.cells, cell)}): "
            "list the corners of every cell counter-clockwise, around an area above 0"
        )


def _centroid_vectors(
    faces: Faces, *, x: CellVectors, centre: FaceVectors, n: FaceVectors, conditions: FaceConditions
) -> FaceVectors:
    """D = x_N − x_P inside, x_face − x_P at a Dirichlet face, 2 ((x_face − x_P)·n) n at a Neumann face."""
    d = centre - x[faces.owner]
    inside = slice(faces.interior)
    d[inside] = x[faces.neighbour[inside]] - x[faces.owner[inside]]
    mirrored = faces.interior + np.flatnonzero(conditions.neumann)
    height = np.einsum("fe,fe->f", d[mirrored], n[mirrored])
    d[mirrored] = 2.0 * height[:, None] * n[mirrored]
    return d


def _slots(faces: Faces, neighbour: FaceIndex) -> tuple[SlotIndex, SlotField]:
    """The node across each of a cell's faces, and +1 where the cell owns the face, −1 where it does not."""
    cell = np.arange(len(faces.of_cell), dtype=np.int32)[:, None]
    face = np.maximum(faces.of_cell, 0)
    owns = faces.owner[face] == cell
    across = np.where(owns, neighbour[face], faces.owner[face])
    node = np.where(faces.of_cell < 0, cell, across).astype(np.int32)
    return node, np.where(owns, 1.0, -1.0)


class Paths(NamedTuple):
    """The directed paths P → N → Q of each cell P, N a cell, Q any node next to N: P itself and ghosts included.

    Path number k·slots + l leaves P by its slot k and N by its slot l. Where `mask` is false there is no such path
    (N is a ghost, or a slot is unused), and the indices point at P.
    """

    middle: Int[np.ndarray, "cells paths"]
    end: Int[np.ndarray, "cells paths"]
    first_slot: Int[np.ndarray, " paths"]
    second_slot: Int[np.ndarray, " paths"]
    mask: Bool[np.ndarray, "cells paths"]


def paths(graph: DualGraph) -> Paths:
    """All directed two-hop paths, in fixed slots."""
    slots = check_graph(graph).slot_node.shape[1]
    first, second = np.divmod(np.arange(slots * slots), slots)
    cell = np.arange(graph.cells, dtype=np.int32)[:, None]
    middle = graph.slot_node[:, first]
    real = graph.slot_mask[:, first] & (middle < graph.cells)
    middle = np.where(real, middle, cell)
    mask = real & graph.slot_mask[middle, second]
    end = np.where(mask, graph.slot_node[middle, second], cell)
    return Paths(middle, end, first, second, mask)


class Ring(NamedTuple):
    """The distinct cells Q at graph distance exactly two from each cell P.

    `node` holds them in fixed slots (P itself where `mask` is false); `slot_of_path` says which of them each path of
    `paths(graph)` leads to, −1 for paths that return, end beside P or end in a ghost: averaging a feature over the
    paths of a pair is a sum over equal slots divided by `multiplicity`.
    """

    node: Int[np.ndarray, "cells ring"]
    mask: Bool[np.ndarray, "cells ring"]
    slot_of_path: Int[np.ndarray, "cells paths"]
    multiplicity: Int[np.ndarray, "cells ring"]


def ring(graph: DualGraph, steps: Paths | None = None) -> Ring:
    """The cells at distance exactly two, found by sorting the path ends of each cell."""
    steps = paths(graph) if steps is None else steps
    cell = np.arange(graph.cells)[:, None]
    beside = (steps.end[:, :, None] == np.where(graph.slot_mask, graph.slot_node, -1)[:, None, :]).any(axis=2)
    far = steps.mask & (steps.end < graph.cells) & (steps.end != cell) & ~beside
    end = np.where(far, steps.end, np.iinfo(np.int32).max)
    order = np.argsort(end, axis=1, kind="stable")
    sorted_end = np.take_along_axis(end, order, axis=1)
    sorted_far = np.take_along_axis(far, order, axis=1)
    new = sorted_far.copy()
    new[:, 1:] &= sorted_end[:, 1:] != sorted_end[:, :-1]
    slot = np.where(sorted_far, np.cumsum(new, axis=1) - 1, -1)
    slot_of_path = np.empty_like(slot)
    np.put_along_axis(slot_of_path, order, slot, axis=1)
    width = max(int(slot.max(initial=-1)) + 1, 1)
    node = np.tile(cell.astype(np.int32), (1, width))
    place = (cell * width + slot_of_path)[far]
    node.ravel()[place] = steps.end[far]
    multiplicity = np.bincount(place, minlength=node.size).reshape(node.shape).astype(np.int32)
    return Ring(node, multiplicity > 0, slot_of_path.astype(np.int32), multiplicity)
