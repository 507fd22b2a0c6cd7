"""What can be known of a file before a reader touches it: that it is one, of a format we read, and not a trap."""

import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fluxforge._files import SpecialFileError, open_regular
from fluxforge.mesh.files._budget import VIEW, Budget
from fluxforge.mesh.files._numbers import UnreadableError
from fluxforge.mesh.files._xml import check_xdmf

# Extension → the format's name in meshio. ".msh" and ".vtu" are read by ourselves.
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
VTK_CELLS = re.compile(rb"^[ \t]*CELLS[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
VTK_ITEMS = re.compile(rb"^[ \t]*(?:POINT|CELL)_DATA[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
VTK_COLOURS = re.compile(rb"^[ \t]*COLOR_SCALARS[ \t]+\S+[ \t]+(\d+)", re.MULTILINE | re.IGNORECASE)
VTK_ARRAYS = re.compile(
    rb"^[ \t]*(?:(?:SCALARS|VECTORS|TENSORS|NORMALS)\b|\S+(?:[ \t]+\d+){2}[ \t]+(?:" + VTK_TYPES + rb")[ \t\r]*$)",
    re.MULTILINE | re.IGNORECASE,
)
# Where a text announces how many items follow: one count or a few, or two that multiply. An item takes a byte or more.
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
    """The format's name and the bytes of a file that a reader may touch; otherwise an UnreadableError."""
    data = _content(path)
    format_name = FORMATS[path.suffix.lower()]
    _check_opening(data, format_name, path.suffix.lower())
    _check_counts(data, format_name)
    match format_name:
        case "vtk":
            _check_vtk(data)
            _check_vtk_arrays(data)
        case "xdmf":
            check_xdmf(data, path.parent)
    return format_name, data


def _content(path: Path) -> bytes:
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
    """Refuse a file whose first bytes belong to another format, and say which if we know."""
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    other = next((what for magic, what in OTHER_FILES.items() if start.startswith(magic)), None)
    opening = OPENINGS.get(format_name)
    if (other is not None) if opening is None else (opening.match(start) is None):
        raise UnreadableError(f"is not a {extension} file" + (f": it looks like {other}" if other else ""))


def _check_counts(data: bytes, format_name: str) -> None:
    """Refuse a file that announces more items than it has bytes: readers allocate what is announced."""
    pattern = COUNTS.get(format_name)
    if pattern is None:
        return
    # The second line of a VTK file is free text.
    begin = data.find(b"\n", data.find(b"\n") + 1) + 1 if format_name == "vtk" else 0
    for found in pattern.finditer(data, begin):
        announced = [count for word in found[found.lastindex or 0].split() if (count := _whole(word)) is not None]
        if found.lastindex == 2:
            announced.append(math.prod(announced))
        if max(announced, default=0) > len(data):
            line = " ".join(found[0].decode(errors="replace").split())[:60]
            raise UnreadableError(f"announces {line!r} and has only {len(data)} bytes: it is damaged or cut short")


def _whole(word: bytes) -> int | None:
    """The whole number a word stands for, or None; one too long to matter counts as huge."""
    if len(word) > 40:
        return sys.maxsize if word.isdigit() else None
    try:
        return int(word)
    except ValueError:
        return None


def _check_vtk(data: bytes) -> None:
    # Within a line: \s would cross blank lines, from each of them anew.
    found = re.search(rb"^[ \t]*DATASET[ \t]+(\w+)", data, re.MULTILINE | re.IGNORECASE)
    if found is None:
        raise UnreadableError("has no DATASET: it is damaged or cut short")
    if found[1].upper() != b"UNSTRUCTURED_GRID":
        raise UnreadableError(f"holds {found[1].decode(errors='replace')}, not an UNSTRUCTURED_GRID: save it as one")


def _check_vtk_arrays(data: bytes) -> None:
    """Charge what meshio makes of arrays beside the numbers they list: views for each cell, rows of colours."""
    budget = Budget(len(data))
    cells = max((_whole(found[1]) or 0 for found in VTK_CELLS.finditer(data)), default=0)
    arrays = sum(1 for _ in VTK_ARRAYS.finditer(data))
    budget.spend(VIEW * cells * arrays, f"lists {arrays} arrays of {cells} cells, which is")
    items = max((_whole(found[1]) or 0 for found in VTK_ITEMS.finditer(data)), default=0)
    for found in VTK_COLOURS.finditer(data):
        budget.spend(8 * items * (_whole(found[1]) or 0), f"lists colours of {items} places, which is")
