"""A checked Mesh from arrays of points, cells and tagged edges."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Shaped

from fluxforge.mesh._cells import (
    as_arrays,
    boundary_edges,
    check_coordinates,
    check_corners,
    number_parts,
    orient_cells,
    pair_edges,
)
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._overlap import check_centroids, check_overlap


def build_mesh(
    points: Shaped[np.ndarray, "..."],
    cells: Shaped[np.ndarray, "..."],
    *,
    boundary: Mapping[str, Shaped[np.ndarray, "..."]] | None = None,
    origin: str,
) -> Mesh:
    """Check arrays and build a Mesh; raises MeshError, naming the point, cell or edge that is wrong.

    `cells` has three or four columns; −1 in the fourth marks a triangle. Clockwise cells are reversed, points that no
    cell uses are dropped, and tagged edges inside the mesh are ignored; `notes` counts these repairs, and mentions
    disconnected parts and slits. Messages number points and cells from 0, in the order given here.
    """
    points, cells = as_arrays(points, cells, origin)
    check_coordinates(points, origin)
    check_corners(points, cells, origin)
    used = np.zeros(len(points), bool)
    used[cells[cells >= 0]] = True
    # Tolerances are relative to the extent of the points; unused points, which may be far away, must not count.
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
