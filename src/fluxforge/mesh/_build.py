"""The dual graph of a mesh, and its description: sizes, shapes, angles, connectivity."""

import os
from dataclasses import dataclass, field

import numpy as np

from fluxforge._arguments import check_number
from fluxforge._types import CellField, CellVectors, FaceField, FaceVectors, SlotField, SlotIndex
from fluxforge.errors import MeshError
from fluxforge.mesh._boundary import FaceConditions, conditions_on_faces
from fluxforge.mesh._cells import (
    as_arrays,
    cell_areas,
    cell_centroids,
    check_coordinates,
    check_corners,
    check_extent,
    corner_positions,
    cross,
    half_edges,
    join_parts,
    mark_triangles,
    name_corners,
)
from fluxforge.mesh._conditions import Conditions, fit_conditions
from fluxforge.mesh._dual import DualGraph, check_graph
from fluxforge.mesh._faces import (
    Faces,
    Joints,
    Layout,
    boundary_tags,
    join_faces,
    match_faces,
    number_regions,
    pair_faces,
)
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._parameters import fourier_step
from fluxforge.mesh._read import as_mesh
from fluxforge.pde._document import find as find_equation
from fluxforge.pde._equation import Equation


def dual(
    mesh: Mesh | str | os.PathLike[str],
    boundary: Conditions = None,
    *,
    equation: str | os.PathLike[str] | Equation | None = None,
    time: float | None = None,
) -> DualGraph:
    """Build the dual graph of a mesh, or of the mesh file at a path, with boundary conditions (T = 0 by default).

    `boundary` is one condition for all faces, or a mapping from tag to condition; a number is a Dirichlet value:
    `dual(mesh, {"left": Dirichlet("sin(pi*y)"), "right": Neumann(), "top": 3.0})`.
    With an `equation`, or its name, conditions that it does not take are refused, and tags that are not named have its
    default. With a `time`, formulas may contain t. Raises MeshError (MeshReadError for a file) for a mesh that cannot
    be used, InputError for a bad condition.
    """
    mesh = as_mesh(mesh)
    equation = None if equation is None else find_equation(equation)
    time = None if time is None else check_number(time, "time")
    points, cells = as_arrays(mesh.points, mesh.cells, mesh.origin)
    check_corners(points, cells, mesh.origin)
    check_coordinates(mesh.points, mesh.origin)
    check_extent(mesh.points, mesh.cells, mesh.origin)
    faces = pair_faces(mesh)
    V = cell_areas(mesh.points, mesh.cells)
    _check_areas(mesh, V)
    x = cell_centroids(mesh.points, mesh.cells)
    A, n, centre = _measure_faces(mesh, faces)
    tags, tag = boundary_tags(mesh, faces)
    walls = fit_conditions(boundary, tags, equation)
    joints = match_faces(walls, tags=tags, tag=tag, interior=faces.interior, centre=centre, n=n, A=A)
    layout = join_faces(faces, joints)
    slot_node, slot_sign = _fill_slots(faces, layout)
    kept, at_wall = layout.kept, layout.kept[layout.interior :]
    tag = tag[at_wall - faces.interior]
    d = _measure_offsets(faces, joints, x, centre)
    # The normal from the owner's centroid meets the line of the face here.
    height = np.einsum("fe,fe->f", d[at_wall], n[at_wall])
    foot = x[faces.owner[at_wall]] + height[:, None] * n[at_wall]
    conditions = conditions_on_faces(walls, tags=tags, tag=tag, centre=centre[at_wall], foot=foot, time=time)
    d[at_wall] = _lead_to_ghosts(d[at_wall], height, n[at_wall], conditions)
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
    """Raise MeshError for a cell without area or with clockwise corners, as meshes built by hand may have."""
    if (bad := np.flatnonzero(~(V > 0))).size:
        cell = bad[0]
        raise MeshError(
            f"{mesh.origin}: cell {cell} has the area {V[cell]:g} ({name_corners(mesh.cells, cell)}): "
            "list the corners of every cell counter-clockwise, around an area above 0"
        )


def _measure_faces(mesh: Mesh, faces: Faces) -> tuple[FaceField, FaceVectors, FaceVectors]:
    """The length A, the unit normal n pointing away from the owner, and the centre of every face."""
    p, q = mesh.points[faces.start], mesh.points[faces.end]
    along = q - p
    A = np.hypot(along[:, 0], along[:, 1])
    return A, np.stack([along[:, 1], -along[:, 0]], axis=1) / A[:, None], 0.5 * (p + q)


def _measure_offsets(faces: Faces, joints: Joints, x: CellVectors, centre: FaceVectors) -> FaceVectors:
    """The vectors d from the owner's centroid to the neighbour's, or to the centre of a boundary face."""
    d = centre - x[faces.owner]
    inside = slice(faces.interior)
    d[inside] = x[faces.neighbour[inside]] - x[faces.owner[inside]]
    # Two joined faces are the same place: from the owner of the first to it, and on to the owner of the second.
    d[joints.first] -= d[joints.second]
    return d


def _lead_to_ghosts(d: FaceVectors, height: FaceField, n: FaceVectors, conditions: FaceConditions) -> FaceVectors:
    """The vectors d to the ghosts from d = x_face − x_P: 2 (d·n) n at Neumann faces, (d·n) n at Robin faces, else d."""
    mirrored = conditions.neumann[:, None]
    d = np.where(mirrored, (2.0 * height)[:, None] * n, d)
    if conditions.transfer is None:
        return d
    return np.where(np.isfinite(conditions.transfer)[:, None], height[:, None] * n, d)


def _fill_slots(faces: Faces, layout: Layout) -> tuple[SlotIndex, SlotField]:
    """Per cell and slot, the node across the face, and +1 where the cell owns the face, −1 where it does not."""
    cell = np.arange(len(faces.of_cell), dtype=np.int32)[:, None]
    face = np.maximum(faces.of_cell, 0)
    owns = faces.owner[face] == cell
    across = np.where(owns, layout.node[face], faces.owner[face])
    node = np.where(faces.of_cell < 0, cell, across).astype(np.int32)
    return node, np.where(owns & ~layout.turned[face], 1.0, -1.0)


@dataclass(frozen=True)
class MeshInfo:
    """The description of a mesh that `fluxforge mesh info` prints."""

    cells: int
    triangles: int
    quadrilaterals: int
    points: int
    faces: int
    boundary_faces: int
    boundary_tags: dict[str, int]
    area: float
    h: float
    cell_area_min: float
    cell_area_max: float
    quality_min: float
    quality_mean: float
    nonorthogonality_mean_deg: float
    nonorthogonality_max_deg: float
    dt_fourier: float
    components: int
    notes: tuple[str, ...]
    regions: dict[str, int] = field(default_factory=dict)


def info(mesh: Mesh | str | os.PathLike[str]) -> MeshInfo:
    """Describe a mesh, or the mesh file at a path; `dt_fourier` is for α = 1 and T given on the whole boundary."""
    mesh = as_mesh(mesh)
    graph = dual(mesh)
    quality = cell_quality(mesh)
    angle = nonorthogonality(graph)
    tagged = np.bincount(graph.tag, minlength=len(graph.tags)).tolist()
    triangles = int(mark_triangles(mesh.cells).sum())
    return MeshInfo(
        cells=graph.cells,
        triangles=triangles,
        quadrilaterals=graph.cells - triangles,
        points=len(mesh.points),
        faces=len(graph.A),
        boundary_faces=graph.ghosts,
        boundary_tags=dict(zip(graph.tags, tagged, strict=True)),
        area=float(graph.V.sum()),
        h=float(cell_diameters(mesh).max()),
        cell_area_min=float(graph.V.min()),
        cell_area_max=float(graph.V.max()),
        quality_min=float(quality.min()),
        quality_mean=float(quality.mean()),
        nonorthogonality_mean_deg=float(angle.mean()) if angle.size else 0.0,
        nonorthogonality_max_deg=float(angle.max()) if angle.size else 0.0,
        dt_fourier=fourier_step(graph),
        components=count_components(graph),
        notes=mesh.notes,
        regions={name: len(cells) for name, cells in mesh.regions.items()},
    )


def cell_diameters(mesh: Mesh | str | os.PathLike[str]) -> CellField:
    """The largest distance between two corners of each cell."""
    mesh = as_mesh(mesh)
    corners = corner_positions(mesh.points, mesh.cells)
    apart = corners[:, :, None] - corners[:, None, :]
    return np.hypot(apart[..., 0], apart[..., 1]).max(axis=(1, 2))


def cell_quality(mesh: Mesh | str | os.PathLike[str]) -> CellField:
    """The quality c V/Σ l²: 1 for an equilateral triangle (c = 4√3) and for a square (c = 4), 0 for a flat cell."""
    mesh = as_mesh(mesh)
    start, end = half_edges(mesh.cells)
    edge = np.where((start >= 0)[..., None], mesh.points[end] - mesh.points[start], 0.0)
    scale = np.where(mark_triangles(mesh.cells), 4 * np.sqrt(3.0), 4.0)
    return scale * cell_areas(mesh.points, mesh.cells) / np.square(edge).sum(axis=(1, 2))


def nonorthogonality(graph: DualGraph) -> FaceField:
    """The angle in degrees between the face normal and the line of centroids, on the faces between two cells."""
    inside = slice(check_graph(graph).interior)
    n, d = graph.n[inside], graph.d[inside]
    # arctan2, since arccos loses digits near zero.
    return np.degrees(np.arctan2(np.abs(cross(n, d)), (n * d).sum(axis=1)))


def count_components(graph: DualGraph) -> int:
    """The number of connected parts; cells are connected by faces, periodic ones included."""
    inside = slice(check_graph(graph).interior)
    part = join_parts(np.arange(graph.cells), graph.owner[inside], graph.neighbour[inside])
    return int(part.max()) + 1
