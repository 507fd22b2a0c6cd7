"""Traps in XML mesh files: entities, other files, and little data that unpacks to much."""

import binascii
import lzma
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import numpy as np

from fluxforge.mesh.files._hdf import check_dataset
from fluxforge.mesh.files._numbers import UnreadableError

DEEPEST = 64
# Unpacked, a file may have this many bytes, plus that many times its own: meshes never shrink so far.
UNPACKED, UNPACKED_RATIO = 64 * 2**20, 200
CHUNK = 2**20
HEADER_TYPES = {"UInt32": "u4", "UInt64": "u8"}
COMPRESSORS = ("vtkZLibDataCompressor", "vtkLZMADataCompressor")
RAW = re.compile(rb'<AppendedData[^>]*encoding="raw"[^>]*>')


class _CarefulBuilder(ElementTree.TreeBuilder):
    """Builds the tree, unless a document type is declared (entities could expand without end) or it is too deep."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    def doctype(self, name: str, *_: object) -> NoReturn:
        raise UnreadableError(
            f"declares the document type {name!r}, which a mesh does not need: remove the declaration"
        )

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnreadableError(f"has elements nested deeper than {DEEPEST}")
        return super().start(tag, attrs)

    def end(self, tag: str) -> ElementTree.Element:
        self.depth -= 1
        return super().end(tag)


def _parsed(data: bytes, root: str) -> ElementTree.Element:
    """The tree of a document with this root element."""
    try:
        tree = ElementTree.fromstring(data, ElementTree.XMLParser(target=_CarefulBuilder()))
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise UnreadableError(f"is not well-formed XML ({error}): it is damaged or cut short") from error
    if tree.tag != root:
        raise UnreadableError(f"is a document of type <{tree.tag}>, and <{root}> was expected")
    return tree


def check_vtu(data: bytes) -> None:
    """Refuse a .vtu that is not one unstructured grid in one piece, or that unpacks to far more than its size."""
    raw = RAW.search(data)
    # Bytes of any value may follow <AppendedData encoding="raw">.
    tree = _parsed(data if raw is None else data[: raw.end()] + b"</AppendedData></VTKFile>", "VTKFile")
    if tree.get("type") != "UnstructuredGrid":
        raise UnreadableError(f"holds a grid of type {tree.get('type')!r}: save it as an unstructured grid")
    header, compressor = tree.get("header_type", "UInt32"), tree.get("compressor")
    if header not in HEADER_TYPES:
        raise UnreadableError(f"has header_type {header!r}; it should be UInt32 or UInt64")
    if compressor is not None and compressor not in COMPRESSORS:
        raise UnreadableError(f"is packed by {compressor!r}, which cannot be read: save it with zlib or uncompressed")
    pieces = tree.findall("./UnstructuredGrid/Piece")
    if len(pieces) != 1:
        raise UnreadableError(f"has {len(pieces)} pieces, and one was expected: merge them before saving")
    if compressor is not None:
        lengths = np.dtype((">" if tree.get("byte_order") == "BigEndian" else "<") + HEADER_TYPES[header])
        left = UNPACKED + UNPACKED_RATIO * len(data)
        for block in _packed_blocks(tree, b"" if raw is None else data[raw.end() :], lengths):
            left -= _unpacked_size(block, compressor, left)
    else:
        _check_announced(pieces[0], len(data))


def _check_announced(piece: ElementTree.Element, size: int) -> None:
    for name in ("NumberOfPoints", "NumberOfCells"):
        words = (piece.get(name) or "").split()
        if len(words) != 1 or not words[0].isascii() or not words[0].isdigit():
            raise UnreadableError(f"has {name}={piece.get(name)!r}, not a count")
        if len(words[0]) > 20 or int(words[0]) > size:
            raise UnreadableError(f"announces {name}={words[0][:40]} and has only {size} bytes: it is damaged")


def _packed_blocks(tree: ElementTree.Element, raw: bytes, kind: np.dtype) -> Iterator[bytes]:
    """The compressed blocks of every array, inline or appended, in base64 or raw."""
    appended = (tree.findtext("AppendedData") or "").strip().removeprefix("_").encode()
    raw = raw[raw.find(b"_") + 1 :]
    for array in tree.iter("DataArray"):
        match array.get("format"):
            case "binary":
                yield from _blocks((array.text or "").strip().encode(), kind, encoded=True)
            case "appended":
                offset = array.get("offset", "")
                if not offset.isdigit() or len(offset) > 18:
                    raise UnreadableError(f"has an array at offset {offset[:40]!r}, not a count")
                yield from _blocks((raw or appended)[int(offset) :], kind, encoded=not raw)


def _blocks(data: bytes, kind: np.dtype, *, encoded: bool) -> Iterator[bytes]:
    """An array begins with a header: how many blocks, two lengths that do not matter here, each block's length."""
    count = _numbers(data, 1, kind, encoded=encoded)[0]
    if count > len(data):
        raise UnreadableError(f"has an array of {count} packed blocks, more than it has bytes: it is damaged")
    lengths = _numbers(data, 3 + count, kind, encoded=encoded)[3:]
    header = (3 + count) * kind.itemsize
    begin = _encoded_length(header) if encoded else header
    if not encoded:
        packed = data[begin : begin + sum(lengths)]
    else:
        packed = _decoded(data[begin : begin + _encoded_length(sum(lengths))])
    place = 0
    for length in lengths:
        yield packed[place : place + length]
        place += length


def _numbers(data: bytes, count: int, kind: np.dtype, *, encoded: bool) -> list[int]:
    source = _decoded(data[: _encoded_length(count * kind.itemsize)]) if encoded else data
    if len(source) < count * kind.itemsize:
        raise UnreadableError("has an array whose packed blocks are cut short")
    return [int(number) for number in np.frombuffer(source, kind, count)]


def _encoded_length(count: int) -> int:
    """How many characters of base64 so many bytes take."""
    return -(-count // 3) * 4


def _decoded(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except binascii.Error as error:
        raise UnreadableError(f"has an array that is not base64 ({error})") from error


def _unpacked_size(block: bytes, compressor: str, most: int) -> int:
    """How long a block is once unpacked, without keeping it; beyond `most` it is refused."""
    unpack: Iterator[int] = _zlib_lengths(block) if compressor == COMPRESSORS[0] else _lzma_lengths(block)
    size = 0
    try:
        for length in unpack:
            size += length
            if size > most:
                raise UnreadableError("unpacks to far more than a mesh of its size: it is damaged, or a trap")
    except (zlib.error, lzma.LZMAError) as error:
        raise UnreadableError(f"has an array that cannot be unpacked ({error}): it is damaged") from error
    return size


def _zlib_lengths(block: bytes) -> Iterator[int]:
    unpacker = zlib.decompressobj()
    while block and not unpacker.eof:
        yield len(unpacker.decompress(block, CHUNK))
        block = unpacker.unconsumed_tail


def _lzma_lengths(block: bytes) -> Iterator[int]:
    unpacker = lzma.LZMADecompressor(memlimit=UNPACKED)
    while not unpacker.eof:
        length = len(unpacker.decompress(block, CHUNK))
        block = b""
        if not length and unpacker.needs_input:
            return
        yield length


def check_xdmf(data: bytes, folder: Path) -> None:
    """Refuse an XDMF whose arrays announce more than they hold, or lie in files other than HDF5 beside it."""
    tree = _parsed(data, "Xdmf")
    for element in tree.iter():
        # The content of <Information> is parsed as XML again.
        if "<!" in (element.text or ""):
            raise UnreadableError("declares a document type within the document, which a mesh does not need")
    for item in tree.iter("DataItem"):
        if "Reference" in item.attrib:
            continue
        announced = _dimensions(item)
        text = (item.text or "").strip()
        match item.get("Format"):
            case "XML":
                if announced > len(text):
                    raise UnreadableError(f"announces an array of {announced} numbers and lists fewer: it is damaged")
            case "HDF":
                check_dataset(text, announced, folder, most_bytes=lambda size: UNPACKED + UNPACKED_RATIO * size)
            case other:
                raise UnreadableError(f"keeps an array in format {other!r}; XML and HDF can be read")


def _dimensions(item: ElementTree.Element) -> int:
    words = (item.get("Dimensions") or "").split()
    if not words or not all(word.isascii() and word.isdigit() and len(word) < 20 for word in words):
        raise UnreadableError(f"has an array with Dimensions={item.get('Dimensions')!r}, not counts")
    return math.prod(int(word) for word in words)
