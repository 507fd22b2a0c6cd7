"""Mesh quality: sizes, shapes, angles, connectivity."""

import os
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fluxforge._types import CellField, FaceField
from fluxforge.mesh._dual import DualGraph, check_graph, dual
from fluxforge.mesh._mesh import Mesh, cell_areas, check_mesh, corner_positions, half_edges
from fluxforge.mesh._parameters import fourier_step
from fluxforge.mesh._read import as_mesh


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
    triangles = int(((mesh.cells >= 0).sum(axis=1) == 3).sum())
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
        components=components(graph),
        notes=mesh.notes,
        regions={name: len(cells) for name, cells in mesh.regions.items()},
    )


def cell_diameters(mesh: Mesh) -> CellField:
    """The largest distance between two corners of each cell."""
    corners = corner_positions(check_mesh(mesh).points, mesh.cells)
    apart = corners[:, :, None] - corners[:, None, :]
    return np.hypot(apart[..., 0], apart[..., 1]).max(axis=(1, 2))


def cell_quality(mesh: Mesh) -> CellField:
    """The quality c V/Σ l²: 1 for an equilateral triangle (c = 4√3) and for a square (c = 4), 0 for a flat cell."""
    start, end = half_edges(check_mesh(mesh).cells)
    edge = np.where((start >= 0)[..., None], mesh.points[end] - mesh.points[start], 0.0)
    scale = np.where((mesh.cells >= 0).sum(axis=1) == 3, 4 * np.sqrt(3.0), 4.0)
    return scale * cell_areas(mesh.points, mesh.cells) / np.square(edge).sum(axis=(1, 2))


def nonorthogonality(graph: DualGraph) -> FaceField:
    """The angle in degrees between the face normal and the line of centroids, on the faces between two cells."""
    inside = slice(check_graph(graph).interior)
    n, d = graph.n[inside], graph.d[inside]
    # arctan2, since arccos loses digits near zero.
    across = np.abs(n[:, 0] * d[:, 1] - n[:, 1] * d[:, 0])
    return np.degrees(np.arctan2(across, (n * d).sum(axis=1)))


def components(graph: DualGraph) -> int:
    """Number of connected parts."""
    inside = slice(check_graph(graph).interior)
    links = coo_array(
        (np.ones(graph.interior), (graph.owner[inside], graph.neighbour[inside])), shape=(graph.cells, graph.cells)
    )
    return int(connected_components(links, directed=False)[0])
