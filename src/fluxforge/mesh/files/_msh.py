"""gmsh's .msh files, versions 2 and 4.1, in text and binary.

Each section is read whole by NumPy, and no count is believed before the numbers are there, so a damaged file costs no
more time or memory than its size. Nodes and cells come out in the order of their numbers, whatever the order of blocks.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fluxforge.mesh.files import _msh2, _msh4
from fluxforge.mesh.files._budget import Budget
from fluxforge.mesh.files._drawing import Drawing, in_order
from fluxforge.mesh.files._numbers import BinaryNumbers, UnreadableError, text_numbers

SECTION = re.compile(rb"\s*\$(?!End)([A-Za-z]\w*)[^\n]*(?:\n|$)")
# Within a line: \s would cross blank lines, from each of them anew.
PHYSICAL_NAME = re.compile(rb'^[ \t]*(\d{1,9})[ \t]+(-?\d{1,18})[ \t]+"(.*)"[ \t\r]*$', re.MULTILINE)
BLANK = re.compile(rb"\s*\Z")
# By version and whether the file is binary.
PARSERS: dict[tuple[int, bool], dict[str, Callable[[Any], Any]]] = {
    (2, False): {"Nodes": _msh2.text_nodes, "Elements": _msh2.text_elements},
    (2, True): {"Nodes": _msh2.binary_nodes, "Elements": _msh2.binary_elements},
    (4, False): {"Entities": _msh4.entities, "Nodes": _msh4.nodes, "Elements": _msh4.elements},
    (4, True): {"Entities": _msh4.entities, "Nodes": _msh4.nodes, "Elements": _msh4.elements},
}
PARTITIONED = "the mesh is partitioned: tags on the partitions' own curves are not read"


class Layout(NamedTuple):
    """What $MeshFormat says: version 2 or 4, and for binary files the byte order and the length of a size_t."""

    version: int
    order: str | None
    size_bytes: int


def read_msh(data: bytes) -> Drawing:
    """The drawing in the bytes of a .msh file."""
    sections = _sections(data)
    for name in ("Nodes", "Elements"):
        if name not in sections:
            raise UnreadableError(f"has no section ${name}: it is not a mesh, or it is cut short")
    points, number = sections["Nodes"]
    blocks = sections["Elements"]
    if sections["MeshFormat"].version == 4:
        blocks = _msh4.blocks(blocks, sections.get("Entities", {}), Budget(len(data)))
    notes = (PARTITIONED,) if "PartitionedEntities" in sections else ()
    return in_order(Drawing(points, number, blocks, sections.get("PhysicalNames", {}), notes))


def _sections(data: bytes) -> dict[str, Any]:
    """The sections by name: what was read of those that matter, None for the others."""
    sections: dict[str, Any] = {}
    place = 0
    while BLANK.match(data, place) is None:
        found = SECTION.match(data, place)
        if found is None:
            raise UnreadableError(f"has {data[place:].lstrip()[:20]!r} where a section should begin")
        name, place = found[1].decode(), found.end()
        if sections.get(name) is not None:
            raise UnreadableError(f"has two sections ${name}")
        if name not in ("MeshFormat", "Comments") and "MeshFormat" not in sections:
            raise UnreadableError(f"has the section ${name} before $MeshFormat, which should come first")
        try:
            sections[name], place = _section(data, name, place=place, layout=sections.get("MeshFormat"))
        except UnreadableError as error:
            raise UnreadableError(f"section ${name} {error}") from error
    return sections


def _section(data: bytes, name: str, *, place: int, layout: Layout | None) -> tuple[Any, int]:
    """What a section holds, and where the next one begins."""
    if name == "MeshFormat":
        layout, place = _layout(data, place)
        return layout, _closed(data, name, place)
    parser = None if layout is None else PARSERS[layout.version, layout.order is not None].get(name)
    if parser is None or layout is None:
        end = _end(data, name, place)
        return (_names(data[place:end]) if name == "PhysicalNames" else None), _closed(data, name, end)
    if layout.order is not None:
        binary = BinaryNumbers(data, place, order=layout.order, size_bytes=layout.size_bytes)
        return parser(binary), _closed(data, name, binary.place)
    end = _end(data, name, place)
    text = text_numbers(data[place:end], whole=name == "Elements")
    content = parser(text)
    if text.rest():
        raise UnreadableError(f"holds {text.rest()} numbers more than it announces")
    return content, _closed(data, name, end)


def _layout(data: bytes, place: int) -> tuple[Layout, int]:
    """Read "4.1 0 8": the version, 0 for text or 1 for binary, the length of a size_t; in binary a 1 follows."""
    end = data.find(b"\n", place)
    words = data[place:end].split() if end >= 0 else []
    if len(words) != 3 or words[1] not in (b"0", b"1") or words[2] not in (b"4", b"8"):
        raise UnreadableError("should say version, 0 or 1, and 4 or 8, as in 4.1 0 8")
    version = words[0].decode(errors="replace")
    if not re.fullmatch(r"2(\.[0-2])?|4(\.1)?", version):
        raise UnreadableError(f"says version {version[:20]!r}; versions 2.2 and 4.1 can be read: save the mesh as one")
    order = None
    if words[1] == b"1":
        one = data[end + 1 : end + 5]
        order = {b"\1\0\0\0": "<", b"\0\0\0\1": ">"}.get(one)
        if order is None:
            raise UnreadableError("says binary, and the byte order mark is neither little nor big endian")
        end += 4
    return Layout(int(version[0]), order, int(words[2])), end + 1


def _end(data: bytes, name: str, place: int) -> int:
    end = data.find(f"$End{name}".encode(), place)
    if end < 0:
        raise UnreadableError(f"is not closed by $End{name}: the file is cut short")
    return end


def _closed(data: bytes, name: str, place: int) -> int:
    """Where the text after $End<name> begins; only white space may stand before that."""
    end = _end(data, name, place)
    if data[place:end].strip():
        raise UnreadableError("holds more than it announces")
    return end + len(name) + 4


def _names(text: bytes) -> dict[int, str]:
    """The names of the physical curves, by tag."""
    found = PHYSICAL_NAME.findall(text)
    count = text.split(maxsplit=1)[:1]
    if count != [str(len(found)).encode()]:
        announced = count[0][:20].decode(errors="replace") if count else "nothing"
        raise UnreadableError(f"announces {announced} names and lists {len(found)}: it is damaged")
    return {abs(int(tag)): name.decode(errors="replace") for dimension, tag, name in found if int(dimension) == 1}
