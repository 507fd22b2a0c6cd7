"""The dual graph of a mesh.

The graph has a node per cell, an edge per face, and a ghost node per boundary face.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from fluxforge._arguments import check_kind
from fluxforge._types import CellField, CellVectors, FaceField, FaceIndex, FaceVectors, SlotField, SlotIndex, SlotMask
from fluxforge.errors import InputError, MeshError
from fluxforge.expression._symbols import COORDINATES
from fluxforge.mesh._boundary import Conditions, FaceConditions, conditions_on_faces, fit_conditions
from fluxforge.mesh._check_cells import check_coordinates, check_extent, name_corners
from fluxforge.mesh._mesh import (
    Faces,
    Mesh,
    boundary_tags,
    cell_areas,
    cell_centroids,
    normal_part,
    number_regions,
    pair_faces,
    tangential_length,
)
from fluxforge.mesh._periodic import Joints, Layout, join_faces, match_faces
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._equation import Equation

Key = TypeVar("Key")


class OnDemand(Mapping[Key, np.ndarray]):
    """Arrays by name, each computed on first access and stored."""

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
    - A Robin ghost lies where the normal from the owner meets the face; `transfer` is its h, nan at other ghosts.
    - An `inflow` ghost lies at the face centre and has the value g where the flow enters, T_P where it leaves.
    - The ghosts of both have `follow`·T_P + (1 − `follow`)·`value`. `follow` depends on the equation and is None
      until `close_walls` has set it; 0 at Dirichlet ghosts.

    Periodic faces are the last `wrapped` faces between two cells: d leads from P to the image of N.

    Each cell refers to its faces through `slots`, a fixed number per mesh (3 for triangles, 4 with quadrilaterals):
    `slot_face`, `slot_node` and `slot_sign` (+1 where the cell owns the face); `slot_mask` is false in the unused
    fourth slot of a triangle, which points at the cell itself. `region` is the number of each cell's region in
    `regions`, −1 for a cell in none, and None for a mesh without regions.

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
    transfer: Float[np.ndarray, " boundary"] | None = None
    inflow: Bool[np.ndarray, " boundary"] | None = None
    follow: Float[np.ndarray, " boundary"] | None = None
    wrapped: int = 0
    region: Int[np.ndarray, " cells"] | None = None
    regions: tuple[str, ...] = ()

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

    @property
    def following(self) -> Float[np.ndarray, " boundary"]:
        """∂(ghost's value)/∂T_P: 1 at a Neumann ghost, 0 at a Dirichlet ghost.

        Raises InputError where that depends on the equation, and no equation has been given yet.
        """
        if self.follow is not None:
            return self.follow
        if self.transfer is not None or self.inflow is not None:
            raise InputError(
                "Robin and inflow walls depend on the equation: use close_walls(graph, equation, parameters)"
            )
        return self.neumann.astype(float)

    def _offsets(self, i: int) -> SlotField:
        """One coordinate of p, from each cell to the centres of its faces; through a periodic face to its image."""
        face = self.slot_face
        offset = self.centre[face, i] - self.x[:, None, i]
        if not self.wrapped:
            return offset
        # The far cell of a periodic face sees the image of its centre.
        from_owner = (self.centre[:, i] - self.x[self.owner, i])[face]
        return np.where(self.slot_sign > 0, from_owner, from_owner - self.d[face, i])

    def _component(self, vectors: FaceVectors, i: int) -> SlotField:
        """Component i of a vector of every slot's face, pointing away from the receiving cell."""
        return vectors[self.slot_face, i] * self.slot_sign

    def legs(self) -> Mapping[str, SlotField]:
        """The geometry of every slot's face as the receiving cell sees it: n and d point away from it.

        `d_n` = d·n and `d_t` = |d − (d·n) n| are the same from both sides, since n and d turn together. At a Neumann
        wall d = δ n, so that d_n = δ and d_t = 0; at a Dirichlet wall d leads to the centre of the face. p leads from
        the centroid of the receiving cell to the centre of the face, which for unused slots means nothing.
        """
        face, axes = self.slot_face, COORDINATES[: self.dimension]
        vectors = {"n": self.n, "d": self.d}
        parts = {
            f"{name}_{axis}": partial(self._component, v, i)
            for name, v in vectors.items()
            for i, axis in enumerate(axes)
        }
        return OnDemand(
            {
                "A": lambda: self.A[face],
                "delta": lambda: self.delta[face],
                **parts,
                "chi": lambda: np.concatenate([np.ones(self.interior), 1.0 - self.following])[face],
                "d_n": lambda: normal_part(self.d, self.n)[face],
                "d_t": lambda: tangential_length(self.d, self.n)[face],
                **{f"p_{axis}": partial(self._offsets, i) for i, axis in enumerate(axes)},
            }
        )


def check_graph(graph: Any, name: str = "graph") -> DualGraph:
    """Return the graph; raise InputError, naming the argument, if it is not one."""
    return check_kind(graph, name, DualGraph, "a dual graph (fluxforge.dual(mesh, boundary))")


def dual(
    mesh: Mesh | str | os.PathLike[str],
    boundary: Conditions = None,
    *,
    equation: Equation | None = None,
    time: float | None = None,
) -> DualGraph:
    """Build the dual graph of a mesh, or of the mesh file at a path, with boundary conditions (T = 0 by default).

    `boundary` is one condition for all faces, or a mapping from tag to condition; a number is a Dirichlet value:
    `dual(mesh, {"left": Dirichlet("sin(pi*y)"), "right": Neumann(), "top": 3.0})`.
    With an `equation`, conditions that it does not take are refused, and tags that are not named have its default.
    With a `time`, formulas may contain t. Raises MeshError (MeshReadError for a file) for a mesh that cannot be used,
    InputError for a bad condition.
    """
    mesh = as_mesh(mesh)
    check_coordinates(mesh.points, mesh.origin)
    check_extent(mesh.points, mesh.cells, mesh.origin)
    faces = pair_faces(mesh)
    V = cell_areas(mesh.points, mesh.cells)
    _check_areas(mesh, V)
    x = cell_centroids(mesh.points, mesh.cells)
    A, n, centre = _face_geometry(mesh, faces)
    tags, tag = boundary_tags(mesh, faces)
    walls = fit_conditions(boundary, tags, equation)
    joints = match_faces(walls, tags=tags, tag=tag, interior=faces.interior, centre=centre, n=n, A=A)
    layout = join_faces(faces, joints)
    slot_node, slot_sign = _slots(faces, layout)
    kept, at_wall = layout.kept, layout.kept[layout.interior :]
    tag = tag[at_wall - faces.interior]
    d = _offsets_across(faces, joints, x, centre)
    # The normal from the owner's centroid meets the line of the face here.
    height = np.einsum("fe,fe->f", d[at_wall], n[at_wall])
    foot = x[faces.owner[at_wall]] + height[:, None] * n[at_wall]
    conditions = conditions_on_faces(walls, tags=tags, tag=tag, centre=centre[at_wall], foot=foot, time=time)
    d[at_wall] = _to_ghosts(d[at_wall], height, n[at_wall], conditions)
    return DualGraph(
        V=V,
        x=x,
        owner=faces.owner[kept],
        neighbour=layout.node[kept],
        A=A[kept],
        n=n[kept],
        d=d[kept],
        delta=np.hypot(d[kept, 0], d[kept, 1]),
        centre=centre[kept],
        slot_face=np.maximum(layout.of_cell, 0),
        slot_node=slot_node,
        slot_sign=slot_sign,
        slot_mask=layout.of_cell >= 0,
        tag=tag,
        neumann=conditions.neumann,
        value=conditions.value,
        tags=tags,
        origin=mesh.origin,
        transfer=conditions.transfer,
        inflow=conditions.inflow,
        wrapped=len(joints.first),
        region=number_regions(mesh) if mesh.regions else None,
        regions=tuple(mesh.regions),
    )


def _check_areas(mesh: Mesh, V: CellField) -> None:
    """MeshError for a cell without area, or clockwise; meshes from `read` have none, meshes built by hand may."""
    if (bad := np.flatnonzero(~(V > 0))).size:
        cell = bad[0]
        raise MeshError(
            f"{mesh.origin}: cell {cell} has the area {V[cell]:g} ({name_corners(mesh.cells, cell)}): "
            "list the corners of every cell counter-clockwise, around an area above 0"
        )


def _face_geometry(mesh: Mesh, faces: Faces) -> tuple[FaceField, FaceVectors, FaceVectors]:
    """The length A, the unit normal n out of the owner, and the centre of every face."""
    p, q = mesh.points[faces.start], mesh.points[faces.end]
    along = q - p
    A = np.hypot(along[:, 0], along[:, 1])
    return A, np.stack([along[:, 1], -along[:, 0]], axis=1) / A[:, None], 0.5 * (p + q)


def _offsets_across(faces: Faces, joints: Joints, x: CellVectors, centre: FaceVectors) -> FaceVectors:
    """From the owner's centroid to the neighbour's, or to the centre of a boundary face; d before ghosts are placed."""
    d = centre - x[faces.owner]
    inside = slice(faces.interior)
    d[inside] = x[faces.neighbour[inside]] - x[faces.owner[inside]]
    # Two joined faces are the same place: from the owner of the first to it, and on to the owner of the second.
    d[joints.first] -= d[joints.second]
    return d


def _to_ghosts(d: FaceVectors, height: FaceField, n: FaceVectors, conditions: FaceConditions) -> FaceVectors:
    """From x_face − x_P to D of the ghosts: mirror images behind Neumann faces, on the normal at Robin faces."""
    mirrored = conditions.neumann[:, None]
    d = np.where(mirrored, (2.0 * height)[:, None] * n, d)
    if conditions.transfer is None:
        return d
    return np.where(np.isfinite(conditions.transfer)[:, None], height[:, None] * n, d)


def _slots(faces: Faces, layout: Layout) -> tuple[SlotIndex, SlotField]:
    """The node across each of a cell's faces, and +1 where the cell owns the face, −1 where it does not."""
    cell = np.arange(len(faces.of_cell), dtype=np.int32)[:, None]
    face = np.maximum(faces.of_cell, 0)
    owns = faces.owner[face] == cell
    across = np.where(owns, layout.node[face], faces.owner[face])
    node = np.where(faces.of_cell < 0, cell, across).astype(np.int32)
    return node, np.where(owns & ~layout.turned[face], 1.0, -1.0)
