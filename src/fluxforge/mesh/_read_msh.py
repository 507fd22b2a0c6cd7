"""gmsh's .msh files, versions 2 and 4.1, in text and binary.

Each section is read as a whole by NumPy, and memory is allocated only for numbers that are there, so that a damaged
file takes no more time or memory than its size. Nodes and cells come out in the order of their numbers, whatever the
order of blocks.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fluxforge.mesh._read_parts import (
    AbstractNumbers,
    BinaryNumbers,
    Block,
    Budget,
    Drawing,
    TextNumbers,
    UnreadableError,
    find_kind,
    sort_nodes,
    text_numbers,
)

# Bytes that a line takes for each of its tags on the way to an edge of the mesh: numbers, copies of them, their order.
BYTES_PER_TAG = 200


class EntityBlock(NamedTuple):
    """The elements of one kind in one entity: a row is an element's number, then its corners."""

    entity: tuple[int, int]
    kind: str
    rows: Int[np.ndarray, "n columns"]


def read_entities4(numbers: AbstractNumbers) -> dict[tuple[int, int], tuple[int, ...]]:
    """The physical tags of each entity (dimension, tag)."""
    physicals: dict[tuple[int, int], tuple[int, ...]] = {}
    for dimension, count in enumerate(numbers.sizes(4).tolist()):
        for _ in range(count):
            tag = int(numbers.integers(1)[0])
            numbers.floats(6 if dimension else 3)
            physicals[dimension, tag] = tuple(abs(numbers.integers(numbers.size())).tolist())
            if dimension:
                numbers.integers(numbers.size())
    return physicals


def read_nodes4(numbers: AbstractNumbers) -> tuple[Float[np.ndarray, "points 3"], Int[np.ndarray, " points"]]:
    """The coordinates and the numbers of the nodes."""
    blocks, announced, _, _ = numbers.sizes(4).tolist()
    points, number = [np.empty((0, 3))], [np.empty(0, np.int64)]
    for _ in range(blocks):
        dimension, _, parametric = numbers.integers(3).tolist()
        count = numbers.size()
        number.append(numbers.sizes(count))
        # Parametric nodes carry as many more numbers as their entity has dimensions.
        columns = 3 + (min(max(dimension, 0), 3) if parametric else 0)
        points.append(numbers.floats(count * columns).reshape(count, columns)[:, :3])
    _check_total("nodes", announced, sum(map(len, number)))
    return np.concatenate(points), np.concatenate(number)


def read_elements4(numbers: AbstractNumbers) -> list[EntityBlock]:
    """The elements, block by block."""
    blocks, announced, _, _ = numbers.sizes(4).tolist()
    element_blocks = []
    for _ in range(blocks):
        dimension, tag, gmsh_type = numbers.integers(3).tolist()
        kind, corners = find_kind(gmsh_type)
        count = numbers.size()
        rows = numbers.sizes(count * (1 + corners)).reshape(count, 1 + corners)
        element_blocks.append(EntityBlock((dimension, tag), kind, rows))
    _check_total("elements", announced, sum(len(block.rows) for block in element_blocks))
    return element_blocks


def tag_blocks(
    blocks: Sequence[EntityBlock], physicals: Mapping[tuple[int, int], tuple[int, ...]], budget: Budget
) -> list[Block]:
    """The elements with the physical tags of their entity; lines with several tags are listed once for each.

    Lines times tags may grow as the square of the file's size, so the memory for them is charged to the budget first.
    """
    listed = []
    for block in blocks:
        tags = physicals.get(block.entity, ()) or (0,)
        if block.kind == "line":
            lines = len(block.rows)
            budget.spend(
                BYTES_PER_TAG * lines * len(tags), f"gives {lines} lines {len(tags)} physical tags each, which take"
            )
        else:
            tags = tags[:1]
        rows = np.tile(block.rows, (len(tags), 1)) if len(block.rows) else block.rows
        listed.append(Block(block.kind, rows[:, 0], rows[:, 1:], np.repeat(np.array(tags), len(block.rows))))
    return listed


def _check_total(what: str, announced: int, listed: int) -> None:
    if announced != listed:
        raise UnreadableError(f"announces {announced} {what} and lists {listed}")


SECTION = re.compile(rb"\s*\$(?!End)([A-Za-z]\w*)[^\n]*(?:\n|$)")
# Not \s, which also matches line ends: the search would cross all blank lines again from each of them.
PHYSICAL_NAME = re.compile(rb'^[ \t]*(\d{1,9})[ \t]+(-?\d{1,18})[ \t]+"(.*)"[ \t\r]*$', re.MULTILINE)
BLANK_END = re.compile(rb"\s*\Z")
PARTITIONED = "the mesh is partitioned: tags on the partitions' own curves are not read"


class Layout(NamedTuple):
    """The content of $MeshFormat: version 2 or 4, and for binary files the byte order and the length of a size_t."""

    version: int
    order: str | None
    size_bytes: int


def read_msh(data: bytes) -> Drawing:
    """The nodes and elements in the bytes of a .msh file; raises UnreadableError for a damaged file."""
    sections = _read_sections(data)
    for name in ("Nodes", "Elements"):
        if name not in sections:
            raise UnreadableError(f"has no section ${name}: it is not a mesh, or it is cut short")
    points, number = sections["Nodes"]
    blocks = sections["Elements"]
    if sections["MeshFormat"].version == 4:
        blocks = tag_blocks(blocks, sections.get("Entities", {}), Budget(len(data)))
    notes = (PARTITIONED,) if "PartitionedEntities" in sections else ()
    names = sections.get("PhysicalNames") or {}
    return sort_nodes(Drawing(points, number, blocks, names.get(1, {}), notes, names.get(2, {})))


def _read_sections(data: bytes) -> dict[str, Any]:
    """The sections by name: the content of the sections that are used, None for all others."""
    sections: dict[str, Any] = {}
    place = 0
    while BLANK_END.match(data, place) is None:
        match = SECTION.match(data, place)
        if match is None:
            raise UnreadableError(f"has {data[place:].lstrip()[:20]!r} where a section should begin")
        name, place = match[1].decode(), match.end()
        if sections.get(name) is not None:
            raise UnreadableError(f"has two sections ${name}")
        if name not in ("MeshFormat", "Comments") and "MeshFormat" not in sections:
            raise UnreadableError(f"has the section ${name} before $MeshFormat, which should come first")
        try:
            sections[name], place = _read_section(data, name, place=place, layout=sections.get("MeshFormat"))
        except UnreadableError as error:
            raise UnreadableError(f"section ${name} {error}") from error
    return sections


def _read_section(data: bytes, name: str, *, place: int, layout: Layout | None) -> tuple[Any, int]:
    """The content of a section, and the place where the next one begins."""
    content: Any = None
    parser = None if layout is None else _find_parser(layout, name)
    if name == "MeshFormat":
        content, place = _read_layout(data, place)
    elif layout is not None and layout.order is not None and parser is not None:
        binary = BinaryNumbers(data, place, order=layout.order, size_bytes=layout.size_bytes)
        content, place = parser(binary), binary.place
    else:
        begin, place = place, _find_end(data, name, place)
        if parser is not None:
            text = text_numbers(data[begin:place], whole=name == "Elements")
            content = parser(text)
            if text.rest():
                raise UnreadableError(f"has {text.rest()} more numbers than it announces")
        elif name == "PhysicalNames":
            content = _read_names(data[begin:place])
    end = _find_end(data, name, place)
    if data[place:end].strip():
        raise UnreadableError("has more data than it announces")
    return content, end + len(name) + 4  # the length of $End<name>


def _find_parser(layout: Layout, name: str) -> Callable[[Any], Any] | None:
    """The parser of a section; None for a section that is skipped."""
    parsers: dict[str, Callable[[Any], Any]]
    if layout.version == 4:
        parsers = {"Entities": read_entities4, "Nodes": read_nodes4, "Elements": read_elements4}
    elif layout.order is None:
        parsers = {"Nodes": _read_text2_nodes, "Elements": _read_text2_elements}
    else:
        parsers = {"Nodes": _read_binary2_nodes, "Elements": _read_binary2_elements}
    return parsers.get(name)


def _read_layout(data: bytes, place: int) -> tuple[Layout, int]:
    """Read "4.1 0 8": the version, 0 for text or 1 for binary, the length of a size_t; in binary a 1 follows."""
    end = data.find(b"\n", place)
    words = data[place:end].split() if end >= 0 else []
    if len(words) != 3 or words[1] not in (b"0", b"1") or words[2] not in (b"4", b"8"):
        raise UnreadableError(
            "should contain the version, 0 (text) or 1 (binary), and the size of integers, 4 or 8: such as 4.1 0 8"
        )
    version = words[0].decode(errors="replace")
    if not re.fullmatch(r"2(\.[0-2])?|4(\.1)?", version):
        raise UnreadableError(
            f"has version {version[:20]!r}; only 2.2 and 4.1 can be read: save the mesh in one of these"
        )
    order = None
    if words[1] == b"1":
        one = data[end + 1 : end + 5]
        order = {b"\1\0\0\0": "<", b"\0\0\0\1": ">"}.get(one)
        if order is None:
            raise UnreadableError("is binary, and its byte order mark is neither little nor big endian: it is damaged")
        end += 4
    return Layout(int(version[0]), order, int(words[2])), end + 1


def _find_end(data: bytes, name: str, place: int) -> int:
    end = data.find(f"$End{name}".encode(), place)
    if end < 0:
        raise UnreadableError(f"is not closed by $End{name}: the file is cut short")
    return end


def _read_names(text: bytes) -> dict[int, dict[int, str]]:
    """The names of the physical curves and surfaces, by dimension and tag."""
    entries = PHYSICAL_NAME.findall(text)
    count = text.split(maxsplit=1)[:1]
    if count != [str(len(entries)).encode()]:
        announced = count[0][:20].decode(errors="replace") if count else "nothing"
        raise UnreadableError(f"announces {announced} names and lists {len(entries)}: it is damaged")
    names: dict[int, dict[int, str]] = {}
    for dimension, tag, name in entries:
        names.setdefault(int(dimension), {})[abs(int(tag))] = name.decode(errors="replace")
    return names


def _read_text2_nodes(numbers: TextNumbers) -> tuple[Float[np.ndarray, "points 3"], Int[np.ndarray, " points"]]:
    """The coordinates and the numbers of the nodes: rows of number, x, y, z."""
    count = numbers.size()
    rows = numbers.floats(4 * count).reshape(count, 4)
    return rows[:, 1:], TextNumbers(rows[:, 0]).sizes(count)


def _read_binary2_nodes(numbers: BinaryNumbers) -> tuple[Float[np.ndarray, "points 3"], Int[np.ndarray, " points"]]:
    """The coordinates and the numbers of the nodes: a count in text, then rows in binary."""
    count = numbers.count_line()
    rows = numbers.take(np.dtype([("number", numbers.order + "i4"), ("x", numbers.order + "f8", (3,))]), count)
    return rows["x"].astype(np.float64), rows["number"].astype(np.int64)


def _read_text2_elements(numbers: TextNumbers) -> list[Block]:
    """The elements: rows of number, type, how many tags, the tags, the corners."""
    left = numbers.size()
    blocks = []
    while left:
        values = numbers.values[numbers.taken :]
        if len(values) < 3:
            raise UnreadableError(f"ends before its last {left} elements: it is cut short")
        kind, corners = find_kind(int(values[1]))
        tags = _check_tag_count(int(values[2]), len(values))
        width = 3 + tags + corners
        rows = values[: min(left, len(values) // width) * width].reshape(-1, width)
        if not len(rows):
            raise UnreadableError(f"ends before its last {left} elements: it is cut short")
        rows = rows[: _count_alike(rows)]
        blocks.append(_to_block(kind, rows[:, 0], tags=rows[:, 3 : 3 + tags], corners=rows[:, 3 + tags :]))
        numbers.taken += rows.size
        left -= len(rows)
    return blocks


def _read_binary2_elements(numbers: BinaryNumbers) -> list[Block]:
    """The elements: blocks headed by type, how many elements, how many tags."""
    left = numbers.count_line()
    blocks = []
    while left > 0:
        gmsh_type, count, tags = numbers.integers(3).tolist()
        kind, corners = find_kind(gmsh_type)
        if not 0 < count <= left:
            raise UnreadableError(f"has a block of {count} elements, and only {left} more are announced")
        width = 1 + _check_tag_count(tags, len(numbers.data)) + corners
        rows = numbers.integers(count * width).reshape(count, width)
        blocks.append(_to_block(kind, rows[:, 0], tags=rows[:, 1 : 1 + tags], corners=rows[:, 1 + tags :]))
        left -= count
    return blocks


def _to_block(
    kind: str, number: Int[np.ndarray, " n"], *, tags: Int[np.ndarray, "n tags"], corners: Int[np.ndarray, "n corners"]
) -> Block:
    """Elements of one kind as a block; the physical tag is the first tag, 0 for elements without tags."""
    physical = np.abs(tags[:, 0]) if tags.shape[1] else np.zeros(len(number), np.int64)
    return Block(kind, number, corners, physical)


def _count_alike(rows: Int[np.ndarray, "n width"]) -> int:
    """The number of leading rows with the type and number of tags of the first, compared in blocks of growing size."""
    seen, step = 1, 64
    while seen < len(rows):
        same = (rows[seen : seen + step, 1:3] == rows[0, 1:3]).all(axis=1)
        if not same.all():
            return seen + int(same.argmin())
        seen, step = seen + len(same), 4 * step
    return seen


def _check_tag_count(tags: int, most: int) -> int:
    if not 0 <= tags <= most:
        raise UnreadableError(f"gives the number of tags of an element as {tags}, which is not possible: it is damaged")
    return tags
