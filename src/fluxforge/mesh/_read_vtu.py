"""VTK's .vtu files: one unstructured grid in one piece, its arrays in text, base64 or raw, compressed or not.

meshio reads them too, but decodes all that follows an array's offset for every array, and joins packed blocks by
copying: a file of kilobytes may then take gigabytes or hours. Here every array is charged to a budget before it is
allocated, and only those that are used are decoded.
"""

import importlib
import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Float, Int, Num, UInt

from fluxforge.mesh._read_parts import (
    CELL_CORNERS,
    KEPT_CORNERS,
    PACKERS,
    TAG_FIELDS,
    Block,
    Budget,
    Drawing,
    Stored,
    UnreadableError,
    base64_length,
    decode_base64,
    parse_count,
    parse_xml,
    text_numbers,
    unpack_block,
)

HEADERS = {"UInt32": "u4", "UInt64": "u8"}
KINDS = {
    f"{name}{bits}": f"{code}{bits // 8}" for name, code in (("Int", "i"), ("UInt", "u")) for bits in (8, 16, 32, 64)
}
KINDS |= {"Float32": "f4", "Float64": "f8"}
APPENDED, CLOSING = b"<AppendedData", b"</AppendedData>"
RAW_ENCODING = re.compile(rb"""\sencoding\s*=\s*["']raw["']""")
MOST_COMPONENTS = 1_000


def appended_data(data: bytes) -> tuple[bytes | None, int]:
    """The bytes of <AppendedData encoding="raw"> (None if there is none), and where that element's content begins."""
    place = data.find(APPENDED)
    end = data.find(b">", place) if place >= 0 else -1
    if end < 0 or RAW_ENCODING.search(data, place, end) is None:
        return None, len(data)
    begin, close = data.find(b"_", end), data.rfind(CLOSING)
    if begin < 0 or close < begin:
        raise UnreadableError("has appended data without an end tag: it is damaged or cut short")
    return data[begin + 1 : close], end + 1


class VtuArrays:
    """Reads the <DataArray> elements of one document."""

    def __init__(self, tree: ElementTree.Element, raw: bytes | None) -> None:
        header, self.packer = tree.get("header_type", "UInt32"), tree.get("compressor")
        if header not in HEADERS:
            raise UnreadableError(f"has header_type {header!r:.40}; it should be UInt32 or UInt64")
        if self.packer is not None and self.packer not in PACKERS:
            raise UnreadableError(
                f"is compressed with {self.packer!r:.60}, which cannot be read: save it with zlib or uncompressed"
            )
        self.order = ">" if tree.get("byte_order") == "BigEndian" else "<"
        self.header = np.dtype(self.order + HEADERS[header])
        self.raw = raw is not None
        text = (tree.findtext("AppendedData") or "").strip().removeprefix("_").encode()
        self.appended = text if raw is None else raw

    def charge(self, element: ElementTree.Element, budget: Budget) -> None:
        """Charge the size that an array announces, header included; UnreadableError if the file holds less."""
        stored = self._locate_bytes(element)
        if stored is None:
            return
        count = int(self._words(stored, 1)[0])
        held = len(stored.text) - stored.place
        if count > held:
            what = "bytes" if self.packer is None else "compressed blocks"
            raise UnreadableError(f"announces an array of {count} {what} and has {held} bytes left: it is cut short")
        if self.packer is None:
            budget.spend(count)
        elif count:
            budget.spend(_unpacked_size(self._words(stored, 3)) + (3 + count) * self.header.itemsize)

    def read(self, element: ElementTree.Element) -> Num[np.ndarray, "..."]:
        """The numbers of an array that has been charged, in rows if it has several components."""
        kind = KINDS.get(element.get("type", ""))
        if kind is None:
            raise UnreadableError(f"has an array of type {element.get('type')!r:.40}, which is unknown")
        stored = self._locate_bytes(element)
        if stored is None:
            values = text_numbers((element.text or "").encode(), whole=kind[0] in "iu").values
        else:
            content = self._read_plain(stored) if self.packer is None else self._unpack_blocks(stored)
            if len(content) % np.dtype(kind).itemsize:
                raise UnreadableError(
                    f"has an array of {len(content)} bytes, which is not a whole number of {element.get('type')} values"
                )
            values = np.frombuffer(content, self.order + kind).astype(kind)
        return _arrange_in_rows(values, element)

    def _locate_bytes(self, element: ElementTree.Element) -> Stored | None:
        match element.get("format", "ascii"):
            case "ascii":
                return None
            case "binary":
                return Stored(b"".join((element.text or "").encode().split()), 0, raw=False)
            case "appended":
                offset = element.get("offset", "").strip()
                place = parse_count(offset, digits=18)
                if place is None:
                    raise UnreadableError(f"has an array at offset {offset[:40]!r}, which is not a whole number")
                return Stored(self.appended, place, self.raw)
            case other:
                raise UnreadableError(
                    f"has an array in format {other!r:.40}, which cannot be read; only ascii, binary and appended can"
                )

    def _words(self, stored: Stored, count: int) -> UInt[np.ndarray, " count"]:
        """The first words of an array's header."""
        content = stored.decode(0, count * self.header.itemsize)
        return np.frombuffer(content, self.header, count)

    def _read_plain(self, stored: Stored) -> bytes:
        """The bytes of an array that is not packed; in base64 its length and content are encoded together or apart."""
        word = self.header.itemsize
        length = int(self._words(stored, 1)[0])
        if stored.raw:
            return stored.decode(word, length)
        together = len(decode_base64(stored.text[stored.place : stored.place + base64_length(word)])) > word
        if together or not length:
            return stored.decode(0, word + length)[word:]
        return stored.decode(base64_length(word), length)

    def _unpack_blocks(self, stored: Stored) -> bytes:
        """The bytes of a packed array, block by block; UnreadableError for a block that is longer than announced."""
        count = int(self._words(stored, 1)[0])
        if not count:
            return b""
        words = self._words(stored, 3 + count)
        left, size = _unpacked_size(words), words.itemsize * (3 + count)
        lengths = words[3:].tolist()
        packed = memoryview(stored.decode(size if stored.raw else base64_length(size), sum(lengths)))
        blocks, place = [], 0
        for length in lengths:
            blocks.append(unpack_block(packed[place : place + length], str(self.packer), left))
            place, left = place + length, left - len(blocks[-1])
        return b"".join(blocks)


def _unpacked_size(words: UInt[np.ndarray, " words"]) -> int:
    """The length of an unpacked array in bytes, from its header: number, length and last length (0: same) of blocks."""
    count, size, last = (int(word) for word in words[:3])
    return (count - 1) * size + (last or size)


def _arrange_in_rows(values: Num[np.ndarray, " n"], element: ElementTree.Element) -> Num[np.ndarray, "..."]:
    """The numbers, in rows if the array has several components."""
    word = (element.get("NumberOfComponents") or "1").strip()
    columns = parse_count(word, digits=8) or 0
    if not 0 < columns <= MOST_COMPONENTS or len(values) % columns:
        raise UnreadableError(f"has an array of {len(values)} numbers in {word[:40]!r} components: it is damaged")
    return values if columns == 1 else values.reshape(-1, columns)


class Grid(NamedTuple):
    """The cells of a .vtu file by their VTK type and their corners, `begin` to `end` in `connectivity`."""

    points: Float[np.ndarray, "points 3"]
    kind: Int[np.ndarray, " cells"]
    begin: Int[np.ndarray, " cells"]
    end: Int[np.ndarray, " cells"]
    connectivity: Int[np.ndarray, " corners"]


def read_vtu(data: bytes) -> Drawing:
    """The nodes and elements in the bytes of a .vtu file, with tags from the first of TAG_FIELDS that it has."""
    arrays, piece = _open_grid(data)
    grid = _read_grid(arrays, piece)
    names = _name_kinds(grid.kind)
    tags = _read_tags(arrays, piece, len(grid.kind))
    blocks = []
    for number, name in names.items():
        cell = np.flatnonzero(grid.kind == number)
        physical = np.zeros(len(cell), np.int64) if tags is None else tags[cell]
        blocks.append(Block(name, cell, _list_corners(grid, cell, name), physical))
    return Drawing(grid.points, np.arange(len(grid.points)), blocks, {})


def read_vtu_cell_data(data: bytes) -> dict[str, np.ndarray]:
    """The scalar cell arrays of a .vtu file by name, for its triangles and quadrilaterals in the order of the file."""
    arrays, piece = _open_grid(data)
    kind = _read_grid(arrays, piece).kind
    used = np.isin(kind, [number for number, name in _name_kinds(kind).items() if name in CELL_CORNERS])
    fields = {}
    for name, element in _arrays_by_name(piece, "CellData").items():
        values = arrays.read(element)
        if len(values) == len(kind) and values.ndim == 1:
            fields[name] = values[used].astype(float)
    return fields


def _open_grid(data: bytes) -> tuple[VtuArrays, ElementTree.Element]:
    """The arrays and the only piece of a grid; UnreadableError if the arrays together exceed the budget."""
    raw, begin = appended_data(data)
    # Bytes of any value may follow <AppendedData encoding="raw">.
    tree = parse_xml(data if raw is None else data[:begin] + b"</AppendedData></VTKFile>", "VTKFile")
    if tree.get("type") != "UnstructuredGrid":
        raise UnreadableError(f"contains a grid of type {tree.get('type')!r}: save it as an unstructured grid")
    pieces = tree.findall("./UnstructuredGrid/Piece")
    if len(pieces) != 1:
        raise UnreadableError(f"has {len(pieces)} pieces, and exactly one is expected: merge them before saving")
    arrays = VtuArrays(tree, raw)
    budget = Budget(len(data))
    for element in tree.iter("DataArray"):
        arrays.charge(element, budget)
    return arrays, pieces[0]


def _read_grid(arrays: VtuArrays, piece: ElementTree.Element) -> Grid:
    points, cells = _read_count(piece, "NumberOfPoints"), _read_count(piece, "NumberOfCells")
    places = piece.findall("./Points/DataArray")
    if len(places) != 1:
        raise UnreadableError(f"has {len(places)} arrays of points, and exactly one is expected")
    x = arrays.read(places[0])
    if x.ndim != 2 or x.shape != (points, x.shape[1]) or x.shape[1] not in (2, 3):
        raise UnreadableError(f"announces NumberOfPoints={points} and lists points of shape {x.shape}: it is damaged")
    listed = _arrays_by_name(piece, "Cells")
    for name in ("connectivity", "offsets", "types"):
        if name not in listed:
            raise UnreadableError(f"has no array {name!r} among its <Cells>")
    connectivity, end, kind = (
        _read_whole_numbers(arrays, listed[name]) for name in ("connectivity", "offsets", "types")
    )
    if not len(end) == len(kind) == cells:
        raise UnreadableError(f"announces NumberOfCells={cells} and lists {len(end)} offsets and {len(kind)} types")
    begin = np.concatenate([[0], end[:-1]])[:cells]
    if (begin > end).any() or (cells and (end[0] < 0 or end[-1] > len(connectivity))):
        raise UnreadableError("has offsets that do not fit its connectivity: it is damaged")
    return Grid(np.pad(x.astype(np.float64), ((0, 0), (0, 3 - x.shape[1]))), kind, begin, end, connectivity)


def _arrays_by_name(piece: ElementTree.Element, section: str) -> Mapping[str, ElementTree.Element]:
    return {element.get("Name", ""): element for element in piece.findall(f"./{section}/DataArray")}


def _read_count(piece: ElementTree.Element, name: str) -> int:
    text = piece.get(name) or ""
    count = parse_count(text.strip(), digits=18)
    if count is None:
        raise UnreadableError(f"has {name}={text[:40]!r}, which is not a whole number")
    return count


def _read_whole_numbers(arrays: VtuArrays, element: ElementTree.Element) -> Int[np.ndarray, " n"]:
    values = arrays.read(element).ravel()
    # No mesh has 2⁵³ points; larger unsigned numbers would wrap.
    if values.dtype.kind not in "iu" or (values.dtype == np.uint64 and (values > np.uint64(2**53)).any()):
        raise UnreadableError(f"has values of {element.get('Name')!r} that are not whole numbers")
    return values.astype(np.int64)


def _name_kinds(kind: Int[np.ndarray, " cells"]) -> dict[int, str]:
    """The VTK types that occur, by the names that meshio gives them."""
    known = importlib.import_module("meshio._vtk_common").vtk_to_meshio_type
    numbers = np.unique(kind).tolist()
    for number in numbers:
        if number not in known:
            raise UnreadableError(f"has cells of an unknown type ({number})")
    return {number: known[number] for number in numbers}


def _list_corners(grid: Grid, cell: Int[np.ndarray, " n"], name: str) -> Int[np.ndarray, "n corners"]:
    """The corners of cells of one kind, a row per cell; kinds that cannot be used have rows without columns."""
    wanted = KEPT_CORNERS.get(name)
    if wanted is None:
        return np.empty((len(cell), 0), np.int64)
    if (bad := np.flatnonzero(grid.end[cell] - grid.begin[cell] != wanted)).size:
        k = cell[bad[0]]
        raise UnreadableError(f"lists {grid.end[k] - grid.begin[k]} corners for cell {k}, a {name}, which has {wanted}")
    return grid.connectivity[grid.begin[cell][:, None] + np.arange(wanted)]


def _read_tags(arrays: VtuArrays, piece: ElementTree.Element, cells: int) -> Num[np.ndarray, " cells"] | None:
    listed = _arrays_by_name(piece, "CellData")
    for name in TAG_FIELDS:
        if name in listed:
            values = arrays.read(listed[name]).ravel()
            if values.dtype.kind in "iu" and len(values) == cells:
                return values.astype(np.int64)
    return None
