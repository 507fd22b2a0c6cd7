"""Mesh files to meshes."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from fluxforge._arguments import check_path
from fluxforge._types import Corners, Points
from fluxforge.errors import MeshError, MeshReadError
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh.checks._cells import check_coordinates
from fluxforge.mesh.checks._check import checked
from fluxforge.mesh.files._drawing import cells_of, edges_of
from fluxforge.mesh.files._meshio import read_with_meshio
from fluxforge.mesh.files._msh import read_msh
from fluxforge.mesh.files._numbers import UnreadableError
from fluxforge.mesh.files._preflight import preflight
from fluxforge.mesh.files._vtu import read_vtu

# Heights that differ by less than this fraction of the mesh are one height.
LEVEL = 1e-9


def read(path: str | os.PathLike[str]) -> Mesh:
    """The planar mesh in a file: gmsh `.msh` 2.2 and 4.1, `.vtk`, `.vtu`, `.xdmf`, `.mesh`, `.obj`, `.off`.

    Triangles and quadrilaterals may be mixed; lines with a physical tag become the tagged boundary, named as in the
    file or `tag-<number>`; any other kind of cell is refused. The mesh is checked (see `checked`), and its `notes` say
    what was mended. Whatever is wrong with the file is a MeshReadError of one line that opens with the path.
    """
    origin = check_path(path, "path", "the path of a mesh file")
    try:
        return _read(Path(path), origin)
    except UnreadableError as error:
        raise MeshReadError(f"{origin}: {' '.join(str(error).split())}") from error
    except MeshError as error:
        raise MeshReadError(str(error)) from error
    except (MemoryError, RecursionError) as error:
        raise MeshReadError(f"{origin}: needs more memory than there is") from error


def _read(path: Path, origin: str) -> Mesh:
    format_name, data = preflight(path)
    match format_name:
        case "gmsh":
            drawing = read_msh(data)
        case "vtu":
            drawing = read_vtu(data)
        case _:
            drawing = read_with_meshio(path, format_name, data)
    cells, edges = cells_of(drawing), edges_of(drawing)
    check_coordinates(drawing.points, origin)
    points = _flattened(drawing.points, cells)
    mesh = checked(points, cells, boundary=edges, origin=origin)
    return replace(mesh, notes=drawing.notes + mesh.notes)


def _flattened(points: Float[np.ndarray, "points 3"], cells: Corners) -> Points:
    """Drop z, if all the points that cells use have the same z to round-off."""
    # By marking, not np.unique, which hashes every corner: a fifth of the time of reading.
    marked = np.zeros(len(points), bool)
    marked[cells[cells >= 0]] = True
    used = np.flatnonzero(marked)
    extent = np.ptp(points[used], axis=0)
    level = LEVEL * extent.max()
    if extent[2] <= level:
        return points[:, :2]
    flat = [axis for axis, size in zip("xyz", extent, strict=True) if size <= level]
    if flat:
        raise UnreadableError(
            f"is a mesh in a plane of constant {flat[0]}; turn it into the x-y plane, z being constant"
        )
    low, high = used[points[used, 2].argmin()], used[points[used, 2].argmax()]
    heights = f"point {low} has z = {points[low, 2]:g} and point {high} has z = {points[high, 2]:g}"
    raise UnreadableError(f"is not a plane mesh: {heights}, where z should be constant")
