"""What can be known of a file before a reader touches it: that it is one, of a format we read, and not a trap."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from fluxforge.mesh._read_numbers import UnreadableError
from fluxforge.mesh._read_xml import check_vtu, check_xdmf

# Extension → the format's name in meshio. ".msh" is read by ourselves.
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
# Where a text announces how many items follow. Each item takes at least one byte.
COUNTS: Mapping[str, re.Pattern[bytes]] = MappingProxyType(
    {
        "vtk": re.compile(
            rb"^[ \t]*(?:(?:POINTS|CELLS|CELL_TYPES|POINT_DATA|CELL_DATA|LOOKUP_TABLE|COLOR_SCALARS|FIELD)\b([^\n]*)"
            rb"|[^\s\d]\S*((?:[ \t]+\d+){2})[ \t]+(?:" + VTK_TYPES + rb")[ \t\r]*$)",
            re.MULTILINE | re.IGNORECASE,
        ),
        "medit": re.compile(
            rb"^[ \t]*(?:Vertices|Edges|Triangles|Quadrilaterals|[A-Z]\w+)\s+([\d \t]+)$", re.MULTILINE
        ),
        "off": re.compile(rb"\A\s*OFF\s+(?:#[^\n]*\n\s*)*([\d \t]+)"),
    }
)


def preflight(path: Path) -> tuple[str, bytes]:
    """The format's name and the bytes of a file that a reader may touch; otherwise an UnreadableError."""
    format_name = _format_of(path)
    data = _content(path)
    _check_opening(data, format_name, path.suffix)
    _check_counts(data, format_name)
    match format_name:
        case "vtk":
            _check_vtk(data)
        case "vtu":
            check_vtu(data)
        case "xdmf":
            check_xdmf(data, path.parent)
    return format_name, data


def _format_of(path: Path) -> str:
    extension = path.suffix.lower()
    if path.is_dir():
        raise UnreadableError("is a folder, not a mesh file")
    if extension not in FORMATS:
        had = (
            f"the extension {path.suffix!r} is not one" if extension else "there is no extension, and it should be one"
        )
        raise UnreadableError(f"{had} of {' '.join(FORMATS)}")
    return FORMATS[extension]


def _content(path: Path) -> bytes:
    try:
        mode = os.stat(path).st_mode
        # A pipe or a device may never end.
        if not stat.S_ISREG(mode):
            raise UnreadableError("is not a plain file")
        data = path.read_bytes()
    except FileNotFoundError:
        raise UnreadableError("does not exist") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not data.strip():
        raise UnreadableError("is empty")
    return data


def _check_opening(data: bytes, format_name: str, extension: str) -> None:
    """Refuse a file whose first bytes belong to another format, and say which if we know."""
    opening = OPENINGS.get(format_name)
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    looks = next((f": it looks like {what}" for magic, what in OTHER_FILES.items() if start.startswith(magic)), "")
    if opening.match(start) is None if opening else (looks and format_name != "medit"):
        raise UnreadableError(f"is not a {extension.lower()} file{looks}")


def _check_counts(data: bytes, format_name: str) -> None:
    """Refuse a file that announces more items than it has bytes: readers allocate what is announced."""
    pattern = COUNTS.get(format_name)
    for found in pattern.finditer(data) if pattern else ():
        words = b" ".join(group for group in found.groups() if group).split()
        announced = [int(word) for word in words if word.isdigit() and len(word) < 30]
        # In a field array of VTK the two counts multiply.
        product = announced[0] * announced[1] if found.lastindex == 2 and len(announced) == 2 else 0
        if any(len(word) >= 30 and word.isdigit() for word in words) or max([product, *announced], default=0) > len(
            data
        ):
            line = " ".join(found[0].decode(errors="replace").split())[:60]
            raise UnreadableError(f"announces {line!r} and has only {len(data)} bytes: it is damaged or cut short")


def _check_vtk(data: bytes) -> None:
    found = re.search(rb"^\s*DATASET\s+(\w+)", data, re.MULTILINE | re.IGNORECASE)
    if found is None:
        raise UnreadableError("has no DATASET: it is damaged or cut short")
    if found[1].upper() != b"UNSTRUCTURED_GRID":
        raise UnreadableError(f"holds {found[1].decode()}, not an UNSTRUCTURED_GRID: save it as one")
