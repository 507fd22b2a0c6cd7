"""The parts of mesh files: numbers and arrays in text, binary, base64 or compressed; XML; blocks of elements.

No count in a file is trusted: reading more numbers than there are is an error, not an allocation, and what is not
written out in the file is charged to a budget of memory.
"""

import abc
import binascii
import importlib
import lzma
import re
import warnings
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, NoReturn
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Float, Int, Num


class UnreadableError(Exception):
    """Why a file cannot be read, without the path: `read` turns it into a MeshReadError that begins with the path."""


class AbstractNumbers(abc.ABC):
    """A run of numbers, taken from the front. Taking more than there are is an UnreadableError, not an allocation."""

    @abc.abstractmethod
    def integers(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, which the format writes as int."""

    @abc.abstractmethod
    def sizes(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, which the format writes as size_t: counts, and numbers of nodes and elements."""

    @abc.abstractmethod
    def floats(self, count: int) -> Float[np.ndarray, " count"]:
        """The next `count` numbers, which the format writes as double."""

    def size(self) -> int:
        """The next number, a count."""
        return int(self.sizes(1)[0])


class TextNumbers(AbstractNumbers):
    """Numbers separated by white space."""

    def __init__(self, values: Num[np.ndarray, " n"]) -> None:
        self.values, self.taken = values, 0

    def integers(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, if they are whole."""
        values = self._take(count)
        if values.dtype.kind == "i":
            return values
        # Beyond 2⁵³ not every whole number is a double.
        whole = (np.abs(values) < 2.0**53) & (values == np.floor(values))
        if not whole.all():
            raise UnreadableError(f"has {values[~whole][0]:g} where a whole number is expected")
        return values.astype(np.int64)

    def sizes(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` numbers, if they are whole and not negative."""
        values = self.integers(count)
        if (values < 0).any():
            raise UnreadableError(
                f"has {values[values < 0][0]} where a count or the number of a node or element is expected"
            )
        return values

    def floats(self, count: int) -> Float[np.ndarray, " count"]:
        """The next `count` numbers."""
        return self._take(count).astype(np.float64)

    def rest(self) -> int:
        """The number of values that have not been taken."""
        return len(self.values) - self.taken

    def _take(self, count: int) -> Num[np.ndarray, " count"]:
        if count > self.rest():
            raise _too_few_error(count, self.rest())
        self.taken += count
        return self.values[self.taken - count : self.taken]


class BinaryNumbers(AbstractNumbers):
    """Numbers as bytes; `order` is "<" or ">", `size_bytes` the length of a size_t."""

    def __init__(self, data: bytes, place: int, *, order: str, size_bytes: int) -> None:
        self.data, self.place, self.order, self.size_bytes = data, place, order, size_bytes

    def integers(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` four-byte integers."""
        return self.take(np.dtype(self.order + "i4"), count).astype(np.int64)

    def sizes(self, count: int) -> Int[np.ndarray, " count"]:
        """The next `count` unsigned integers."""
        values = self.take(np.dtype(f"{self.order}u{self.size_bytes}"), count)
        if (values > np.uint64(2**53)).any():
            raise UnreadableError(f"has {values.max()} where a count or the number of a node or element is expected")
        return values.astype(np.int64)

    def floats(self, count: int) -> Float[np.ndarray, " count"]:
        """The next `count` doubles."""
        return self.take(np.dtype(self.order + "f8"), count).astype(np.float64)

    def count_line(self) -> int:
        """The next line as a count: .msh files of version 2 write it in text even if the rest is binary."""
        end = self.data.find(b"\n", self.place, self.place + 64)
        line = self.data[self.place : max(end, self.place)].strip()
        if not line.isdigit():
            raise UnreadableError("does not begin with a count")
        self.place = end + 1
        return int(line)

    def take(self, kind: np.dtype, count: int) -> np.ndarray:
        """The next `count` items of a dtype."""
        available = (len(self.data) - self.place) // kind.itemsize
        if count > available:
            raise _too_few_error(count, available)
        values = np.frombuffer(self.data, kind, count, self.place)
        self.place += count * kind.itemsize
        return values


def _too_few_error(wanted: int, available: int) -> UnreadableError:
    return UnreadableError(
        f"announces {wanted} more numbers, and the file has {available} left: it is damaged or cut short"
    )


def text_numbers(text: bytes, *, whole: bool = False) -> TextNumbers:
    """The numbers of a text; anything else in it is an UnreadableError."""
    kind = np.int64 if whole else np.float64
    # NumPy reads a blank text as one number, −1.
    if not text or text.isspace():
        return TextNumbers(np.empty(0, kind))
    with warnings.catch_warnings():
        # Older NumPy warns where newer raises.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return TextNumbers(np.fromstring(text, dtype=kind, sep=" "))
        except (ValueError, DeprecationWarning):
            raise UnreadableError(f"contains a word that is not a {'whole ' * whole}number") from None


def parse_count(text: str, *, digits: int) -> int | None:
    """The whole number that a text of at most `digits` ASCII digits stands for; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


# In bytes; see Budget. Compression shrinks arrays of regular meshes by a factor of up to a hundred, so valid files stay
# below.
ALLOWANCE, RATIO = 64 * 2**20, 200
# meshio makes a view of every cell array for each run of cells of one kind, of about this many bytes. A valid array has
# a number, of two bytes or more, for each cell: fifty times its size in views, which RATIO covers.
VIEW = 100


class Budget:
    """Bytes that may still be allocated for one mesh file and the files it refers to.

    Every array that is not written out in the file itself is charged here before it is allocated: arrays that share one
    place in the file, packed and unwritten data, lines that are listed once for each of their tags. Memory and time are
    then linear in the size of the files, whatever sizes they announce.
    """

    def __init__(self, size: int) -> None:
        self.left = ALLOWANCE + RATIO * size

    def allow(self, size: int) -> None:
        """Enlarge the budget for another file of `size` bytes that belongs to the mesh."""
        self.left += RATIO * size

    def spend(self, size: int, what: str = "has arrays that take") -> None:
        """Charge `size` bytes; raise UnreadableError beyond the budget, its message beginning with `what`."""
        self.left -= size
        if self.left < 0:
            raise UnreadableError(
                f"{what} far more memory than a mesh file of its size should: it is damaged or malicious"
            )


# The compressors of VTK's XML files that can be read.
PACKERS = ("vtkZLibDataCompressor", "vtkLZMADataCompressor")


class Stored(NamedTuple):
    """An array as a .vtu file stores it: base64 unless `raw`, its header at `place` of `text`."""

    text: bytes
    place: int
    raw: bool

    def decode(self, skip: int, count: int) -> bytes:
        """Return `count` bytes of the array, `skip` bytes (raw) or characters (base64) after its beginning.

        Raises UnreadableError if the file holds fewer.
        """
        begin = self.place + skip
        end = begin + (count if self.raw else base64_length(count))
        # Two characters of padding may be missing at the end of base64.
        if end > len(self.text) + (0 if self.raw else 2):
            held = max(len(self.text) - begin, 0)
            raise UnreadableError(
                f"announces an array of {count} bytes and has {held} left: it is damaged or cut short"
            )
        content = self.text[begin:end]
        content = (content if self.raw else decode_base64(content))[:count]
        if len(content) < count:
            raise UnreadableError("has an array that is damaged or cut short")
        return content


def base64_length(count: int) -> int:
    """The number of base64 characters that encode `count` bytes."""
    return -(-count // 3) * 4


def decode_base64(text: bytes) -> bytes:
    """The bytes that a base64 text encodes; raises UnreadableError if it is not base64."""
    try:
        return binascii.a2b_base64(text)
    except binascii.Error as error:
        raise UnreadableError(f"has an array that is not base64 ({error})") from error


def unpack_block(block: memoryview, packer: str, most: int) -> bytes:
    """Decompress a block; raises UnreadableError if it is damaged or gives more than `most` bytes."""
    unpacker = zlib.decompressobj() if packer == PACKERS[0] else lzma.LZMADecompressor(memlimit=ALLOWANCE)
    try:
        # One byte more than allowed distinguishes a block that ends from one that goes on.
        content = unpacker.decompress(block, most + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise UnreadableError(f"has an array that cannot be decompressed ({error}): it is damaged") from error
    if len(content) > most:
        raise UnreadableError("has an array that unpacks to far more than it announces: it is damaged or malicious")
    if not unpacker.eof:
        raise UnreadableError("has an array whose compressed blocks are cut short")
    return content


# The kinds of cells that a mesh consists of, with their numbers of corners; the kinds whose corners are read; and other
# kinds that a file may contain.
CELL_CORNERS = {"triangle": 3, "quad": 4}
KEPT_CORNERS = {"line": 2, **CELL_CORNERS}
OTHER_ELEMENTS = ("line", "vertex")
# Fields in which formats store the tags of lines, in order of preference.
TAG_FIELDS = ("gmsh:physical", "medit:ref", "cell_tags", "CellEntityIds")


class Block(NamedTuple):
    """Elements of one kind: their numbers in the file, their corners by node number, their physical tag (0: none)."""

    kind: str
    number: Int[np.ndarray, " n"]
    corners: Int[np.ndarray, "n corners"]
    physical: Int[np.ndarray, " n"]


class Drawing(NamedTuple):
    """The nodes and elements that a file lists: points and their numbers, blocks, names of the tags of lines (`names`).

    `regions` are the names of the physical tags of cells.
    """

    points: Float[np.ndarray, "points 3"]
    number: Int[np.ndarray, " points"]
    blocks: Sequence[Block]
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()
    regions: Mapping[int, str] = MappingProxyType({})


def sort_nodes(drawing: Drawing) -> Drawing:
    """Return the drawing with its nodes sorted by number; raises UnreadableError for a number that occurs twice."""
    order = np.argsort(drawing.number, kind="stable")
    number = drawing.number[order]
    if (twice := np.flatnonzero(np.diff(number) == 0)).size:
        raise UnreadableError(f"lists node {number[twice[0]]} twice")
    return drawing._replace(points=drawing.points[order], number=number)


CORNERS = {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}


@cache
def find_kind(gmsh_type: int) -> tuple[str, int]:
    """The name of an element type, as meshio has it, and its number of nodes: (triangle6, 6) for type 9."""
    # meshio takes a while to import, and a mesh that is generated does not need it.
    kind = importlib.import_module("meshio").gmsh.gmsh_to_meshio_type.get(gmsh_type)
    if kind is None:
        raise UnreadableError(f"has elements of type {gmsh_type}, which is unknown")
    order = re.search(r"\d+$", kind)
    return kind, int(order[0]) if order else CORNERS[kind]


DEEPEST, MOST_ELEMENTS = 64, 100_000


class _CarefulBuilder(ElementTree.TreeBuilder):
    """Builds the tree; UnreadableError for a document type (entities may expand without bound), depth or length."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = self.elements = 0

    def doctype(self, name: str, *_: object) -> NoReturn:
        raise UnreadableError(
            f"declares the document type {name!r} (<!DOCTYPE), which is not read: remove the declaration"
        )

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnreadableError(f"has XML elements nested more than {DEEPEST} deep")
        self.elements += 1
        if self.elements > MOST_ELEMENTS:
            raise UnreadableError(f"has more than {MOST_ELEMENTS} XML elements; at most that many are read")
        return super().start(tag, attrs)

    def end(self, tag: str) -> ElementTree.Element:
        self.depth -= 1
        return super().end(tag)


def parse_xml(data: bytes, root: str) -> ElementTree.Element:
    """Parse an XML document; raises UnreadableError unless it is well-formed and `root` is its root element."""
    try:
        tree = ElementTree.fromstring(data, ElementTree.XMLParser(target=_CarefulBuilder()))
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise UnreadableError(f"is not well-formed XML ({error}): it is damaged or cut short") from error
    if tree.tag != root:
        raise UnreadableError(f"is a document of type <{tree.tag}>, and <{root}> was expected")
    return tree
