"""Write meshes and cell data to files."""

import importlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Num, Shaped

from fluxforge._arguments import check_kind, check_path
from fluxforge._files import atomic_path
from fluxforge.errors import FluxforgeError, InputError
from fluxforge.mesh._cells import mark_triangles
from fluxforge.mesh._faces import number_regions
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read import FORMATS, as_mesh
from fluxforge.mesh._read_meshio import capture_output

WITH_CELL_DATA = ("gmsh", "vtk", "vtu", "xdmf")
# meshio's XDMF would otherwise put the arrays into a second file.
OPTIONS: Mapping[str, Mapping[str, str]] = {"xdmf": {"data_format": "XML"}}
NAME = re.compile(r'[^"<>&\s]([^"<>&\n\r\t\v\f]*[^"<>&\s])?')

Fields = dict[str, Num[np.ndarray, " cells *components"]]


def write(
    mesh: Mesh | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    cell_data: Mapping[str, Shaped[np.ndarray, "..."]] | None = None,
) -> None:
    """Write a mesh, or that of a file, atomically in the format of the extension: `.msh` (4.1), `.vtk`, `.vtu`, ….

    Coordinates and `cell_data` (a number or a vector per cell) are written with every digit. Only `.msh` files hold
    boundary tags and regions, as physical names, and the order of cells; in other formats triangles and their data come
    before quadrilaterals. Raises InputError for data that the format cannot hold.
    """
    path = Path(check_path(path, "path"))
    mesh = as_mesh(mesh)
    if cell_data is not None:
        check_kind(cell_data, "cell_data", Mapping, "a mapping from names to arrays")
    format_name = FORMATS.get(path.suffix.lower())
    if format_name is None:
        raise InputError(f"{path}: the extension {path.suffix!r} is not one of {' '.join(FORMATS)}")
    if not np.isfinite(mesh.points).all():
        raise InputError(f"{path}: the mesh has coordinates that are not finite, so it is not written")
    fields = _check_fields(cell_data or {}, len(mesh.cells), path)
    if fields and format_name not in WITH_CELL_DATA:
        raise InputError(f"{path}: {path.suffix} files cannot carry cell data; .msh .vtk .vtu .xdmf can")
    with atomic_path(path) as temporary:
        if format_name == "gmsh":
            _check_names(mesh.boundary, "boundary tag", path)
            _check_names(mesh.regions, "region", path)
            temporary.write_text(msh_text(mesh, fields), encoding="utf-8")
        else:
            _write_with_meshio(mesh, fields, format_name, target=temporary, path=path)


def _check_fields(cell_data: Mapping[str, Shaped[np.ndarray, "..."]], cells: int, path: Path) -> Fields:
    """The data as integers or doubles, one row per cell; vectors in the plane get a third component, as VTK has it."""
    _check_names(cell_data, "cell data", path)
    fields = {}
    for name, array in cell_data.items():
        values = np.asarray(array)
        if values.shape[:1] != (cells,) or values.ndim > 2 or values.dtype.kind not in "biuf":
            wanted = f"{cells} numbers or vectors, one per cell"
            raise InputError(
                f"{path}: cell data {name!r} should be {wanted}, got {values.dtype} of shape {values.shape}"
            )
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
        if (bad := np.flatnonzero(~np.isfinite(values).reshape(cells, -1).all(axis=1))).size:
            raise InputError(f"{path}: cell data {name!r} is not finite in cell {bad[0]}")
        if values.ndim == 2 and values.shape[1] == 2:
            values = np.column_stack([values, np.zeros(cells, values.dtype)])
        if values.ndim == 2 and values.shape[1] not in (1, 3, 9):
            raise InputError(
                f"{path}: cell data {name!r} has {values.shape[1]} components; 1, 2, 3 or 9 can be written"
            )
        fields[name] = values
    return fields


def _check_names(names: Mapping[str, object], what: str, path: Path) -> None:
    for name in names:
        if NAME.fullmatch(name) is None:
            raise InputError(f"{path}: {what} {name!r} needs a name without quotes, angle brackets, & and line breaks")


def _write_with_meshio(mesh: Mesh, fields: Fields, format_name: str, *, target: Path, path: Path) -> None:
    meshio = importlib.import_module("meshio")
    order, blocks = _group_by_kind(mesh)
    if format_name == "off" and any(kind == "quad" for kind, _ in blocks):
        raise InputError(f"{path}: .off files hold triangles only, and the mesh has quadrilaterals")
    points: Float[np.ndarray, "points 3"] = np.column_stack([mesh.points, np.zeros(len(mesh.points))])
    splits = np.cumsum([len(corners) for _, corners in blocks])[:-1]
    data = {name: np.split(values[order], splits) for name, values in fields.items()}
    try:
        with capture_output():
            drawing = meshio.Mesh(points, blocks, cell_data=data)
            getattr(meshio, format_name).write(os.fspath(target), drawing, **OPTIONS.get(format_name, {}))
    except (Exception, SystemExit) as error:
        if isinstance(error, FluxforgeError | OSError):
            raise
        raise InputError(f"{path}: cannot be written as {format_name} ({' '.join(str(error).split())})") from error


def _group_by_kind(mesh: Mesh) -> tuple[Int[np.ndarray, " cells"], list[tuple[str, Int[np.ndarray, "n corners"]]]]:
    """The numbers of the cells, triangles first, and the cells in that order as meshio's blocks."""
    if mesh.cells.shape[1] == 3:
        return np.arange(len(mesh.cells)), [("triangle", mesh.cells)]
    triangle = mark_triangles(mesh.cells)
    order = np.concatenate([np.flatnonzero(triangle), np.flatnonzero(~triangle)])
    blocks = [("triangle", mesh.cells[triangle][:, :3]), ("quad", mesh.cells[~triangle])]
    return order, [(kind, corners) for kind, corners in blocks if len(corners)]


LINE, TRIANGLE, QUADRILATERAL = 1, 2, 3


def msh_text(mesh: Mesh, fields: Mapping[str, Num[np.ndarray, " cells *components"]]) -> str:
    """The text of a .msh file, version 4.1; tags without edges are left out."""
    mesh = replace(mesh, boundary={tag: edges for tag, edges in mesh.boundary.items() if len(edges)})
    lines = ["$MeshFormat", "4.1 0 8", "$EndMeshFormat"]
    for section in (_name_lines(mesh), _entity_lines(mesh), _node_lines(mesh), _element_lines(mesh)):
        lines.extend(section)
    for name, values in fields.items():
        lines.extend(_data_lines(name, values))
    return "\n".join(lines) + "\n"


def _name_lines(mesh: Mesh) -> Iterator[str]:
    names = [f'1 {number} "{tag}"' for number, tag in enumerate(mesh.boundary, start=1)]
    names += [f'2 {number} "{name}"' for number, name, _ in _surfaces(mesh) if name]
    yield from ("$PhysicalNames", str(len(names)), *names, "$EndPhysicalNames")


def _surfaces(mesh: Mesh) -> list[tuple[int, str, Int[np.ndarray, " n"]]]:
    """The number, the name and the cells of each surface; those in no region have no name.

    A mesh without regions is one surface, called `domain` unless a boundary tag has that name: some readers have one
    list of names for all dimensions.
    """
    if not mesh.regions:
        name = "domain" if "domain" not in mesh.boundary else "all cells"
        return [(1, name, np.arange(len(mesh.cells)))]
    surfaces = [(k, name, np.sort(cells)) for k, (name, cells) in enumerate(mesh.regions.items(), start=1)]
    surfaces += [(len(mesh.regions) + 1, "", np.flatnonzero(number_regions(mesh) < 0))]
    return [(number, name, cells) for number, name, cells in surfaces if len(cells)]


def _entity_lines(mesh: Mesh) -> Iterator[str]:
    """A curve per tag and the surfaces they bound, each with its box and its physical tag."""
    curves, surfaces = len(mesh.boundary), _surfaces(mesh)
    yield from ("$Entities", f"0 {curves} {len(surfaces)} 0")
    for number, edges in enumerate(mesh.boundary.values(), start=1):
        yield f"{number} {_format_box(mesh, edges)} 1 {number} 0"
    around = "".join(f" {number}" for number in range(1, curves + 1))
    for number, name, these in surfaces:
        corners = mesh.cells[these]
        tags = f"1 {number}" if name else "0"
        yield f"{number} {_format_box(mesh, corners[corners >= 0])} {tags} {curves}{around}"
    yield "$EndEntities"


def _format_box(mesh: Mesh, used: Int[np.ndarray, "*n"]) -> str:
    corners = mesh.points[used.ravel()]
    low, high = corners.min(axis=0), corners.max(axis=0)
    return f"{low[0].item()!r} {low[1].item()!r} 0 {high[0].item()!r} {high[1].item()!r} 0"


def _node_lines(mesh: Mesh) -> Iterator[str]:
    count = len(mesh.points)
    yield from ("$Nodes", f"1 {count} 1 {count}", f"2 1 0 {count}")
    yield from map(str, range(1, count + 1))
    # repr writes the fewest digits that determine a number.
    yield from (f"{x!r} {y!r} 0" for x, y in mesh.points.tolist())
    yield "$EndNodes"


def _element_lines(mesh: Mesh) -> Iterator[str]:
    number = np.arange(1, len(mesh.cells) + 1)
    triangle = mark_triangles(mesh.cells)
    kinds = [(TRIANGLE, triangle, 3), (QUADRILATERAL, ~triangle, 4)]
    blocks = []
    for surface, _, cells in _surfaces(mesh):
        of_kind = [(kind, cells[these[cells]], width) for kind, these, width in kinds]
        blocks += [(2, surface, kind, number[c], mesh.cells[c, :width]) for kind, c, width in of_kind if len(c)]
    following = len(mesh.cells) + 1
    for curve, edges in enumerate(mesh.boundary.values(), start=1):
        blocks.append((1, curve, LINE, np.arange(following, following + len(edges)), edges))
        following += len(edges)
    blocks.sort(key=lambda block: block[:3])
    yield from ("$Elements", f"{len(blocks)} {following - 1} 1 {following - 1}")
    for dimension, entity, kind, numbers, corners in blocks:
        yield f"{dimension} {entity} {kind} {len(numbers)}"
        yield from (" ".join(map(str, row)) for row in np.column_stack([numbers, corners + 1]).tolist())
    yield "$EndElements"


def _data_lines(name: str, values: Num[np.ndarray, " cells *components"]) -> Iterator[str]:
    """One view: its name, the time 0, then step 0, the number of components and of cells, and a row per cell."""
    rows = values.reshape(len(values), -1)
    yield from ("$ElementData", "1", f'"{name}"', "1", "0", "3", "0", str(rows.shape[1]), str(len(rows)))
    yield from (f"{k} " + " ".join(map(repr, row)) for k, row in enumerate(rows.tolist(), start=1))
    yield "$EndElementData"
