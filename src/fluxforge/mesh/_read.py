"""Read meshes and cell data from files.

Before a file is read, it is checked: it has to be a regular file of a known format that announces no more data than it
holds.
"""

import math
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from fluxforge._arguments import check_path
from fluxforge._files import SpecialFileError, open_regular
from fluxforge._types import Corners, Points
from fluxforge.errors import MeshError, MeshReadError
from fluxforge.mesh._cells import check_coordinates
from fluxforge.mesh._check_xdmf import check_xdmf
from fluxforge.mesh._elements import list_cells, list_regions, list_tagged_edges
from fluxforge.mesh._from_arrays import build_mesh
from fluxforge.mesh._mesh import Mesh
from fluxforge.mesh._read_meshio import VTK_CELLS, call_reader, read_with_meshio
from fluxforge.mesh._read_msh import read_msh
from fluxforge.mesh._read_parts import CELL_CORNERS, VIEW, Budget, UnreadableError
from fluxforge.mesh._read_vtu import read_vtu, read_vtu_cell_data

# Extension → the format's name in meshio; this package has readers of its own for ".msh" and ".vtu".
FORMATS: Mapping[str, str] = MappingProxyType(
    {
        ".msh": "gmsh",
        ".vtk": "vtk",
        ".vtu": "vtu",
        ".xdmf": "xdmf",
        ".xmf": "xdmf",
        ".mesh": "medit",
        ".obj": "obj",
        ".off": "off",
    }
)
# How a file of each format begins, after white space.
OPENINGS: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        "gmsh": re.compile(rb"\$(MeshFormat|Comments)\b"),
        "vtk": re.compile(rb"# vtk DataFile Version"),
        "vtu": re.compile(rb"<"),
        "xdmf": re.compile(rb"<"),
        "medit": re.compile(rb"#|MeshVersionFormatted\b"),
        "off": re.compile(rb"OFF\b"),
    }
)
# How files of other kinds begin, and what messages call them.
OTHER_FILES: Mapping[bytes, str] = MappingProxyType(
    {
        b"\x89PNG": "a PNG picture",
        b"\xff\xd8\xff": "a JPEG picture",
        b"\x89HDF": "an HDF5 file",
        b"\x1f\x8b": "a gzip archive: unpack it first",
        b"PK\x03\x04": "a zip archive: unpack it first",
        b"%PDF": "a PDF document",
        b"\x7fELF": "a program",
        b"(": "a Fluent mesh: save it as gmsh .msh 4.1",
        b"<": "an XML file",
        b"{": "a JSON file",
    }
)
VTK_TYPES = rb"bit|(?:unsigned_)?(?:char|short|int|long)|float|double|vtktype\w+|vtkidtype|string"
VTK_ITEMS = re.compile(rb"^[ \t]*(?:POINT|CELL)_DATA[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
VTK_COLOURS = re.compile(rb"^[ \t]*COLOR_SCALARS[ \t]+\S+[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
VTK_ARRAYS = re.compile(
    rb"^[ \t]*(?:(?:SCALARS|VECTORS|TENSORS|NORMALS)\b|\S+(?:[ \t]+\d+){2}[ \t]+(?:" + VTK_TYPES + rb")[ \t\r]*$)",
    re.MULTILINE | re.IGNORECASE,
)
# Where a text announces how many items follow: one or more counts (group 1), or two that are multiplied (group 2).
# Every item takes at least one byte.
COUNTS: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        "vtk": re.compile(
            rb"^[ \t]*(?:(?:POINTS|CELLS|CELL_TYPES|POINT_DATA|CELL_DATA|LOOKUP_TABLE|COLOR_SCALARS|FIELD)\b([^\n]*)"
            rb"|\S+((?:[ \t]+\S+){2})[ \t]+(?:" + VTK_TYPES + rb")[ \t\r]*$)",
            re.MULTILINE | re.IGNORECASE,
        ),
        "medit": re.compile(rb"^[ \t]*[A-Za-z]\w*\s+(\S+)[ \t\r]*$", re.MULTILINE),
        "off": re.compile(rb"\A\s*OFF\s+(?:#[^\n]*\n\s*)*([^\n]*)"),
    }
)


def preflight(path: Path) -> tuple[str, bytes]:
    """The format and the bytes of a file that is safe to read; raises UnreadableError for any other."""
    data = _read_bytes(path)
    format_name = FORMATS[path.suffix.lower()]
    _check_opening(data, format_name, path.suffix.lower())
    _check_counts(data, format_name)
    match format_name:
        case "vtk":
            _check_vtk(data)
        case "xdmf":
            check_xdmf(data, path.parent)
    return format_name, data


def _read_bytes(path: Path) -> bytes:
    try:
        with open_regular(path) as stream:
            _check_extension(path.suffix)
            data = stream.read()
    except FileNotFoundError:
        raise UnreadableError("does not exist") from None
    except IsADirectoryError:
        raise UnreadableError("is a folder, not a mesh file") from None
    except SpecialFileError as error:
        raise UnreadableError(f"is {error.strerror}") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not data.strip():
        raise UnreadableError("is empty")
    return data


def _check_extension(extension: str) -> None:
    if extension.lower() not in FORMATS:
        had = f"has the extension {extension!r}, which" if extension else "has no extension, which"
        raise UnreadableError(f"{had} should be one of {' '.join(FORMATS)}")


def _check_opening(data: bytes, format_name: str, extension: str) -> None:
    """Raise UnreadableError if the first bytes belong to another format, naming it if it is known."""
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    other = next((what for magic, what in OTHER_FILES.items() if start.startswith(magic)), None)
    opening = OPENINGS.get(format_name)
    if (other is not None) if opening is None else (opening.match(start) is None):
        raise UnreadableError(f"is not a {extension} file" + (f": it looks like {other}" if other else ""))


def _check_counts(data: bytes, format_name: str) -> None:
    """Raise UnreadableError if a file announces more items than it has bytes: readers allocate what is announced."""
    pattern = COUNTS.get(format_name)
    if pattern is None:
        return
    # The second line of a VTK file is free text.
    begin = data.find(b"\n", data.find(b"\n") + 1) + 1 if format_name == "vtk" else 0
    for match in pattern.finditer(data, begin):
        announced = [
            count for word in match[match.lastindex or 0].split() if (count := _parse_announced(word)) is not None
        ]
        if match.lastindex == 2:
            announced.append(math.prod(announced))
        if max(announced, default=0) > len(data):
            line = " ".join(match[0].decode(errors="replace").split())[:60]
            raise UnreadableError(f"announces {line!r} and has only {len(data)} bytes: it is damaged or cut short")


def _parse_announced(word: bytes) -> int | None:
    """The whole number that a word stands for, or None; sys.maxsize for a very long one."""
    if len(word) > 40:
        return sys.maxsize if word.isdigit() else None
    try:
        return int(word)
    except ValueError:
        return None


def _check_vtk(data: bytes) -> None:
    """Raise UnreadableError for a grid of another kind, and if meshio would allocate far more than the file lists.

    Both that it allocates, views of every array for each cell and rows of colours, are charged to a budget.
    """
    # Not \s, which also matches line ends: the search would cross all blank lines again from each of them.
    match = re.search(rb"^[ \t]*DATASET[ \t]+(\w+)", data, re.MULTILINE | re.IGNORECASE)
    if match is None:
        raise UnreadableError("has no DATASET: it is damaged or cut short")
    if match[1].upper() != b"UNSTRUCTURED_GRID":
        raise UnreadableError(
            f"contains a {match[1].decode(errors='replace')}, not an UNSTRUCTURED_GRID: save it as one"
        )
    budget = Budget(len(data))
    cells = max((_parse_announced(match[1]) or 0 for match in VTK_CELLS.finditer(data)), default=0)
    arrays = sum(1 for _ in VTK_ARRAYS.finditer(data))
    budget.spend(VIEW * cells * arrays, f"lists {arrays} arrays of {cells} cells, which take")
    items = max((_parse_announced(match[1]) or 0 for match in VTK_ITEMS.finditer(data)), default=0)
    for match in VTK_COLOURS.finditer(data):
        budget.spend(
            8 * items * (_parse_announced(match[1]) or 0), f"lists colours of {items} points or cells, which take"
        )


# z coordinates that differ by less than this fraction of the mesh size are equal.
LEVEL = 1e-9


def read(path: str | os.PathLike[str]) -> Mesh:
    """The planar mesh in a file: gmsh `.msh` 2.2 and 4.1, `.vtk`, `.vtu`, `.xdmf`, `.mesh`, `.obj`, `.off`.

    Triangles and quadrilaterals may be mixed. Lines with a physical tag become the tagged boundary and cells with one
    the regions, named as in the file or `tag-<number>`; cells of any other kind are refused. The mesh is checked by
    `build_mesh`, and its `notes` list repairs. Raises MeshReadError, whose one-line message begins with the path, for
    any file that cannot be read.
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
    cells, edges = list_cells(drawing), list_tagged_edges(drawing)
    check_coordinates(drawing.points, origin)
    points = _flatten_points(drawing.points, cells)
    mesh = build_mesh(points, cells, boundary=edges, origin=origin)
    return replace(mesh, notes=drawing.notes + mesh.notes, regions=list_regions(drawing))


def _flatten_points(points: Float[np.ndarray, "points 3"], cells: Corners) -> Points:
    """The x and y coordinates; UnreadableError unless all points of cells have the same z to round-off."""
    # By marking rather than np.unique, which takes a fifth of the time of reading.
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
            f"is a mesh in a plane of constant {flat[0]}; rotate it into the x-y plane, so that z is constant"
        )
    low, high = used[points[used, 2].argmin()], used[points[used, 2].argmax()]
    heights = f"point {low} has z = {points[low, 2]:g} and point {high} has z = {points[high, 2]:g}"
    raise UnreadableError(f"is not a plane mesh: {heights}, where z should be constant")


CELL_DATA_FORMATS = ("vtk", "vtu", "xdmf")


def read_cell_data(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The scalar cell arrays of a `.vtk`, `.vtu` or `.xdmf` file by name, in the order in which `read` lists cells."""
    origin = os.fspath(path)
    try:
        format_name, data = preflight(Path(path))
        if format_name not in CELL_DATA_FORMATS:
            raise UnreadableError("is not of a format whose cell data can be read; use .vtu, .vtk, .xdmf or .npy")
        if format_name == "vtu":
            return read_vtu_cell_data(data)
        mesh = call_reader(Path(path), format_name)
    except UnreadableError as error:
        raise MeshReadError(f"{origin}: {' '.join(str(error).split())}") from error
    kept = [k for k, block in enumerate(mesh.cells) if block.type in CELL_CORNERS]
    fields = {}
    for name, blocks in mesh.cell_data.items():
        arrays = [np.asarray(blocks[k]) for k in kept]
        if arrays and all(a.dtype.kind in "fiu" and a.size == len(a) for a in arrays):
            fields[name] = np.concatenate([a.ravel() for a in arrays]).astype(float)
    return fields


MESH = "a mesh (such as fluxforge.mesh.square()) or the path of a mesh file"


def as_mesh(mesh: Mesh | str | os.PathLike[str], name: str = "mesh") -> Mesh:
    """Return a mesh, or read it from a path; raise InputError, naming the argument, for anything else."""
    return mesh if isinstance(mesh, Mesh) else read(check_path(mesh, name, MESH))
